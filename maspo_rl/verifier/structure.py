"""What kind of answer the tokens are: a number, a list, a tuple, an interval, an equation, a matrix, a word."""

from __future__ import annotations

from functools import lru_cache

from maspo_rl.verifier.expression import Node, Parser, constant
from maspo_rl.verifier.tokens import (
    BeyondLimitsError,
    NotUnderstoodError,
    Token,
    matching,
    tokenise,
    without_double_brackets,
)
from maspo_rl.verifier.units import is_unit
from maspo_rl.verifier.values import (
    ALL_REALS,
    EMPTY_SET,
    INFINITY,
    MINUS_INFINITY,
    Atom,
    Based,
    Interval,
    Many,
    Matrix,
    Named,
    Ratio,
    Relation,
    Union,
    Value,
    Word,
)

_MOST_ITEMS = 64
_RELATIONS = frozenset(("=", "<", ">", "<=", ">=", "!=", "~="))
_EMPTY = frozenset(("no solution", "no solutions", "no real solution", "no real solutions", "empty set", "none"))
_REALS = frozenset(("all real numbers", "all reals", "\\mathbb{r}", "all real x", "any real number"))
_NUMBER_WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_SPACED_UNITS = frozenset("NJWVAKCF")
_MYRIADS = {"万": 10**4, "亿": 10**8}


@lru_cache(maxsize=512)
def read(text: str) -> Value:
    """The structure of a normalised text. Raises NotUnderstoodError."""
    plain = text.lower()
    if plain.startswith("\\text{"):
        plain = plain.removeprefix("\\text{").removesuffix("}").strip()
    if plain in _EMPTY:
        return EMPTY_SET
    if plain in _REALS:
        return ALL_REALS
    tokens = without_double_brackets(tokenise(text))
    if not tokens:
        raise NotUnderstoodError("nothing but punctuation")
    if len(tokens) == 1 and tokens[0].text == "\\emptyset":
        return EMPTY_SET
    return _value(tokens, 0)


def _split(tokens: list[Token], texts: frozenset[str]) -> list[list[Token]]:
    """Pieces between separators or operators named in `texts` that stand outside all brackets and bars."""
    pieces: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        opens = token.kind == "open" or token.text.startswith("\\begin{")
        closes = token.kind == "close" or token.text.startswith("\\end{")
        depth += opens - closes
        if depth == 0 and token.kind in ("separator", "operator") and token.text in texts:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def _wrapped(tokens: list[Token]) -> bool:
    return len(tokens) >= 2 and tokens[0].kind == "open" and matching(tokens)[0] == len(tokens) - 1


def _value(tokens: list[Token], depth: int) -> Value:
    if depth > 12:
        raise BeyondLimitsError("lists within lists, more than 12 deep")
    if not tokens:
        raise NotUnderstoodError("an empty part")
    matching(tokens)
    groups = [piece for piece in _split(tokens, frozenset(";")) if piece]
    if len(groups) > 1:
        return _list([_value(group, depth + 1) for group in groups])
    pieces = _split(groups[0] if groups else tokens, frozenset(","))
    pieces = [piece for piece in pieces if piece]
    if len(pieces) > 1:
        if len(pieces) > _MOST_ITEMS:
            raise BeyondLimitsError(f"a list of more than {_MOST_ITEMS} items")
        return _list([_value(piece, depth + 1) for piece in pieces])
    if not pieces:
        raise NotUnderstoodError("nothing but separators")
    return _single(pieces[0], depth)


def _list(items: list[Value]) -> Value:
    """A bare list; nested lists (`a, b; c, d`) are flattened, and `x = 1, 2` names only its first item."""
    flat: list[Value] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Many) and item.kind == "list" else [item])
    if len(flat) > _MOST_ITEMS:
        raise BeyondLimitsError(f"a list of more than {_MOST_ITEMS} items")
    return _records(flat)


def _records(items: list[Value]) -> Value:
    """`x = 1, x = 2` is a named list; `p = 5, q = 2; p = 7, q = 2` a list of named tuples."""
    first = items[0]
    if not isinstance(first, Named):
        return Many("list", tuple(items))
    if all(not isinstance(item, Named | Relation) for item in items[1:]) or all(
        isinstance(item, Named) and item.name == first.name for item in items
    ):
        values = tuple(item.value if isinstance(item, Named) else item for item in items)
        return Named(first.name, Many("list", values))
    named = [item for item in items if isinstance(item, Named)]
    if len(named) < len(items):
        return Many("list", tuple(items))
    records: list[dict[str, Value]] = [{}]
    for item in named:
        if item.name in records[-1]:
            records.append({})
        records[-1][item.name] = item.value
    if any(record.keys() != records[0].keys() for record in records):
        return Many("list", tuple(items))
    names = sorted(records[0])
    tuples = tuple(Many("tuple", tuple(record[name] for name in names)) for record in records)
    return Named("(" + ",".join(names) + ")", tuples[0] if len(tuples) == 1 else Many("list", tuples))


