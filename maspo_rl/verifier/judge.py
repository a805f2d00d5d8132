"""Whether an answer equals the gold: a pure function of two strings, and the guards around it."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from maspo_rl.types import Label
from maspo_rl.verifier.clock import names_its_half, same_time
from maspo_rl.verifier.compare import same
from maspo_rl.verifier.evaluate import HIGH, NoNumberError, NoValueError, evaluate
from maspo_rl.verifier.normalise import normalise
from maspo_rl.verifier.reader import read
from maspo_rl.verifier.tokens import UNEVALUATED, BeyondLimitsError, NotUnderstoodError, tokenise
from maspo_rl.verifier.tree import Node, named, plain_number, rounds_to, walk


@dataclass(frozen=True, slots=True)
class Result:
    label: Label
    reason: str


correct, wrong = partial(Result, Label.CORRECT), partial(Result, Label.WRONG)
NOT_READABLE = "is not readable"
"""How `gold_trouble` begins where math-verify may still read the gold."""
_MOST_GOLD_WORDS = 15
_OPTION = re.compile(r"(?:option |choice )?\(?(?P<letter>[A-J])\)?(?P<text>)")
_OPTION_AND_TEXT = re.compile(
    r"(?:option |choice )?(?P<open>\(\s*)?(?P<letter>(?(open)[A-Ja-j]|[A-J]))\s*(?(open)\)|[).:])(?P<text>.*)",
    re.DOTALL,
)
_COLLECTIONS = frozenset(("list", "set", "tuple"))
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")
_DECIMAL_POINT = re.compile(r"-?\d*\.\d+")
_SUBSCRIPT = re.compile(r"_\{[^{}]*\}")
_PROSE = re.compile(r"[A-Za-z]{2,}")
_LATEX_NAME = re.compile(r"\\(?:text\b)?[a-zA-Z]*")


def quick(answer: str, gold: str) -> Result | None:
    """A verdict by plain numbers, exact and in linear time; None where it takes more. `judge` begins with it."""
    second = plain_number(gold) or plain_number(normalise(gold))
    first = plain_number(answer) or plain_number(normalise(answer)) if second is not None else None
    if first is None or second is None:
        return None
    return correct("the same number") if _same_number(first, second) else wrong("another number")


def _same_number(first: Node, second: Node) -> bool:
    rounded = rounds_to(first, second, second.value) or rounds_to(second, first, first.value)
    return first.value == second.value or rounded


def quick_long(answer: str, gold: str, most: int) -> Result:
    """The verdict where a text is longer than is read (`most` characters): equal strings only."""
    if answer.strip() == gold.strip():
        return correct("written as the gold")
    if len(gold) > most:
        return Result(Label.UNPARSEABLE, f"the gold has {len(gold)} characters, more than the limit of {most}")
    return wrong(f"the answer has {len(answer)} characters, more than the limit of {most}")


def judge(answer: str, gold: str) -> Result:
    """Judge an extracted answer. CORRECT, WRONG, or UNPARSEABLE for a gold that cannot be read.

    Time and memory of the last resort, math-verify, are unbounded here: call it where it can be killed.
    """
    return quick(answer, gold) or Judgement(answer, gold).result()


class Judgement:
    """One comparison beyond plain numbers, as a sequence of rules of which the first that applies decides."""

    def __init__(self, answer: str, gold: str) -> None:
        self.answer, self.gold = normalise(answer), normalise(gold)

    def result(self) -> Result:
        trouble = gold_trouble(self.gold)
        if trouble is not None and not (trouble.startswith(NOT_READABLE) and parse_latex(self.gold)):
            return Result(Label.UNPARSEABLE, f"the gold {trouble}")
        if not self.answer:
            return wrong("an empty answer")
        if "".join(self.answer.split()) == "".join(self.gold.split()):
            return correct("written as the gold")
        return self._by_clock() or self._by_decimal_comma() or self._by_option() or self._by_structure()

    def _by_clock(self) -> Result | None:
        """`4:30 p.m.` is `4:30 \\text{PM}` and `16:30`, and not `4:30 a.m.`."""
        verdict = same_time(self.answer, self.gold)
        if verdict is None:
            return None
        return correct("the same time of day") if verdict else wrong("not the time of day of the gold")

    def _by_decimal_comma(self) -> Result | None:
        """`1000,99` is `1000.99` where the other side has a decimal point."""
        for text, other in ((self.answer, self.gold), (self.gold, self.answer)):
            if _DECIMAL_COMMA.fullmatch(text) and _DECIMAL_POINT.fullmatch(other):
                result = quick(text.replace(",", "."), other)
                if result is not None and result.label is Label.CORRECT:
                    return result
        return None

    def _by_option(self) -> Result | None:
        """`B`, `(B)`, `B.`, `(B) 12`, `E: text`, `option C`, where the gold is an option letter."""
        option = _OPTION.fullmatch(self.gold)
        plain = self.answer.replace("\\text{", " ").replace("}", " ").strip()
        given = _OPTION.fullmatch(plain) or _OPTION_AND_TEXT.fullmatch(plain)
        if option is None or given is None or _OPTION_AND_TEXT.search(given["text"] or ""):
            return None
        return correct("the same option") if given["letter"].upper() == option["letter"] else wrong("another option")

    def _by_structure(self) -> Result:
        left_to_do = pending(self.answer) - pending(self.gold)
        if left_to_do:
            return wrong(f"an unevaluated {min(left_to_do)} is not an answer")
        try:
            answer, gold = read(self.answer), read(self.gold)
            if _THOUSANDS.fullmatch(self.answer) and gold.op in _COLLECTIONS:
                answer = read(self.answer.replace(",", ", "))
            elif _THOUSANDS.fullmatch(self.gold) and answer.op in _COLLECTIONS:
                gold = read(self.gold.replace(",", ", "))
            if _is_plain(gold) and (undone := arithmetic_left(answer)):
                return wrong(f"{undone} is left to do")
            verdict = same(answer, gold)
            why = "undecided by evaluation"
        except (BeyondLimitsError, NoValueError) as trouble:
            return wrong(f"not evaluated: {trouble}")
        except NotUnderstoodError as trouble:
            verdict, why = None, str(trouble)
        except RecursionError:
            return wrong("nested too deeply to be an answer")
        if verdict is None:
            return self._by_math_verify(why)
        return correct("equal") if verdict else wrong("not equal to the gold")

    def _by_math_verify(self, why: str) -> Result:
        """The last resort, for matrix algebra, set algebra, unusual notation."""
        from math_verify import verify  # noqa: PLC0415 - half a second, wanted in workers only

        try:
            answers, golds = parse_latex(self.answer), parse_latex(self.gold)
            if not answers or not golds:
                return wrong(f"not readable as mathematics: {why}")
            # The gold is its first argument: it is not symmetric.
            if verify([*golds], [*answers], allow_set_relation_comp=True, timeout_seconds=None):
                return correct(f"equal by math-verify ({why})")
        except RecursionError:
            return wrong("nested too deeply to be an answer")
        return wrong(f"not equal by math-verify ({why})")


@lru_cache(maxsize=512)
def parse_latex(text: str) -> tuple[Any, ...]:
    """The sympy readings of one boxed LaTeX text; empty if it has none (math-verify 0.9.0).

    Without its bound on time, which would take the caller's SIGALRM.
    """
    from math_verify import LatexExtractionConfig, parse  # noqa: PLC0415 - half a second, wanted in workers only

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    found = parse(f"\\boxed{{{text}}}", [LatexExtractionConfig(boxed_match_priority=0)], parsing_timeout=None)
    return tuple(reading for reading in found if not isinstance(reading, str))


@lru_cache(maxsize=512)
def gold_trouble(gold: str) -> str | None:
    """Why a normalised gold cannot be judged against, as far as that can be told without math-verify."""
    if not any(character.isalnum() or character in "\\∞" for character in gold):
        return "is empty"
    if len(_PROSE.findall(_LATEX_NAME.sub(" ", gold))) > _MOST_GOLD_WORDS:
        return f"has more than {_MOST_GOLD_WORDS} words: prose, not an answer"
    if gold.replace("\\text{", "").rstrip("}").casefold() in ("nan", "null", "n/a"):
        return "is no answer"
    if names_its_half(gold):
        return None
    try:
        read(gold)
    except NotUnderstoodError as trouble:
        return f"{NOT_READABLE}: {trouble}"
    return None


@lru_cache(maxsize=512)
def pending(text: str) -> frozenset[str]:
    """Operations that a text leaves to be carried out: sums, integrals, limits, common divisors, remainders."""
    try:
        tokens = tokenise(_SUBSCRIPT.sub("", text))
    except NotUnderstoodError:
        return frozenset()
    return UNEVALUATED & {token.text for token in tokens if token.kind == "command"}


def arithmetic_left(answer: Node) -> str | None:
    """What is left to do in an answer such as `17 + 25`, given where the gold is one plain number.

    Powers, factorials, roots and quotients are accepted as closed forms; a sum or a product of numerals is the
    question, not its answer.
    """
    node = _unsigned(answer)
    parts = list(walk(node))
    if node.op not in ("add", "mul") or node.name or any(part.op == "symbol" for part in parts):
        return None
    if node.op == "mul":
        return "a product" if all(part.op in ("number", "mul", "neg", "div", "add") for part in parts) else None
    try:
        return "a sum" if isinstance(evaluate(node, HIGH), Fraction) else None
    except (NoNumberError, NoValueError):
        return None


def _is_plain(gold: Node) -> bool:
    node = _unsigned(gold)
    fraction = node.op == "div" and all(part.op == "number" for part in node.args)
    return node.op == "number" or node.name == "mixed" or fraction


def _unsigned(node: Node) -> Node:
    """The expression without its name, unit and sign."""
    definition = named(node)
    node = definition[1] if definition else node
    while node.op in ("neg", "unit", "percent", "degree"):
        node = node.args[0]
    return node


def warm_up() -> None:
    """Import and initialise what the first judgement would otherwise pay for."""
    judge("\\frac{1}{2}x", "0.5x")
    Judgement("\\frac{1}{2}", "0.5")._by_math_verify("to warm up")
