"""Whether two structures are the same answer: True, False, or None where only math-verify can tell."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from maspo_rl.verifier.equality import equal, proportional, same_zeros
from maspo_rl.verifier.expression import Node, constant, symbols
from maspo_rl.verifier.number import FLOAT_DIGITS, ROUNDED_DIGITS
from maspo_rl.verifier.numeric import HIGH, numeric
from maspo_rl.verifier.rational import NotRationalError, TooLargeError, UndefinedError
from maspo_rl.verifier.units import conversion
from maspo_rl.verifier.values import (
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

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def same(answer: Value, gold: Value) -> bool | None:  # noqa: PLR0911
    """The question of the room. Raises UndefinedError or TooLargeError from the evaluation of constants."""
    answer, gold = _settled(answer), _settled(gold)
    for value, other in ((answer, gold), (gold, answer)):
        sides = _approximated(value) if isinstance(value, Relation) else None
        if sides is not None:
            verdicts = [same(side, other) for side in sides]
            return True if True in verdicts else _all(verdicts)
    if isinstance(gold, Named) or isinstance(answer, Named):
        return _same_named(answer, gold)
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        return _same_relations(answer, gold)
    if isinstance(gold, Interval | Union | Many) and isinstance(answer, Relation):
        interval = as_interval(answer)
        return None if interval is None else same(interval, gold)
    if isinstance(gold, Relation) and isinstance(answer, Interval | Union | Many):
        interval = as_interval(gold)
        return None if interval is None else same(answer, interval)
    answer, gold = _unwrapped(answer, gold), _unwrapped(gold, answer)
    match answer, gold:
        case Atom(), Atom():
            return _same_atoms(answer, gold)
        case Word(), Word():
            return _text(answer) == _text(gold)
        case Based(), Based():
            return answer == gold
        case Matrix(), Matrix():
            if [len(row) for row in answer.rows] != [len(row) for row in gold.rows]:
                return False
            return _all([same(a, g) for left, right in zip(answer.rows, gold.rows, strict=True)
                         for a, g in zip(left, right, strict=True)])  # fmt: skip
        case Ratio(), Ratio():
            return _same_ratios(answer, gold)
    return _same_collections(answer, gold)


def _unwrapped(value: Value, other: Value) -> Value:
    """A set of one element where the other side is an expression."""
    single = isinstance(value, Many) and value.kind == "set" and len(value.items) == 1
    return value.items[0] if isinstance(value, Many) and single and isinstance(other, Atom) else value


def _approximated(relation: Relation) -> tuple[Value, Value] | None:
    """The exact and the rounded side of `3\\pi \\approx 9.42` when they differ by 1 % at most."""
    if "~=" not in relation.operators or not set(relation.operators) <= {"=", "~="}:
        return None
    index = relation.operators.index("~=")
    exact = _settled(Relation(relation.operators[:index], relation.sides[: index + 1])) if index else relation.sides[0]
    rounded = relation.sides[-1]
    if not isinstance(exact, Atom) or not isinstance(rounded, Atom) or symbols(exact.node) | symbols(rounded.node):
        return None
    try:
        first, second = numeric(exact.node, HIGH, {}), numeric(rounded.node, HIGH, {})
    except NotRationalError:
        return None
    return (exact, rounded) if abs(first - second) <= abs(first) * HIGH.mpf("0.01") else None


def _settled(value: Value) -> Value:
    """`2 + 3 = 5` is 5 when every link holds; `x < 1, x > 2` is a union of intervals."""
    if isinstance(value, Relation) and set(value.operators) == {"="}:
        first, *rest = value.sides
        constants = all(isinstance(side, Atom) and not symbols(side.node) for side in value.sides)
        if constants and all(same(first, side) for side in rest):
            return rest[-1]
    if isinstance(value, Many) and value.kind == "list" and all(isinstance(item, Relation) for item in value.items):
        intervals = [as_interval(item) for item in value.items if isinstance(item, Relation)]
        found = tuple(interval for interval in intervals if isinstance(interval, Interval))
        names = [symbols_of(item) for item in value.items if isinstance(item, Relation)]
        if len(found) == len(intervals) and all(name == names[0] for name in names):
            return _between(found) or Union(found)
    return value


def _between(rays: tuple[Interval, ...]) -> Interval | None:
    """`x > 1 and x < 3`: two rays that overlap are meant to hold together."""
    low = [ray for ray in rays if ray.high == INFINITY]
    high = [ray for ray in rays if ray.low == MINUS_INFINITY]
    if len(rays) != 2 or len(low) != 1 or len(high) != 1:
        return None
    left, right = low[0].low, high[0].high
    if not isinstance(left, Atom) or not isinstance(right, Atom):
        return None
    try:
        ordered = numeric(left.node, HIGH, {}) < numeric(right.node, HIGH, {})
    except (NotRationalError, TypeError):
        return None
    return Interval(left, right, low[0].low_closed, high[0].high_closed) if ordered else None


def _same_collections(answer: Value, gold: Value) -> bool | None:  # noqa: PLR0911
    match answer, gold:
        case Interval(), Interval():
            if (answer.low_closed, answer.high_closed) != (gold.low_closed, gold.high_closed):
                return False
            return _all([same(answer.low, gold.low), same(answer.high, gold.high)])
        case Interval(), Many():
            return _open_pair(answer, gold)
        case Many(), Interval():
            return _open_pair(gold, answer)
        case Union(), Union():
            return _same_unordered(answer.parts, gold.parts)
        case Many(), Many():
            return _same_many(answer, gold)
        case Word(), Atom() | Atom(), Word():
            return _text(answer) == _text(gold) if _text(answer) and _text(gold) else False
    return False


def _open_pair(interval: Interval, pair: Many) -> bool | None:
    """`(a, b)` is written like a pair."""
    if pair.kind != "tuple" or len(pair.items) != 2 or interval.low_closed or interval.high_closed:
        return False
    return _all([same(interval.low, pair.items[0]), same(interval.high, pair.items[1])])


def _same_many(answer: Many, gold: Many) -> bool | None:
    if "tuple" in (answer.kind, gold.kind):
        if "set" in (answer.kind, gold.kind) or len(answer.items) != len(gold.items):
            return False
        return _all([same(a, g) for a, g in zip(answer.items, gold.items, strict=True)])
    if "set" in (answer.kind, gold.kind):
        return _same_unordered(_distinct(answer.items), _distinct(gold.items))
    return _same_unordered(answer.items, gold.items)


def _distinct(items: Sequence[Value]) -> tuple[Value, ...]:
    kept: list[Value] = []
    for item in items:
        if not any(same(item, other) for other in kept):
            kept.append(item)
    return tuple(kept)


def _same_unordered(answers: Sequence[Value], golds: Sequence[Value]) -> bool | None:
    if len(answers) != len(golds):
        return False
    left = list(golds)
    undecided = False
    for answer in answers:
        verdicts = [same(answer, gold) for gold in left]
        if True in verdicts:
            del left[verdicts.index(True)]
        elif None in verdicts:
            undecided = True
        else:
            return False
    return None if undecided else True


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _same_named(answer: Value, gold: Value) -> bool | None:  # noqa: PLR0911
    """`x = 5` and `5` agree; `y = 5` and `x = 5` do not. A name on one side only is taken off."""
    if isinstance(answer, Named) and isinstance(gold, Named):
        if answer.name == gold.name:
            return same(answer.value, gold.value)
        if isinstance(answer.value, Atom) and isinstance(gold.value, Atom):
            return _same_relations(_as_relation(answer), _as_relation(gold))
        return False
    if isinstance(answer, Named):
        if isinstance(gold, Relation):
            return _same_relations(_as_relation(answer), gold)
        return same(answer.value, gold)
    assert isinstance(gold, Named)
    if isinstance(answer, Relation):
        return _same_relations(answer, _as_relation(gold))
    return same(answer, gold.value)


def _as_relation(named: Named) -> Relation:
    return Relation(("=",), (named.side or Atom(Node("symbol", name=named.name)), named.value))


def _difference(relation: Relation) -> Node | None:
    """Left side minus right side of a single relation between expressions."""
    first, *rest = relation.sides
    if len(rest) != 1 or not isinstance(first, Atom) or not isinstance(rest[0], Atom):
        return None
    return Node("add", (first.node, Node("neg", (rest[0].node,))))


def _same_relations(answer: Relation, gold: Relation) -> bool | None:  # noqa: PLR0911
    first, second = as_interval(answer), as_interval(gold)
    if first is not None and second is not None and symbols_of(answer) == symbols_of(gold):
        return same(first, second)
    left, right = _difference(answer), _difference(gold)
    if left is None or right is None:
        if len(answer.sides) != len(gold.sides):
            return False
        straight = answer.operators == gold.operators and _all(
            [same(a, g) for a, g in zip(answer.sides, gold.sides, strict=True)]
        )
        flipped = tuple(_FLIPPED.get(operator, operator) for operator in reversed(answer.operators))
        turned = flipped == gold.operators and _all(
            [same(a, g) for a, g in zip(reversed(answer.sides), gold.sides, strict=True)]
        )
        return bool(straight or turned)
    operator, gold_operator = answer.operators[0], gold.operators[0]
    if operator not in (gold_operator, _FLIPPED.get(gold_operator)):
        return False
    sign = proportional(left, right)
    if sign is not None:
        expected = operator if sign > 0 else _FLIPPED.get(operator, operator)
        return expected == gold_operator
    if operator != "=" or gold_operator != "=" or symbols(left) != symbols(right):
        return False
    return same_zeros(left, right)


def symbols_of(relation: Relation) -> frozenset[str]:
    names: frozenset[str] = frozenset()
    for side in relation.sides:
        if isinstance(side, Atom):
            names |= symbols(side.node)
    return names - {"\\infty"}


def as_interval(relation: Relation) -> Interval | Union | None:  # noqa: PLR0911
    """`x < 3`, `0 < x <= 2`, `x != 3` as sets of reals: one symbol alone between constants."""
    sides, operators = relation.sides, relation.operators
    alone = [
        index for index, side in enumerate(sides)
        if isinstance(side, Atom) and side.node.op == "symbol" and symbols(side.node)
    ]  # fmt: skip
    if len(alone) != 1 or any(not isinstance(side, Atom) for side in sides):
        return None
    index = alone[0]
    others = [side for place, side in enumerate(sides) if place != index and isinstance(side, Atom)]
    if any(symbols(side.node) - {"\\infty"} for side in others):
        return None
    if len(sides) == 2:
        operator = operators[0] if index == 0 else _FLIPPED.get(operators[0], operators[0])
        bound = others[0]
        match operator:
            case "<" | "<=":
                return Interval(MINUS_INFINITY, bound, False, operator == "<=")
            case ">" | ">=":
                return Interval(bound, INFINITY, operator == ">=", False)
            case "!=":
                return Union((Interval(MINUS_INFINITY, bound, False, False), Interval(bound, INFINITY, False, False)))
        return None
    if len(sides) != 3 or index != 1:
        return None
    if set(operators) <= {"<", "<="}:
        return Interval(sides[0], sides[2], operators[0] == "<=", operators[1] == "<=")
    if set(operators) <= {">", ">="}:
        return Interval(sides[2], sides[0], operators[1] == ">=", operators[0] == ">=")
    return None


def _same_ratios(answer: Ratio, gold: Ratio) -> bool | None:
    return len(answer.parts) == len(gold.parts) and _all(
        [same(a, g) for a, g in zip(answer.parts, gold.parts, strict=True)]
    )


def _text(value: Value) -> str:
    if isinstance(value, Word):
        return " ".join(value.text.casefold().replace("-", " ").replace("'", "").split())
    if isinstance(value, Atom):
        return _letters(value.node)
    return ""


def _letters(node: Node) -> str:
    """The spelling of a product of one-letter symbols, which may have been a word."""
    if node.op == "symbol":
        return node.name.casefold()
    if node.op == "mul" and all(part.op == "symbol" for part in node.args):
        return "".join(part.name for part in node.args).casefold()
    return ""


def _same_atoms(answer: Atom, gold: Atom) -> bool | None:
    factor = conversion(answer.unit, gold.unit)
    if factor is None:
        return False
    node = answer.node if factor == 1 else Node("mul", (answer.node, constant(factor)))
    readings = [(node, gold.node)]
    if answer.mark != gold.mark:
        for mark, scale in (("%", constant(Fraction(1, 100))), ("deg", _DEGREE)):
            if mark == answer.mark and not gold.mark:
                readings.append((Node("mul", (node, scale)), gold.node))
            elif mark == gold.mark and not answer.mark:
                readings.append((node, Node("mul", (gold.node, scale))))
    if answer.bare is not None and not symbols(gold.node):
        readings += _converted(answer.bare, answer.bare_unit, gold.node, gold.unit)
    if gold.bare is not None and answer.unit:
        readings += _converted(answer.node, answer.unit, gold.bare, gold.bare_unit)
    verdicts = [_same_nodes(*reading) for reading in readings]
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _converted(answer: Node, unit: str, gold: Node, gold_unit: str) -> list[tuple[Node, Node]]:
    factor = conversion(unit, gold_unit)
    return [] if factor is None else [(Node("mul", (answer, constant(factor))), gold)]


_DEGREE = Node("div", (Node("symbol", name="\\pi"), constant(180)))


def _same_nodes(answer: Node, gold: Node) -> bool | None:
    signs = _infinite(answer), _infinite(gold)
    if signs != (0, 0):
        return signs[0] == signs[1]
    verdict = equal(answer, gold)
    if verdict is False and not symbols(answer) and not symbols(gold):
        return _rounds_to(answer, gold) or _rounds_to(gold, answer)
    return verdict


def _infinite(node: Node) -> int:
    if node.op == "symbol" and node.name == "\\infty":
        return 1
    return -_infinite(node.args[0]) if node.op == "neg" else 0


def _literal(node: Node) -> Node | None:
    inner = node.args[0] if node.op == "neg" else node
    return inner if inner.op == "number" else None


def _rounds_to(decimal: Node, other: Node) -> bool:
    """Whether a decimal of six places and six significant digits or more is `other`, rounded; never another decimal."""
    literal = _literal(decimal)
    if literal is None or min(literal.decimals, literal.significant) < ROUNDED_DIGITS or literal.value == 0:
        return False
    partner = _literal(other)
    if partner is not None and (partner.decimals >= literal.decimals or literal.significant < FLOAT_DIGITS):
        return False
    try:
        exact = numeric(other, HIGH, {})
        given = numeric(decimal, HIGH, {})
    except (NotRationalError, UndefinedError, TooLargeError):
        return False
    places = int(HIGH.floor(HIGH.log10(abs(given)))) + 1 - literal.significant
    half_unit = HIGH.mpf(10) ** places * HIGH.mpf("0.5000001")
    return bool(abs(exact - given) <= max(half_unit, abs(exact) * HIGH.mpf(10) ** -14))
