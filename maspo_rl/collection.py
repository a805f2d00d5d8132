"""From prompts to judged groups: sample, verify, shape, filter, refill."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from maspo_rl.config.errors import RunFailure
from maspo_rl.config.schema import Config
from maspo_rl.rollout import EngineGroup, SamplingSettings
from maspo_rl.types import Group, Label, Prompt, Rollout, Verdict
from maspo_rl.verifier import Question, Verifier
from maspo_rl.verifier.reward import overlong_penalty


class TooManyFaults(RunFailure):
    """The verifier could not judge a larger share of a step than `verifier.max_fault_share` allows."""


@dataclass
class Collection:
    """`groups` go into training; `unused` prompts were sampled in vain and are asked again in a later step."""

    groups: list[Group]
    unused: list[Prompt]
    metrics: dict[str, float]


@dataclass
class _Tally:
    """Counts over everything sampled in a step, trained on or not."""

    labels: Counter[Label] = field(default_factory=Counter)
    rewards: float = 0.0
    tokens: int = 0
    truncated: int = 0
    uniform: int = 0
    unjudged: int = 0
    refills: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, rollouts: list[Rollout], verdicts: list[Verdict]) -> None:
        self.labels.update(verdict.label for verdict in verdicts)
        self.rewards += sum(verdict.reward for verdict in verdicts if verdict.reward is not None)
        self.tokens += sum(len(rollout.token_ids) for rollout in rollouts)
        self.truncated += sum(rollout.finish_reason == "length" for rollout in rollouts)
        self.faults += [verdict.reason for verdict in verdicts if verdict.reward is None]

    def metrics(self, kept: int, dropped: int) -> dict[str, float]:
        samples = sum(self.labels.values())
        judged = self.labels[Label.CORRECT] + self.labels[Label.WRONG]
        return {
            "reward/mean": self.rewards / max(judged, 1),
            "reward/correct": self.labels[Label.CORRECT] / max(judged, 1),
            "verifier/timeout": self.labels[Label.TIMEOUT],
            "verifier/error": self.labels[Label.ERROR],
            "verifier/unparseable": self.labels[Label.UNPARSEABLE],
            "group/kept": kept,
            "group/dropped": dropped,
            "group/uniform": self.uniform,
            "group/unjudged": self.unjudged,
            "group/refills": self.refills,
            "response/length_mean": self.tokens / max(samples, 1),
            "response/truncated": self.truncated / max(samples, 1),
            "response/tokens": self.tokens,
            "response/samples": samples,
        }


class Collector:
    """Fills a step with groups. Under dynamic sampling, groups that teach nothing are replaced, within a limit."""

    def __init__(self, config: Config, engines: EngineGroup, verifier: Verifier, *, greedy: bool) -> None:
        self._engines = engines
        self._verifier = verifier
        self._prompts_per_step = config.trainer.prompts_per_step
        self._samples = config.rollout.samples_per_prompt
        self._sampling = SamplingSettings.for_training(config)
        self._greedy = greedy
        self._filter = config.algorithm.group_filter
        self._overlong = config.algorithm.overlong
        self._max_tokens = config.rollout.max_new_tokens
        self._max_fault_share = config.verifier.max_fault_share

    def collect(self, take: Callable[[int], list[Prompt]], *, step: int, version: int) -> Collection:
        """Groups of one step. `take(n)` yields the next n prompts.

        Refilling asks for as many prompts as the share kept so far suggests; if `max_refills` do not fill the step, it
        is trained on what there is, and `group/kept` says so.

        Raises:
            TooManyFaults: the verifier failed on too large a share.
        """
        tally, dropped = _Tally(), 0
        kept: list[Group] = []
        spare: list[Prompt] = []
        wanted = self._prompts_per_step
        while True:
            prompts = take(wanted)
            judged = self._judged(prompts, self._samples, self._sampling, step, version)
            baselines = self._greedy_rewards(prompts, step, version)
            for prompt, (rollouts, verdicts), baseline in zip(prompts, judged, baselines, strict=True):
                tally.add(rollouts, verdicts)
                group = self._form(prompt, rollouts, verdicts, baseline)
                uniform = group is not None and len({verdict.reward for verdict in group.verdicts}) == 1
                tally.uniform += uniform
                tally.unjudged += group is None
                if group is None or (uniform and self._filter.drop_uniform):
                    dropped += 1
                elif len(kept) < self._prompts_per_step:
                    kept.append(group)
                else:
                    spare.append(prompt)
            self._check_faults(tally)
            missing = self._prompts_per_step - len(kept)
            if not missing or tally.refills >= self._filter.max_refills:
                break
            tally.refills += 1
            share = len(kept) / (len(kept) + dropped)
            wanted = min(math.ceil(missing / max(share, 1e-9)), self._prompts_per_step)
        return Collection(kept, spare, tally.metrics(len(kept), dropped))

    def _judged(
        self, prompts: list[Prompt], samples: int, sampling: SamplingSettings, step: int, version: int
    ) -> list[tuple[list[Rollout], list[Verdict]]]:
        groups = self._engines.sample(prompts, samples, sampling, step=step, version=version)
        verdicts = self._verifier.judge_many(
            [
                Question(rollout.text, prompt.gold, prompt.dataset, rollout.finish_reason == "length")
                for prompt, rollouts in zip(prompts, groups, strict=True)
                for rollout in rollouts
            ]
        )
        return [(rollouts, verdicts[i * samples : (i + 1) * samples]) for i, rollouts in enumerate(groups)]

    def _greedy_rewards(self, prompts: list[Prompt], step: int, version: int) -> list[float | None]:
        """The shaped reward of a greedy response to each prompt, where the advantage asks for it."""
        if not self._greedy:
            return [None] * len(prompts)
        judged = self._judged(prompts, 1, replace(self._sampling, temperature=0.0), step, version)
        return [self._shaped(rollout, verdict) for (rollout,), (verdict,) in judged]

    def _form(
        self, prompt: Prompt, rollouts: list[Rollout], verdicts: list[Verdict], baseline: float | None
    ) -> Group | None:
        """The judged samples of a prompt with their shaped rewards; None where fewer than two, or not the greedy one
        that is needed, were judged."""
        judged = [
            (rollout, verdict, reward)
            for rollout, verdict in zip(rollouts, verdicts, strict=True)
            if (reward := self._shaped(rollout, verdict)) is not None
        ]
        if len(judged) < min(2, self._samples) or (self._greedy and baseline is None):
            return None
        kept_rollouts, kept_verdicts, rewards = zip(*judged, strict=True)
        return Group(prompt, kept_rollouts, kept_verdicts, rewards, baseline)

    def _shaped(self, rollout: Rollout, verdict: Verdict) -> float | None:
        return None if verdict.reward is None else verdict.reward + self._penalty(len(rollout.token_ids))

    def _penalty(self, length: int) -> float:
        if not self._overlong.buffer:
            return 0.0
        return overlong_penalty(length, self._max_tokens, self._overlong.buffer, self._overlong.factor)

    def _check_faults(self, tally: _Tally) -> None:
        faults, samples = len(tally.faults), sum(tally.labels.values())
        if faults > self._max_fault_share * samples:
            examples = "; ".join(dict.fromkeys(tally.faults[:10]))
            raise TooManyFaults(
                f"the verifier could not judge {faults} of {samples} responses, more than "
                f"verifier.max_fault_share={self._max_fault_share}: {examples}"
            )
