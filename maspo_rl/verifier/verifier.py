"""The front door: questions in, verdicts out, in order."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass

from maspo_rl.config.errors import InputError
from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.types import Label, Verdict
from maspo_rl.verifier.extract import Extraction, extract
from maspo_rl.verifier.judge import NOT_READABLE, Result, gold_trouble, quick, quick_long
from maspo_rl.verifier.normalise import normalise
from maspo_rl.verifier.pool import Pool
from maspo_rl.verifier.reward import reward_of
from maspo_rl.verifier.worker import Message

_MOST_CACHED_CHARS = 1024
_MOST_EXAMPLES = 10
_COUNTED = (*(label.value for label in Label), "quick", "cached", "shared", "worker", "nothing_extracted")


@dataclass(frozen=True, slots=True)
class Question:
    """A response to judge. `truncated`: it was cut off by the length limit."""

    output: str
    gold: str
    dataset: str
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class _Pending:
    question: Question
    extraction: Extraction
    future: Future[Message]


class Verifier:
    """Judges responses in killable worker processes. Thread-safe; the workers start at the first need or by `start`."""

    def __init__(self, config: VerifierConfig, pool: Pool | None = None) -> None:
        config.check()
        self.config = config
        self._pool = pool or Pool(config)
        self._cache: dict[tuple[str, str], Result] = {}
        self._running: dict[tuple[str, str], Future[Message]] = {}
        self._lock = threading.Lock()
        self._counts = Counter(dict.fromkeys(_COUNTED, 0))
        self._examples: list[str] = []

    def start(self) -> None:
        """Start the workers in the background."""
        self._pool.start()

    def wait_ready(self) -> None:
        """Start, and return when a worker answers. Raises InputError when none can (a function not found, say)."""
        reply = self._pool.submit({"ready": True}).result(self._pool.patience_s(1))
        if reply["label"] != "ready":
            raise InputError(f"verifier: {reply['reason']}")

    def judge_many(self, questions: Sequence[Question]) -> list[Verdict]:
        """Verdicts in the order of `questions`. Blocks; every wait inside has a deadline."""
        begun = [self._begin(question) for question in questions]
        deadline = time.monotonic() + self._pool.patience_s(len(begun))
        return [
            entry if isinstance(entry, Verdict) else self._finish(entry, max(0.0, deadline - time.monotonic()))
            for entry in begun
        ]

    async def judge(self, question: Question) -> Verdict:
        """One verdict, without blocking the event loop."""
        entry = self._begin(question)
        if isinstance(entry, Verdict):
            return entry
        done = asyncio.wrap_future(entry.future)
        await asyncio.wait({done}, timeout=self._pool.patience_s(1))
        return self._finish(entry, 0.0)

    def check_gold(self, gold: str) -> str | None:
        """`check_golds` of one."""
        return self.check_golds([gold])[0]

    def check_golds(self, golds: Sequence[str]) -> list[str | None]:
        """For each gold why no answer can be judged against it, or None; for the time when data is loaded.

        What our own reader cannot read is asked of the workers, all at once; data of plain answers starts none. A
        function of the user's may judge by anything: no gold troubles it.
        """
        if self.config.function is not None:
            return [None] * len(golds)
        most = self.config.max_answer_chars
        troubles = {
            gold: gold_trouble(normalise(gold)) if len(gold) <= most else f"has more than {most} characters"
            for gold in dict.fromkeys(golds)
        }
        asked = {
            gold: self._submit(gold, gold)
            for gold, trouble in troubles.items()
            if trouble is not None and trouble.startswith(NOT_READABLE)
        }
        deadline = time.monotonic() + self._pool.patience_s(0)
        for gold, future in asked.items():
            try:
                reply = future.result(max(0.0, deadline - time.monotonic()))
            except FutureTimeoutError:
                continue
            if reply["label"] == Label.CORRECT:
                troubles[gold] = None
        return [troubles[gold] for gold in golds]

    def counts(self) -> dict[str, int]:
        """Verdicts by label, how they came about, and what became of workers, since the start."""
        restarts = {f"restarted_{cause}": count for cause, count in self._pool.restarts.items()}
        with self._lock:
            return dict(self._counts) | restarts | {"retries": self._pool.retries}

    def fault_share(self) -> float:
        """Share of the verdicts so far that are timeouts or errors, to hold against `config.max_fault_share`."""
        with self._lock:
            total = sum(self._counts[label.value] for label in Label)
            return (self._counts[Label.TIMEOUT.value] + self._counts[Label.ERROR.value]) / total if total else 0.0

    def fault_examples(self) -> list[str]:
        """Up to ten judgements without a verdict, one line each."""
        return list(self._examples)

    @property
    def pending(self) -> int:
        """Judgements that wait for a worker or are with one."""
        return self._pool.pending

    def process_ids(self) -> list[int]:
        """The workers of this process that live now."""
        return self._pool.process_ids()

    def close(self) -> None:
        """Kill the workers. Pending judgements end as errors."""
        self._pool.close()

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _count(self, event: str) -> None:
        with self._lock:
            self._counts[event] += 1

    def _begin(self, question: Question) -> Verdict | _Pending:
        began = time.perf_counter()
        rules = self.config.extraction.get(question.dataset, self.config.extraction["default"])
        extraction = extract(question.output, rules, truncated=question.truncated)
        if self.config.function is not None:
            request = {"output": question.output, "gold": question.gold, "dataset": question.dataset}
            return _Pending(question, extraction, self._pool.submit(request))
        result, event = self._known(extraction, question.gold)
        if result is None:
            return _Pending(question, extraction, self._submit(str(extraction.answer), question.gold))
        self._count(event)
        return self._verdict(question, extraction, result, time.perf_counter() - began)

    def _known(self, extraction: Extraction, gold: str) -> tuple[Result | None, str]:
        """The result, where no worker is needed for it, and how it came about."""
        answer, most = extraction.answer, self.config.max_answer_chars
        if answer is None:
            return Result(Label.WRONG, extraction.reason), "nothing_extracted"
        if (cached := self._cache.get((answer, gold))) is not None:
            return cached, "cached"
        return (quick_long(answer, gold, most) if max(len(answer), len(gold)) > most else quick(answer, gold)), "quick"

    def _submit(self, answer: str, gold: str) -> Future[Message]:
        key = (answer, gold)
        with self._lock:
            running = self._running.get(key)
            self._counts["worker" if running is None else "shared"] += 1
            if running is not None:
                return running
            future = self._running[key] = self._pool.submit({"answer": answer, "gold": gold})
        future.add_done_callback(lambda done: self._remember(key, done.result()))
        return future

    def _remember(self, key: tuple[str, str], reply: Message) -> None:
        label = Label(reply["label"])
        with self._lock:
            del self._running[key]
            if label in (Label.TIMEOUT, Label.ERROR) or len(key[0]) + len(key[1]) > _MOST_CACHED_CHARS:
                return
            self._cache[key] = Result(label, reply["reason"])
            if len(self._cache) > self.config.cache_entries:
                del self._cache[next(iter(self._cache))]

    def _finish(self, entry: _Pending, timeout: float) -> Verdict:
        try:
            reply = entry.future.result(timeout)
        except FutureTimeoutError:
            reply = {"label": "error", "reason": "no worker came free in time"}
        seconds = float(reply.get("seconds", 0.0))
        if reply["label"] != "scored":
            result = Result(Label(reply["label"]), reply["reason"])
            return self._verdict(entry.question, entry.extraction, result, seconds)
        reward = float(reply["reward"])
        label = Label.CORRECT if reward >= self.config.correct_reward else Label.WRONG
        self._count(label.value)
        return Verdict(label, reward, entry.extraction.answer, reply["reason"], seconds)

    def _verdict(self, question: Question, extraction: Extraction, result: Result, seconds: float) -> Verdict:
        self._count(result.label.value)
        if result.label in (Label.TIMEOUT, Label.ERROR) and len(self._examples) < _MOST_EXAMPLES:
            self._examples.append(f"{result.reason}; gold {question.gold[:80]!r}, {question.output[-120:]!r}")
        boxed = extraction.answer is not None and extraction.source == "boxed"
        reward = reward_of(result.label, boxed, self.config)
        return Verdict(result.label, reward, extraction.answer, f"{result.reason} ({extraction.source})", seconds)
