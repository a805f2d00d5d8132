"""From judgements to numbers."""

from __future__ import annotations

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.types import Label


def reward_of(label: Label, boxed: bool, config: VerifierConfig) -> float | None:
    """The reward of a label; None for what was not judged. `boxed`: the answer stood in a closed box."""
    if label not in (Label.CORRECT, Label.WRONG):
        return None
    reward = config.correct_reward if label is Label.CORRECT else config.wrong_reward
    return reward + config.format_reward if boxed else reward


def overlong_penalty(length: int, maximum: int, buffer: int, factor: float = 1.0) -> float:
    """DAPO's soft overlong punishment (arXiv 2503.14476, equation 13), in [-factor, 0]; lengths in response tokens.

    0 up to `maximum - buffer`, then falling linearly to `-factor` at `maximum`. To be added to the reward.
    """
    if not 0 < buffer <= maximum:
        raise ValueError(f"overlong buffer {buffer}: must lie in 1..{maximum}, the maximal response length")
    excess = (length - (maximum - buffer)) / buffer
    return -factor * min(1.0, max(0.0, excess))
