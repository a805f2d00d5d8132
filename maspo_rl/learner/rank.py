"""One learner rank: an actor around a DeepSpeed engine."""

from __future__ import annotations

import gc
import math
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
import torch
from torch import Tensor

from maspo_rl.cluster.faults import fault_point
from maspo_rl.cluster.process import give_back_memory, redirect_output
from maspo_rl.config.algorithm import AlgorithmConfig
from maspo_rl.config.errors import RunFailure
from maspo_rl.config.guards import GuardConfig, GuardsConfig
from maspo_rl.config.schema import LearnerConfig, OptimizerConfig
from maspo_rl.learner import checkpoint
from maspo_rl.learner.batch import SequenceBatch, Update, plan_updates
from maspo_rl.learner.deepspeed_engine import join_process_group, load_model, start_engine
from maspo_rl.learner.micro_batch import MicroBatch, collate
from maspo_rl.learner.optimizer import learning_rate
from maspo_rl.learner.policy import Policy
from maspo_rl.learner.statistics import Statistics
from maspo_rl.objectives.compose import build_policy_loss
from maspo_rl.objectives.policy_loss import PolicyLoss
from maspo_rl.types import Reduce, TokenBatch
from maspo_rl.weights.sender import WeightSender


class LogprobMismatch(RunFailure):
    """Engine and learner disagree about the log-probs of the tokens that were sampled."""


class NonFiniteUpdate(RunFailure):
    """No update of a step could be applied: every loss or gradient was NaN or infinite."""


@dataclass(frozen=True)
class LearnerSettings:
    """Everything a rank needs to start, resolved on the driver. `total_updates` is the schedule's length."""

    model: str
    revision: str | None
    dtype: str
    temperature: float
    pad_token_id: int
    updates_per_step: int
    total_updates: int
    max_logprob_gap: float
    algorithm: AlgorithmConfig
    learner: LearnerConfig
    optimizer: OptimizerConfig
    guards: GuardsConfig
    on_gpu: bool