def _single(tokens: list[Token], depth: int) -> Value:  # noqa: PLR0911
    membership = _split(tokens, frozenset(("in",)))
    if len(membership) == 2 and _name(membership[0]) is not None:
        return _value(membership[1], depth + 1)
    if len(tokens) > 2 and tokens[0].kind == "symbol" and (tokens[1].text, tokens[-1].text) in (("(", "]"), ("[", ")")):
        # `t(0, 4]`: a half-open interval cannot be an argument, so the sign of membership was left out.
        return _value(tokens[1:], depth + 1)
    related = _relation(tokens, depth)
    if related is not None:
        return related
    removed = _split(tokens, frozenset(("minus",)))
    if len(removed) == 2:
        return _reals_without(_value(removed[0], depth + 1), _value(removed[1], depth + 1))
    parts = _split(tokens, frozenset(("cup",)))
    if len(parts) > 1:
        return Union(tuple(_value(part, depth + 1) for part in parts))
    ratio = _split(tokens, frozenset((":",)))
    if len(ratio) > 1:
        return Ratio(tuple(_value(part, depth + 1) for part in ratio))
    branches = _plus_minus(tokens)
    if branches is not None:
        return Many("list", tuple(_value(branch, depth + 1) for branch in branches))
    if tokens[0].text.startswith("\\begin{") and matching(tokens)[0] == len(tokens) - 1:
        return _matrix(tokens, depth)
    if _wrapped(tokens):
        bracketed = _bracketed(tokens, depth)
        if bracketed is not None:
            return bracketed
    based = _based(tokens)
    return based if based is not None else _atom(tokens)


def _reals_without(whole: Value, points: Value) -> Value:
    """`\\mathbb{R} \\setminus \\{a\\}` as two rays; one point only, since the order of more is not known here."""
    if (
        not (isinstance(whole, Atom) and whole.node.name == "mathbb(R)")
        or not isinstance(points, Many)
        or points.kind != "set"
        or len(points.items) != 1
    ):
        raise NotUnderstoodError("a difference of sets")
    point = points.items[0]
    return Union((Interval(MINUS_INFINITY, point, False, False), Interval(point, INFINITY, False, False)))


def _plus_minus(tokens: list[Token]) -> tuple[list[Token], list[Token]] | None:
    """Upper and lower signs of `a \\pm b`."""
    if not any(token.text in ("+-", "-+") and token.kind == "operator" for token in tokens):
        return None
    upper = {"+-": "+", "-+": "-"}
    lower = {"+-": "-", "-+": "+"}

    def choose(signs: dict[str, str]) -> list[Token]:
        return [Token(token.kind, signs.get(token.text, token.text), token.spaced) for token in tokens]

    return choose(upper), choose(lower)


def _bracketed(tokens: list[Token], depth: int) -> Value | None:  # noqa: PLR0911
    """A set, tuple, interval, or the content of redundant brackets. None for brackets of an expression."""
    opening, closing, inner = tokens[0].text, tokens[-1].text, tokens[1:-1]
    if opening == "\\{" or (opening == "{" and len(_split(inner, frozenset(",;"))) > 1):
        if not inner:
            return EMPTY_SET
        for index, token in enumerate(inner):
            if index and token.text in ("|", ":") and token.kind == "operator":
                if inner[0].kind == "symbol" and (index == 1 or inner[1].text == "in"):
                    return _value(inner[index + 1 :], depth + 1)
                break
        content = _value(inner, depth + 1)
        items = content.items if isinstance(content, Many) and content.kind == "list" else (content,)
        return Many("set", items)
    if opening == "{":
        return _value(inner, depth + 1)
    if opening not in ("(", "[", "\\langle"):
        return None
    pieces = _split(inner, frozenset((",", ";")))
    if len(pieces) == 1:
        if inner and inner[0].text.startswith("\\begin{") and matching(inner)[0] == len(inner) - 1:
            return _matrix(inner, depth)
        if opening == "(" and closing == ")" and len(inner) > 0:
            return _value(inner, depth + 1)
        return None
    if len(pieces) > _MOST_ITEMS:
        raise BeyondLimitsError(f"a list of more than {_MOST_ITEMS} items")
    items = tuple(_value(piece, depth + 1) for piece in pieces)
    if len(items) == 2 and "\\langle" not in (opening, closing) and (opening, closing) != ("(", ")"):
        return Interval(items[0], items[1], opening == "[", closing == "]")
    return Many("tuple", items)


