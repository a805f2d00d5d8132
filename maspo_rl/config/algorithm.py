"""What an algorithm is made of: one file of `configs/algorithm/` composes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from omegaconf import OmegaConf


def _share(part: float, whole: int) -> int:
    return round(part * whole)


OmegaConf.register_new_resolver("share", _share, replace=True)
"""`${share:0.2,${rollout.max_new_tokens}}` in a YAML file: that part of a whole number, rounded."""


AggregationMode = Literal[
    "token-mean",
    "token-sum",
    "token-sum-norm",
    "seq-mean-token-mean",
    "seq-mean-token-sum",
    "seq-mean-token-sum-norm",
    "seq-sum-token-mean",
]


@dataclass
class AggregationConfig:
    """From a loss per token to one number over the optimiser step; the modes are described in docs/algorithms.md."""

    mode: str = field(default="token-mean", metadata={"choices": get_args(AggregationMode)})
    constant: float | None = None  # divisor of the two -norm modes; null for the others


@dataclass
class GroupFilterConfig:
    """Dynamic sampling (DAPO): groups whose rewards are all equal teach nothing."""

    drop_uniform: bool = False
    max_refills: int = 0  # further rollout batches sampled at most to fill the places of dropped groups; 0: none


@dataclass
class OverlongConfig:
    """Soft punishment of long responses (DAPO, eq. 13): added to the reward, from 0 at max_new_tokens - buffer down to
    -factor at max_new_tokens, linearly."""

    buffer: int = 0  # tokens; 0: off
    factor: float = 1.0


@dataclass
class KlConfig:
    """KL to the reference policy (the model that training starts from) as a loss per token."""

    coefficient: float = 0.0  # 0: off, and no reference model is held
    # value and gradient of k1, k2, k3; k3_k2: the value of k3 with the gradient of k2
    estimator: str = field(default="k3", metadata={"choices": ("k1", "k2", "k3", "k3_k2")})


@dataclass
class AdaptiveEntropyConfig:
    """Skywork-OR1's controller of the entropy coefficient (arXiv 2505.22312, section 3.2.5)."""

    target: float | None = None  # nats per token; null: off
    delta: float = 0.0001  # the authors' scripts; the paper says 0.005
    minimum: float = 0.0
    maximum: float = 0.005


@dataclass
class EntropyAdvantageConfig:
    """A + min(alpha H, |A| / kappa) (arXiv 2506.14758, eq. 5); H is the policy's token entropy, without gradient."""

    alpha: float = 0.0  # 0: off; the paper's 0.4 with GRPO
    kappa: float = 2.0  # above 1, so that no advantage changes its sign


@dataclass
class AdvantageReweightingConfig:
    """(alpha q + 1 - alpha) A with q the token's old probability (arXiv 2505.12929, eq. 7)."""

    alpha: float = 0.0  # 0: off; the authors' 0.2 alone, 0.3 with Lopti


@dataclass
class LoptiConfig:
    """Two passes over the batch (arXiv 2505.12929): tokens with q < threshold first, then the others."""

    threshold: float | None = None  # null: off; the authors' 0.4 alone, 0.5 with advantage reweighting
    low_first: bool = True  # false: the control experiment, the other order


@dataclass
class AlgorithmConfig:
    """A whole algorithm. `objective` and `advantage` hold a name and the fields of its dataclass."""

    name: str = "maspo"
    advantage: dict[str, Any] = field(default_factory=lambda: {"name": "grpo"})
    objective: dict[str, Any] = field(default_factory=lambda: {"name": "maspo"})
    aggregation: AggregationConfig = field(default_factory=AggregationConfig)
    group_filter: GroupFilterConfig = field(default_factory=GroupFilterConfig)
    overlong: OverlongConfig = field(default_factory=OverlongConfig)
    kl: KlConfig = field(default_factory=KlConfig)
    entropy_coefficient: float = 0.0  # bonus of entropy_coefficient * H per token; 0: off
    adaptive_entropy: AdaptiveEntropyConfig = field(default_factory=AdaptiveEntropyConfig)
    entropy_advantage: EntropyAdvantageConfig = field(default_factory=EntropyAdvantageConfig)
    advantage_reweighting: AdvantageReweightingConfig = field(default_factory=AdvantageReweightingConfig)
    lopti: LoptiConfig = field(default_factory=LoptiConfig)
