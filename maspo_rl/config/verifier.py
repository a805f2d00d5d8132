"""Settings of the verifier room."""

from __future__ import annotations

from dataclasses import dataclass, field

from maspo_rl.config.errors import InputError

EXTRACTION_RULES = ("boxed", "answer_is", "gsm8k_hash", "multiple_choice", "closing_math")
"""In the order of trust: a box, "the answer is ...", GSM8K's `####`, an option letter, mathematics that ends the text.
"""

UNNAMED_DATASET = "unnamed"
"""The data set of rows that name none: lines of a file or HTTP requests, where nobody agreed on a box beforehand."""


def _default_extraction() -> dict[str, list[str]]:
    return {"default": ["boxed"], UNNAMED_DATASET: list(EXTRACTION_RULES)}


@dataclass
class VerifierConfig:
    """How answers are extracted, judged and paid.

    `extraction` maps a data set to the rules tried in order (`EXTRACTION_RULES`); a data set that is not named uses
    `default`. `function` is `package.module:name` of a user's own reward, called as `f(output, gold, dataset) -> float`
    in a worker, under the same deadline and memory limit. `deadline_s` counts from the moment a worker takes the
    judgement up. `workers` are processes of the driver's machine, or, where `replicas` is above 0, of each of that many
    Ray actors spread over the nodes. `max_fault_share` is the share of judgements without a verdict above which a run
    stops.
    """

    workers: int = 2
    replicas: int = 0
    deadline_s: float = 5.0
    memory_gib: float = 1.0
    max_answer_chars: int = 8192
    recycle_after: int = 5000
    cache_entries: int = 65536
    correct_reward: float = 1.0
    wrong_reward: float = 0.0
    format_reward: float = 0.0
    function: str | None = None
    extraction: dict[str, list[str]] = field(default_factory=_default_extraction)
    max_fault_share: float = 0.05
    host: str = "127.0.0.1"
    port: int = 8970
    max_body_bytes: int = 1_048_576
    max_pending: int = 4096

    def check(self) -> None:
        """Raise InputError, in one line, for a setting that cannot work."""
        for name, least in (
            ("workers", 1),
            ("replicas", 0),
            ("max_answer_chars", 1),
            ("recycle_after", 1),
            ("cache_entries", 0),
            ("max_body_bytes", 1),
            ("max_pending", 1),
        ):
            if getattr(self, name) < least:
                raise InputError(f"verifier.{name}={getattr(self, name)}: must be at least {least}")
        if self.deadline_s <= 0:
            raise InputError(f"verifier.deadline_s={self.deadline_s}: must be above 0 seconds")
        if self.memory_gib < 0.5:
            raise InputError(f"verifier.memory_gib={self.memory_gib}: a worker needs 0.5 GiB to start; raise it")
        if not 0 <= self.max_fault_share <= 1:
            raise InputError(f"verifier.max_fault_share={self.max_fault_share}: must lie in 0..1")
        if self.correct_reward <= self.wrong_reward:
            raise InputError(
                f"verifier.correct_reward={self.correct_reward}: must be above wrong_reward={self.wrong_reward}"
            )
        if "default" not in self.extraction:
            raise InputError(f"verifier.extraction={sorted(self.extraction)}: needs an entry named default")
        for dataset, rules in self.extraction.items():
            for rule in rules:
                if rule not in EXTRACTION_RULES:
                    raise InputError(
                        f"verifier.extraction.{dataset}={rule!r}: choose from {', '.join(EXTRACTION_RULES)}"
                    )
            if not rules:
                raise InputError(
                    f"verifier.extraction.{dataset}=[]: name at least one of {', '.join(EXTRACTION_RULES)}"
                )
        if self.function is not None and not all(self.function.partition(":")[::2]):
            raise InputError(f"verifier.function={self.function!r}: write package.module:function")
