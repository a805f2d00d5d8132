"""Samples held-out problems with the engines, judges them, and keeps every sample on disk."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from maspo_rl.evaluation.estimators import Outcome, per_problem
from maspo_rl.evaluation.intervals import bootstrap
from maspo_rl.rollout import EngineGroup, SamplingSettings
from maspo_rl.types import Prompt, Verdict
from maspo_rl.verifier import Question, Verifier

# Evaluation draws its seeds as if it were this step, so that every evaluation of a run asks the same questions with
# the same randomness, and never with that of a training step.
_EVALUATION_STEP = -1


@dataclass(frozen=True)
class Evaluator:
    """A benchmark with its prompts and the way it is sampled."""

    benchmark: str
    prompts: list[Prompt]
    samples: int
    sampling: SamplingSettings
    engines: EngineGroup
    verifier: Verifier
    directory: Path

    def run(self, step: int, version: int) -> dict[str, float]:
        """avg@k and pass@k under the names `eval/<benchmark>/...`; samples in `<benchmark>_step_<n>.jsonl`.

        A problem none of whose samples could be judged is left out and counted under `eval/<benchmark>/unjudged`.
        """
        groups = self.engines.sample(self.prompts, self.samples, self.sampling, step=_EVALUATION_STEP, version=version)
        questions = [
            Question(rollout.text, prompt.gold, prompt.dataset, rollout.finish_reason == "length")
            for prompt, rollouts in zip(self.prompts, groups, strict=True)
            for rollout in rollouts
        ]
        verdicts = self.verifier.judge_many(questions)
        by_problem = [verdicts[start : start + self.samples] for start in range(0, len(verdicts), self.samples)]
        self._write(step, groups, by_problem)
        judged = [[v for v in group if v.reward is not None] for group in by_problem]
        counted = [group for group in judged if group]
        unjudged = len(verdicts) - sum(map(len, judged))
        prefix = f"eval/{self.benchmark}"
        if not counted:
            return {f"{prefix}/unjudged": float(unjudged)}
        outcomes = [Outcome(tuple(v.label == "correct" for v in group), (None,) * len(group)) for group in counted]
        k = min(len(group) for group in counted)
        metrics = {
            f"{prefix}/avg@{self.samples}": bootstrap([per_problem("avg", outcomes, self.samples)]).value,
            f"{prefix}/pass@{k}": bootstrap([per_problem("pass", outcomes, k)]).value,
        }
        return metrics | ({f"{prefix}/unjudged": float(unjudged)} if unjudged else {})

    def _write(self, step: int, groups: list[Any], verdicts: list[list[Verdict]]) -> None:
        path = self.directory / f"{self.benchmark}_step_{step}.jsonl"
        with path.open("w") as file:
            for prompt, rollouts, judged in zip(self.prompts, groups, verdicts, strict=True):
                for rollout, verdict in zip(rollouts, judged, strict=True):
                    row = {
                        "prompt_id": prompt.id,
                        "problem": prompt.text,
                        "gold": prompt.gold,
                        "sample_index": rollout.sample_index,
                        "seed": rollout.seed,
                        "version": rollout.version,
                        "response": rollout.text,
                        "finish_reason": rollout.finish_reason,
                        "verdict": asdict(verdict),
                    }
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
