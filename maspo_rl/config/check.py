"""Every impossible run that can be told before a GPU, Ray or a model is touched: a second now, not minutes later."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from maspo_rl.config.derived import (
    batch_sequences,
    context_tokens,
    evaluation_data,
    evaluation_tokens,
    run_directory,
)
from maspo_rl.config.errors import InputError
from maspo_rl.config.keys import choices, leaves, nearest
from maspo_rl.config.load import read
from maspo_rl.config.ranges import out_of_range, value_at
from maspo_rl.config.schema import Config


@dataclass(frozen=True)
class Catalogue:
    """What other rooms offer by name: dataclasses of objectives and of advantages, and the policy in the package.

    An advantage with a class attribute `needs_group = False` works on single responses; all others compare the
    responses of a group.
    """

    objectives: Mapping[str, type]
    advantages: Mapping[str, type]
    embedded_policy: Path


def check(config: Config, catalogue: Catalogue) -> list[str]:
    """One line for each thing that makes the run impossible: the value, the rule and the remedy. Empty: it can start.

    Needs no GPU, no Ray and no network; a hub model is looked up among the files that are on this machine already.
    """
    problems = [*out_of_range(config), *_names(config, catalogue)]
    if problems:  # what follows computes with these values
        return problems
    rules: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: _batch(config, catalogue),
        lambda: _lengths(config),
        lambda: _model(config, catalogue),
        lambda: _memory(config),
        lambda: _devices(config),
        lambda: _verifier(config),
        lambda: _run_directory(config),
    )
    return [problem for rule in rules for problem in rule()]


def _names(config: Config, catalogue: Catalogue) -> Iterator[str]:
    """Names that only the other rooms can tell, and the hyper-parameters of what they name."""
    for key, settings, known in (
        ("algorithm.objective", config.algorithm.objective, catalogue.objectives),
        ("algorithm.advantage", config.algorithm.advantage, catalogue.advantages),
    ):
        name = settings.get("name")
        if name not in known:
            yield f"{key}.name={name}: unknown; {nearest(str(name), known)}"
            continue
        parameters = {field.name: field for field in fields(known[name]) if field.init}
        for parameter, value in settings.items():
            if parameter == "name":
                continue
            if parameter not in parameters:
                yield f"unknown key '{key}.{parameter}' of {name}: {nearest(parameter, parameters)}"
            elif not _same_kind(parameters[parameter].default, value):
                default = parameters[parameter].default
                yield f"{key}.{parameter}={value}: must be a {_kind(default)}, like its default {default}"
    if config.eval.data is not None and config.eval.data not in choices("data"):
        yield f"eval.data={config.eval.data}: no such file in configs/data; {nearest(config.eval.data, choices('data'))}"


def _kind(value: Any) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def _same_kind(default: Any, value: Any) -> bool:
    return default is MISSING or default is None or value is None or _kind(default) == _kind(value)


def _batch(config: Config, catalogue: Catalogue) -> Iterator[str]:
    """The arithmetic of a step."""
    samples, advantage = config.rollout.samples_per_prompt, config.algorithm.advantage["name"]
    if samples < 2 and getattr(catalogue.advantages[advantage], "needs_group", True):
        yield (
            f"rollout.samples_per_prompt={samples}: the advantage '{advantage}' compares the responses to one prompt "
            "and needs at least 2"
        )
    sequences, updates, ranks = batch_sequences(config), config.trainer.updates_per_step, config.learner.ranks
    batch = f"trainer.prompts_per_step={config.trainer.prompts_per_step} x rollout.samples_per_prompt={samples}"
    if sequences % updates:
        yield (
            f"trainer.updates_per_step={updates}: must divide the {sequences} responses of a step ({batch}); "
            f"try {_divisor_near(sequences, updates)}"
        )
    elif sequences // updates % ranks:
        yield (
            f"learner.ranks={ranks}: must divide the {sequences // updates} responses of an update ({batch}, "
            f"trainer.updates_per_step={updates}); try learner.ranks={_divisor_near(sequences // updates, ranks)}"
        )
    total = config.trainer.steps * updates
    if config.optimizer.warmup_steps > total:
        yield (
            f"optimizer.warmup_steps={config.optimizer.warmup_steps}: the run has {total} updates "
            f"(trainer.steps={config.trainer.steps} x trainer.updates_per_step={updates}); warm up over fewer"
        )


def _divisor_near(number: int, wanted: int) -> int:
    divisors = (candidate for candidate in range(1, number + 1) if number % candidate == 0)
    return min(divisors, key=lambda candidate: abs(candidate - wanted))


def _lengths(config: Config) -> Iterator[str]:
    """Prompts and responses against the context of the engine."""
    context, response = context_tokens(config), config.rollout.max_new_tokens
    for what, prompt, new in (
        ("data.max_prompt_tokens={} + rollout.max_new_tokens={}", config.data.max_prompt_tokens, response),
        (
            "evaluation's max_prompt_tokens={} + max_new_tokens={}",
            evaluation_data(config).max_prompt_tokens,
            evaluation_tokens(config),
        ),
    ):
        if prompt + new > context:
            yield f"{what.format(prompt, new)}: over rollout.max_context={context}; raise it to {prompt + new}, or shorten"
    buffer = config.algorithm.overlong.buffer
    if not 0 <= buffer < response:
        yield f"algorithm.overlong.buffer={buffer}: must lie from 0 (off) to below rollout.max_new_tokens={response}"
    longest = config.data.max_prompt_tokens + response
    if config.learner.micro_batch_tokens < longest:
        yield (
            f"learner.micro_batch_tokens={config.learner.micro_batch_tokens}: must hold one whole sequence, "
            f"{longest} tokens (data.max_prompt_tokens + rollout.max_new_tokens)"
        )


def _model(config: Config, catalogue: Catalogue) -> Iterator[str]:
    """The model's own limits, where its description is on this machine."""
    path = config.model.path
    directory = catalogue.embedded_policy if path == "embedded" else Path(path)
    if directory.is_dir():
        description = directory / "config.json"
        if not description.is_file():
            yield f"model.path={path}: has no config.json; name a directory that a model was saved to"
            return
    elif re.fullmatch(r"[\w.-]+/[\w.-]+", path) and not directory.parent.is_dir():
        found = _cached_description(path, config.model.revision)
        if found is None:
            return
        description = found
    else:
        yield (
            f"model.path={path}: no such directory, and neither 'embedded' nor a hub name owner/name; the files in "
            "configs/model say where their models come from"
        )
        return
    model = json.loads(description.read_text(encoding="utf-8"))
    model = model.get("text_config", model)
    limit, context = model.get("max_position_embeddings"), context_tokens(config)
    if limit is not None and context > limit:
        yield (
            f"a context of {context} tokens (rollout.max_context, or prompt limit + max_new_tokens): "
            f"{path} has {limit} positions; shorten data.max_prompt_tokens or rollout.max_new_tokens"
        )
    heads = model.get("num_attention_heads")
    if heads is not None and heads % config.rollout.tensor_parallel:
        yield f"rollout.tensor_parallel={config.rollout.tensor_parallel}: must divide the {heads} attention heads of {path}"


