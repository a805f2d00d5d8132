"""`maspo-rl table NAME [--collect] [overrides]`: every row of a paper table, run, measured and set beside its model."""

from __future__ import annotations

import argparse
import logging
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from maspo_rl.commands.eval import evaluate, progress_bar
from maspo_rl.config.derived import evaluation_data, run_directory
from maspo_rl.config.errors import InputError
from maspo_rl.config.evaluation import EvalCommand, load_eval
from maspo_rl.config.keys import nearest
from maspo_rl.config.load import load
from maspo_rl.config.schema import Config
from maspo_rl.config.table import TableConfig, facts, load_table
from maspo_rl.report.run_directory import RunDirectory
from maspo_rl.run import refuse

Runs = dict[tuple[str, int], Config]
"""By row and seed."""


def main(arguments: list[str]) -> int:
    """Runs what is missing, measures it, writes the table into `<run.dir>/table-<name>/` and prints it. 0 when done."""
    parser = argparse.ArgumentParser(
        prog="maspo-rl table", allow_abbrev=False, usage="%(prog)s NAME [--collect] key=value ..."
    )
    parser.add_argument("name", help="a file of configs/table")
    parser.add_argument("--collect", action="store_true", help="start nothing: the table of what is finished")
    options, overrides = parser.parse_known_args(arguments)
    for text in overrides:
        if text.startswith(("seed=", "run.name=")):
            raise InputError(
                f"{text}: a table's file names its seeds, and runs are named by what they are; leave it out"
            )
    table = load_table(options.name)
    console = Console(stderr=True, highlight=False)
    runs = _runs(table, overrides)
    missing = {key: config for key, config in runs.items() if not _finished(config)}
    for (row, seed), config in runs.items():
        state = "missing" if (row, seed) in missing else "finished"
        console.print(f"{state:<9} {row}, seed {seed}: {run_directory(config)}", soft_wrap=True)
    if not options.collect:
        try:
            _train(missing, table, overrides, console)
        except KeyboardInterrupt:
            console.print("stopped; the same command goes on from here")
            return 1
        missing = {key: config for key, config in missing.items() if not _finished(config)}
    files: dict[str, dict[int, dict[str, Path]]] = {}
    for (row, seed), config in runs.items():
        if (row, seed) not in missing and (found := _samples(table, config, overrides, measure=not options.collect)):
            files.setdefault(row, {})[seed] = found
    _write(options.name, table, files, runs)
    for row, seed in missing:
        console.print(f"not in the table: {row}, seed {seed}")
    return 1 if missing and not options.collect else 0


def _runs(table: TableConfig, overrides: list[str]) -> Runs:
    """Every run of the table, checked. Its name says algorithm, seed and everything else by a digest, so that the same
    run of another table is the same directory. What is measured in the end is taken out of training."""
    from maspo_rl.evaluation.identity import short_digest  # noqa: PLC0415

    own = [text for text in overrides if not text.startswith("benchmarks.")]
    clean = [f"data.decontaminate=[{','.join(table.benchmarks)}]"] if table.benchmarks else []
    runs: Runs = {}
    for row in table.rows:
        for seed in table.seeds:
            config = load([*clean, *table.overrides, *row.overrides, *own, f"seed={seed}", "report.progress=false"])
            config.run.name = f"{config.algorithm.name}-s{seed}-{short_digest(facts(config))[:8]}"
            if not runs:
                _refuse_measurement(table, config, overrides)
            refuse(config)
            runs[row.name, seed] = config
    return runs


def _refuse_measurement(table: TableConfig, config: Config, overrides: list[str]) -> None:
    """What would fail when all runs are done fails now: InputError."""
    from maspo_rl.evaluation.benchmarks import benchmark_config  # noqa: PLC0415
    from maspo_rl.evaluation.estimators import ESTIMATORS  # noqa: PLC0415

    if unknown := [measure for measure in table.measures if measure not in ESTIMATORS]:
        raise InputError(f"measures: '{unknown[0]}' is no estimator; {nearest(unknown[0], ESTIMATORS)}")
    if table.benchmarks:
        for name, settings in _measurement(table, config, overrides).benchmarks.items():
            benchmark_config(name, settings)
    elif config.eval.samples < table.k:
        raise InputError(f"eval.samples={config.eval.samples}: this table needs k={table.k} samples; raise it")


def _finished(config: Config) -> bool:
    return config.trainer.steps in RunDirectory(run_directory(config)).checkpoint_steps()


def _train(missing: Runs, table: TableConfig, overrides: list[str], console: Console) -> None:
    from maspo_rl.many import run_many  # noqa: PLC0415

    logging.getLogger("transformers").setLevel(logging.ERROR)
    names = {id(config): f"{row}, seed {seed}" for (row, seed), config in missing.items()}
    first = next(iter(missing.values()), None)
    # What is taken out of training is what is measured, from the same files.
    measured = _measurement(table, first, overrides).benchmarks if table.benchmarks and first else {}
    started, done, steps_before = time.monotonic(), 0, 0
    with progress_bar(console) as progress:
        task = progress.add_task("steps", total=sum(config.trainer.steps for config in missing.values()))

        def on_step(metrics: dict[str, Any]) -> None:
            # Counted from the run's own number: it may have been resumed, or gone back to its last checkpoint.
            progress.update(task, completed=steps_before + metrics["step"])

        for config, failure in run_many(missing.values(), on_step, measured):
            done, steps_before = done + 1, steps_before + config.trainer.steps
            progress.update(task, completed=steps_before)
            left = (time.monotonic() - started) / done * (len(missing) - done)
            state = f"ended by {failure}" if failure else "finished"
            console.print(f"{names[id(config)]}: {state}; {done} of {len(missing)}, about {left / 60:.0f} min left")


def _measurement(table: TableConfig, config: Config, overrides: list[str]) -> EvalCommand:
    """How the final policy of a finished run is measured, for a table with benchmarks; on the machines of the run."""
    folder = run_directory(config)
    policy = folder / "checkpoints" / f"step_{config.trainer.steps}" / "policy"
    fixed = [
        f"benchmarks=[{','.join(table.benchmarks)}]",
        f"k={table.k}",
        f"seed={config.seed}",
        f"model.path={policy}",
    ]
    return load_eval([*table.evaluation, *overrides, *fixed, f"run.dir={folder}", "run.name=final"])


def _samples(table: TableConfig, config: Config, overrides: list[str], *, measure: bool) -> dict[str, Path]:
    """The samples of a finished run's policy by heading; {} where they are not there and nothing is to be measured."""
    folder = run_directory(config)
    if not table.benchmarks:
        name = evaluation_data(config).name
        path = folder / "evaluation" / f"{name}_step_{config.trainer.steps}.jsonl"
        return {name: path} if path.is_file() else {}
    if measure:
        evaluate(_measurement(table, config, overrides))
    elif not (folder / "final" / "evaluation.json").is_file():
        return {}
    return {heading: folder / "final" / "evaluation" / f"{name}.jsonl" for name, heading in table.benchmarks.items()}


def _write(name: str, table: TableConfig, files: dict[str, dict[int, dict[str, Path]]], runs: Runs) -> None:
    from maspo_rl.evaluation.tables import cells, write  # noqa: PLC0415

    found = cells(table, files)
    if not found:
        print("no run is finished, and nothing was published")
        return
    folder = Path(next(iter(runs.values())).run.dir) / f"table-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    print(write(table, found, folder))
    print(f"{folder}: table.md, table.tex, table.csv, table.png")
