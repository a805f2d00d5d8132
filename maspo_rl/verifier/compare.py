"""Whether two answers are the same: True, False, or None where only math-verify can tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from maspo_rl.verifier.evaluate import constants, equal, proportional, same_zeros
from maspo_rl.verifier.tree import INFINITY, MINUS_INFINITY, Node, constant, named, rounds_to, symbols
from maspo_rl.verifier.units import conversion

STRUCTURES = frozenset((
    "word", "based", "list", "tuple", "set", "row", "matrix", "ratio", "union", "interval", "relation",
))  # fmt: skip
_LETTER_UNITS = frozenset("mglLshNJWVAKCF")
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def same(answer: Node, gold: Node) -> bool | None:  # noqa: PLR0911
    """The question of the room. Raises NoValueError from the evaluation of constants."""
    answer, gold = _settled(answer), _settled(gold)
    for value, other in ((answer, gold), (gold, answer)):
        if sides := _approximated(value):
            verdicts = [same(side, other) for side in sides]
            return True if True in verdicts else _all(verdicts)
    if named(answer) or named(gold):
        return _same_named(answer, gold)
    if answer.op == gold.op == "relation":
        return _same_relations(answer, gold)
    if "relation" in (answer.op, gold.op):
        pair = [as_interval(side) if side.op == "relation" else side for side in (answer, gold)]
        if pair[0] is None or pair[1] is None:
            return None if {answer.op, gold.op} & {"interval", "union", "set", "list", "tuple"} else False
        return _same_collections(pair[0], pair[1])
    answer, gold = _unwrapped(answer, gold), _unwrapped(gold, answer)
    if not {answer.op, gold.op} & STRUCTURES:
        return _same_expressions(answer, gold)
    return _same_collections(answer, gold)


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    collected = set(verdicts)
    if False in collected:
        return False
    return None if None in collected else True


def _pairwise(answers: Sequence[Node], golds: Sequence[Node]) -> bool | None:
    if len(answers) != len(golds):
        return False
    return _all(same(answer, gold) for answer, gold in zip(answers, golds, strict=True))


def _unordered(answers: Sequence[Node], golds: Sequence[Node]) -> bool | None:
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


def _distinct(items: Sequence[Node]) -> list[Node]:
    kept: list[Node] = []
    for item in items:
        if not any(same(item, other) for other in kept):
            kept.append(item)
    return kept


def _same_collections(answer: Node, gold: Node) -> bool | None:  # noqa: PLR0911
    ops = {answer.op, gold.op}
    if ops == {"interval", "tuple"}:
        # An open interval (a, b) is written like a pair.
        brackets = answer.name or gold.name
        return _pairwise(answer.args, gold.args) if brackets == "()" else False
    if ops <= {"list", "tuple"} and "tuple" in ops:
        return _pairwise(answer.args, gold.args)
    if ops <= {"list", "set"}:
        if "set" in ops:
            return _unordered(_distinct(answer.args), _distinct(gold.args))
        return _unordered(answer.args, gold.args)
    if ops <= {"word", "symbol", "mul"}:
        letters = _letters(answer), _letters(gold)
        return letters[0] == letters[1] != ""
    if len(ops) > 1:
        return False
    if answer.op == "union":
        return _unordered(answer.args, gold.args)
    return answer.name == gold.name and _pairwise(answer.args, gold.args)


def _letters(node: Node) -> str:
    """A word, or the spelling of a product of one-letter symbols, which may have been a word."""
    if node.op == "word":
        return " ".join(node.name.casefold().replace("-", " ").replace("'", "").split())
    parts = node.args if node.op == "mul" else (node,)
    return "".join(part.name for part in parts).casefold() if all(part.op == "symbol" for part in parts) else ""


def _unwrapped(value: Node, other: Node) -> Node:
    """A set of one element where the other side is an expression."""
    return value.args[0] if value.op == "set" and len(value.args) == 1 and other.op not in STRUCTURES else value


# Equations and inequalities


def _approximated(node: Node) -> tuple[Node, Node] | None:
    """The exact and the rounded side of `3\\pi \\approx 9.42` when they differ by 1 % at most."""
    operators = node.name.split()
    if node.op != "relation" or operators[-1] != "~=" or set(operators[:-1]) - {"="}:
        return None
    chain = Node("relation", node.args[:-1], " ".join(operators[:-1]))
    exact = _settled(chain) if len(operators) > 1 else node.args[0]
    values = constants((exact, node.args[-1]))
    if values is None or abs(values[0] - values[1]) > abs(values[0]) / 100:
        return None
    return exact, node.args[-1]


def _settled(node: Node) -> Node:
    """`2 + 3 = 5` is 5 when every link holds; `x < 1, x > 2` a union of intervals; `(1, 2) cm` is `(1, 2)`."""
    if node.op == "unit" and node.args[0].op in STRUCTURES:
        return node.args[0]
    if node.op == "relation" and set(node.name.split()) == {"="}:
        first, *rest = node.args
        if not any(side.op in STRUCTURES or symbols(side) for side in node.args) and all(
            same(first, side) for side in rest
        ):
            return rest[-1]
    if node.op == "list" and len({symbols(item) - {"\\infty"} for item in node.args}) == 1:
        rays = [as_interval(item) if item.op == "relation" else None for item in node.args]
        found = tuple(ray for ray in rays if ray is not None and ray.op == "interval")
        if len(found) == len(rays):
            return _between(found) or Node("union", found)
    return node


def _between(rays: tuple[Node, ...]) -> Node | None:
    """`x > 1 and x < 3`: two rays that overlap are meant to hold together."""
    if len(rays) != 2:
        return None
    low, high = rays if rays[0].args[1] == INFINITY else reversed(rays)
    ends = low.args[0], high.args[1]
    values = constants(ends) if low.args[1] == INFINITY and high.args[0] == MINUS_INFINITY else None
    return Node("interval", ends, low.name[0] + high.name[1]) if values and values[0] < values[1] else None


def _same_named(answer: Node, gold: Node) -> bool | None:
    """`x = 5` and `5` agree; `y = 5` and `x = 5` do not. A name on one side only is taken off."""
    first, second = named(answer), named(gold)
    if first and second:
        if first[0] == second[0]:
            return same(first[1], second[1])
        return False if {first[1].op, second[1].op} & STRUCTURES else _same_relations(answer, gold)
    if answer.op == gold.op == "relation":
        return _same_relations(answer, gold)
    return same(first[1] if first else answer, second[1] if second else gold)


def _same_relations(answer: Node, gold: Node) -> bool | None:
    first, second = as_interval(answer), as_interval(gold)
    if first is not None and second is not None and symbols(answer) - {"\\infty"} == symbols(gold) - {"\\infty"}:
        return same(first, second)
    operators, expected = answer.name.split(), gold.name.split()
    turned = [_FLIPPED.get(operator, operator) for operator in reversed(operators)]
    left, right = _difference(answer), _difference(gold)
    if left is None or right is None:
        straight = operators == expected and _pairwise(answer.args, gold.args)
        return bool(straight or (turned == expected and _pairwise(answer.args[::-1], gold.args)))
    if expected not in (operators, turned):
        return False
    if sign := proportional(left, right):
        return (operators if sign > 0 else turned) == expected
    if operators != ["="] or symbols(left) != symbols(right):
        return False
    return same_zeros(left, right)


def _difference(relation: Node) -> Node | None:
    """Left side minus right side of a single relation between expressions."""
    if len(relation.args) != 2 or any(side.op in STRUCTURES for side in relation.args):
        return None
    return Node("add", (relation.args[0], Node("neg", relation.args[1:])))


def as_interval(relation: Node) -> Node | None:
    """`x < 3`, `0 < x <= 2`, `x != 3` as sets of reals: one symbol alone between constants."""
    sides, operators = relation.args, relation.name.split()
    alone = [side for side in sides if side.op == "symbol" and symbols(side) and side != INFINITY]
    others = [side for side in sides if side not in alone]
    if len(alone) != 1 or any(side.op in STRUCTURES or symbols(side) - {"\\infty"} for side in others):
        return None
    if set(operators) <= {">", ">="} or (sides[1:] == tuple(alone) and operators == ["!="]):
        sides, operators = sides[::-1], [_FLIPPED.get(operator, operator) for operator in reversed(operators)]
    place = sides.index(alone[0])
    low, high = (MINUS_INFINITY, *sides)[place], (*sides, INFINITY)[place + 1]
    if operators == ["!="]:
        rays = (MINUS_INFINITY, high), (high, INFINITY)
        return Node("union", tuple(Node("interval", ray, "()") for ray in rays))
    if len(sides) > 3 or (len(sides) == 3 and place != 1) or not set(operators) <= {"<", "<="}:
        return None
    opening = "[" if place and operators[0] == "<=" else "("
    closing = "]" if place + 1 < len(sides) and operators[-1] == "<=" else ")"
    return Node("interval", (low, high), opening + closing)


# Expressions, with units and marks


def _same_expressions(answer: Node, gold: Node) -> bool | None:
    verdicts = []
    for reading in _readings(answer, gold):
        verdicts.append(_same_values(*reading))
        if verdicts[-1]:
            return True
    return None if None in verdicts else False


def _readings(answer: Node, gold: Node) -> Iterator[tuple[Node, Node]]:
    """The pairs of unit-free expressions that the two may stand for; none where the units contradict each other."""
    first, second = _measured(answer), _measured(gold)
    pairs = [(first, second)]
    if not symbols(second[0]):
        pairs.append((_letter_unit(first), second))
    if first[1]:
        pairs.append((first, _letter_unit(second)))
    for (value, unit), (gold_value, gold_unit) in dict.fromkeys(pairs):
        factor = conversion(unit, gold_unit)
        if factor is None:
            continue
        scaled = value if factor == 1 else Node("mul", (value, constant(factor)))
        yield scaled, gold_value
        bare, gold_bare = _unmarked(scaled), _unmarked(gold_value)
        if (bare == scaled) != (gold_bare == gold_value):
            yield bare, gold_bare


def _measured(node: Node) -> tuple[Node, str]:
    return (node.args[0], node.name) if node.op == "unit" else (node, "")


def _letter_unit(measured: tuple[Node, str]) -> tuple[Node, str]:
    """`5 m^2` and `5 m/s` with their letters read as units and not as variables."""
    node, unit = measured
    product, *divisor = node.args if node.op == "div" else (node,)
    letters = [_unit_of(product.args[-1]) if product.op == "mul" else "", *map(_unit_of, divisor)]
    if unit or not all(letters) or product.args[-2].op != "number":
        return measured
    value = product.args[0] if len(product.args) == 2 else Node("mul", product.args[:-1])
    return value, "/".join(letters)


def _unit_of(node: Node) -> str:
    """`m`, `s^2`: a letter that may be a unit, with its power; empty for anything else."""
    letter, power = node.args if node.op == "pow" else (node, constant(1))
    if letter.name not in _LETTER_UNITS or power.op != "number":
        return ""
    return letter.name if power.value == 1 else f"{letter.name}^{power.value}"


def _unmarked(node: Node) -> Node:
    """`50%` as 50, `90^\\circ` as 90: both readings are in use."""
    if node.op in ("percent", "degree"):
        return node.args[0]
    if node.op in ("neg", "add", "mul", "div"):
        return Node(node.op, tuple(_unmarked(part) for part in node.args), node.name)
    return node


def _same_values(answer: Node, gold: Node) -> bool | None:
    signs = _infinite(answer), _infinite(gold)
    if signs != (0, 0):
        return signs[0] == signs[1]
    verdict = equal(answer, gold)
    if verdict is False and not symbols(answer) | symbols(gold):
        return _rounds_to(answer, gold) or _rounds_to(gold, answer)
    return verdict


def _infinite(node: Node) -> int:
    if node.op == "neg":
        return -_infinite(node.args[0])
    return int(node == INFINITY)


def _rounds_to(decimal: Node, other: Node) -> bool:
    values = constants((other,)) if decimal.op in ("neg", "number") else None
    if values is None:
        return False
    if decimal.op == "neg":
        return rounds_to(decimal.args[0], other.args[0] if other.op == "neg" else other, -values[0])
    return rounds_to(decimal, other, values[0])