def _matrix(tokens: list[Token], depth: int) -> Value:
    body = tokens[1:-1]
    if "array" in tokens[0].text and body and body[0].text == "{":
        body = body[matching(body)[0] + 1 :]
    if not any(name in tokens[0].text for name in ("matrix", "array")):
        raise NotUnderstoodError(tokens[0].text)
    rows: list[list[list[Token]]] = [[[]]]
    for token in body:
        if token.text == "\\\\":
            rows.append([[]])
        elif token.text == "&" and token.kind == "matrix":
            rows[-1].append([])
        else:
            rows[-1][-1].append(token)
    filled = [row for row in rows if any(row)]
    if not filled or sum(len(row) for row in filled) > _MOST_ITEMS:
        raise NotUnderstoodError("a matrix that is empty or too large")
    return Matrix(tuple(tuple(_value(cell, depth + 1) for cell in row) for row in filled))


def _name(tokens: list[Token]) -> str | None:
    """The left side of a definition as a name, spelt out; None when it is an expression to evaluate."""
    depth = 0
    for index, token in enumerate(tokens):
        if token.kind in ("open", "close"):
            depth += 1 if token.kind == "open" else -1
        elif (
            token.kind == "function"
            or (token.kind == "operator" and token.text not in ("_", "'", ":", "|"))
            or (token.kind == "number" and depth == 0 and not (index and tokens[index - 1].text == "_"))
        ):
            return None
    letters = [token for token in tokens if token.kind in ("symbol", "word")]
    if not letters or (tokens[0].kind == "symbol" and tokens[0].text in ("e", "\\pi", "\\infty")):
        return None
    return "".join(token.text for token in tokens if token.text not in ("{", "}"))


def _relation(tokens: list[Token], depth: int) -> Value | None:
    sides: list[list[Token]] = [[]]
    operators: list[str] = []
    level = 0
    for token in tokens:
        level += (token.kind == "open") - (token.kind == "close")
        if level == 0 and token.kind == "operator" and token.text in _RELATIONS:
            operators.append(token.text)
            sides.append([])
        else:
            sides[-1].append(token)
    if not operators:
        return None
    if not sides[0] and operators[0] in ("=", "~="):
        return _value([token for token in tokens if token.text != operators[0]], depth + 1)
    if len(operators) > 8:
        raise BeyondLimitsError("a chain of more than 8 relations")
    name = _name(sides[0])
    if name is not None and len(operators) == 1 and operators[0] in ("=", "~="):
        return Named(name, _value(sides[1], depth + 1), _expression(sides[0]))
    values = tuple(_value(side, depth + 1) for side in sides)
    if name is not None and set(operators) == {"="}:
        return Named(name, Relation(tuple(operators[1:]), values[1:]))
    return Relation(tuple(operators), values)


def _expression(tokens: list[Token]) -> Value | None:
    try:
        return Atom(Parser(tokens).parse())
    except NotUnderstoodError:
        return None


def _based(tokens: list[Token]) -> Based | None:
    """`204_5`, `(204)_{5}`, `204_{\\text{five}}`."""
    plain = [token for token in tokens if token.text not in ("(", ")", "{", "}")]
    negative = plain[0].text == "-" if plain else False
    plain = plain[negative:]
    if len(plain) < 3 or plain[-2].text != "_":
        return None
    digits = plain[:-2]
    if any(token.kind not in ("number", "symbol") or not token.text.replace(".", "").isalnum() for token in digits):
        return None
    if digits[0].kind != "number" and all(token.kind == "symbol" for token in digits):
        return None
    spelt = "".join(token.text for token in digits).upper().lstrip("0") or "0"
    base = plain[-1].text.lower()
    base = str(_NUMBER_WORDS.index(base)) if base in _NUMBER_WORDS else base
    return Based(("-" if negative else "") + spelt, base)


