"""Tokens to an expression tree: the algebra that answers are written in. Recursive descent, bounded depth.

Whatever lies outside raises NotUnderstoodError, and math-verify decides instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from maspo_rl.verifier.tokens import BeyondLimitsError, NotUnderstoodError, Token

MOST_DEPTH = 60
_LARGEST_EXPONENT = 100_000


@dataclass(frozen=True, slots=True)
class Node:
    """`op`: number, symbol, add, mul, div, neg, pow, call, root, factorial, abs, floor, ceil, binom, log.

    `name` is the symbol's or function's name, or says which notation an operation came from. `decimals` and
    `significant` count the digits of decimal literals, to tell a rounded value.
    """

    op: str
    args: tuple[Node, ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)
    decimals: int = 0
    significant: int = 0


def number(literal: str) -> Node:
    """A literal such as `12`, `.5`, `4.5e33`. Raises NotUnderstoodError for exponents no machine should write out."""
    mantissa, _, exponent = literal.lower().partition("e")
    shift = int(exponent) if exponent and len(exponent) <= 8 else 0
    if len(exponent) > 8 or abs(shift) > _LARGEST_EXPONENT or len(mantissa) > 4000:
        raise BeyondLimitsError("a number too long to write out")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    significant = len(digits.lstrip("0")) if fraction or exponent else 0
    value = Fraction(int(digits or "0"), 10 ** len(fraction)) * Fraction(10) ** shift
    return Node("number", value=value, decimals=len(fraction), significant=significant)


def constant(value: Fraction | int) -> Node:
    return Node("number", value=Fraction(value))


_STARTS = frozenset(("number", "symbol", "function", "open", "word", "command"))


class Parser:
    """Reads one expression from `tokens`."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0
        self._bars = 0

    def parse(self) -> Node:
        """Raises NotUnderstoodError when the tokens are not one whole expression."""
        node = self._sum()
        if self._index < len(self._tokens):
            raise NotUnderstoodError(f"{self._tokens[self._index].text!r} in an expression")
        return node

    def _peek(self, ahead: int = 0) -> Token | None:
        index = self._index + ahead
        return self._tokens[index] if index < len(self._tokens) else None

    def _at(self, *texts: str) -> bool:
        token = self._peek()
        return token is not None and token.kind in ("operator", "open", "close") and token.text in texts

    def _take(self) -> Token:
        token = self._peek()
        if token is None:
            raise NotUnderstoodError("the expression ends early")
        self._index += 1
        return token

    def _expect(self, *texts: str) -> None:
        token = self._take()
        if token.text not in texts:
            raise NotUnderstoodError(f"{token.text!r} where {texts[0]!r} should stand")

    def _sum(self) -> Node:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise BeyondLimitsError(f"nested more than {MOST_DEPTH} deep")
        terms = [self._term()]
        while self._at("+", "-"):
            negative = self._take().text == "-"
            term = self._term()
            terms.append(Node("neg", (term,)) if negative else term)
        self._depth -= 1
        return terms[0] if len(terms) == 1 else Node("add", tuple(terms))

    def _term(self) -> Node:
        if self._at("-", "+"):
            signs = 0
            while self._at("-", "+"):
                signs += self._take().text == "-"
            inner = self._term()
            return Node("neg", (inner,)) if signs % 2 else inner
        node = self._factor()
        factors = [node]
        while True:
            token = self._peek()
            if token is None:
                break
            if self._at("*"):
                self._take()
                factors.append(self._signed_factor())
            elif self._at("/"):
                self._take()
                product = factors[0] if len(factors) == 1 else Node("mul", tuple(factors))
                factors = [Node("div", (product, self._signed_factor()))]
            elif token.kind in _STARTS or (token.text == "|" and not self._bars):
                beside = self._tokens[self._index - 1].kind == "number"
                following = self._factor()
                mixed = self._mixed(factors[-1], following, token, beside)
                factors[-1:] = [mixed] if mixed is not None else [factors[-1], following]
            else:
                break
        return factors[0] if len(factors) == 1 else Node("mul", tuple(factors))

    def _signed_factor(self) -> Node:
        if self._at("-", "+"):
            negative = self._take().text == "-"
            inner = self._signed_factor()
            return Node("neg", (inner,)) if negative else inner
        return self._factor()

    def _mixed(self, first: Node, second: Node, token: Token, beside: bool) -> Node | None:
        """`2\\frac{1}{3}` and `2 1/3`: a whole number beside a proper fraction is their sum."""
        if first.op != "number" or first.value.denominator != 1 or first.significant or not beside:
            return None
        if token.kind == "number":
            if second.op != "number" or not self._at("/"):
                raise NotUnderstoodError("two numbers side by side")
            self._take()
            divisor = self._factor()
            second = Node("div", (second, divisor))
        elif token.text != "frac":
            return None
        if second.op != "div" or any(part.op != "number" or part.decimals for part in second.args):
            return None if token.kind != "number" else Node("mul", (first, second))
        numerator, denominator = (part.value for part in second.args)
        if 0 <= numerator < denominator:
            return Node("add", (first, second), name="mixed")
        if token.kind == "number":
            raise BeyondLimitsError("a whole number beside an improper fraction")
        return Node("mul", (first, second))

    def _factor(self) -> Node:
        base = self._postfix(self._primary())
        if self._at("^"):
            self._take()
            if self._is_degree():
                return Node("mul", (base, Node("div", (Node("symbol", name="\\pi"), constant(180)))), name="degree")
            if self._is_prime():
                return self._postfix(_primed(base))
            base = self._postfix(Node("pow", (base, self._exponent())))
        return base

    def _is_degree(self) -> bool:
        return self._consume_marker("\\circ")

    def _is_prime(self) -> bool:
        return self._consume_marker("\\prime") or self._consume_marker("'")

    def _consume_marker(self, name: str) -> bool:
        first, second, third = self._peek(), self._peek(1), self._peek(2)
        if first is not None and first.text == name:
            self._index += 1
            return True
        if first is None or second is None or third is None:
            return False
        if (first.text, second.text, third.text) == ("{", name, "}"):
            self._index += 3
            return True
        return False

    def _exponent(self) -> Node:
        if self._at("-", "+"):
            negative = self._take().text == "-"
            inner = self._exponent()
            return Node("neg", (inner,)) if negative else inner
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise BeyondLimitsError(f"nested more than {MOST_DEPTH} deep")
        inner = self._factor()
        self._depth -= 1
        return inner

    def _postfix(self, node: Node) -> Node:
        while self._at("!", "%", "'"):
            mark = self._take().text
            if mark == "!":
                if self._at("!"):
                    raise NotUnderstoodError("a double factorial")
                node = Node("factorial", (node,))
            elif mark == "%":
                node = Node("mul", (node, constant(Fraction(1, 100))), name="percent")
            else:
                node = _primed(node)
        return node

    def _group(self, closers: tuple[str, ...]) -> Node:
        node = self._sum()
        self._expect(*closers)
        return node

    def _braced(self) -> Node:
        self._expect("{")
        return self._group(("}",))

    def _primary(self) -> Node:  # noqa: PLR0911
        token = self._take()
        if token.kind == "number":
            return self._literal(token)
        if token.kind == "symbol":
            return self._symbol(token.text)
        if token.kind == "word":
            return self._symbol(token.text.lower())
        if token.kind == "function":
            return self._function(token.text)
        if token.text in ("(", "["):
            node = self._group((")", "]"))
            if self._at("_"):
                raise NotUnderstoodError("a subscript on brackets")
            return node
        if token.text == "{":
            return self._group(("}",))
        if token.text == "|":
            self._bars += 1
            node = Node("abs", (self._sum(),))
            self._bars -= 1
            self._expect("|")
            return node
        if token.text in ("\\lfloor", "\\lceil"):
            floor = token.text == "\\lfloor"
            return Node("floor" if floor else "ceil", (self._group(("\\rfloor" if floor else "\\rceil",)),))
        if token.kind == "command":
            return self._command(token.text)
        raise NotUnderstoodError(f"{token.text!r} in an expression")

    def _literal(self, token: Token) -> Node:
        following = self._peek()
        if following is not None and following.text == "\\ldots":
            return self._recurring(token.text)
        if following is None or following.kind != "command" or following.text not in ("overline", "bar", "dot"):
            return number(token.text)
        if "." not in token.text:
            raise NotUnderstoodError("a bar over digits before the point")
        return self._repeating(token.text)

    def _repeating(self, prefix: str) -> Node:
        """`0.1\\overline{36}`, `0.\\dot{3}`, `0.\\dot{1}4\\dot{2}` as exact fractions."""
        mark = self._take().text
        period = self._digits_in_braces()
        if mark == "dot":
            middle = ""
            token = self._peek()
            if token is not None and token.kind == "number" and token.text.isdigit():
                middle = self._take().text
            token = self._peek()
            if token is not None and token.kind == "command" and token.text == "dot":
                self._take()
                period += middle + self._digits_in_braces()
            elif middle:
                raise NotUnderstoodError("one dot over the middle of a decimal")
        whole, _, fraction = prefix.partition(".")
        if len(period) > 200 or len(prefix) > 200:
            raise BeyondLimitsError("a long repeating decimal")
        start = Fraction(int((whole + fraction) or "0"), 10 ** len(fraction))
        return constant(start + Fraction(int(period), 10 ** len(fraction) * (10 ** len(period) - 1)))

    def _recurring(self, literal: str) -> Node:
        """`0.333\\ldots` where the digits repeat a period: twice at least, three digits at least."""
        self._take()
        whole, _, fraction = literal.partition(".")
        for length in range(1, min(len(fraction) // 2, 12) + 1):
            period = fraction[-length:]
            start = len(fraction)
            while start >= length and fraction[start - length : start] == period:
                start -= length
            if len(fraction) - start >= max(3, 2 * length):
                head = Fraction(int((whole + fraction[:start]) or "0"), 10**start)
                return constant(head + Fraction(int(period), 10**start * (10**length - 1)))
        raise BeyondLimitsError("a decimal that goes on without end")

    def _digits_in_braces(self) -> str:
        braced = self._at("{")
        if braced:
            self._take()
        token = self._take()
        if token.kind != "number" or not token.text.isdigit():
            raise NotUnderstoodError("a bar over something that is not digits")
        if braced:
            self._expect("}")
        return token.text

    def _symbol(self, name: str) -> Node:
        if self._at("_"):
            self._take()
            name += "_" + self._raw_argument()
        while self._at("'"):
            self._take()
            name += "'"
        if self._at("(") and len(name.split("_")[0].rstrip("'")) == 1:
            inside, closing = self._peek(1), self._peek(2)
            if (
                inside is not None
                and closing is not None
                and closing.text == ")"
                and inside.kind in ("number", "symbol")
                and name not in ("i", "e")
            ):
                # f(x), I(0): an applied name, not a product that would vanish at 0.
                self._index += 3
                name += f"({inside.text})"
        return Node("symbol", name=name)

    def _raw_argument(self) -> str:
        """The text of a subscript, as a name."""
        token = self._take()
        return token.text if token.text != "{" else "".join(self._raw_until("}"))

    def _function(self, name: str) -> Node:
        if name == "sqrt":
            return self._root()
        power: Node | None = None
        base: Node | None = None
        for _ in range(2):
            if self._at("^"):
                self._take()
                power = self._exponent()
            elif self._at("_") and name == "log":
                self._take()
                base = self._braced() if self._at("{") else self._subscript_number()
        argument = self._argument()
        if name == "log":
            node = Node("log", (argument,) if base is None else (base, argument))
        elif name == "lg":
            node = Node("log", (constant(10), argument))
        else:
            node = Node("call", (argument,), name=name)
        if power is None:
            return node
        if power.op == "neg":
            inverse = power.args[0].op == "number" and power.args[0].value == 1
            if not inverse or name not in ("sin", "cos", "tan"):
                raise NotUnderstoodError("a negative power of a function")
            return Node("call", (argument,), name="a" + name)
        return Node("pow", (node, power))

    def _subscript_number(self) -> Node:
        token = self._take()
        if token.kind == "number":
            return number(token.text)
        return Node("symbol", name=token.text)

    def _argument(self) -> Node:
        """A function's argument: brackets, or the product that follows up to a sign or another function."""
        if self._at("(", "[", "{", "|"):
            return self._postfix(self._primary())
        if self._at("-", "+"):
            negative = self._take().text == "-"
            inner = self._argument()
            return Node("neg", (inner,)) if negative else inner
        factors = [self._factor()]
        while True:
            token = self._peek()
            if token is not None and (token.kind in ("number", "symbol") or token.text == "frac"):
                factors.append(self._factor())
            elif self._at("/"):
                self._take()
                product = factors[0] if len(factors) == 1 else Node("mul", tuple(factors))
                factors = [Node("div", (product, self._factor()))]
            else:
                return factors[0] if len(factors) == 1 else Node("mul", tuple(factors))

    def _root(self) -> Node:
        degree: Node = constant(2)
        if self._at("["):
            self._take()
            degree = self._sum()
            self._expect("]")
        if self._at("{"):
            argument = self._braced()
        elif self._at("("):
            argument = self._primary()
        else:
            token = self._take()
            if token.kind == "number":
                argument = number(token.text)
            elif token.kind == "symbol":
                argument = Node("symbol", name=token.text)
            else:
                self._index -= 1
                argument = self._primary()
        return Node("root", (degree, argument))

    def _command(self, name: str) -> Node:
        if name == "frac":
            return self._fraction()
        if name == "binom":
            return Node("binom", (self._braced(), self._braced()))
        if name in ("overline", "bar", "hat", "vec", "tilde", "dot", "ddot", "overrightarrow", "widehat", "mathbb",
                    "mathcal", "mathscr", "mathfrak"):  # fmt: skip
            return self._symbol(f"{name}({self._raw_argument()})")
        raise NotUnderstoodError(f"\\{name}")

    def _fraction(self) -> Node:
        derivative = self._derivative()
        if derivative is not None:
            return derivative
        return Node("div", (self._braced(), self._braced()))

    def _derivative(self) -> Node | None:
        """`\\frac{d v}{d t}` as one symbol, so that no `d` cancels; None for a fraction of another kind."""
        start = self._index
        self._expect("{")
        above = self._raw_until("}")
        self._expect("{")
        below = self._raw_until("}")
        tops = [text for text in above if text not in ("^", "{", "}", "_") and not text.isdigit()]
        bottoms = [text for text in below if text not in ("^", "{", "}") and not text.isdigit()]
        if len(tops) >= 2 and len(bottoms) == 2 and tops[0] == bottoms[0] == "d" and "!" not in tops + bottoms:
            return Node("symbol", name="".join((*above, "/", *below)).replace("{", "").replace("}", ""))
        self._index = start
        return None

    def _raw_until(self, closer: str) -> list[str]:
        depth = 1
        pieces: list[str] = []
        while True:
            token = self._take()
            depth += (token.text == "{") - (token.text == closer)
            if depth == 0:
                return pieces
            pieces.append(token.text)


def _primed(node: Node) -> Node:
    if node.op != "symbol":
        raise NotUnderstoodError("a prime on an expression")
    return Node("symbol", name=node.name + "'")


def walk(node: Node) -> list[Node]:
    """All nodes of a tree."""
    found: list[Node] = []
    stack = [node]
    while stack:
        current = stack.pop()
        found.append(current)
        stack.extend(current.args)
    return found


def symbols(node: Node) -> frozenset[str]:
    """Names of the free symbols: `i`, `e` and `\\pi` are constants."""
    return frozenset(part.name for part in walk(node) if part.op == "symbol") - {"i", "e", "\\pi"}
