"""Speed, latency, robustness and accuracy of the verifier, beside a bare math-verify loop in one process.

    python -m benchmarks.verifier [--data DIR] [--hostile 10000] [--workers 2]

Printed as JSON lines. `--data` holds public benchmarks as `<name>/test.jsonl` (gsm8k, math500, aime24, aime25, amc23,
minerva_math, olympiadbench); without it the throughput is measured on generated golds, and accuracy is not.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.types import Label, Verdict
from maspo_rl.verifier import Question, Verifier
from maspo_rl.verifier.extract import from_box

SEED = 20261130
PAIRS_PER_GOLD = 20


def main() -> None:
    """Runs every part and prints its figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--hostile", type=int, default=10_000, help="judgements of the hostile part, 0: leave it out")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    sets = dict(read_sets(options.data))
    report(throughput(sets.get("math500") or generated_golds(500), options.workers))
    report(training_batch())
    for name, golds in sets.items():
        report(accuracy(name, golds, options.workers))
    if options.hostile:
        report(hostile(options.hostile, options.workers))


def report(figures: dict[str, Any]) -> None:
    print(json.dumps(figures), flush=True)


def read_sets(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Name and golds of each benchmark that is there."""
    readers: dict[str, Callable[[Any], str]] = {
        "gsm8k": lambda row: row["answer"].split("####")[1].strip(),
        "math500": lambda row: row["answer"],
        "aime24": lambda row: str(row["answer"]),
        "aime25": lambda row: str(row["answer"]),
        "amc23": lambda row: str(row["answer"]),
        "minerva_math": lambda row: boxed(row["solution"]),
        "olympiadbench": lambda row: ", ".join(row["final_answer"]),
    }
    for name, reader in readers.items():
        path = folder / name / "test.jsonl"
        if path.is_file():
            yield name, [reader(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def boxed(solution: str) -> str:
    found = from_box(solution)
    assert found is not None
    assert found.answer is not None
    return found.answer


def generated_golds(count: int) -> list[str]:
    """Golds in about the proportions of MATH-500: six in ten plain numbers."""
    chance = random.Random(SEED)

    def one() -> str:
        a, b, c = (chance.randint(2, 99) for _ in range(3))
        kinds = [
            f"\\frac{{{a}}}{{{b}}}",
            f"{a}\\sqrt{{{b}}}",
            f"({a},{-b})",
            f"{a}x^2-{b}x+{c}",
            f"({-a},\\infty)",
            f"{a}\\pi",
            f"{a}^\\circ",
            f"{a}+{b}i",
            f"\\begin{{pmatrix}} {a} \\\\ {b} \\end{{pmatrix}}",
        ]
        return str(a * b) if chance.random() < 0.6 else chance.choice(kinds)

    return [one() for _ in range(count)]


def other_golds(golds: list[str], count: int) -> list[tuple[str, str]]:
    """Each gold against `count` different golds of its set, drawn with a fixed seed: (answer, gold)."""
    chance = random.Random(SEED)
    distinct = sorted(set(golds))
    pairs = []
    for gold in golds:
        others = chance.sample(distinct, min(count + 1, len(distinct)))
        pairs += [(other, gold) for other in others if other != gold][:count]
    return pairs


def throughput(golds: list[str], workers: int) -> dict[str, Any]:
    """Every gold against itself and against another, once each, by the bare library and by the pool without cache."""
    from math_verify import parse, verify  # noqa: PLC0415 - half a second that the other parts need not pay

    pairs = [(gold, gold) for gold in golds] + other_golds(golds, 1)
    verify(parse("\\boxed{1}"), parse("\\boxed{\\frac{1}{2}}"))
    began = time.perf_counter()
    for answer, gold in pairs:
        verify(parse(f"\\boxed{{{gold}}}"), parse(f"So the answer is \\boxed{{{answer}}}."))
    bare = time.perf_counter() - began
    questions = [Question(f"So the answer is \\boxed{{{answer}}}.", gold, "any") for answer, gold in pairs]
    with Verifier(VerifierConfig(workers=workers, cache_entries=0)) as verifier:
        verifier.wait_ready()
        began = time.perf_counter()
        verdicts = verifier.judge_many(questions)
        pooled = time.perf_counter() - began
        latencies = []
        for question in questions:
            began = time.perf_counter()
            verifier.judge_many([question])
            latencies.append(time.perf_counter() - began)
        counts = verifier.counts()
    return {
        "part": "throughput",
        "pairs": len(pairs),
        "math_verify_per_s": round(len(pairs) / bare, 1),
        "verifier_per_s": round(len(pairs) / pooled, 1),
        "ratio": round(bare / pooled, 2),
        "by_a_worker": counts["worker"] // 2,
        "latency_p50_ms": percentile(latencies, 50),
        "latency_p99_ms": percentile(latencies, 99),
        "labels": count_labels(verdicts),
    }


def percentile(seconds: list[float], rank: int) -> float:
    return round(1000 * statistics.quantiles(seconds, n=100)[rank - 1], 3)


def count_labels(verdicts: list[Verdict]) -> dict[str, int]:
    return {label.value: sum(verdict.label is label for verdict in verdicts) for label in Label}


def training_batch() -> dict[str, Any]:
    """256 responses of 2,000 characters with plain numbers: what a training step waits for."""
    filler = "Then we add the two numbers and carry the one. " * 42
    with Verifier(VerifierConfig()) as verifier:
        times = []
        for batch in range(20):
            questions = [Question(f"{filler}\\boxed{{{batch * 256 + n}}}", str(n), "any") for n in range(256)]
            began = time.perf_counter()
            verifier.judge_many(questions)
            times.append(time.perf_counter() - began)
    return {"part": "training_batch", "responses": 256, "median_ms": round(1000 * statistics.median(times), 2)}


def accuracy(name: str, golds: list[str], workers: int) -> dict[str, Any]:
    """Golds against themselves (all should be correct) and against others of their set (listed where accepted)."""
    pairs = other_golds(golds, PAIRS_PER_GOLD)
    with Verifier(VerifierConfig(workers=workers)) as verifier:
        own = verifier.judge_many([Question(f"\\boxed{{{gold}}}", gold, name) for gold in golds])
        began = time.perf_counter()
        others = verifier.judge_many([Question(f"\\boxed{{{answer}}}", gold, name) for answer, gold in pairs])
        seconds = time.perf_counter() - began
        figures = {
            "part": "accuracy",
            "set": name,
            "golds": len(golds),
            "own_correct": count_labels(own)["correct"],
            "others": len(pairs),
            "others_per_s": round(len(pairs) / seconds),
            "labels": count_labels(others),
            "accepted": sorted({pair for pair, verdict in zip(pairs, others, strict=True) if verdict.label != "wrong"}),
        }
        scientific = [gold for gold in golds if is_scientific(gold)]
        if scientific:
            verdicts = verifier.judge_many(
                [Question(f"\\boxed{{{as_latex(gold)}}}", gold, name) for gold in scientific]
            )
            tripled = verifier.judge_many(
                [Question(f"\\boxed{{{as_latex(gold, 3)}}}", gold, name) for gold in scientific]
            )
            figures |= {
                "scientific": len(scientific),
                "scientific_as_latex": count_labels(verdicts)["correct"],
                "scientific_three_times_as_large": count_labels(tripled)["correct"],
            }
    return figures


def is_scientific(gold: str) -> bool:
    """Whether a gold is written like `4e33`."""
    return "e" in gold and gold.replace("e", "").replace("-", "").replace(".", "").isdigit()


def as_latex(literal: str, factor: int = 1) -> str:
    mantissa, _, exponent = literal.partition("e")
    value = mantissa if factor == 1 else f"{float(mantissa) * factor:.6g}"
    return f"{value} \\times 10^{{{exponent}}}"


def hostile(count: int, workers: int) -> dict[str, Any]:
    """`count` judgements of which 5 % are hostile: verdicts lost, time, and memory of the pool in the two halves."""
    deadline = 0.5
    traps = (
        "{n}!! + 9^{{9^{{9^{{9}}}}}}",
        "\\begin{{pmatrix}}{n}\\end{{pmatrix}} \\cdot 9^{{9^{{9^{{9}}}}}}",
        "9^{{9^{{9^{{{n}}}}}}}",
        "({n}^9)!",
        "\\sin({n}^{{9^{{9}}}})",
        "\\left\\| {n}^{{9^{{9^{{9}}}}}} \\right\\|!!",
    )
    chance = random.Random(SEED)
    questions = []
    for n in range(count):
        if chance.random() < 0.05:
            questions.append(Question(f"\\boxed{{{chance.choice(traps).format(n=n + 10)}}}", "5", "any"))
        else:
            questions.append(Question(f"\\boxed{{(x+{n})^2}}", f"x^2+{2 * n}x+{n * n + n % 2}", "any"))
    memory: list[float] = []
    with Verifier(VerifierConfig(workers=workers, deadline_s=deadline)) as verifier:
        verifier.wait_ready()
        began = time.perf_counter()
        verdicts: list[Verdict] = []
        for start in range(0, count, 250):
            verdicts += verifier.judge_many(questions[start : start + 250])
            memory.append(pool_memory_mib())
        seconds = time.perf_counter() - began
        counts = verifier.counts()
        alive = len(verifier.process_ids())
    half = len(memory) // 2
    plain = [
        (verdict.label, Label.WRONG if n % 2 else Label.CORRECT)
        for n, (question, verdict) in enumerate(zip(questions, verdicts, strict=True))
        if question.gold != "5"
    ]
    return {
        "part": "hostile",
        "judgements": len(verdicts),
        "seconds": round(seconds, 1),
        "deadline_s": deadline,
        "labels": count_labels(verdicts),
        "plain_timeouts": sum(label is Label.TIMEOUT for label, _ in plain),
        "plain_mistaken": sum(label is not expected and label is not Label.TIMEOUT for label, expected in plain),
        "slowest_s": round(max(verdict.seconds for verdict in verdicts), 2),
        "workers_alive": alive,
        "restarts": {name: number for name, number in counts.items() if name.startswith("restarted")},
        "memory_mib_first_half": round(statistics.median(memory[:half]), 1),
        "memory_mib_second_half": round(statistics.median(memory[half:]), 1),
    }


def pool_memory_mib() -> float:
    """Resident memory of this process and all below it."""
    own = psutil.Process()
    total = 0
    for process in [own, *own.children(recursive=True)]:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 2**20


if __name__ == "__main__":
    main()
