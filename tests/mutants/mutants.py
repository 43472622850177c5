"""The mutants of a file: its syntax tree with one fault in it, as a slip of the hand makes them.

A comparison turned or moved by one, a number one larger or smaller, the inverse operation, `and`
for `or`, a condition negated, a loop that never runs, an exception that is not caught, an argument
or a statement left out, the least for the most.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

_OPERATORS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip
_TWINS = {"min": "max", "any": "all", "floor": "ceil", "minimum": "maximum"}
_TWINS |= {other: name for name, other in _TWINS.items()}
_SPARED = ("strict", "stacklevel", "maxsize")
"""Arguments whose faults change nothing that a test should look at."""

_LUA = [(r" < ", " <= "), (r" > ", " >= "), (r" <= ", " < "), (r" >= ", " > "), (r" \+ ", " - ")]
_LUA += [(r" - ", " + "), (r" == ", " ~= "), (r" ~= ", " == "), (r" and ", " or "), (r"\bnot ", "")]


class Mutant(NamedTuple):
    """One fault in one file."""

    path: Path
    line: int
    was: str
    becomes: str
    make: Callable[[], Any]
    """Makes the faulty file: a syntax tree, or the text of a script that is no Python."""

    def __str__(self):
        return f"{self.path}:{self.line}: {self.was}  ->  {self.becomes}"


class _Edit(NamedTuple):
    node: ast.AST
    becomes: str
    put_in: Callable[[], None]


def mutants_of(path):
    """All of them, in the order of the text."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".lua":
        return list(_of_lua(path, text))

    def make(place):
        tree = ast.parse(text)
        list(_edits(tree))[place].put_in()
        return ast.fix_missing_locations(tree)

    return [
        Mutant(path, edit.node.lineno, _short(edit.node), edit.becomes, lambda at=place: make(at))
        for place, edit in enumerate(_edits(ast.parse(text)))
    ]


def statement_lines(text, line):
    """The lines of the statement that holds this line; of one that holds others, its head's."""
    found = [
        range(node.lineno, body[0].lineno if (body := getattr(node, "body", None)) else end + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and (end := node.end_lineno or node.lineno)
    ]
    return min((each for each in found if line in each), key=len, default=range(line, line + 1))


def _of_lua(path, text):
    for number, line in enumerate(text.splitlines(keepends=True)):
        for pattern, other in _LUA:
            for match in re.finditer(pattern, line.partition("--")[0]):
                faulty = line[: match.start()] + other + line[match.end() :]
                lines = text.splitlines(keepends=True)
                lines[number] = faulty
                whole = "".join(lines)
                yield Mutant(
                    path, number + 1, line.strip(), faulty.strip(), lambda made=whole: made
                )


def _edits(node):
    """Every fault of the tree below a node, in the order of the text."""
    yield from _here(node)
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list") or isinstance(node, ast.Raise):
            continue
        for place, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or _is_spared(child):
                continue
            if isinstance(value, list) and _can_leave(child):
                yield _Edit(child, "pass", lambda at=place, of=value: _pass(of, at))
            yield from _edits(child)


def _here(node):
    def setting(field, becomes, at=node):
        old = getattr(node, field)
        setattr(node, field, becomes)
        shown = _short(at)
        setattr(node, field, old)
        return _Edit(at, shown, lambda: setattr(node, field, becomes))

    if isinstance(node, ast.Compare):
        for place, each in enumerate(node.ops):
            other = _OPERATORS[type(each)]()
            yield setting("ops", [*node.ops[:place], other, *node.ops[place + 1 :]])
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        if type(node.op) in _OPERATORS:
            yield setting("op", _OPERATORS[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        if isinstance(node.op, ast.USub):
            yield setting("op", ast.UAdd())
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield setting("value", not node.value)
        elif isinstance(node.value, int | float):
            yield setting("value", node.value + 1)
            yield setting("value", node.value - 1)
    elif isinstance(node, ast.Call):
        if len(node.args) + len(node.keywords) > 1:
            for place in range(len(node.args)):
                yield setting("args", [*node.args[:place], *node.args[place + 1 :]])
            for place, keyword in enumerate(node.keywords):
                if keyword.arg not in _SPARED:
                    yield setting("keywords", [*node.keywords[:place], *node.keywords[place + 1 :]])
    elif isinstance(node, ast.Name) and node.id in _TWINS and isinstance(node.ctx, ast.Load):
        yield setting("id", _TWINS[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in _TWINS:
        yield setting("attr", _TWINS[node.attr])
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        test = node.test
        yield setting("test", ast.UnaryOp(ast.Not(), test), node)
    elif isinstance(node, ast.For):
        yield setting("iter", ast.List([], ast.Load()))
    elif isinstance(node, ast.ExceptHandler) and node.type is not None:
        yield setting("type", ast.Tuple([], ast.Load()))


def _can_leave(node):
    """A statement that is a call, that changes a variable in place, or that leaves a loop."""
    called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)
    return called or isinstance(node, ast.AugAssign | ast.Break | ast.Continue)


def _pass(body, place):
    body[place] = ast.copy_location(ast.Pass(), body[place])


def _is_spared(node):
    guard = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    return guard or (isinstance(node, ast.keyword) and node.arg in _SPARED)


def _short(node):
    return " ".join(ast.unparse(ast.fix_missing_locations(node)).split("\n", 1)[0].split())[:90]
