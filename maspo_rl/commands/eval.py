"""`maspo-rl eval model=... benchmarks=[...] k=...`, or `maspo-rl eval --rescore DIR` to judge its samples again."""

from __future__ import annotations

import argparse
import json
import logging
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from maspo_rl.config.errors import InputError
from maspo_rl.config.evaluation import EvalCommand, load_eval, load_rescore
from maspo_rl.config.load import save
from maspo_rl.config.schema import Config
from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.data import PromptSet
from maspo_rl.report.run_directory import RunDirectory
from maspo_rl.run import open_directory, refuse

_SUMMARY = "evaluation.json"
# Requests of a chunk for each sequence that the engines decode at a time. More: less idling while the last responses
# of a chunk end. Fewer: more often a mark on the progress bar, and less to lose.
_WAVES = 4


def main(arguments: list[str]) -> int:
    """Samples what is not on disk yet, judges it and prints the estimates. 0 when done."""
    parser = argparse.ArgumentParser(
        prog="maspo-rl eval", allow_abbrev=False, usage="%(prog)s [--rescore DIR] key=value ..."
    )
    parser.add_argument("--rescore", type=Path, metavar="DIR", help="judge the samples in DIR again, sampling nothing")
    options, overrides = parser.parse_known_args(arguments)
    if options.rescore:
        return rescore(options.rescore, overrides)
    try:
        evaluate(load_eval(overrides))
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 1
    return 0


def evaluate(command: EvalCommand) -> dict[str, Path]:
    """Samples what is not on disk yet, judges it, writes and prints the estimates; the samples of each benchmark."""
    from maspo_rl.data import load_tokenizer  # noqa: PLC0415  a misspelt key must be told before torch is imported
    from maspo_rl.evaluation.benchmarks import benchmark_config, load_benchmark  # noqa: PLC0415
    from maspo_rl.verifier import Verifier  # noqa: PLC0415

    config = command.config
    sources = {name: benchmark_config(name, settings) for name, settings in command.benchmarks.items()}
    tokenizer = load_tokenizer(config.model.path, config.model.revision)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    with Verifier(config.verifier) as verifier:
        sets = {
            name: load_benchmark(source, tokenizer, config.eval.problems, verifier.check_golds)
            for name, source in sources.items()
        }
    fit(config, max(len(prompt.token_ids) for prompts in sets.values() for prompt in prompts))
    directory = open_directory(config)
    save(config, directory.config)
    files = {name: directory.evaluation / f"{name}.jsonl" for name in sets}
    try:
        measured = _sample(config, sets, files, directory)
    finally:
        directory.release()
    measured |= {"rows": {name: dict(prompts.counts) for name, prompts in sets.items()}}
    _report(directory.path, files, command.k, measured, config.verifier)
    return files


def fit(config: Config, longest: int) -> None:
    """Sizes the engines' context to the longest prompt. Raises InputError for what can be refused before they start."""
    tokens = config.eval.max_new_tokens or config.rollout.max_new_tokens
    config.rollout.max_new_tokens, config.rollout.max_context = tokens, longest + tokens
    # What stands for training in the configuration asks for nothing beyond that.
    config.eval.data, config.data.max_prompt_tokens = None, 1
    config.learner.micro_batch_tokens = max(config.learner.micro_batch_tokens, longest + tokens)
    config.cluster.colocate = config.cluster.gpus_per_node > 0
    refuse(config)