def _cached_description(name: str, revision: str | None) -> Path | None:
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415  half a second that only hub models pay

    found = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(found) if isinstance(found, str) else None


def _memory(config: Config) -> Iterator[str]:
    """What DeepSpeed's stages can put elsewhere."""
    learner = config.learner
    if learner.offload_optimizer and learner.zero_stage < 1:
        yield f"learner.offload_optimizer=true: needs learner.zero_stage of 1 to 3, is {learner.zero_stage}"
    if learner.offload_parameters and learner.zero_stage != 3:
        yield f"learner.offload_parameters=true: needs learner.zero_stage=3, is {learner.zero_stage}"


def _devices(config: Config) -> Iterator[str]:
    """Engines and learners against the GPUs that the cluster has by its own configuration."""
    cluster, rollout, ranks = config.cluster, config.rollout, config.learner.ranks
    backend, gpus = config.weights.backend, cluster.nodes * cluster.gpus_per_node
    if gpus == 0:
        if backend not in ("auto", "shared_memory"):
            yield f"weights.backend={backend}: needs GPUs, cluster.gpus_per_node=0; use auto"
        if config.model.attention == "flash_attention_2":
            yield "model.attention=flash_attention_2: needs GPUs, cluster.gpus_per_node=0; use auto"
        if cluster.nodes > 1:
            yield f"cluster.nodes={cluster.nodes}: weights reach engines on CPUs through one machine's memory; use 1"
        return
    if backend == "shared_memory":
        yield f"weights.backend=shared_memory: is for CPUs, cluster.gpus_per_node={cluster.gpus_per_node}; use auto"
    if backend == "ipc" and not cluster.colocate:
        yield "weights.backend=ipc: engine and learner must share GPUs; set cluster.colocate=true, or use auto"
    if backend == "nccl" and cluster.colocate:
        yield "weights.backend=nccl: cannot join two processes on one GPU, cluster.colocate=true; use auto"
    if config.model.attention == "flash_attention_2" and config.model.dtype == "float32":
        yield "model.attention=flash_attention_2: needs model.dtype=bfloat16, is float32"
    if rollout.tensor_parallel > cluster.gpus_per_node:
        yield (
            f"rollout.tensor_parallel={rollout.tensor_parallel}: an engine stays on one node, "
            f"cluster.gpus_per_node={cluster.gpus_per_node}"
        )
    engine_gpus = rollout.engines * rollout.tensor_parallel
    engines = f"rollout.engines={rollout.engines} x rollout.tensor_parallel={rollout.tensor_parallel}"
    has = f"cluster.nodes={cluster.nodes} x cluster.gpus_per_node={cluster.gpus_per_node} has {gpus}"
    if cluster.colocate and max(engine_gpus, ranks) > gpus:
        yield f"{engines}, learner.ranks={ranks}: need {max(engine_gpus, ranks)} shared GPUs, {has}"
    if not cluster.colocate and engine_gpus + ranks > gpus:
        yield (
            f"{engines} + learner.ranks={ranks}: need {engine_gpus + ranks} GPUs, {has}; use fewer, or let them take "
            "turns with cluster.colocate=true"
        )


