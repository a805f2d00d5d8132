"""Tokens to a tree: the algebra, lists, intervals, equations and matrices that answers are written in.

Recursive descent, bounded depth. Whatever lies outside raises NotUnderstoodError, and math-verify decides instead.
(latex2sympy2_extended reads far more, at 30 ms for `x^2+1` and seconds for six nested brackets.)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from maspo_rl.verifier.tokens import BeyondLimitsError, NotUnderstoodError, Token, tokenise
from maspo_rl.verifier.tree import ALL_REALS, EMPTY_SET, Node, constant, named, number, walk

_MOST_DEPTH = 60
_MOST_ITEMS = 64
RELATIONS = frozenset(("=", "<", ">", "<=", ">=", "!=", "~=", "in"))
_ITEM_ENDS = RELATIONS | {",", ";", "&", "\\\\"}
_END = Token("mark", "")
_NUMERALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_EMPTY = frozenset(("no solution", "no solutions", "no real solution", "no real solutions", "empty set", "none"))
_REALS = frozenset(("all real numbers", "all reals", "all real x", "any real number"))
_ACCENT_NAMES = "overline bar hat vec tilde dot ddot overrightarrow widehat mathbb mathcal mathscr mathfrak"
_ACCENTS = frozenset(_ACCENT_NAMES.split())
_POSTFIXES = {"!": "factorial", "%": "percent", "^\\circ": "degree", "'": "symbol"}
_ENCLOSING = {"|": ("abs", "|"), "\\lfloor": ("floor", "\\rfloor"), "\\lceil": ("ceil", "\\rceil")}
_SIGNS = {"-": "neg", "+-": "pm", "-+": "mp"}
_MARKED = dict.fromkeys(("percent", "percentage", "pct"), "percent") | dict.fromkeys(
    ("degree", "degrees", "deg"), "degree"
)
_NUMERIC = ("number", "mixed")
_SCALES = {"万": 10**4, "亿": 10**8, "dozen": 12, "hundred": 100} | {
    name: 10 ** (3 * power) for power, name in enumerate(("thousand", "million", "billion", "trillion"), start=1)
}
_SCALED = re.compile(r"(?P<scale>[万亿]|(?:dozen|hundred|thousand|(?:m|b|tr)illion)\b) *(?P<unit>.*)", re.IGNORECASE)
_SET_BUILDER = re.compile(r"\\\{ *[a-zA-Z] *(?:\\in *(?:\\mathbb\{[A-Z]\}|[A-Z]) *)?[|:](.*)\\\}")
_SINGLE = re.compile(r"(?![ie]$)[^_](?:'*(?:_.*)?)", re.DOTALL)
_UNIT_SHAPE = re.compile(r"w(?:w|\^n|\^\{n\}|[/*][ws])*")


@lru_cache(maxsize=512)
def read(text: str) -> Node:
    """The tree of a normalised text. Raises NotUnderstoodError."""
    plain = text.lower().removeprefix("\\text{").removesuffix("}").strip()
    if plain in _EMPTY or text == "\\emptyset":
        return EMPTY_SET
    if plain in _REALS or text == "\\mathbb{R}":
        return ALL_REALS
    condition = _SET_BUILDER.fullmatch(text)
    return _Reader(_peeled(tokenise(condition[1] if condition else text))).answer()


def _peeled(tokens: list[Token]) -> list[Token]:
    """`(((...)))` around everything as `(...)`, however deep."""
    texts = [token.text for token in tokens]
    opening = next((index for index, text in enumerate(texts) if text != "("), 0)
    closing = next((index for index, text in enumerate(reversed(texts)) if text != ")"), 0)
    depth = lowest = opening
    for text in texts[opening : len(texts) - closing]:
        depth += (text == "(") - (text == ")")
        lowest = min(lowest, depth)
    peel = max(min(opening, closing, lowest) - 1, 0)
    return tokens[peel : len(tokens) - peel]


def _product(factors: list[Node]) -> Node:
    if len(factors) == 2 and factors[0].op == "symbol" and factors[1].op == "interval":
        # `t(0, 4]`: a half-open interval cannot be an argument, so the sign of membership was left out.
        return factors[1]
    return factors[0] if len(factors) == 1 else Node("mul", tuple(factors))


class _Reader:
    """Each method reads one level of the grammar, from the list of items down to a number or a name."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = [*tokens, _END]
        self._index = self._depth = self._bars = 0

    def answer(self) -> Node:
        items = self._items(())
        if self._peek() != _END:
            raise NotUnderstoodError(f"{self._peek().text!r} after the answer")
        return items[0] if len(items) == 1 else _collected(items)

    # Tokens

    def _peek(self) -> Token:
        return self._tokens[self._index]

    def _at(self, *marks: str) -> bool:
        token = self._peek()
        return token.kind == "mark" and token.text in marks

    def _take(self) -> Token:
        token = self._peek()
        if token == _END:
            raise NotUnderstoodError("the expression ends early")
        self._index += 1
        return token

    def _take_if(self, *marks: str) -> str:
        return self._take().text if self._at(*marks) else ""

    def _expect(self, *marks: str) -> str:
        token = self._take()
        if token.text not in marks:
            raise NotUnderstoodError(f"{token.text!r} where {marks[0]!r} should stand")
        return token.text

    def _rest_of_item(self) -> list[Token]:
        """The tokens up to the separator, bracket or relation that ends this item."""
        end, depth = self._index, 0
        while (token := self._tokens[end]) != _END:
            if token.kind == "mark":
                depth += (token.text in ("(", "{", "[")) - (token.text in (")", "}", "]"))
                if depth < 0 or (depth == 0 and (token.text in _ITEM_ENDS or token.text[:4] == "\\end")):
                    break
            end += 1
        return self._tokens[self._index : end]

    # What is more than an expression

    def _items(self, closers: tuple[str, ...]) -> list[Node]:
        """What stands between separators, up to a closing bracket or the end."""
        items: list[Node] = []
        while True:
            while self._take_if(",", ";"):
                pass
            if self._peek() == _END or self._at(*closers):
                break
            item = self._item()
            items += item.args if item.op == "list" else [item]
            if len(items) > _MOST_ITEMS:
                raise BeyondLimitsError(f"a list of more than {_MOST_ITEMS} items")
            if not self._at(",", ";", *closers):
                break
        if not items:
            raise NotUnderstoodError("nothing but separators")
        return items

    def _item(self) -> Node:
        """An equation or inequality, or one side of it alone; both signs of a `\\pm`."""
        self._take_if("=", "~=")
        sides, operators = [self._side()], []
        while self._at(*RELATIONS):
            operators.append(self._take().text)
            sides.append(self._side())
        if len(operators) > 8:
            raise BeyondLimitsError("a chain of more than 8 relations")
        if operators == ["in"]:
            return sides[1]
        node = Node("relation", tuple(sides), " ".join(operators)) if operators else sides[0]
        if any(part.op in ("pm", "mp") for part in walk(node)):
            return Node("list", (_signed(node, "pm"), _signed(node, "mp")))
        return node

    def _side(self) -> Node:
        words = self._rest_of_item()
        if any(token.kind == "word" for token in words) and all(
            token.kind in ("word", "symbol") or token.text in ("'", "-", "!") for token in words
        ):
            self._index += len(words)
            return Node("word", name=" ".join(token.text for token in words))
        return self._chain("union", lambda: self._chain("ratio", self._measured, ":"), "cup")

    def _chain(self, op: str, operand: Callable[[], Node], mark: str) -> Node:
        parts = [operand()]
        while self._take_if(mark):
            parts.append(operand())
        return parts[0] if len(parts) == 1 else Node(op, tuple(parts))

    def _measured(self) -> Node:
        """An expression with the unit after it."""
        node = self._sum()
        if self._peek().kind != "word":
            return node
        tokens = self._rest_of_item()
        self._index += len(tokens)
        unit = " ".join(token.text for token in tokens).replace(" ^ ", "^").replace("{ ", "").replace(" }", "").strip()
        if scaled := _SCALED.fullmatch(unit):
            node = Node("mul", (node, constant(_SCALES[scaled["scale"].lower()])), "scale")
            unit = scaled["unit"]
        marked = _MARKED.get(unit.lower().split(" ")[0])
        return Node(marked, (node,)) if marked else Node("unit", (node,), unit) if unit else node

    def _unit_ahead(self) -> bool:
        """Whether nothing but a unit follows in this item: words, with their powers and quotients."""
        shape = "".join(
            token.kind[0] if token.kind in ("word", "symbol", "number") else token.text
            for token in self._rest_of_item()
        )
        return _UNIT_SHAPE.fullmatch(shape) is not None

    def _bracketed(self, opening: str) -> Node:
        """Brackets of an expression, a tuple, an interval or a set."""
        if opening == "\\{" and self._take_if("\\}"):
            return EMPTY_SET
        closers = {"{": ("}",), "\\{": ("\\}",), "\\langle": ("\\rangle",)}.get(opening, (")", "]"))
        bars, self._bars = self._bars, 0
        items = self._items(closers)
        self._bars = bars
        closing = self._expect(*closers)
        if self._at("_"):
            raise NotUnderstoodError("a subscript on brackets")
        if opening == "\\{" or (opening == "{" and len(items) > 1):
            return Node("set", tuple(items))
        if len(items) == 1:
            return items[0]
        if len(items) == 2 and closing != "\\rangle" and (opening, closing) != ("(", ")"):
            return Node("interval", tuple(items), opening + closing)
        return Node("tuple", tuple(items))

    def _matrix(self, environment: str) -> Node:
        if "matrix" not in environment and "array" not in environment:
            raise NotUnderstoodError(environment)
        if "array" in environment and self._take_if("{"):
            while self._take().text != "}":
                pass
        rows: list[list[Node]] = [[]]
        while not self._peek().text.startswith("\\end{"):
            if self._take_if("\\\\"):
                rows.append([])
            elif not self._take_if("&"):
                rows[-1].append(self._item())
        self._take()
        filled = [Node("row", tuple(row)) for row in rows if row]
        if not filled or sum(len(row.args) for row in filled) > _MOST_ITEMS:
            raise NotUnderstoodError("a matrix that is empty or too large")
        return Node("matrix", tuple(filled))

    # Expressions

    def _sum(self) -> Node:
        terms = [self._signed(self._term)]
        while self._at("+", "-", "+-", "-+"):
            terms.append(self._signed(self._term))
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def _signed(self, operand: Callable[[], Node]) -> Node:
        signs = []
        while sign := self._take_if("+", "-", "+-", "-+"):
            signs.append(sign)
        node = operand()
        for sign in reversed(signs):
            node = Node(_SIGNS[sign], (node,)) if sign != "+" else node
        return node

    def _term(self) -> Node:
        factors = [self._factor()]
        while True:
            token = self._peek()
            if self._take_if("*"):
                factors.append(self._signed(self._factor))
            elif self._take_if("/"):
                factors = [Node("div", (_product(factors), self._signed(self._factor)))]
            elif token.text in ("C", "F") and factors[-1].op == "degree":
                self._take()
            elif (token.kind == "word" and self._unit_ahead()) or not self._starts_factor(token):
                return _product(factors)
            else:
                if token.kind in _NUMERIC and self._tokens[self._index - 1].kind in _NUMERIC:
                    raise NotUnderstoodError("two numbers side by side")
                factors.append(self._factor())

    def _starts_factor(self, token: Token) -> bool:
        if token.kind == "mark":
            opens = token.text in ("(", "[", "{", "\\{", "\\lfloor", "\\lceil") or token.text[:6] == "\\begin"
            return opens or (token.text == "|" and not self._bars)
        return True

    def _factor(self) -> Node:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise BeyondLimitsError(f"nested more than {_MOST_DEPTH} deep")
        node = self._postfix(self._primary())
        if self._take_if("^"):
            node = self._postfix(Node("pow", (node, self._signed(self._factor))))
        self._depth -= 1
        return node

    def _postfix(self, node: Node) -> Node:
        while mark := self._take_if(*_POSTFIXES):
            if mark == "!" and self._at("!"):
                raise NotUnderstoodError("a double factorial")
            if mark == "'" and node.op != "symbol":
                raise NotUnderstoodError("a prime on an expression")
            node = Node("symbol", name=node.name + "'") if mark == "'" else Node(_POSTFIXES[mark], (node,))
        return node

    def _primary(self) -> Node:  # noqa: PLR0911
        token = self._take()
        match token.kind:
            case "number":
                return number(token.text)
            case "mixed":
                return _mixed(token.text)
            case "symbol":
                return self._symbol(token.text)
            case "word":
                return self._symbol(token.text.lower())
            case "function":
                return self._function(token.text)
            case "based":
                return Node("based", name=_based(token.text))
            case "command":
                return self._command(token.text)
        if token.text in ("(", "[", "{", "\\{", "\\langle"):
            return self._bracketed(token.text)
        if token.text in _ENCLOSING:
            op, closing = _ENCLOSING[token.text]
            self._bars += token.text == "|"
            node = Node(op, (self._sum(),))
            self._bars -= token.text == "|"
            self._expect(closing)
            return node
        if token.text.startswith("\\begin{"):
            return self._matrix(token.text)
        raise NotUnderstoodError(f"{token.text!r} in an expression")

    def _symbol(self, name: str) -> Node:
        if self._take_if("_"):
            name += "_" + self._raw_argument()
        match self._tokens[self._index : self._index + 3]:
            case [(_, "("), ("number" | "symbol", inside), (_, ")")] if _SINGLE.fullmatch(name):
                # f(x), I(0): an applied name, not a product that would vanish at 0.
                self._index += 3
                name += f"({inside})"
        return Node("symbol", name=name)

    def _raw_argument(self) -> str:
        """A subscript or the argument of an accent, as a name."""
        token = self._take()
        if token.text != "{":
            return token.text
        pieces: list[str] = []
        depth = 1
        while depth:
            token = self._take()
            depth += (token.text == "{") - (token.text == "}")
            pieces.append(token.text)
        return "".join(pieces[:-1])

    def _function(self, name: str) -> Node:
        if name == "sqrt":
            return self._root()
        power: Node | None = None
        base: Node | None = constant(10) if name == "lg" else None
        while True:
            if self._take_if("^"):
                power = self._signed(self._factor)
            elif name == "log" and self._take_if("_"):
                base = self._primary()
            else:
                break
        argument = self._argument()
        name = name.replace("arc", "a")
        if power is not None and power == Node("neg", (constant(1),)) and name in ("sin", "cos", "tan"):
            return Node("a" + name, (argument,))
        if power is not None and power.op == "neg":
            raise NotUnderstoodError("a negative power of a function")
        node = Node(name, (argument,)) if base is None else Node("logarithm", (base, argument))
        return node if power is None else Node("pow", (node, power))

    def _argument(self) -> Node:
        """A function's argument: brackets, or the product that follows up to a sign or another function."""
        if self._at("(", "[", "{", "|"):
            return self._postfix(self._primary())
        factors = [self._signed(self._factor)]
        while True:
            token = self._peek()
            if token.kind in ("number", "symbol") or token.text == "frac":
                factors.append(self._factor())
            elif self._take_if("/"):
                factors = [Node("div", (_product(factors), self._factor()))]
            else:
                return _product(factors)

    def _root(self) -> Node:
        degree = constant(2)
        if self._take_if("["):
            degree = self._sum()
            self._expect("]")
        if self._peek().kind == "symbol":
            return Node("root", (degree, Node("symbol", name=self._take().text)))
        return Node("root", (degree, self._primary()))

    def _command(self, name: str) -> Node:
        if name in ("frac", "binom"):
            parts = []
            for _ in range(2):
                self._expect("{")
                parts.append(self._sum())
                self._expect("}")
            return Node("div" if name == "frac" else name, tuple(parts))
        if name in _ACCENTS:
            symbol = f"{name}({self._raw_argument()})"
            return ALL_REALS if symbol == "mathbb(R)" else self._symbol(symbol)
        raise NotUnderstoodError(f"\\{name}")