def _sample(
    config: Config, sets: Mapping[str, PromptSet], files: Mapping[str, Path], directory: RunDirectory
) -> dict[str, Any]:
    """Samples and judges what `files` lack. What was measured, for the summary."""
    from maspo_rl.assembly import running_engines  # noqa: PLC0415
    from maspo_rl.evaluation.identity import model_digest, prompts_digest, short_digest  # noqa: PLC0415
    from maspo_rl.evaluation.samples import Sampling, complete  # noqa: PLC0415
    from maspo_rl.rollout import SamplingSettings  # noqa: PLC0415

    settings, samples, model = SamplingSettings.for_evaluation(config), config.eval.samples, config.model
    digest = model_digest(model.path, model.revision)
    drawn = asdict(settings) | {"samples": samples, "dtype": model.dtype}
    prompts = {name: prompts_digest(found) for name, found in sets.items()}
    marks = {name: short_digest([digest, drawn, prompts[name]]) for name in sets}
    measured = {
        "model": {"path": model.path, "revision": model.revision, "digest": digest},
        "sampling": drawn,
        "prompts": prompts,
    }
    if all(len(complete(files[name], marks[name], samples)) == len(found) for name, found in sets.items()):
        return measured
    console = Console(stderr=True, highlight=False)
    console.print(f"{config.run.name}: starting Ray and {config.rollout.engines} vLLM engine(s)", soft_wrap=True)
    with running_engines(config, directory) as (engines, verifier), progress_bar(console) as progress:
        sampling = Sampling(engines, verifier, settings, samples, version=0)
        for name, found in sets.items():
            show = partial(_show, progress, progress.add_task(name, total=len(found)))
            sampling.collect(found.prompts, files[name], mark=marks[name], chunk=chunk_of(config), progress=show)
    return measured


def chunk_of(config: Config) -> int:
    """Problems that are sampled in one call."""
    return max(1, math.ceil(_WAVES * config.rollout.max_sequences * config.rollout.engines / config.eval.samples))


def progress_bar(console: Console) -> Progress:
    """What is done of how much, time spent and time left."""
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"))
    return Progress(TextColumn("{task.description}"), *columns, TimeRemainingColumn(), console=console)


def _show(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)


def rescore(folder: Path, overrides: list[str]) -> int:
    """Judges every file of samples in a run's directory, or in its `evaluation/`, again. 0 when done."""
    from maspo_rl.evaluation.samples import outcomes, read_samples, rejudge  # noqa: PLC0415
    from maspo_rl.verifier import Verifier  # noqa: PLC0415

    k, settings = load_rescore(overrides)
    folder = folder.parent if folder.name == "evaluation" else folder
    files = {path.stem: path for path in sorted((folder / "evaluation").glob("*.jsonl"))}
    if not files:
        raise InputError(f"--rescore {folder}: has no samples (evaluation/*.jsonl); name the directory of a run")
    for path in files.values():
        found = outcomes(read_samples(path)).values()
        kept = max((len(outcome.correct) + outcome.unjudged for outcome in found), default=0)
        if max(k, default=1) > kept:
            raise InputError(f"k={max(k, default=1)}: larger than the {kept} samples of a problem in {path}; lower k")
    k = k or [kept]
    with Verifier(settings) as verifier:
        for name, path in files.items():
            changes = rejudge(path, verifier)
            print(
                f"{name}: " + (", ".join(f"{n} {change}" for change, n in changes.items()) or "every verdict as before")
            )
    known = folder / _SUMMARY
    measured = json.loads(known.read_text(encoding="utf-8")) if known.is_file() else {}
    _report(folder, files, k, measured, settings)
    return 0


def _report(
    folder: Path, files: Mapping[str, Path], k: list[int], measured: Mapping[str, Any], settings: VerifierConfig
) -> None:
    """Writes `evaluation.json` beside the samples' folder, and prints the table."""
    from maspo_rl.evaluation.identity import short_digest, verifier_version  # noqa: PLC0415
    from maspo_rl.evaluation.summary import summarise, table  # noqa: PLC0415

    judge = verifier_version(settings)
    digest = short_digest(judge)
    summary = {**measured, "verifier": {"digest": digest, **judge}, **summarise(files, k)}
    path = folder / _SUMMARY
    path.write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    Console().print(table(summary, folder.name))
    parts = summary["benchmarks"].values()
    if lost := sum(part["unjudged"] for part in parts):
        print(f"{lost} samples were not judged and are in no value")
    if any(part["judged_by"] != [digest] for part in parts):
        print(f"judged by another verifier, or by other settings; maspo-rl eval --rescore {folder} judges anew")
    print(f"numbers: {path}; samples: {folder / 'evaluation'}")