class LearnerRank:
    """Owns one share of the policy's training state. All ranks run the same calls in the same order."""

    def __init__(self, settings: LearnerSettings, rank: int, threads: int, log: Path) -> None:
        redirect_output(log)
        self._settings = settings
        self._name = log.stem
        self._rank = rank
        self._ranks = settings.learner.ranks
        self._engine: Any = None
        self._optimizer: Any = None
        self._model: Any = None
        self._reference: Policy | None = None
        self._sender: WeightSender | None = None
        if not settings.on_gpu:
            torch.set_num_threads(threads)

    def place(self) -> tuple[str, str, str, int]:
        """(node id, device id or "", address, a free port): what the others need to find this rank."""
        devices = ray.get_runtime_context().get_accelerator_ids().get("GPU", [])
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = int(probe.getsockname()[1])
        node = ray.get_runtime_context().get_node_id()
        return node, ",".join(devices), ray.util.get_node_ip_address(), port

    def start(self, address: str, port: int) -> int:
        """Joins the group at rank 0's address, and begins a run; returns the process id."""
        settings = self._settings
        timeout_s = settings.learner.timeout_s
        join_process_group(self._rank, self._ranks, address, port, on_gpu=settings.on_gpu, timeout_s=timeout_s)
        self._device = torch.device("cuda", 0) if settings.on_gpu else torch.device("cpu")
        self.begin(settings)
        return os.getpid()

    def begin(self, settings: LearnerSettings) -> None:
        """Loads the policy and starts DeepSpeed: a run's beginning, whatever this process trained before."""
        if self._engine is not None:
            self._engine.destroy()
            self._engine = self._optimizer = self._model = self._reference = self._sender = None
            gc.collect()
        self._settings, learner = settings, settings.learner
        self._dtype = dtype = getattr(torch, settings.dtype)
        source = (settings.model, settings.revision, dtype)
        self._model = load_model(*source, gradient_checkpointing=learner.gradient_checkpointing)
        self._loss = build_policy_loss(settings.algorithm)
        self._engine, self._optimizer = start_engine(
            Policy(self._model, settings.temperature),
            learner,
            settings.optimizer,
            dtype,
            self._device,
            largest_norm=_skipped_above(settings.guards.grad_norm),
        )
        if self._loss.needs_reference:
            reference = load_model(*source, gradient_checkpointing=False).to(self._device)
            self._reference = Policy(reference, settings.temperature).requires_grad_(False)
        self._updates = 0

    def connect(self, backend: str, engines: list[Any], tensor_parallel: int, timeout_s: float) -> None:
        """Opens the weight transfer to the engines."""
        self._sender = WeightSender(
            self._model,
            rank=self._rank,
            backend=backend,
            engines=engines,
            tensor_parallel=tensor_parallel,
            timeout_s=timeout_s,
            movable=self._settings.learner.zero_stage == 0,
        )

    def send_weights(self) -> str | None:
        """Sends the present weights to every engine; the digest of what was sent, which rank 0 knows."""
        fault_point(self._name, "send_weights")
        if self._sender is None:
            raise RuntimeError("not connected to the engines: call connect after start and after each begin")
        return self._sender.send()

    def step(self, batch: SequenceBatch) -> dict[str, float]:
        """All updates on one rollout batch, with `old_logprob` computed once; metrics over all ranks.

        Raises:
            LogprobMismatch: before any update, when the engine's log-probs are not the learner's.
            NonFiniteUpdate: when no update could be applied.
        """
        fault_point(self._name, "step")
        settings = self._settings
        started = time.perf_counter()
        plan = plan_updates(batch, settings.updates_per_step, self._ranks, settings.learner.micro_batch_tokens)
        prepared = [
            [
                collate(batch, rows, settings.pad_token_id, self._device, self._dtype)
                for rows in update.micro_batches[self._rank]
            ]
            for update in plan
        ]
        statistics = Statistics(self._device)
        passes = self._loss.passes
        # At the first update the policy is still the old one while its loss is computed: one pass serves both.
        own_pass = len(passes) == 1 and not self._loss.needs_step
        old = self._old_logprobs(prepared, statistics, skip=int(own_pass))
        references = self._reference_logprobs(prepared)
        scored = time.perf_counter()
        applied = 0
        for part in passes:
            for index, (update, micro_batches) in enumerate(zip(plan, prepared, strict=True)):
                applied += self._update(part, update, micro_batches, old[index], references[index], statistics)
        metrics = statistics.reduced()
        updates = len(plan) * len(passes)
        if not applied:
            raise NonFiniteUpdate(
                f"none of the {updates} updates could be applied: no finite loss and gradient, or a guard that skips; "
                f"weights are unchanged"
            )
        return metrics | {
            "optim/updates": float(applied),
            "optim/skipped": float(updates - applied),
            "optim/lr": self._optimizer.param_groups[0]["lr"],
            "time/old_logprob_s": scored - started,
            "time/update_s": time.perf_counter() - scored,
        }

    def _old_logprobs(
        self, prepared: list[list[MicroBatch]], statistics: Statistics, *, skip: int
    ) -> list[list[Tensor] | None]:
        """Old log-probs of each update's micro-batches; None for the first `skip` updates, which take their own."""
        old: list[list[Tensor] | None] = [None] * skip
        for micro_batches in prepared[skip:]:
            with torch.no_grad():
                old.append([self._forward(micro)[0] for micro in micro_batches])
            for micro, logprob in zip(micro_batches, old[-1] or (), strict=True):
                _add_agreement(statistics, logprob, micro.rollout_logprob)
        if not skip:
            self._check_agreement(statistics)
        return old

    def _reference_logprobs(self, prepared: list[list[MicroBatch]]) -> list[list[Tensor | None]]:
        if self._reference is None:
            return [[None] * len(update) for update in prepared]
        with torch.no_grad():
            return [[self._reference(*micro.inputs, False, None)[0] for micro in update] for update in prepared]

    def _update(
        self,
        part: PolicyLoss,
        update: Update,
        micro_batches: list[MicroBatch],
        old: list[Tensor] | None,
        references: list[Tensor | None],
        statistics: Statistics,
    ) -> bool:
        """One optimiser update; whether it was applied."""
        step = self._observe(part, update, micro_batches, old, references) if part.needs_step and old else None
        total_loss = torch.zeros((), dtype=torch.float64, device=self._device)
        ratio_limit, ratio_beyond = _skipped_above(self._settings.guards.ratio), False
        for index, micro in enumerate(micro_batches):
            self._engine.set_gradient_accumulation_boundary(index == len(micro_batches) - 1)
            logprob, entropy, *proxy = self._forward(micro, part.needs_entropy, part.proxy_kappa)
            if old is None:
                _add_agreement(statistics, logprob.detach(), micro.rollout_logprob)
            tokens = _token_batch(
                micro,
                update,
                logprob,
                logprob.detach() if old is None else old[index],
                references[index],
                entropy,
                *proxy,
            )
            result = part(tokens, step)
            # DeepSpeed averages over ranks; our losses already sum to the step's.
            scale = math.nan if fault_point(self._name, "backward") == "nan" else self._ranks
            self._engine.backward(result.loss * scale, scale_wrt_gas=False)
            total_loss += result.loss.detach()
            for name, metric in result.metrics.items():
                statistics.add(name, *(metric if isinstance(metric, tuple) else (metric,)))
            if ratio_limit < math.inf:
                ratio_beyond |= bool((tokens.logprob - tokens.old_logprob > math.log(ratio_limit)).any())
        if old is None:
            self._check_agreement(statistics)
        # One sum over the ranks decides for both: a ratio beyond its guard makes the loss infinite.
        total_loss += math.inf if ratio_beyond else 0.0
        torch.distributed.all_reduce(total_loss)
        self._optimizer.refuse = not math.isfinite(total_loss.item())
        self._optimizer.set_lr(learning_rate(self._settings.optimizer, self._updates, self._settings.total_updates))
        self._optimizer.applied = False  # DeepSpeed may find an overflow itself and not call it
        self._engine.step()
        if self._optimizer.applied:
            self._updates += 1
            one = torch.ones(1, device=self._device)
            statistics.add("optim/grad_norm", one * self._optimizer.grad_norm)
            statistics.add("policy/loss", total_loss[None])
        return bool(self._optimizer.applied)

    def _observe(
        self,
        part: PolicyLoss,
        update: Update,
        micro_batches: list[MicroBatch],
        old: list[Tensor],
        references: list[Tensor | None],
    ) -> Any:
        """Statistics that the loss needs over the whole update before its first micro-batch."""
        live: list[tuple[Tensor, ...]] = [(logprob,) for logprob in old]
        if part.observes_live:
            with torch.no_grad():
                live = [self._forward(micro) for micro in micro_batches]
        batches = [
            _token_batch(micro, update, logprob, old[index], references[index], *entropy)
            for index, (micro, (logprob, *entropy)) in enumerate(zip(micro_batches, live, strict=True))
        ]
        return part.observe(_joined(batches, update), _all_reduce)

    def _forward(
        self, micro: MicroBatch, entropy_gradient: bool = False, proxy_kappa: float | None = None
    ) -> tuple[Tensor, ...]:
        """Log-probs, entropies and, with a kappa, proxy log-probs of a micro-batch's tokens."""
        scores = self._engine(*micro.inputs, entropy_gradient, proxy_kappa)
        return tuple(scores)

    def _check_agreement(self, statistics: Statistics) -> None:
        gap = statistics.reduced()["policy/logprob_gap"]
        if not gap <= self._settings.max_logprob_gap:
            raise LogprobMismatch(
                f"engine and learner log-probs of the same tokens differ by {gap:.3g} nats on average, above "
                f"weights.max_logprob_gap={self._settings.max_logprob_gap}: the engine sampled with other weights, or "
                f"another temperature, than the learner holds; no update was made"
            )

    def save(self, directory: Path) -> None:
        """Writes this rank's share of the training state, and rank 0 the exported policy."""
        fault_point(self._name, "save")
        give_back_memory()  # the last update's, as what is written lies in memory a second time
        state = {"updates": self._updates, "loss": self._loss.state_dict()}
        checkpoint.save(self._engine, self._model, directory, state, self._rank, self._settings.model)

    def load(self, directory: Path) -> None:
        """Takes back what `save` wrote."""
        state = checkpoint.load(self._engine, directory)
        self._updates = state["updates"]
        self._loss.load_state_dict(state["loss"])


