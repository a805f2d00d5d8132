"""Evaluation samples on disk: one JSON object a line, a problem's samples together, verdicts included.

Every reported number is computed from such files, so that it can be computed again and judged again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maspo_rl.config.errors import InputError, naming
from maspo_rl.evaluation.estimators import Outcome
from maspo_rl.evaluation.identity import short_digest, verifier_version
from maspo_rl.report.run_directory import write_jsonl
from maspo_rl.types import Prompt, Rollout
from maspo_rl.verifier import Question, Verifier
from maspo_rl.verifier.normalise import normalise

if TYPE_CHECKING:
    from maspo_rl.rollout import EngineGroup, SamplingSettings

# Evaluation draws its seeds as if it were this step, so that every evaluation of a run asks the same questions with
# the same randomness, and never with that of a training step.
_EVALUATION_STEP = -1
_REJUDGED_AT_ONCE = 4096

Row = dict[str, Any]


@dataclass(frozen=True)
class Sampling:
    """What samples are drawn with: engines that hold policy `version`, `samples` responses a problem, the verifier."""

    engines: EngineGroup
    verifier: Verifier
    settings: SamplingSettings
    samples: int
    version: int

    def collect(
        self,
        prompts: Sequence[Prompt],
        path: Path,
        *,
        mark: str = "",
        chunk: int,
        progress: Callable[[int], None] = lambda problems: None,
    ) -> None:
        """Appends to `path` what it lacks of all samples of `prompts`, `chunk` problems at a time.

        A chunk is judged and written while the next is sampled. `mark` names model, prompts and sampling; chunks that
        are there whole under it are not sampled again, so that what was stopped goes on as if it had not been, and a
        stop loses the present chunk alone. `progress` is told the number of problems sampled. Raises InputError where
        `path` holds samples under another mark.
        """
        parts = [prompts[start : start + chunk] for start in range(0, len(prompts), chunk)]
        there = complete(path, mark, self.samples)
        missing = [part for part in parts if any(prompt.id not in there for prompt in part)]
        again = {prompt.id for part in missing for prompt in part}
        kept = there - again
        write_jsonl(path, (row for row in read_samples(path) if row["prompt_id"] in kept) if kept else ())
        done = len(prompts) - len(again)
        progress(done)
        judged: Future[None] | None = None
        with naming(path), path.open("a", encoding="utf-8") as file, ThreadPoolExecutor(1) as beside:
            for part in missing:
                groups = self.engines.sample(
                    list(part), self.samples, self.settings, step=_EVALUATION_STEP, version=self.version
                )
                done += len(part)
                progress(done)
                if judged:
                    judged.result()
                judged = beside.submit(self._write, file, part, groups, mark)
            if judged:
                judged.result()

    def _write(self, file: Any, prompts: Sequence[Prompt], groups: list[list[Rollout]], mark: str) -> None:
        rows = [
            {
                "evaluation": mark,
                "prompt_id": prompt.id,
                "problem": prompt.text,
                "gold": prompt.gold,
                "dataset": prompt.dataset,
                "sample_index": rollout.sample_index,
                "seed": rollout.seed,
                "version": rollout.version,
                "response": rollout.text,
                "tokens": len(rollout.token_ids),
                "finish_reason": rollout.finish_reason,
            }
            for prompt, rollouts in zip(prompts, groups, strict=True)
            for rollout in rollouts
        ]
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in _judged(rows, self.verifier))
        file.flush()


def _judged(rows: Sequence[Row], verifier: Verifier) -> list[Row]:
    verdicts = verifier.judge_many(
        [Question(row["response"], row["gold"], row["dataset"], row["finish_reason"] == "length") for row in rows]
    )
    judge = {"judged_by": short_digest(verifier_version(verifier.config))}
    return [row | judge | {"verdict": asdict(verdict)} for row, verdict in zip(rows, verdicts, strict=True)]


def complete(path: Path, mark: str, samples: int) -> set[str]:
    """The problems of which all samples are in `path`. Raises InputError where it holds samples under another mark."""
    counts = Counter[str]()
    for row in read_samples(path) if path.exists() else ():
        if row["evaluation"] != mark:
            raise InputError(
                f"{path}: holds samples of another model, prompt set or way of sampling; choose another run.name"
            )
        counts[row["prompt_id"]] += 1
    return {prompt_id for prompt_id, count in counts.items() if count == samples}


def read_samples(path: Path) -> Iterator[Row]:
    """The rows of a file of samples; a last line that was cut off in writing is passed over.

    Raises InputError for a file that is missing or holds something else.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; name a run directory, or the folder of its evaluation samples")
    needed = {"evaluation", "prompt_id", "gold", "dataset", "sample_index", "response", "finish_reason", "judged_by"}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith("\n"):
                return
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                row = None
            if not isinstance(row, dict) or not needed | {"verdict"} <= row.keys():
                raise InputError(f"{path}, line {number}: is no sample, an object with {', '.join(sorted(needed))}")
            yield row


def rejudge(path: Path, verifier: Verifier) -> Counter[str]:
    """Judges the samples of a file again, in place; how many went from one label to another ("wrong -> correct")."""
    changes = Counter[str]()
    write_jsonl(path, _rejudged(read_samples(path), verifier, changes))
    return changes


def _rejudged(rows: Iterator[Row], verifier: Verifier, changes: Counter[str]) -> Iterator[Row]:
    while some := list(islice(rows, _REJUDGED_AT_ONCE)):
        for before, row in zip(some, _judged(some, verifier), strict=True):
            labels = before["verdict"]["label"], row["verdict"]["label"].value
            changes.update([" -> ".join(labels)] if labels[0] != labels[1] else [])
            yield row


def outcomes(rows: Iterable[Row]) -> dict[str, Outcome]:
    """What came of each problem, by its id."""
    problems: dict[str, list[tuple[int, bool, bool, bool, str | None]]] = {}
    for row in rows:
        verdict = row["verdict"]
        vote = None if verdict["extracted"] is None else normalise(verdict["extracted"])
        judged, cut = verdict["reward"] is not None, row["finish_reason"] == "length"
        sample = (row["sample_index"], judged, verdict["label"] == "correct", cut, vote)
        problems.setdefault(row["prompt_id"], []).append(sample)
    found = {}
    for prompt_id, samples in problems.items():
        judged_ones = [sample for sample in sorted(samples, key=itemgetter(0)) if sample[1]]
        found[prompt_id] = Outcome(
            tuple(correct for _, _, correct, _, _ in judged_ones),
            tuple(vote for *_, vote in judged_ones),
            len(samples) - len(judged_ones),
            sum(cut for *_, cut, _ in samples),
        )
    return found