def _mixed(text: str) -> Node:
    """`2\\frac{1}{3}` and `2 1/3`: a whole number beside a proper fraction is their sum."""
    whole, numerator, denominator = (number(digits) for digits in re.findall(r"\d+", text.replace(",", "")))
    fraction = Node("div", (numerator, denominator))
    if numerator.value < denominator.value:
        return Node("add", (whole, fraction), "mixed")
    if "frac" not in text:
        raise BeyondLimitsError("a whole number beside an improper fraction")
    return Node("mul", (whole, fraction))


def _signed(node: Node, positive: str) -> Node:
    """The tree with its `\\pm` and `\\mp` decided: the one named `positive` is a plus."""
    args = tuple(_signed(part, positive) for part in node.args)
    if node.op in ("pm", "mp"):
        return args[0] if node.op == positive else Node("neg", args)
    return replace(node, args=args)


def _based(text: str) -> str:
    """`204_5`, `(204)_{5}`, `204_{\\text{five}}` as `204_5`."""
    digits, _, base = text.partition("_")
    base = base.replace("\\text", "").strip("{} ")
    base = str(_NUMERALS.index(base) + 1) if base in _NUMERALS else base
    return f"{digits.strip('()').lstrip('0') or '0'}_{base}"


def _collected(items: list[Node]) -> Node:
    """A list; `x = 1, x = 2` and `x = 1, 2` become `x =` a list, `p = 5, q = 2; p = 7, q = 2` a list of tuples."""
    definitions = [named(item) for item in items]
    first = definitions[0]
    if first is None or any(
        definition is None and item.op == "relation" for definition, item in zip(definitions, items, strict=True)
    ):
        return Node("list", tuple(items))
    pairs = [definition or ("", item) for definition, item in zip(definitions, items, strict=True)]
    names = {name for name, _ in pairs}
    if names <= {first[0], ""}:
        return _definition(first[0], Node("list", tuple(value for _, value in pairs)))
    records: list[dict[str, Node]] = [{}]
    for name, value in pairs:
        if name in records[-1]:
            records.append({})
        records[-1][name] = value
    if "" in names or any(record.keys() != names for record in records):
        return Node("list", tuple(items))
    tuples = tuple(Node("tuple", tuple(record[name] for name in sorted(names))) for record in records)
    return _definition(f"({','.join(sorted(names))})", tuples[0] if len(tuples) == 1 else Node("list", tuples))


def _definition(name: str, value: Node) -> Node:
    return Node("relation", (Node("word", name=name), value), "=")