def _skipped_above(guard: GuardConfig) -> float:
    """The value above which an update is refused."""
    skips = guard.action == "skip" and guard.threshold is not None
    return guard.threshold if skips and guard.threshold is not None else math.inf


def _add_agreement(statistics: Statistics, logprob: Tensor, rollout_logprob: Tensor) -> None:
    """Mean |difference|, and the k3 estimate of KL(engine, learner), of the sampled tokens."""
    difference = logprob - rollout_logprob
    statistics.add("policy/logprob_gap", difference.abs())
    statistics.add("policy/mismatch_kl", difference.exp() - difference - 1)


def _token_batch(
    micro: MicroBatch,
    update: Update,
    logprob: Tensor,
    old: Tensor,
    reference: Tensor | None,
    entropy: Tensor | None = None,
    proxy: Tensor | None = None,
) -> TokenBatch:
    return TokenBatch(
        logprob=logprob,
        old_logprob=old,
        rollout_logprob=micro.rollout_logprob,
        advantage=micro.advantage,
        sequence=micro.sequence,
        group=micro.group,
        totals=update.totals,
        reference_logprob=reference,
        entropy=entropy,
        proxy_logprob=proxy,
    )


def _joined(batches: list[TokenBatch], update: Update) -> TokenBatch:
    """One batch of several, sequences renumbered."""
    sequence, offset = [], 0
    for batch in batches:
        sequence.append(batch.sequence + offset)
        offset += len(batch.group)

    def flat(name: str) -> Tensor:
        return torch.cat([getattr(batch, name) for batch in batches])

    return TokenBatch(
        logprob=flat("logprob"),
        old_logprob=flat("old_logprob"),
        rollout_logprob=flat("rollout_logprob"),
        advantage=flat("advantage"),
        sequence=torch.cat(sequence),
        group=flat("group"),
        totals=update.totals,
        reference_logprob=None if batches[0].reference_logprob is None else flat("reference_logprob"),
        entropy=None if batches[0].entropy is None else flat("entropy"),
    )


_OPERATIONS = {
    "sum": torch.distributed.ReduceOp.SUM,
    "max": torch.distributed.ReduceOp.MAX,
    "min": torch.distributed.ReduceOp.MIN,
}


def _reduce(tensor: Tensor, operation: str) -> Tensor:
    result = tensor.clone()
    torch.distributed.all_reduce(result, op=_OPERATIONS[operation])
    return result


_all_reduce: Reduce = _reduce
