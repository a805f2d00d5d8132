"""A normalised answer as tokens. Linear; no token pattern can backtrack over another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from maspo_rl.verifier.units import is_unit

Kind = Literal["number", "symbol", "function", "word", "operator", "open", "close", "matrix", "separator", "command"]


@dataclass(frozen=True, slots=True)
class Token:
    """`spaced`: white space stands before it."""

    kind: Kind
    text: str
    spaced: bool = False


class NotUnderstoodError(Exception):
    """The text is outside the language that is read here; the message says what was met."""


class BeyondLimitsError(NotUnderstoodError):
    """The text is in the language but longer, deeper or larger than any answer is."""


FUNCTIONS = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "asin",
        "acos",
        "atan",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "exp",
        "log",
        "ln",
        "lg",
        "sqrt",
    ]
)
UNEVALUATED = frozenset(
    [
        "sum",
        "int",
        "iint",
        "oint",
        "prod",
        "lim",
        "limsup",
        "liminf",
        "gcd",
        "lcm",
        "mod",
        "bmod",
        "pmod",
        "max",
        "min",
        "sup",
        "inf",
        "det",
        "deriv",
        "partial",
        "nabla",
    ]
)
_SYMBOL_COMMANDS = frozenset(
    [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "zeta",
        "eta",
        "theta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "omicron",
        "pi",
        "rho",
        "sigma",
        "tau",
        "upsilon",
        "phi",
        "chi",
        "psi",
        "omega",
        "Gamma",
        "Delta",
        "Theta",
        "Lambda",
        "Xi",
        "Pi",
        "Sigma",
        "Upsilon",
        "Phi",
        "Psi",
        "Omega",
        "infty",
        "hbar",
        "ell",
        "emptyset",
        "angle",
        "triangle",
        "ldots",
        "odot",
        "oplus",
        "prime",
        "circ",
        "mho",
        "AA",
    ]
)
_OPEN = {
    "(": ")",
    "[": "]",
    "{": "}",
    "\\{": "\\}",
    "\\lfloor": "\\rfloor",
    "\\lceil": "\\rceil",
    "\\langle": "\\rangle",
}
_CLOSE = frozenset(_OPEN.values())
_OPERATORS = {
    "\\cdot": "*", "\\times": "*", "*": "*", "**": "^", "/": "/", "\\div": "/", "\\le": "<=", "\\ge": ">=", "<=": "<=",
    ">=": ">=", "=<": "<=", "=>": ">=", "\\ne": "!=", "!=": "!=", "==": "=", "\\approx": "~=", "\\sim": "~=",
    "\\simeq": "~=", "\\equiv": "=", "\\in": "in", "\\cup": "cup", "\\cap": "cap", "\\setminus": "minus",
    "\\pm": "+-", "\\mp": "-+", "\\to": "to", "\\rightarrow": "to", "\\implies": "to", "\\Rightarrow": "to",
    "\\infinity": "\\infty",
}  # fmt: skip
_PATTERN = re.compile(
    r"\\(?:begin|end)\{[a-zA-Z*]{1,20}\}|\\text\{[^{}]*\}|\\[a-zA-Z]+|\\\\|\\.|\d+\.?\d*(?:[eE][+-]?\d+)?"
    r"|\.\d+(?:[eE][+-]?\d+)?|[A-Za-z]+|\*\*|<=|>=|=<|=>|!=|==|[^\sA-Za-z0-9]",
    re.DOTALL,
)
_THOUSANDS = re.compile(r"(?:,\d{3})+(?![\d,])(?:\.\d+)?")
_LIST_WORDS = {"and": ",", "or": ",", "和": ",", "或": ",", "或者": ",", "及": ",", "与": ",", "&": ","}
_INFINITE = frozenset(("inf", "infinity", "infty", "oo"))
_MOST_TOKENS = 20_000


def _letters(run: str, spaced: bool, after_value: bool) -> list[Token]:  # noqa: PLR0911
    """A run of letters: a name we know, a word (four letters or more), or a product of one-letter symbols."""
    lowered = run.lower()
    if lowered in _LIST_WORDS:
        return [Token("separator", ",", spaced)]
    if run in FUNCTIONS:
        return [Token("function", run, spaced)]
    if run in UNEVALUATED and run not in ("int", "inf", "min", "mod"):
        return [Token("command", run, spaced)]
    if lowered == "pi":
        return [Token("symbol", "\\pi", spaced)]
    if lowered in _INFINITE:
        return [Token("symbol", "\\infty", spaced)]
    if lowered == "mod":
        return [Token("command", "mod", spaced)]
    for name in ("sqrt", "sin", "cos", "tan", "log", "exp", "ln"):
        if run.startswith(name) and len(run) - len(name) == 1:
            return [Token("function", name, spaced), Token("symbol", run[-1])]
    if len(run) >= 4 or (after_value and len(run) >= 2 and is_unit(run)):
        return [Token("word", run, spaced)]
    return [Token("symbol", letter, spaced and index == 0) for index, letter in enumerate(run)]


def _command(text: str, spaced: bool) -> Token:
    name = text[1:]
    if name in FUNCTIONS:
        return Token("function", name, spaced)
    if name in UNEVALUATED:
        return Token("command", name, spaced)
    if name in _SYMBOL_COMMANDS:
        return Token("symbol", text, spaced)
    return Token("command", name, spaced)


def _word(content: str, spaced: bool) -> list[Token]:
    lowered = content.strip().lower().strip(",;")
    if lowered.strip() in _LIST_WORDS:
        return [Token("separator", ",", spaced)]
    if lowered in FUNCTIONS:
        return [Token("function", lowered, spaced)]
    if lowered in UNEVALUATED - {"min", "int", "inf"}:
        return [Token("command", lowered, spaced)]
    if content in ("pi", "π"):
        return [Token("symbol", "\\pi", spaced)]
    return [Token("word", content, spaced)]


def tokenise(text: str) -> list[Token]:  # noqa: PLR0912
    """Tokens of a normalised text. Raises NotUnderstoodError for more tokens than a judge should look at."""
    tokens: list[Token] = []
    position = 0
    depth = 0
    for match in _PATTERN.finditer(text):
        start, end = match.span()
        if start < position:
            continue
        spaced = start > position
        piece = match.group()
        position = end
        first = piece[0]
        if first.isdigit() or (first == "." and len(piece) > 1):
            grouped = _THOUSANDS.match(text, end) if depth == 0 and end - start <= 3 and first != "0" else None
            if grouped is not None and piece.isdigit():
                piece = (piece + grouped.group()).replace(",", "")
                position = grouped.end()
            tokens.append(Token("number", piece, spaced))
        elif piece.isascii() and piece.isalpha():
            tokens.extend(_letters(piece, spaced, bool(tokens) and tokens[-1].kind in ("number", "close")))
        elif piece.startswith("\\text{"):
            tokens.extend(_word(piece[6:-1], spaced))
        elif piece.startswith(("\\begin{", "\\end{")):
            tokens.append(Token("matrix", piece, spaced))
        elif piece in _OPEN or piece in _CLOSE:
            if piece not in "{}":
                depth += 1 if piece in _OPEN else -1
            tokens.append(Token("open" if piece in _OPEN else "close", piece, spaced))
        elif piece in ",;":
            tokens.append(Token("separator", piece, spaced))
        elif piece in _OPERATORS:
            tokens.append(Token("operator", _OPERATORS[piece], spaced))
        elif piece in {"\\\\", "&"}:
            tokens.append(Token("matrix", piece, spaced))
        elif first == "\\":
            tokens.append(_command(piece, spaced))
        elif piece in "+-^_=<>!%:|'":
            tokens.append(Token("operator", piece, spaced))
        else:
            tokens.append(Token("word", piece, spaced))
        if len(tokens) > _MOST_TOKENS:
            raise BeyondLimitsError(f"more than {_MOST_TOKENS} symbols")
    return _join_characters(tokens)


def _join_characters(tokens: list[Token]) -> list[Token]:
    """Neighbouring characters of scripts without word spaces become one word."""
    joined: list[Token] = []
    for token in tokens:
        last = joined[-1] if joined else None
        if (
            last is not None
            and token.kind == last.kind == "word"
            and not token.spaced
            and not token.text.isascii()
            and not last.text.isascii()
        ):
            joined[-1] = Token("word", last.text + token.text, last.spaced)
        else:
            joined.append(token)
    return [
        Token("separator", ",", token.spaced) if token.kind == "word" and token.text in _LIST_WORDS else token
        for token in joined
    ]


def matching(tokens: list[Token]) -> list[int]:
    """For each bracket the index of its partner, -1 elsewhere. `(` may close with `]`. Raises NotUnderstoodError."""
    partner = [-1] * len(tokens)
    stack: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind == "open" or token.text.startswith("\\begin{"):
            stack.append(index)
        elif token.kind == "close" or token.text.startswith("\\end{"):
            if not stack:
                raise NotUnderstoodError("a bracket is closed that was never opened")
            opened = stack.pop()
            pair = tokens[opened].text, token.text
            halves = pair[0] in "([" and pair[1] in ")]"
            named = pair[0].startswith("\\begin{") and pair[1] == pair[0].replace("\\begin", "\\end")
            if not halves and not named and _OPEN.get(pair[0]) != pair[1]:
                raise NotUnderstoodError(f"{pair[0]} is closed by {pair[1]}")
            partner[opened], partner[index] = index, opened
    if stack:
        raise NotUnderstoodError(f"{tokens[stack[-1]].text} is never closed")
    return partner


def without_double_brackets(tokens: list[Token]) -> list[Token]:
    """`((...))` as `(...)`, however deep."""
    partner = matching(tokens)
    drop: set[int] = set()
    for index in range(len(tokens) - 1):
        inner = index + 1
        if (
            tokens[index].text == tokens[inner].text
            and tokens[index].text in ("(", "{")
            and partner[index] == partner[inner] + 1
        ):
            drop.update((index, partner[index]))
    return [token for index, token in enumerate(tokens) if index not in drop] if drop else tokens
