"""A run explained and checked before anything is started: one dictionary, and all that is wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from maspo_rl.config.check import Catalogue, check, check_fills_a_step
from maspo_rl.config.derived import compute_dtype, evaluation_data, run_directory, transfer_backend
from maspo_rl.config.errors import InputError
from maspo_rl.config.keys import choices
from maspo_rl.config.load import load
from maspo_rl.config.ranges import out_of_range
from maspo_rl.config.schema import Config


@dataclass
class Plan:
    """`sections` by name; `problems` keep the run from starting, `warnings` do not."""

    sections: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def attempt(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """What the call gives; None, and its problem or warning among the others, where it cannot give it."""
        try:
            return call(*arguments, **named)
        except InputError as error:
            told = "\n".join(self.problems)  # the check may have said it in a longer line
            self.problems += [line for line in str(error).splitlines() if line not in told]
        except ConnectionError as error:
            self.warnings.append(str(error))
        return None


def make_plan(overrides: list[str], gpu: str | None = None) -> Plan:
    """The plan of `maspo-rl train <overrides>`, with times if `gpu` names one. Starts nothing, reads no weight.

    Raises InputError where there is no configuration to explain: an unknown key, a wrong type.
    """
    config = load(overrides)
    # Imported here: a misspelt key must be told before torch is.
    from maspo_rl import advantages  # noqa: PLC0415
    from maspo_rl.data import embedded_policy_path  # noqa: PLC0415
    from maspo_rl.objectives.compose import build_policy_loss  # noqa: PLC0415

    plan = Plan({"run": _words(config)})
    plan.problems += check(config, Catalogue(build_policy_loss, advantages.build, embedded_policy_path()))
    loss = plan.attempt(build_policy_loss, config.algorithm)
    advantage = plan.attempt(advantages.build, **config.algorithm.advantage)
    _explain(plan, config, loss, gpu, greedy=getattr(advantage, "needs_greedy", False))
    return plan


def _explain(plan: Plan, config: Config, loss: Any, gpu_name: str | None, *, greedy: bool) -> None:
    import torch  # noqa: PLC0415

    from maspo_rl.data import load_tokenizer  # noqa: PLC0415
    from maspo_rl.planning import batch, hardware, memory, model  # noqa: PLC0415

    gpu = plan.attempt(hardware.known_gpu, gpu_name, config)
    source = plan.attempt(model.readable_source, config.model.path, config.model.revision)
    tokenizer = source and plan.attempt(load_tokenizer, source, config.model.revision)
    shape = source and plan.attempt(model.read_shape, source, config.model.revision)
    training, heldout = _prompts(plan, config, tokenizer)
    if loss is None or any(out_of_range(config)) or config.eval.data not in (None, *choices("data")):
        return
    step = batch.step_shape(config, loss, training, greedy=greedy)
    plan.sections["batch"] = batch.batch_section(config, step, training)
    plan.sections["tokens_a_sequence"] = batch.lengths_section(config, step, shape.positions if shape else None)
    if not (tokenizer and shape):
        return
    ends = model.declared_ends(source, config.model.revision)
    if tokens := plan.attempt(model.tokens_section, config, tokenizer, ends, shape.vocabulary):
        plan.sections["tokens"] = tokens
        plan.warnings += model.token_warnings(config, tokenizer, ends, shape.vocabulary)
    dtype, backend = compute_dtype(config.model, config.cluster), transfer_backend(config)
    size, evaluated = memory.SIZES[dtype], _evaluations(config) * (heldout or 0) * config.eval.samples
    plan.sections["model"] = {"parameters": shape.parameters, "tensors": shape.tensors, "number_format": dtype}
    plan.sections["memory"] = memory.memory_section(config, shape, dtype, step, loss, gpu)
    plan.sections["moved_per_step"] = hardware.moved_section(config, shape, size, step, backend)
    plan.sections["disk"] = hardware.disk_section(config, shape, size, evaluated)
    if gpu:
        plan.sections["time"] = hardware.time_section(config, shape, gpu, step, backend, evaluated)
        plan.problems += _too_large(plan.sections["memory"]["gpu_process_gib"], config, gpu.memory_gib)
    # A run on GPUs may be planned on a machine without.
    if config.cluster.address is None and torch.cuda.is_available() == (config.cluster.gpus_per_node > 0):
        plan.problems += _too_small(plan, config)


def _prompts(plan: Plan, config: Config, tokenizer: Any) -> tuple[Any, int | None]:
    """The training prompts of a local source, where they can be tokenised, and the number of held-out ones."""
    from maspo_rl.data import load_prompts  # noqa: PLC0415
    from maspo_rl.evaluation.hygiene import decontaminate, untokenised  # noqa: PLC0415

    found: dict[str, Any] = {}
    for split, data in (("train", config.data), ("heldout", plan.attempt(evaluation_data, config))):
        if data is None:
            continue
        if not (data.name == "arithmetic" or data.files or (split == "heldout" and data.heldout_files)):
            plan.warnings.append(f"data.hub={data.hub}: its {split} problems are read when the run starts, not here")
            continue
        settings, reader = (data, tokenizer) if tokenizer else untokenised(data)
        found[split] = plan.attempt(load_prompts, settings, reader, split=split, limit=None)
    training, heldout = found.get("train"), found.get("heldout")
    if training and heldout and config.data.decontaminate is None:
        training = decontaminate(training, [heldout])
    if training is not None:
        plan.attempt(check_fills_a_step, config, len(training), "prompts")
    tested = len(heldout.prompts[: config.eval.problems]) if heldout else config.eval.problems
    return (training if tokenizer else None), tested


def _evaluations(config: Config) -> int:
    """How often the run evaluates, as the trainer does it."""
    every, steps = config.eval.every, config.trainer.steps
    last = config.eval.at_end and not (every and steps % every == 0)
    return config.eval.at_start + last + (steps // every if every else 0)


def _too_large(processes: dict[str, Any], config: Config, gpu_gib: float) -> Iterator[str]:
    """What does not fit a GPU."""
    learner, engine, shared = processes["learner"]["total"], processes["engine"], config.cluster.colocate
    if "cache" not in engine:
        yield (
            f"rollout.gpu_memory_fraction={config.rollout.gpu_memory_fraction}: the engine's weights leave no room for "
            "its cache; raise it, or rollout.tensor_parallel"
        )
    if (learner + engine["total"] if shared else max(learner, engine["total"])) > gpu_gib:
        yield (
            f"memory: a learner takes {learner:.1f} GiB and an engine {engine['total']:.1f} of "
            f"{'the same GPU' if shared else 'a GPU each'} of {gpu_gib}; raise learner.zero_stage or learner.ranks, or "
            "lower learner.micro_batch_tokens or rollout.gpu_memory_fraction"
        )


def _too_small(plan: Plan, config: Config) -> Iterator[str]:
    """What this machine has too little of."""
    needed, machine = plan.sections["memory"]["per_node_gib"], os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > machine / 1024**3:
        yield (
            f"memory: the run takes about {needed} GiB, this machine has {machine / 1024**3:.1f}; lower "
            "learner.micro_batch_tokens or rollout.kv_cache_gib"
        )
    directory = run_directory(config).absolute()
    place = next(parent for parent in (directory, *directory.parents) if parent.exists())
    free, most = shutil.disk_usage(place).free / 1024**3, plan.sections["disk"]["run_at_most_bytes"] / 1024**3
    if most > free:
        yield (
            f"run.dir={config.run.dir}: has {free:.1f} GiB free, the run takes {most:.1f}; lower checkpoint.keep, or "
            "name another directory"
        )


def _words(config: Config) -> dict[str, str]:
    """The resolved configuration as one would tell it."""
    algorithm, cluster, rollout, learner = config.algorithm, config.cluster, config.rollout, config.learner
    parts = (
        f"objective {algorithm.objective['name']}, advantage {algorithm.advantage['name']}",
        f", {algorithm.aggregation.mode}",
        f", KL {algorithm.kl.coefficient:g}" if algorithm.kl.coefficient else "",
        f", uniform groups dropped, {algorithm.group_filter.max_refills} refills" * algorithm.group_filter.drop_uniform,
        f", punished over the last {algorithm.overlong.buffer} tokens" if algorithm.overlong.buffer else "",
    )
    every, optimizer = config.checkpoint.every, config.optimizer
    return {
        "directory": str(run_directory(config)),
        "policy": f"{config.model.path}, trained on {config.data.name}, "
        f"evaluated on {config.eval.data or config.data.name}",
        "algorithm": f"{algorithm.name}: {''.join(parts)}",
        "machines": f"{cluster.nodes} node(s) of {cluster.gpus_per_node or 'no'} GPUs: {rollout.engines} engine(s) of "
        f"{rollout.tensor_parallel} device(s), {learner.ranks} learner rank(s) under ZeRO {learner.zero_stage}"
        + ", taking turns on the GPUs"
        * cluster.colocate,
        "sampling": f"temperature {rollout.temperature:g}, top-p {rollout.top_p:g}, top-k {rollout.top_k or 'off'}",
        "optimiser": f"AdamW, rate {optimizer.lr:g} {optimizer.schedule}, {optimizer.warmup_steps} updates of warm-up",
        "evaluation": f"{_evaluations(config)} times, {config.eval.samples} samples a problem",
        "checkpoints": f"{f'every {every} steps' if every else 'at the end'}, the newest {config.checkpoint.keep} kept",
    }
