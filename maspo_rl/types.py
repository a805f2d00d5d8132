"""The values that travel between the rooms. Frozen, and importing nothing of ours.

`torch` is named in annotations only, so that rooms without tensors (verifier, data) start without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Prompt:
    """One problem, ready to be sampled from.

    `id` is stable over runs and machines; `token_ids` is the rendered template; `text` is the problem as a person
    reads it; `gold` is always a string; `dataset` names the verifier rules that judge it.
    """

    id: str
    token_ids: tuple[int, ...]
    text: str
    gold: str
    dataset: str


@dataclass(frozen=True, slots=True)
class Rollout:
    """One sampled response: token ids as sampled (stop token included), never re-encoded text.

    `logprobs` are the engine's natural logs at the sampling temperature, one per token, or none where
    `SamplingSettings.logprobs` is false. `version` is the policy version that sampled all of it. `text` is for the
    verifier and for people.
    """

    prompt_id: str
    sample_index: int
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish_reason: Literal["stop", "length"]
    version: int
    seed: int


class Label(StrEnum):
    """What the verifier says of a response. The last three are not judgements of the policy's mathematics."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNPARSEABLE = "unparseable"
    TIMEOUT = "timeout"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement. `reward` None means "not judged": left out of its group and counted, never paid 0."""

    label: Label
    reward: float | None
    extracted: str | None
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Group:
    """All judged samples of one prompt in one step. The three tuples run in parallel.

    `rewards` are the verdicts' rewards after shaping (overlong punishment and the like); `greedy_reward` is that of a
    response at temperature 0, sampled where the advantage asks for it.
    """

    prompt: Prompt
    rollouts: tuple[Rollout, ...]
    verdicts: tuple[Verdict, ...]
    rewards: tuple[float, ...]
    greedy_reward: float | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """Response tokens and sequences of the WHOLE optimiser step, over all ranks and micro-batches."""

    tokens: int
    sequences: int


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """The response tokens of a micro-batch, flat: N tokens, S sequences, no padding.

    Log-probabilities are natural logs at the sampling temperature, float32 (float64 in tests). Only `logprob` and
    `entropy` may carry a gradient. `sequence[N]` gives the row 0..S-1 of each token, `group[S]` the prompt of each
    row. Tokens lie in the order of their sequences; a sequence lies wholly inside one micro-batch, a group need not.

    `proxy_logprob` is that of the token under the policy filtered by min-p and renormalised: log(pi / kept mass) where
    pi is at least that share of the largest probability, minus infinity where it is less.
    """

    logprob: Tensor
    old_logprob: Tensor
    rollout_logprob: Tensor
    advantage: Tensor
    sequence: Tensor
    group: Tensor
    totals: Totals
    reference_logprob: Tensor | None = None
    entropy: Tensor | None = None
    proxy_logprob: Tensor | None = None


@dataclass(frozen=True, slots=True)
class RewardBatch:
    """The rewards of a rollout batch, flat over its S sequences.

    One entry per group index: `prompt_ids`, and `greedy_reward`, the reward of a response sampled at temperature 0.
    """

    reward: Tensor
    correct: Tensor
    length: Tensor
    group: Tensor
    prompt_ids: tuple[str, ...]
    greedy_reward: Tensor | None = None


Reduce = Callable[["Tensor", Literal["sum", "max", "min"]], "Tensor"]
"""Combines a tensor over all ranks and returns the result on each; the identity on a single rank."""
