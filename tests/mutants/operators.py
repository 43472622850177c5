"""The faults that are put in: a choice of cosmic-ray's operators, and three of our own.

Of cosmic-ray's every replacement of one operator by each of the others, one or two are taken that
a slip of the hand could make: turned, shifted by one, the inverse operation. Its operators know no
arguments, statements or names, and most faults of numerical code are there: a term left out, a
step forgotten, a bound taken for the other. Those are our own, on cosmic-ray's interface.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import parso
from cosmic_ray.operators.exception_replacer import ExceptionReplacer
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

__all__ = ["OPERATORS"]

_COMPARISONS = (
    *("Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt"),
    *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
)
_CALCULATIONS = (
    *("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_FloorDiv", "Pow_Mul"),
    *("LShift_RShift", "RShift_LShift", "BitAnd_BitOr", "BitOr_BitAnd", "BitXor_BitOr"),
)
_OTHERS = (
    *("ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Not", "AddNot"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak"),
    *("NumberReplacer", "ZeroIterationForLoop"),
)
_TWINS = (
    *(("min", "max"), ("floor", "ceil"), ("any", "all"), ("minimum", "maximum")),
    *(("low", "high"), ("lower", "upper"), ("least", "most"), ("lowest", "highest")),
    *(("first", "last"), ("before", "after"), ("begin", "end"), ("start", "end")),
    *(("old", "new"), ("earlier", "later"), ("p", "q"), ("p11", "p01"), ("ones", "zeros")),
    *(("gain", "loss"), ("rows", "columns"), ("union", "intersection")),
)
_TWIN = {name: other for pair in _TWINS for name, other in (pair, pair[::-1])}


class DropArgument(Operator):
    """Leaves an argument out of a call of two or more."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if _is_call(node) and len(arguments := _arguments(node)) > 1:
            yield from ((each.start_pos, each.end_pos) for each in arguments)

    def mutate(self, node: Any, index: int) -> Any:
        arguments = _arguments(node)
        left = [each.get_code() for each in arguments if each is not arguments[index]]
        node.children[1] = parso.parse(",".join(left))
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class DropStatement(Operator):
    """Leaves out a statement that is a call, or that changes a variable in place."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "simple_stmt" and (_is_call(node.children[0]) or _changes(node)):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[0] = parso.parse(node.children[0].get_first_leaf().prefix + "pass")
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class SwapName(Operator):
    """Takes a name for its opposite: low for high, min for max, first for last, p for q."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type != "name" or node.is_definition() or not _twin(node.value):
            return
        keyword = node.parent.type == "argument" and node is node.parent.children[0]
        if not keyword:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = _twin(node.value)
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class NotCaught(ExceptionReplacer):
    """Lets an exception through, also if a handler of several names it with its module
    (`redis.TimeoutError`), which cosmic-ray's own does not know."""

    @staticmethod
    def _name_nodes(node: Any) -> list[Any]:
        return [each.get_last_leaf() for each in ExceptionReplacer._name_nodes(node)]


def _is_call(node: Any) -> bool:
    """A call's parentheses, or an expression that ends in them."""
    if node.type in ("atom_expr", "power", "await_expr"):
        node = node.children[-1]
    return bool(node.type == "trailer" and node.children[0].value == "(")


def _arguments(node: Any) -> list[Any]:
    if node.type != "trailer" or len(node.children) != 3:
        return []
    inside = node.children[1]
    return inside.children[::2] if inside.type == "arglist" else [inside]


def _changes(statement: Any) -> bool:
    """Whether it is an augmented assignment."""
    found = statement.children[0]
    return (
        found.type == "expr_stmt"
        and found.children[1].get_code().strip().endswith("=")
        and (found.children[1].get_code().strip() != "=")
    )


def _twin(name: str) -> str | None:
    """The name with its last word that has an opposite replaced by that."""
    words = name.split("_")
    for place in range(len(words) - 1, -1, -1):
        if words[place] in _TWIN:
            words[place] = _TWIN[words[place]]
            return "_".join(words)
    return None


def _of_cosmic_ray() -> Iterator[tuple[str, Operator]]:
    names = [f"ReplaceComparisonOperator_{each}" for each in _COMPARISONS]
    names += [f"ReplaceBinaryOperator_{each}" for each in _CALCULATIONS]
    for name in (*names, *_OTHERS):
        yield name, get_operator(f"core/{name}")()


OPERATORS: dict[str, Operator] = dict(_of_cosmic_ray()) | {
    "ExceptionReplacer": NotCaught(),
    "DropArgument": DropArgument(),
    "DropStatement": DropStatement(),
    "SwapName": SwapName(),
}
