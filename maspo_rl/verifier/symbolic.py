"""math-verify, for what our own structures do not cover: matrix algebra, set algebra, unusual notation.

Runs in a worker only: it has no bound of its own on time or memory, and is given none (its alarm would take SIGALRM).
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=512)
def parse_latex(text: str) -> tuple[Any, ...]:
    """The sympy readings of one boxed LaTeX text; empty if it has none (math-verify 0.9.0)."""
    from math_verify import LatexExtractionConfig, parse  # noqa: PLC0415 - half a second, wanted in workers only

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    found = parse(f"\\boxed{{{text}}}", [LatexExtractionConfig(boxed_match_priority=0)], parsing_timeout=None)
    return tuple(reading for reading in found if not isinstance(reading, str))


def same_by_math_verify(answer: str, gold: str) -> bool:
    """Whether math-verify takes the answer for the gold (its first argument: it is not symmetric)."""
    from math_verify import verify  # noqa: PLC0415

    golds, answers = list(parse_latex(gold)), list(parse_latex(answer))
    if not golds or not answers:
        return False
    return bool(verify(golds, answers, allow_set_relation_comp=True, timeout_seconds=None))
