"""The front door: questions in, verdicts out, in order."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.types import Label, Verdict
from maspo_rl.verifier.extract import Extraction, extract
from maspo_rl.verifier.judge import Result, quick
from maspo_rl.verifier.pool import Pool
from maspo_rl.verifier.wire import Message


@dataclass(frozen=True, slots=True)
class Question:
    """A response to judge. `truncated`: it was cut off by the length limit."""

    output: str
    gold: str
    dataset: str
    truncated: bool = False


class _Cache:
    """Verdicts of (answer, gold) pairs, the least recently used dropped first."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._results: OrderedDict[tuple[str, str], Result] = OrderedDict()

    def get(self, key: tuple[str, str]) -> Result | None:
        result = self._results.get(key)
        if result is not None:
            self._results.move_to_end(key)
        return result

    def put(self, key: tuple[str, str], result: Result) -> None:
        self._results[key] = result
        while len(self._results) > self._entries:
            self._results.popitem(last=False)


class Verifier:
    """Judges responses in killable worker processes. Thread-safe; the workers start at the first need or by `start`."""

    def __init__(self, config: VerifierConfig) -> None:
        config.check()
        self.config = config
        self._pool = Pool(config)
        self._cache = _Cache(config.cache_entries)
        self._running: dict[tuple[str, str], Future[Message]] = {}
        self._lock = threading.Lock()
        self._labels: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._fault_examples: list[str] = []

    def start(self) -> None:
        """Start the workers in the background."""
        self._pool.start()

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
        patience = self._pool.patience_s(1)
        try:
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(entry.future)), patience)
        except TimeoutError:
            return self._verdict(entry, {"label": "error", "reason": f"no worker came free within {patience:.0f} s"})
        return self._finish(entry, 0.0)

    def close(self) -> None:
        """Kill the workers. Pending judgements end as errors."""
        self._pool.close()

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @dataclass(frozen=True, slots=True)
    class _Pending:
        question: Question
        extraction: Extraction
        future: Future[Message]

    def _begin(self, question: Question) -> Verdict | _Pending:
        began = time.perf_counter()
        rules = self.config.extraction.get(question.dataset, self.config.extraction["default"])
        extraction = extract(question.output, rules, truncated=question.truncated)
        if self.config.function is not None:
            request = {"output": question.output, "gold": question.gold, "dataset": question.dataset}
            return self._Pending(question, extraction, self._pool.submit(request))
        if extraction.answer is None:
            result: Result | None = Result(Label.WRONG, extraction.reason)
            counted = "nothing_extracted"
        else:
            result, counted = self._known(extraction.answer, question.gold)
        if result is not None:
            self._count(counted)
            return self._verdict_of(extraction, result, time.perf_counter() - began)
        assert extraction.answer is not None
        return self._Pending(question, extraction, self._submit(extraction.answer, question.gold))

    def _known(self, answer: str, gold: str) -> tuple[Result | None, str]:
        with self._lock:
            cached = self._cache.get((answer, gold))
        if cached is not None:
            return cached, "cached"
        return quick(answer, gold), "quick"

    def _submit(self, answer: str, gold: str) -> Future[Message]:
        key = (answer, gold)
        with self._lock:
            running = self._running.get(key)
            if running is not None:
                self._counts["shared"] += 1
                return running
            future = self._pool.submit({"answer": answer, "gold": gold})
            self._running[key] = future
            self._counts["worker"] += 1
        future.add_done_callback(lambda done: self._remember(key, done.result()))
        return future

    def _remember(self, key: tuple[str, str], reply: Message) -> None:
        label = Label(reply["label"])
        with self._lock:
            del self._running[key]
            if label in (Label.CORRECT, Label.WRONG, Label.UNPARSEABLE):
                self._cache.put(key, Result(label, reply["reason"]))

    def _finish(self, entry: _Pending, timeout: float) -> Verdict:
        try:
            reply = entry.future.result(timeout)
        except FutureTimeoutError:
            reply = {"label": "error", "reason": "no worker came free in time"}
        return self._verdict(entry, reply)

    def _verdict(self, entry: _Pending, reply: Message) -> Verdict:
        seconds = float(reply.get("seconds", 0.0))
        if reply["label"] == "scored":
            reward = float(reply["reward"])
            label = Label.CORRECT if reward >= self.config.correct_reward else Label.WRONG
            self._count_label(label, reply["reason"])
            answer = entry.extraction.answer
            return Verdict(label, reward, answer, reply["reason"], seconds)
        return self._verdict_of(entry.extraction, Result(Label(reply["label"]), reply["reason"]), seconds)

    def _verdict_of(self, extraction: Extraction, result: Result, seconds: float) -> Verdict:
        self._count_label(result.label, result.reason)
        reward = None
        if result.label in (Label.CORRECT, Label.WRONG):
            reward = self.config.correct_reward if result.label is Label.CORRECT else self.config.wrong_reward
            if extraction.answer is not None and extraction.source == "boxed":
                reward += self.config.format_reward
        where = f"{result.reason} ({extraction.source})"
        return Verdict(result.label, reward, extraction.answer, where, seconds)

    def _count(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1

    def _count_label(self, label: Label, reason: str) -> None:
        with self._lock:
            self._labels[label.value] += 1
            if label in (Label.TIMEOUT, Label.ERROR) and len(self._fault_examples) < 10:
                self._fault_examples.append(reason)
