"""A normalised answer as tokens. Linear; no pattern here can backtrack over another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from maspo_rl.verifier.units import is_unit


@dataclass(frozen=True, slots=True)
class Token:
    """`spaced`: white space stands before it. `mark`: operators, brackets, separators, `&`, `\\\\`, `\\begin{...}`."""

    kind: Literal["number", "symbol", "function", "word", "command", "based", "mark"]
    text: str
    spaced: bool = False


class NotUnderstoodError(Exception):
    """The text is outside the language that is read here; the message says what was met."""


class BeyondLimitsError(NotUnderstoodError):
    """The text is in the language but longer, deeper or larger than any answer is."""


_NAMES = {
    "function": "sin cos tan cot sec csc asin acos atan arcsin arccos arctan sinh cosh tanh exp log ln lg sqrt",
    "unevaluated": "sum int iint oint prod lim limsup liminf gcd lcm mod bmod pmod max min sup inf det deriv partial",
    "symbol": "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega infty hbar ell emptyset "
    "angle triangle ldots odot oplus prime circ mho AA",
}
FUNCTIONS, UNEVALUATED, SYMBOLS = (frozenset(names.split()) for names in _NAMES.values())
MARKS = {
    "\\cdot": "*", "\\times": "*", "**": "^", "\\div": "/", "\\le": "<=", "\\ge": ">=", "=<": "<=", "=>": ">=",
    "\\ne": "!=", "==": "=", "\\approx": "~=", "\\sim": "~=", "\\simeq": "~=", "\\equiv": "=", "\\in": "in",
    "\\cup": "cup", "\\pm": "+-", "\\mp": "-+",
} | {
    same: same
    for same in (*"+-*/^_=<>!%:|'&,;()[]{}", "<=", ">=", "!=", "\\\\", "\\{", "\\}",
                 "\\lfloor", "\\rfloor", "\\lceil", "\\rceil", "\\langle", "\\rangle")
}  # fmt: skip
_POSTFIXES = {"degree": "^\\circ", "prime": "'"}
_PATTERN = re.compile(
    r"(?P<symbol>\\frac\{d(?:\^\{?\d\}?)?[\sA-Za-z\\]+\}\{d\s*(?:\\[a-z]+|[A-Za-z])\s*(?:\^\{?\d\}?)?\})"
    r"|(?P<based>(?<![A-Za-z])(?:\d+|\(\d+\))_(?:\d+|\{\s*(?:\d+|\\text\{\s*[a-z]+\s*\})\s*\})"
    r"|\d[\dA-F]*_\{?1\d\}?)"
    r"|(?P<repeating>\d{0,200}\.\d{0,200}(?:\\(?:overline|bar|dot)\{\d{1,200}\}\d{0,200})+|\d{1,200}\.\d{1,200}\s*\\ldots)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<degree>\^\s*(?:\\circ(?![a-z])|\{\s*\\circ\s*\}))|(?P<prime>\^\s*(?:\\prime|\{\s*(?:\\prime|')\s*\}))"
    r"|(?P<word>\\text\{[^{}]*\})|(?P<environment>\\(?:begin|end)\{[a-zA-Z*]{1,20}\})"
    r"|(?P<command>\\[a-zA-Z]+|\\.)|(?P<letters>[A-Za-z]+)|(?P<foreign>[^\W\d_a-zA-Z]+)"
    r"|(?P<mark>\*\*|<=|>=|=<|=>|!=|==|\S)",
    re.DOTALL,
)
_THOUSANDS = re.compile(r"(?:,\d{3})+(?![\d,])(?:\.\d+)?")
_JOINTS = frozenset(("and", "or", "和", "或", "或者", "及", "与"))
_CONSTANTS = {"pi": "\\pi"} | dict.fromkeys(("infinity", "infty", "oo"), "\\infty")
_ALSO_WORDS = frozenset(("int", "inf", "min", "partial"))
_MOST_TOKENS = 20_000


def _known(name: str, spaced: bool) -> Token | None:
    """A name that stands for a sign or command, in letters or in `\\text`."""
    lowered = name.strip(" ,;").lower()
    if lowered in _JOINTS:
        return Token("mark", ",", spaced)
    if lowered in FUNCTIONS:
        return Token("function", lowered, spaced)
    if lowered in UNEVALUATED - _ALSO_WORDS:
        return Token("command", lowered, spaced)
    constant = _CONSTANTS.get(lowered)
    return Token("symbol", constant, spaced) if constant else None


def _letters(run: str, spaced: bool, after_value: bool) -> list[Token]:
    """A run of letters: a name we know, a word (four letters or more), or a product of one-letter symbols."""
    if known := _known(run, spaced):
        return [known]
    if run[:-1] in FUNCTIONS:
        return [Token("function", run[:-1], spaced), Token("symbol", run[-1])]
    if len(run) >= 4 or (after_value and len(run) >= 2 and is_unit(run)):
        return [Token("word", run, spaced)]
    return [Token("symbol", letter, spaced and index == 0) for index, letter in enumerate(run)]


def _command(text: str, spaced: bool) -> Token:
    if text in MARKS:
        return Token("mark", MARKS[text], spaced)
    name = text[1:]
    if name in SYMBOLS:
        return Token("symbol", text, spaced)
    return Token("function" if name in FUNCTIONS else "command", name, spaced)


def _repeating(literal: str) -> str:
    """`0.1\\overline{36}`, `0.\\dot{1}4\\dot{2}` and `0.1363636\\ldots` as `0.1(36)`."""
    head, _, tail = literal.partition("\\")
    if not tail.startswith("ldots"):
        return f"{head}({''.join(re.findall('[0-9]', tail))})"
    whole, _, fraction = head.strip().partition(".")
    # A period counts when it is seen twice at least, and over three digits at least.
    for length in range(1, min(len(fraction) // 2, 12) + 1):
        period, start = fraction[-length:], len(fraction)
        while start >= length and fraction[start - length : start] == period:
            start -= length
        if len(fraction) - start >= max(3, 2 * length):
            return f"{whole}.{fraction[:start]}({period})"
    raise BeyondLimitsError("a decimal that goes on without end")


def tokenise(text: str) -> list[Token]:
    """Tokens of a normalised text. Raises NotUnderstoodError for more tokens than a judge should look at."""
    tokens: list[Token] = []
    position = depth = 0
    for match in _PATTERN.finditer(text):
        start, end = match.span()
        if start < position:
            continue
        spaced, piece, position = start > position, match.group(), end
        match match.lastgroup:
            case "number":
                grouped = _THOUSANDS.match(text, end) if depth == 0 and piece.isdigit() and len(piece) <= 3 else None
                if grouped is not None and piece[0] != "0":
                    piece, position = (piece + grouped.group()).replace(",", ""), grouped.end()
                tokens.append(Token("number", piece, spaced))
            case "repeating":
                tokens.append(Token("number", _repeating(piece), spaced))
            case "based" | "symbol" as kind:
                tokens.append(Token(kind, "".join(piece.split()), spaced))
            case "letters":
                after_value = bool(tokens) and (tokens[-1].kind == "number" or tokens[-1].text in (")", "]", "}"))
                tokens.extend(_letters(piece, spaced, after_value))
            case "word" | "foreign":
                content = piece.removeprefix("\\text{").removesuffix("}")
                tokens.append(_known(content, spaced) or Token("word", content, spaced))
            case "command":
                tokens.append(_command(piece, spaced))
            case kind:
                depth += (piece in "([") - (piece in ")]")
                mark = _POSTFIXES.get(str(kind)) or MARKS.get(piece, piece)
                tokens.append(Token("mark", mark, spaced))
        if len(tokens) > _MOST_TOKENS:
            raise BeyondLimitsError(f"more than {_MOST_TOKENS} symbols")
    return tokens