def _verifier(config: Config) -> Iterator[str]:
    try:
        config.verifier.check()
    except ValueError as problem:
        yield str(problem)


# What makes a run the run it is. The rest (machines, deadlines, reports, length) may change between its sittings.
_IDENTITY = ("seed", "model.", "data.", "algorithm.", "optimizer.", "trainer.prompts", "trainer.updates")
_IDENTITY += ("rollout.samples", "rollout.temp", "rollout.top", "rollout.max_new", "rollout.stop")
_IDENTITY += ("verifier.correct", "verifier.wrong", "verifier.format", "verifier.function", "verifier.extraction")


def _run_directory(config: Config) -> Iterator[str]:
    """Can be written, and holds no other run."""
    directory, resume = run_directory(config), config.resume
    if "/" in (config.run.name or "/"):
        yield f"run.name={config.run.name}: must be one word without a slash; the place is run.dir"
        return
    existing = next(parent for parent in (directory, *directory.absolute().parents) if parent.exists())
    try:
        Path(tempfile.mkdtemp(prefix=".maspo-rl-", dir=existing)).rmdir()
    except OSError as error:
        yield f"run.dir={config.run.dir}: {existing} cannot be written ({error.strerror}); name another directory"
        return
    checkpoint = None if resume in ("auto", "never") else Path(resume)
    if checkpoint is not None and not checkpoint.is_dir():
        yield f"resume={resume}: no such checkpoint; use auto, never, or <run>/checkpoints/step_<n>"
        return
    saved = directory / "config.yaml"
    if not saved.exists():
        return
    if resume == "never":
        yield f"resume=never: {directory} holds a run already; choose another run.name, or resume=auto to go on with it"
    elif checkpoint is not None and directory.resolve() not in checkpoint.resolve().parents:
        yield f"resume={resume}: {directory} holds another run already; choose another run.name"
    else:
        yield from _differences(config, saved)


def _differences(config: Config, saved: Path) -> Iterator[str]:
    try:
        before = read(saved)
    except InputError as problem:
        yield str(problem)
        return
    identity = _IDENTITY + (() if config.optimizer.schedule == "constant" else ("trainer.steps",))
    changed = [
        f"{key}={value_at(before, key)} (now {value_at(config, key)})"
        for key, _ in leaves()
        if key.startswith(identity) and value_at(before, key) != value_at(config, key)
    ]
    if changed:
        yield f"{saved.parent} holds a run with {', '.join(changed)}; choose another run.name to keep both"
