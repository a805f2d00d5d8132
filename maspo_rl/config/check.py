"""Every impossible run that can be told before a GPU, Ray or a model is touched: a second now, not minutes later."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from maspo_rl.config.algorithm import AlgorithmConfig
from maspo_rl.config.derived import (
    batch_sequences,
    context_tokens,
    evaluation_data,
    evaluation_tokens,
)
from maspo_rl.config.errors import InputError
from maspo_rl.config.keys import choices, nearest
from maspo_rl.config.ranges import out_of_range
from maspo_rl.config.run_directory import run_directory_problems
from maspo_rl.config.schema import Config


@dataclass(frozen=True)
class Catalogue:
    """What the check needs from other rooms.

    `policy_loss` and `advantage` build what `algorithm` and `algorithm.advantage` describe and raise `InputError` where
    they cannot. An advantage with the attribute `needs_group = False` works on single responses; all others compare the
    responses of a group.
    """

    policy_loss: Callable[[AlgorithmConfig], object]
    advantage: Callable[..., object]
    embedded_policy: Path


def check_fills_a_step(config: Config, found: int, kind: str) -> None:
    """Raises InputError where the data has fewer prompts (or what `kind` says) than a step takes."""
    if found < (wanted := config.trainer.prompts_per_step):
        raise InputError(
            f"trainer.prompts_per_step={wanted}: {config.data.name} has only {found} {kind}; lower it to at most that"
        )


def check(config: Config, catalogue: Catalogue) -> list[str]:
    """One line for each thing that makes the run impossible: the value, the rule and the remedy. Empty: it can start.

    Needs no GPU, no Ray and no network; a hub model is looked up among the files that are on this machine already.
    """
    problems = [*out_of_range(config), *_evaluation_data(config)]
    if problems:  # what follows computes with these values
        return problems
    rules: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: _algorithm(config, catalogue),
        lambda: _batch(config),
        lambda: _lengths(config),
        lambda: _model(config, catalogue),
        lambda: _memory(config),
        lambda: _devices(config),
        lambda: _verifier(config),
        lambda: _guards(config),
        lambda: run_directory_problems(config),
    )
    return [problem for rule in rules for problem in rule()]


def _evaluation_data(config: Config) -> Iterator[str]:
    data = config.eval.data
    if data is not None and data not in choices("data"):
        yield f"eval.data={data}: no such file in configs/data; {nearest(data, choices('data'))}"


def _algorithm(config: Config, catalogue: Catalogue) -> Iterator[str]:
    """Names and hyper-parameters of the objective and the advantage, and the group that the advantage needs."""
    try:
        catalogue.policy_loss(config.algorithm)
    except InputError as problem:
        yield f"algorithm: {problem}"
    try:
        advantage = catalogue.advantage(**config.algorithm.advantage)
    except InputError as problem:
        yield f"algorithm.advantage: {problem}"
        return
    samples = config.rollout.samples_per_prompt
    if samples < 2 and getattr(advantage, "needs_group", True):
        yield (
            f"rollout.samples_per_prompt={samples}: the advantage '{config.algorithm.advantage['name']}' compares the "
            "responses to one prompt and needs at least 2"
        )


def _guards(config: Config) -> Iterator[str]:
    """Which guards can refuse an update, and over how many steps."""
    for name, guard in vars(config.guards).items():
        if guard.steps < 1:
            yield f"guards.{name}.steps={guard.steps}: must be at least 1"
        if guard.action == "skip" and (name not in ("ratio", "grad_norm") or guard.steps > 1):
            yield f"guards.{name}.action=skip: only ratio and grad_norm, with steps=1, can refuse an update; use stop"


def _batch(config: Config) -> Iterator[str]:
    """The arithmetic of a step."""
    samples = config.rollout.samples_per_prompt
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
    context, prompt, response = context_tokens(config), config.data.max_prompt_tokens, config.rollout.max_new_tokens
    eval_prompt, eval_response = evaluation_data(config).max_prompt_tokens, evaluation_tokens(config)
    if prompt + response > context:
        yield (
            f"data.max_prompt_tokens={prompt} + rollout.max_new_tokens={response}: over rollout.max_context={context}; "
            f"raise it to {prompt + response}, or shorten"
        )
    elif eval_prompt + eval_response > context:
        yield (
            f"in evaluation, max_prompt_tokens={eval_prompt} + max_new_tokens={eval_response}: over "
            f"rollout.max_context={context}; raise it to {eval_prompt + eval_response}, or shorten"
        )
    buffer = config.algorithm.overlong.buffer
    if not 0 <= buffer < response:
        yield f"algorithm.overlong.buffer={buffer}: must lie from 0 (off) to below rollout.max_new_tokens={response}"
    longest = prompt + response
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
        if config.model.revision is not None:
            yield f"model.revision={config.model.revision}: is for a hub model, {path} is a directory; leave it null"
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
    try:
        model = json.loads(description.read_text(encoding="utf-8"))
        model = model.get("text_config", model)
    except (ValueError, AttributeError):
        yield f"model.path={path}: its config.json holds no JSON object; copy the model's directory again"
        return
    limit, context = model.get("max_position_embeddings"), context_tokens(config)
    if limit is not None and context > limit:
        yield (
            f"a context of {context} tokens (rollout.max_context, or prompt limit + max_new_tokens): "
            f"{path} has {limit} positions; shorten data.max_prompt_tokens or rollout.max_new_tokens"
        )
    window = model.get("sliding_window") if model.get("use_sliding_window", True) else None
    if model.get("attn_logit_softcapping") or (window is not None and context > window):
        yield (
            f"model.path={path}: its attention has a soft cap, or a sliding window below the context of {context} "
            f"tokens; the learner has neither, take a model of the Llama or Qwen kind"
        )
    heads = model.get("num_attention_heads")
    parallel = config.rollout.tensor_parallel
    if heads is not None and heads % parallel:
        yield f"rollout.tensor_parallel={parallel}: must divide the {heads} attention heads of {path}"
    if config.cluster.gpus_per_node == 0 and {"num_hidden_layers", "num_attention_heads", "hidden_size"} <= set(model):
        head = model.get("head_dim") or model["hidden_size"] // heads
        numbers = 2 * model["num_hidden_layers"] * model.get("num_key_value_heads", heads) * head * context
        least = numbers * (4 if config.model.dtype == "float32" else 2) / 1024**3
        if config.rollout.kv_cache_gib < least:
            yield (
                f"rollout.kv_cache_gib={config.rollout.kv_cache_gib}: one sequence of {context} tokens takes "
                f"{least:.2g} GiB of {path}'s cache; raise it"
            )


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
        yield from _without_gpus(config)
        return
    if backend == "shared_memory":
        yield f"weights.backend=shared_memory: is for CPUs, cluster.gpus_per_node={cluster.gpus_per_node}; use auto"
    if backend == "ipc" and not cluster.colocate:
        yield "weights.backend=ipc: engine and learner must share GPUs; set cluster.colocate=true, or use auto"
    if backend == "nccl" and cluster.colocate:
        yield "weights.backend=nccl: cannot join two processes on one GPU, cluster.colocate=true; use auto"
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


def _without_gpus(config: Config) -> Iterator[str]:
    needing = (
        ("weights.backend", config.weights.backend, ("auto", "shared_memory")),
        ("rollout.tensor_parallel", config.rollout.tensor_parallel, (1,)),
        ("cluster.colocate", config.cluster.colocate, (False,)),
    )
    for key, value, possible in needing:
        if value not in possible:
            yield f"{key}={value}: needs GPUs, cluster.gpus_per_node=0; use {possible[0]}"
    if config.cluster.nodes > 1:
        yield f"cluster.nodes={config.cluster.nodes}: weights reach engines on CPUs through one machine's memory; use 1"


def _verifier(config: Config) -> Iterator[str]:
    try:
        config.verifier.check()
    except ValueError as problem:
        yield str(problem)
        return
    if config.verifier.function is not None:
        module = config.verifier.function.partition(":")[0]
        try:
            found = importlib.util.find_spec(module)
        except ImportError:  # of a package that the module is said to lie in
            found = None
        if found is None:
            yield f"verifier.function={config.verifier.function}: no module {module}; name its directory in PYTHONPATH"
