"""Terms added to any objective's loss: KL to a reference policy, and an entropy bonus, fixed or controlled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from torch import Tensor

from maspo_rl.objectives.ratio import LOG_RATIO_BOUND
from maspo_rl.registry import require
from maspo_rl.types import Reduce, TokenBatch

KlEstimator = Literal["k1", "k2", "k3", "k3_k2"]
K3_BOUND = 10.0
"""verl clamps k3 to +-10; a token beyond has no gradient, which without the clamp grows as reference / pi."""


def kl_estimate(logprob: Tensor, reference: Tensor, estimator: str) -> Tensor:
    """Single-sample estimate of KL(pi || reference) per token [N] (Schulman, "Approximating KL divergence", 2020).

    With d = logprob - reference and its gradient by logprob: k1 = d (gradient 1: zero on average, it does not hold the
    policy), k2 = d^2 / 2 (gradient d, that of the true KL on average when sampling on policy), k3 = exp(-d) + d - 1
    (gradient 1 - reference / pi), k3_k2 = the value of k3 with the gradient of k2.
    """
    difference = logprob - reference
    if estimator == "k1":
        return difference
    half_square = difference.square() / 2
    if estimator == "k2":
        return half_square
    bounded = difference.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
    k3 = ((-bounded).exp() + bounded - 1).clamp(-K3_BOUND, K3_BOUND)
    return k3 if estimator == "k3" else half_square + (k3 - half_square).detach()


@dataclass(frozen=True)
class Kl:
    """coefficient * KL per token; see `kl_estimate`."""

    coefficient: float
    estimator: str = "k3"

    def __post_init__(self) -> None:
        require(self.coefficient >= 0, "kl.coefficient", self.coefficient, "must be at least 0")
        known = get_args(KlEstimator)
        require(self.estimator in known, "kl.estimator", self.estimator, f"must be one of {', '.join(known)}")

    def estimate(self, batch: TokenBatch) -> Tensor:
        """The estimate for each token [N]. Raises ValueError if the batch has no reference."""
        if batch.reference_logprob is None:
            raise ValueError("TokenBatch.reference_logprob is None: compute it where needs_reference is true")
        return kl_estimate(batch.logprob, batch.reference_logprob, self.estimator)


@dataclass(frozen=True)
class EntropyBonus:
    """loss - coefficient * H per token, H the entropy of the full softmax. Published coefficients: 1e-4 and 1e-3 have
    little effect, 5e-3 holds the entropy, 1e-2 explodes (arXiv 2505.22617, section 4.1)."""

    coefficient: float

    def __post_init__(self) -> None:
        require(self.coefficient >= 0, "entropy_coefficient", self.coefficient, "must be at least 0")

    def observe(self, batch: TokenBatch, reduce: Reduce) -> float:
        """The coefficient of any step."""
        return self.coefficient

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises ValueError for a controller's state."""
        if state:
            raise ValueError(f"the entropy coefficient is fixed, but the checkpoint has {sorted(state)}")


@dataclass
class AdaptiveEntropy:
    """Skywork-OR1's controller (arXiv 2505.22312, section 3.2.5) of the coefficient of the entropy bonus.

    With e_k the step's entropy: applied coefficient alpha_k = c_k if e_k <= target else 0; then c_(k+1) = c_k + delta
    if e_k < target else c_k - delta, clamped to [minimum, maximum] (the authors' code; the paper has no clamp and c may
    turn negative). e_k is the mean of -old_logprob over all tokens of the step, as in the authors' code.
    """

    target: float
    delta: float
    minimum: float
    maximum: float
    coefficient: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        require(self.target > 0, "adaptive_entropy.target", self.target, "must be above 0, or null")
        require(self.delta > 0, "adaptive_entropy.delta", self.delta, "must be above 0")
        require(self.minimum <= 0, "adaptive_entropy.minimum", self.minimum, "must be at most 0, where c starts")
        require(self.maximum >= 0, "adaptive_entropy.maximum", self.maximum, "must be at least 0, where c starts")

    def observe(self, batch: TokenBatch, reduce: Reduce) -> float:
        """Take one step; `batch` holds this rank's part of it. Returns alpha_k."""
        entropy = float(-reduce(batch.old_logprob.double().sum(), "sum")) / max(batch.totals.tokens, 1)
        applied = self.coefficient if entropy <= self.target else 0.0
        moved = self.coefficient + (self.delta if entropy < self.target else -self.delta)
        self.coefficient = min(max(moved, self.minimum), self.maximum)
        return applied

    def state_dict(self) -> dict[str, Any]:
        """The coefficient of the next step."""
        return {"coefficient": self.coefficient}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.coefficient = float(state["coefficient"])
