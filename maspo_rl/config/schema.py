"""The schema of a run: one dataclass per room, composed by `load` from `configs/` and the command line.

Defaults here are the safe, general ones; what belongs to a model, a data set, an algorithm, a cluster or an
experiment is set by its file in `configs/`. Times are seconds, lengths are tokens, memory is GiB (2**30 bytes).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from maspo_rl.config.algorithm import AlgorithmConfig
from maspo_rl.config.data import DataConfig
from maspo_rl.config.guards import GuardsConfig
from maspo_rl.config.verifier import VerifierConfig


def one_of(default: str, *others: str) -> Any:
    """A string field that takes `default` or one of `others`; `check` reads the choices from the metadata."""
    return field(default=default, metadata={"choices": (default, *others)})


@dataclass
class RunConfig:
    """Where the run lives: `<dir>/<name>/`."""

    name: str | None = None  # null: "<experiment>-<algorithm>-s<seed>", filled in by `load`
    dir: str = "runs"


@dataclass
class ModelConfig:
    """The policy that training starts from."""

    path: str = "embedded"  # "embedded" (the policy in the package), a local directory, or a hub name owner/name
    revision: str | None = None  # commit, branch or tag of a hub model; null: its default branch
    # auto: bfloat16 where the machine multiplies it natively (a GPU, a CPU with AMX or avx512_bf16), else float32
    dtype: str = one_of("auto", "float32", "bfloat16")


@dataclass
class RolloutConfig:
    """Sampling during training: the engines and what each prompt is asked for."""

    samples_per_prompt: int = 8  # responses per prompt: the group size G
    temperature: float = 1.0
    top_p: float = 1.0  # in (0, 1]; below 1 the engine's log-probs are those of the truncated distribution
    top_k: int = 0  # 0: off
    max_new_tokens: int = 1024  # response tokens, stop token included; a longer response is cut and counted
    stop: list[str] = field(default_factory=list)  # strings that end a response, beside the model's own end tokens
    engines: int = 1  # vLLM engines, one actor each
    tensor_parallel: int = 1  # GPUs per engine
    max_context: int | None = None  # prompt and response tokens an engine holds; null: prompt limit + max_new_tokens
    max_sequences: int = 256  # sequences that one engine decodes at a time
    kv_cache_gib: float = 1.0  # key-value cache of an engine on CPU, GiB
    gpu_memory_fraction: float = 0.6  # share of a GPU's memory that an engine may use
    threads: int | None = None  # CPU threads of an engine; null: all cores divided by the engines
    timeout_s: float = 1800.0  # deadline of one rollout batch


@dataclass
class LearnerConfig:
    """The DeepSpeed ranks and how they fit a batch into memory."""

    ranks: int = 1  # data-parallel processes, one actor each
    zero_stage: int = 0  # DeepSpeed ZeRO stage, 0 to 3
    micro_batch_tokens: int = 16384  # most tokens (prompt and response) of one forward pass
    gradient_checkpointing: bool = False
    offload_optimizer: bool = False  # optimiser state in host memory; ZeRO 1 to 3
    offload_parameters: bool = False  # parameters in host memory; ZeRO 3
    threads: int | None = None  # CPU threads of a rank; null: all cores divided by the ranks
    timeout_s: float = 1800.0  # deadline of one call to the ranks: the updates of a step, a transfer, a checkpoint


@dataclass
class OptimizerConfig:
    """AdamW and its learning-rate schedule. A step here is an optimiser update, not a rollout batch."""

    lr: float = 1e-6
    betas: list[float] = field(default_factory=lambda: [0.9, 0.999])
    eps: float = 1e-8
    weight_decay: float = 0.0
    warmup_steps: int = 0  # updates of linear warm-up from 0
    schedule: str = one_of("constant", "cosine", "linear")  # after the warm-up; the last two end at 0
    max_grad_norm: float = 1.0  # global L2 norm that gradients are clipped to


@dataclass
class WeightsConfig:
    """Transfer of the learner's weights to the engines after each step."""

    # auto: shared_memory without GPUs, ipc where engine and learner share GPUs, else nccl
    backend: str = one_of("auto", "shared_memory", "ipc", "nccl")
    # mean |log-prob of engine - of learner| over a step's tokens, nats, above which the run stops; null: 0.001 in
    # float32 (the same weights give 1e-6) and 0.2 in bfloat16 (0.01 to 0.06; weights of another policy 2 to 4)
    max_logprob_gap: float | None = None


@dataclass
class TrainerConfig:
    """The arithmetic of a step: prompts_per_step x samples_per_prompt responses, in updates_per_step equal parts."""

    steps: int = 100  # rollout batches
    prompts_per_step: int = 32
    updates_per_step: int = 1  # optimiser updates (mini-batches) per rollout batch


@dataclass
class CheckpointConfig:
    """When the state of a run is written, and how much of it stays."""

    every: int = 0  # steps between checkpoints; 0: only at the end
    keep: int = 2  # newest checkpoints that stay on disk


@dataclass
class EvalConfig:
    """Evaluation on held-out problems. null: as in training."""

    every: int = 0  # steps between evaluations; 0: never between start and end
    at_start: bool = True
    at_end: bool = True
    data: str | None = None  # a name in configs/data; null: the held-out part of the training data
    problems: int | None = None  # at most this many problems; null: all
    samples: int = 8  # responses per problem: the k of avg@k and pass@k
    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int | None = None  # null: rollout.max_new_tokens


@dataclass
class ClusterConfig:
    """The machines. gpus_per_node 0 means that everything runs on CPUs."""

    address: str | None = None  # of a running Ray cluster ("auto": the one this machine belongs to); null: start one
    nodes: int = 1
    gpus_per_node: int = 0
    colocate: bool = False  # engines and learners take turns on the same GPUs
    start_timeout_s: float = 1800.0  # deadline of placing the actors, and of the start of an engine or a rank
    max_restarts: int = 3  # over a run: engines replaced at most, and starts of the learners anew at most


@dataclass
class ReportConfig:
    """What a run tells while it runs. metrics.jsonl is always written."""

    wandb: str = one_of("auto", "online", "offline", "off")  # auto: online with a key, offline without one
    progress: bool = True  # progress bar on the terminal
    samples_per_step: int = 8  # responses with verdicts that each step keeps on disk


@dataclass
class Config:
    """A whole run."""

    seed: int = 0  # of the data order, the samples and everything else that is drawn
    # auto: go on from the run's newest checkpoint if it has one; never: the run must be new; or a checkpoint's path
    resume: str = "auto"
    run: RunConfig = field(default_factory=RunConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    verifier: VerifierConfig = field(default_factory=VerifierConfig)
    algorithm: AlgorithmConfig = field(default_factory=AlgorithmConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    weights: WeightsConfig = field(default_factory=WeightsConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    guards: GuardsConfig = field(default_factory=GuardsConfig)
    report: ReportConfig = field(default_factory=ReportConfig)