def _atom(tokens: list[Token]) -> Value:
    words = _words(tokens)
    if words is not None:
        return Word(words)
    body, unit, mark = _marked(tokens)
    scale = _MYRIADS.get(body[-1].text[:1]) if body and body[-1].kind == "word" else None
    if scale is not None:
        unit = body[-1].text[1:] or unit
        body = body[:-1]
    if not body:
        raise NotUnderstoodError("a unit without a value")
    node = Parser(body).parse()
    if scale is not None:
        node = Node("mul", (node, constant(scale)), name="scale")
    value = _without_letter_unit(body)
    if not value:
        return Atom(node, unit, mark)
    letter = "".join(token.text for token in body[len(value) :] if token.text not in "{}")
    return Atom(node, unit, mark, Parser(value).parse(), letter)


def _without_letter_unit(body: list[Token]) -> list[Token]:
    """What stands before a last `m` or `m^2` that may be metres and may be a variable; empty if there is none."""
    end = len(body)
    if end > 4 and body[end - 4].text == "^" and body[end - 3].text == "{" and body[end - 2].kind == "number":
        end -= 4
    elif end > 2 and body[end - 2].text == "^" and body[end - 1].kind == "number":
        end -= 2
    if end < 2 or body[end - 1].kind != "symbol" or body[end - 2].kind != "number":
        return []
    letter = body[end - 1]
    if not is_unit(letter.text) and not (letter.spaced and letter.text in _SPACED_UNITS):
        return []
    return body[: end - 1]


def _words(tokens: list[Token]) -> str | None:
    """The text of an answer in words; None where there is mathematics in it."""
    if not any(token.kind == "word" for token in tokens):
        return None
    if any(token.kind in ("number", "function", "open", "close", "matrix", "command") for token in tokens):
        return None
    if any(token.kind == "operator" and token.text not in ("'", "-", "!") for token in tokens):
        return None
    return " ".join(token.text for token in tokens)


def _marked(tokens: list[Token]) -> tuple[list[Token], str, str]:
    """Body, unit and mark of `35 cm`, `90^\\circ`, `50%`, `15 cm^2`, `12 km/h`."""
    cut = len(tokens)
    while cut > 1:
        start = _unit_start(tokens, cut)
        if start is None:
            break
        cut = start
        while cut > 1 and tokens[cut - 1].text == "/" and tokens[cut - 1].kind == "operator":
            cut -= 1
    if cut == len(tokens) > 3 and tokens[-1].text in ("C", "F") and tokens[-2].text in ("\\circ", "}"):
        temperature = _marked(tokens[:-1])
        return temperature if temperature[2] == "deg" else (tokens, "", "")
    unit = " ".join(token.text for token in tokens[cut:]).replace(" ^ ", "^").replace("{ ", "").replace(" }", "")
    body = tokens[:cut]
    if body and body[-1].kind == "operator" and body[-1].text == "%":
        return body[:-1], unit, "%"
    if unit.lower().split(" ")[0] in ("percent", "percentage", "pct"):
        return body, "", "%"
    if unit.lower().split(" ")[0] in ("degree", "degrees", "deg"):
        return body, "", "deg"
    texts = [token.text for token in body[-4:]]
    for tail in (["^", "\\circ"], ["^", "{", "\\circ", "}"]):
        if (
            not any(token.kind == "function" for token in body)
            and texts[-len(tail) :] == tail
            and len(body) > len(tail)
        ):
            return body[: -len(tail)], unit, "deg"
    return body, unit, ""


def _unit_start(tokens: list[Token], end: int) -> int | None:
    """Where the unit word that ends at `end` begins, with its power; None if there is none."""
    index = end
    texts = [token.text for token in tokens[max(0, index - 4) : index]]
    if len(texts) == 4 and texts[0] == "^" and texts[1] == "{" and texts[3] == "}":
        index -= 4
    elif len(texts) >= 2 and texts[-2] == "^" and tokens[index - 1].kind == "number":
        index -= 2
    if index < 2:
        return None
    last = tokens[index - 1]
    measures = any(letter.isalpha() for letter in last.text) and last.text[:1] not in _MYRIADS
    follows_value = tokens[index - 2].kind in ("number", "close", "word", "symbol") or tokens[index - 2].text in (
        "/",
        "%",
    )
    if last.kind == "word" and follows_value and measures:
        return index - 1
    if last.kind == "symbol" and tokens[index - 2].text == "/" and index >= 3 and tokens[index - 3].kind == "word":
        return index - 1
    return None
