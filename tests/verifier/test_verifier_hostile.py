"""Kinds of answers that hang, swell or overflow other judges: a verdict or a timeout in time, and the pool goes on."""

from __future__ import annotations

import time

import psutil
from hypothesis import given, settings
from hypothesis import strategies as st

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.types import Label
from maspo_rl.verifier import Question, Verifier

DEADLINE_S = 1.0
size = st.integers(2, 10**9)
length = st.integers(100, 8_000)


def text(pattern: str) -> st.SearchStrategy[str]:
    return st.builds(pattern.replace("{", "{{").replace("}", "}}").replace("@", "{}").format, size)


BOXED = st.one_of(
    text("9^{9^{9^{@}}}"),
    text("@^{7^{99}}"),
    text("1.0000001^{@}"),
    text("(@!)!"),
    text("\\binom{@}{12345}"),
    text("\\binom{@^9}{5}!"),
    text("\\sum_{k=1}^{@} \\frac{1}{k}"),
    text("\\prod_{k=1}^{@} k"),
    text("\\int_0^{@} e^{-x^2} dx"),
    text("\\sin(@^{9^{9}})"),
    text("\\tan(10^{@})"),
    text("1e@"),
    text("(a+b+c+d+e+f)^{@}"),
    text("\\begin{pmatrix}@\\end{pmatrix} \\cdot 9^{9^{9^9}}"),
    text("\\left\\| @^{9^{9^9}} \\right\\|!!"),
    st.builds(lambda n: "(" * n + "5" + ")" * (n + 1), length),
    st.builds(lambda n: "\\frac{1}{1+" * n + "1" + "}" * n, length),
    st.builds(lambda n: "\\sqrt{" * n + "2" + "}" * n, length),
    st.builds(lambda n: "{" * n + "5" + "}" * n, length),
    st.builds(lambda n: "|" * n, length),
    st.builds(lambda n: "1+" * n + "1", length),
    st.builds(lambda n: "x^" * n + "2", length),
    st.builds(lambda n: "-" * n + "2", length),
    st.builds(lambda n: "1, " * n + "2", length),
    st.builds(lambda n: "+".join(f"\\sin({k}x)\\cos({k + 1}x)" for k in range(n % 60 + 9)), length),
)
PIECES = ["\\boxed{", "\\[ x ", "1 ", "$", "$1$, ", "(1+", "answer is ", "#### ", "\\text{", "½", "\\\\"]
WHOLE = st.builds(lambda piece, n: piece * n, st.sampled_from(PIECES), length)


def test_hostile_answers_end_in_time_and_are_never_paid() -> None:
    with Verifier(VerifierConfig(workers=2, deadline_s=DEADLINE_S)) as verifier:
        verifier.wait_ready()

        @settings(max_examples=25, deadline=None, derandomize=True)
        @given(st.lists(st.one_of(BOXED.map("\\boxed{{{}}}".format), WHOLE), min_size=1, max_size=4))
        def judged(outputs: list[str]) -> None:
            for verdict in verifier.judge_many([Question(output, "7321", "unnamed") for output in outputs]):
                assert verdict.label in (Label.WRONG, Label.TIMEOUT), verdict
                assert verdict.seconds < DEADLINE_S + 5  # the benchmark, on an idle machine, holds it to 1

        judged()
        fine = [Question(f"\\boxed{{(x+{n})^2}}", f"x^2+{2 * n}x+{n * n}", "any") for n in range(4)]
        assert [verdict.label for verdict in verifier.judge_many(fine)] == [Label.CORRECT] * 4
        # The memory limit of each bounds what both can hold; the last one killed may still be on its way back.
        end = time.monotonic() + 30
        while len(verifier.process_ids()) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        assert len(verifier.process_ids()) == 2
        assert all(psutil.Process(process).memory_info().rss < 2**30 for process in verifier.process_ids())
        assert verifier.counts()["error"] == 0
