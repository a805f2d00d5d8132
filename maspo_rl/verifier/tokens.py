"""A normalised answer as tokens. Linear; no pattern here can backtrack over another."""

from __future__ import annotations

import re
from typing import NamedTuple

from maspo_rl.verifier.units import is_unit


class Token(NamedTuple):
    """`kind`: number, mixed (`2 1/3`), symbol, function, word, command, based (a numeral with its base), or mark
    (operators, brackets, separators, `&`, `\\\\`, `\\begin{...}`).
    """

    kind: str
    text: str


class NotUnderstoodError(Exception):
    """The text is outside the language that is read here; the message says what was met."""


class BeyondLimitsError(NotUnderstoodError):
    """The text is in the language but longer, deeper or larger than any answer is."""


_WORD_LISTS = {
    "function": "sin cos tan cot sec csc asin acos atan arcsin arccos arctan sinh cosh tanh exp log ln lg sqrt",
    "unevaluated": "sum int iint oint prod lim limsup liminf gcd lcm mod bmod pmod max min sup inf det deriv partial",
    "symbol": "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega infty hbar ell emptyset "
    "angle triangle ldots odot oplus prime circ mho AA",
}
FUNCTIONS, UNEVALUATED, SYMBOLS = (frozenset(names.split()) for names in _WORD_LISTS.values())
MARKS = {
    "\\cdot": "*", "\\times": "*", "**": "^", "\\div": "/", "\\le": "<=", "\\ge": ">=", "=<": "<=", "=>": ">=",
    "\\ne": "!=", "==": "=", "\\approx": "~=", "\\sim": "~=", "\\simeq": "~=", "\\equiv": "=", "\\in": "in",
    "\\cup": "cup", "\\pm": "+-", "\\mp": "-+",
} | {
    same: same
    for same in (*"+-*/^_=<>!%:|'&,;()[]{}", "<=", ">=", "!=", "\\\\", "\\{", "\\}",
                 "\\lfloor", "\\rfloor", "\\lceil", "\\rceil", "\\langle", "\\rangle")
}  # fmt: skip
_PATTERN = re.compile(
    r"(?P<symbol>\\frac\{d(?:\^\{?\d\}?)?[\sA-Za-z\\]+\}\{d\s*(?:\\[a-z]+|[A-Za-z])\s*(?:\^\{?\d\}?)?\}"
    r"|(?<![A-Za-z\\])[fgh]\^\{-1\}\([a-z]\))"
    r"|(?P<based>(?<![A-Za-z])(?:\d+|\(\d+\))_(?:\d+|\{\s*(?:\d+|\\text\{\s*[a-z]+\s*\})\s*\})"
    r"|\d[\dA-F]*_\{?1\d\}?)"
    r"|(?P<repeating>\d{0,200}\.\d{0,200}(?:\\(?:overline|bar|dot)\{\d{1,200}\}\d{0,200})+|\d{1,200}\.\d{1,200}\s*\\ldots)"
    r"|(?P<mixed>(?<![\d.^_/])(?<!\\sqrt)\d+(?:,\d{3})*(?:\s+\d+\s*/\s*\d+|\s*\\frac\{\d+\}\{\d+\})(?![\d.]))"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<degree>\^\s*(?:\\circ(?![a-z])|\{\s*\\circ\s*\}))|(?P<prime>\^\s*(?:\\prime|\{\s*(?:\\prime|')\s*\}))"
    r"|(?P<word>\\text\{[^{}]*\})|(?P<environment>\\(?:begin|end)\{[a-zA-Z*]{1,20}\})"
    r"|(?P<command>\\[a-zA-Z]+|\\.)|(?P<letters>[A-Za-z]+)|(?P<foreign>[^\W\d_a-zA-Z]+)"
    r"|(?P<mark>\*\*|<=|>=|=<|=>|!=|==|\S)",
    re.DOTALL,
)
_POSTFIXES = {"degree": "^\\circ", "prime": "'"}
_THOUSANDS = re.compile(r"(?:,\d{3})+(?![\d,])(?:\.\d+)?")
_MOST_TOKENS = 20_000
_COMMANDS = (
    {text: Token("mark", mark) for text, mark in MARKS.items() if text[0] == "\\"}
    | {f"\\{name}": Token("symbol", f"\\{name}") for name in SYMBOLS}
    | {f"\\{name}": Token("function", name) for name in FUNCTIONS}
)
_NAMES = (
    {name: Token("mark", ",") for name in ("and", "or", "和", "或", "或者", "及", "与")}
    | {name: Token("function", name) for name in FUNCTIONS}
    | {name: Token("command", name) for name in UNEVALUATED - {"int", "inf", "min", "partial"}}
    | {name: Token("symbol", "\\infty") for name in ("infinity", "infty", "oo")}
    | {"pi": Token("symbol", "\\pi")}
)
"""What a name stands for in letters or in `\\text`; four operations are words as well."""


def _named(name: str) -> Token | None:
    return _NAMES.get(name.strip(" ,;").lower())


def _letters(run: str, after_value: bool) -> list[Token]:
    """A run of letters: a name we know, a word (four letters or more), or a product of one-letter symbols."""
    if known := _named(run):
        return [known]
    if run[:-1] in FUNCTIONS:
        return [Token("function", run[:-1]), Token("symbol", run[-1])]
    if len(run) >= 4 or (after_value and len(run) >= 2 and is_unit(run)):
        return [Token("word", run)]
    return [Token("symbol", letter) for letter in run]


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
        piece, end = match.group(), match.end()
        if match.start() < position:
            continue
        position = end
        match match.lastgroup:
            case "number":
                grouped = _THOUSANDS.match(text, end) if depth == 0 and piece.isdigit() and len(piece) <= 3 else None
                if grouped is not None and piece[0] != "0":
                    piece, position = (piece + grouped.group()).replace(",", ""), grouped.end()
                tokens.append(Token("number", piece))
            case "repeating":
                tokens.append(Token("number", _repeating(piece)))
            case "mixed":
                tokens.append(Token("mixed", piece))
            case "based" | "symbol" as kind:
                tokens.append(Token(kind, "".join(piece.split())))
            case "letters":
                after_value = bool(tokens) and (
                    tokens[-1].kind in ("number", "mixed") or tokens[-1].text in (")", "]", "}")
                )
                tokens.extend(_letters(piece, after_value))
            case "word" | "foreign":
                content = piece.removeprefix("\\text{").removesuffix("}")
                tokens.append(_named(content) or Token("word", content))
            case "command":
                tokens.append(_COMMANDS.get(piece) or Token("command", piece[1:]))
            case kind:
                depth += (piece in "([") - (piece in ")]")
                tokens.append(Token("mark", _POSTFIXES.get(str(kind)) or MARKS.get(piece, piece)))
        if len(tokens) > _MOST_TOKENS:
            raise BeyondLimitsError(f"more than {_MOST_TOKENS} symbols")
    return tokens
