"""What counts as the final answer of a response."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maspo_rl.config.verifier import EXTRACTION_RULES
from maspo_rl.verifier.extract import extract

PARTS = [
    "\\boxed{",
    "}",
    "{",
    "$",
    "<think>",
    "</think>",
    "####",
    " 7",
    "The answer is ",
    "\\",
    "\n",
    "or",
    " (B)",
    "x",
]


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("\\boxed{3}. Wait, that misses two cases: \\boxed{5}", "5"),
        ("\\boxed{\\frac{1}{\\sqrt{2}}}", "\\frac{1}{\\sqrt{2}}"),
        ("\\boxed{\\boxed{7}}", "7"),
        ("Put it in \\boxed{}. So \\boxed{7} and the template was \\boxed{}", "7"),
        ("\\boxed{\\{1,2\\}}", "\\{1,2\\}"),
        ("\\boxed{1} and \\boxed{2}", "1, 2"),
        ("\\boxed{1}, or \\boxed{1}", "1"),
        ("<think> \\boxed{5} </think> \\boxed{6}", "6"),
        ("<think> a </think> \\boxed{5} <think> b </think> \\boxed{6}", "6"),
        ("no opening tag </think> \\boxed{6}", "6"),
    ],
)
def test_last_closed_box_after_thinking(output: str, answer: str) -> None:
    assert extract(output, ["boxed"]).answer == answer


@pytest.mark.parametrize(
    "output",
    [
        "",
        "\\boxed{7",
        "\\boxed{ }",
        "\\boxed{\\boxed{}}",
        "the answer is 7",
        "<think> \\boxed{5}",
        "<think> \\boxed{5} </think>",
        "</think> \\boxed{5} <think> more",
        "\\boxed{1} or \\boxed{2}",
        "\\boxed{1}\\boxed{2}",
        "unboxed{7}",
    ],
)
def test_nothing_answered(output: str) -> None:
    found = extract(output, ["boxed"])
    assert found.answer is None
    assert found.reason


@pytest.mark.parametrize(
    ("rule", "output", "answer"),
    [
        ("answer_is", "The answer is 5. No: the answer is 6. Done.", "6"),
        ("answer_is", "The answer is not 5, it's 6.", None),
        ("answer_is", "**Answer:** $x = 3.5$, as shown.", "$x = 3.5$"),
        ("answer_is", "The final answer is 3.14 because it is", "3.14"),
        ("gsm8k_hash", "2+40=42\n#### 42\nand so on", "42"),
        ("gsm8k_hash", "42", None),
        ("multiple_choice", "So I pick option (C).", "C"),
        ("multiple_choice", "A is a vowel", None),
        ("closing_math", "Hence the area is $12$ cm", "12 cm"),
        ("closing_math", "3 + 4 = 7. Next we multiply", None),
        ("closing_math", "I tried 5 options but I do not know.", None),
    ],
)
def test_fallbacks_where_asked_for(rule: str, output: str, answer: str | None) -> None:
    assert extract(output, [rule]).answer == answer


def test_a_truncated_text_answers_by_a_closed_box_only() -> None:
    assert extract("so the answer is 12", EXTRACTION_RULES, truncated=True).answer is None
    assert extract("\\boxed{12} and then", EXTRACTION_RULES, truncated=True).answer == "12"


@given(st.lists(st.sampled_from(PARTS), max_size=40).map("".join))
def test_total_on_any_text(output: str) -> None:
    found = extract(output, EXTRACTION_RULES)
    assert found.answer is None or found.answer.strip()


@given(*[st.lists(st.sampled_from([part for part in PARTS if "think" not in part]), max_size=12).map("".join)] * 2)
def test_what_was_thought_is_not_answered(thought: str, said: str) -> None:
    for tagged in (
        f"<think>{thought}</think>{said}",
        f"{thought}</think>{said}",
        f"<think>a</think>{thought}</think>{said}",
    ):
        assert extract(tagged, EXTRACTION_RULES) == extract(said, EXTRACTION_RULES)
    for unclosed in (f"<think>{thought}", f"{said}<think>{thought}", f"<think>a</think>{said}<think>{thought}"):
        assert extract(unclosed, EXTRACTION_RULES).answer is None


@pytest.mark.parametrize("part", ["\\boxed{", "{", "}", "$", "$1$, ", "<think>", "answer is ", "\\[ x ", "1 ", "\\("])
def test_time_is_linear_in_the_length(part: str) -> None:
    began = time.perf_counter()
    extract(part * (1_000_000 // len(part)), EXTRACTION_RULES)
    assert time.perf_counter() - began < 5.0
