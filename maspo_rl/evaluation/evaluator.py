"""Evaluation while a policy is trained: the same problems with the same seeds, every sample on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy

from maspo_rl.evaluation.estimators import per_problem
from maspo_rl.evaluation.samples import Sampling, outcomes, read_samples
from maspo_rl.rollout import EngineGroup, SamplingSettings
from maspo_rl.types import Prompt
from maspo_rl.verifier import Verifier


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

        A problem with a sample that could not be judged is left out of pass@k, and the samples are counted under
        `eval/<benchmark>/unjudged`.
        """
        path = self.directory / f"{self.benchmark}_step_{step}.jsonl"
        path.unlink(missing_ok=True)  # of an earlier try at this step
        sampling = Sampling(self.engines, self.verifier, self.sampling, self.samples, version)
        sampling.collect(self.prompts, path, chunk=len(self.prompts))
        found = list(outcomes(read_samples(path)).values())
        judged, unjudged = [len(outcome.correct) for outcome in found], sum(outcome.unjudged for outcome in found)
        prefix = f"eval/{self.benchmark}"
        metrics = {f"{prefix}/unjudged": float(unjudged)} if unjudged else {}
        if any(judged):
            metrics[f"{prefix}/avg@{self.samples}"] = float(numpy.nanmean(per_problem("avg", found, self.samples)))
        if self.samples in judged:
            metrics[f"{prefix}/pass@{self.samples}"] = float(numpy.nanmean(per_problem("pass", found, self.samples)))
        return metrics
