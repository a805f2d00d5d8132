"""Numbers that warn of a run going wrong, or stop it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class GuardConfig:
    """Trips when its metric has been on the wrong side of `threshold` for `steps` steps in a row; null: never."""

    threshold: float | None = None
    steps: int = 1
    # warn: say so and keep the step's samples; stop: that, and end the run; skip: refuse the update (ratio, grad_norm)
    action: str = field(default="warn", metadata={"choices": ("warn", "stop", "skip")})


@dataclass
class GuardsConfig:
    """One guard each; thresholds are in the metric's own unit."""

    # largest importance ratio among a step's tokens, above
    ratio: GuardConfig = field(default_factory=lambda: GuardConfig(1e4))
    # gradient norm before clipping (mean over a step's updates; an update's own for skip), above
    grad_norm: GuardConfig = field(default_factory=lambda: GuardConfig(1e3))
    # updates left out of a step, above
    skipped: GuardConfig = field(default_factory=lambda: GuardConfig(0.0))
    # mean entropy of the policy at the sampled tokens, nats, below
    entropy: GuardConfig = field(default_factory=lambda: GuardConfig(1e-4, 10))
    # mean response length, tokens, below
    length: GuardConfig = field(default_factory=lambda: GuardConfig(2.0, 10))
    # share of responses cut off by the length limit, above
    truncated: GuardConfig = field(default_factory=lambda: GuardConfig(0.9, 10))
    # mean reward moves by no more than this
    reward: GuardConfig = field(default_factory=lambda: GuardConfig(0.0, 50))
