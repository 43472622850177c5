"""The mutants of a file: each is its text with one fault in it, found by the lines that differ."""

from __future__ import annotations

import ast
import hashlib
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cosmic_ray.ast import Visitor, ast_nodes, get_ast

from .operators import OPERATORS

__all__ = ["Mutant", "mutants_of", "shuffled", "statement_lines", "written"]

_SPARED = re.compile(
    r"TYPE_CHECKING|lru_cache|strict=True|^\s*@|^\s*raise \w|^__all__|stacklevel|def .*\*,|^\s*\*,$"
)
"""Lines where a fault changes nothing that a test should look at: imports for the type checker,
sizes of caches, assertions on lengths, decorators, and the words of errors."""


class Mutant(NamedTuple):
    """One fault in one file."""

    operator: str
    line: int
    was: str
    becomes: str
    code: str

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by, wherever the line moves."""
        return self.was, self.becomes

    def __str__(self) -> str:
        return f"line {self.line}: {self.was}  ->  {self.becomes}"


def mutants_of(path: Path) -> list[Mutant]:
    """All of them, in the order of the operators and of the text."""
    text = path.read_text(encoding="utf-8")
    original = _meaning(text)
    tree = pickle.dumps(get_ast(text))  # read anew for each mutant, which is quicker than parsing
    found: dict[str, Mutant] = {}
    for name, operator in OPERATORS.items():
        for occurrence in range(_count(text, operator)):
            visitor = _Once(operator, occurrence)
            code = visitor.walk(pickle.loads(tree)).get_code()
            mutant = _compared(name, text, code)
            if mutant is None or _SPARED.search(text.splitlines()[mutant.line - 1]):
                continue
            meaning = _meaning(code)
            if meaning is not None and meaning != original:
                found.setdefault(code, mutant)
    return list(found.values())


def written(path: Path, faults: list[list[str]]) -> list[Mutant]:
    """The mutants that are written down as pairs of texts, of a file that is no Python.

    Raises:
        ValueError: a text is not in the file, or more than once.
    """
    text = path.read_text(encoding="utf-8")
    found = []
    for was, becomes in faults:
        if text.count(was) != 1:
            raise ValueError(f"{path.name} holds {was!r} {text.count(was)} times, not once")
        line = text[: text.index(was)].count("\n") + 1
        found.append(Mutant("written", line, was, becomes, text.replace(was, becomes)))
    return found


def shuffled(path: str, mutants: list[Mutant], seed: int) -> list[Mutant]:
    """The mutants in an order that depends on the seed and on themselves alone: a larger sample
    holds a smaller one."""
    order = {}
    for each in mutants:
        name = repr((seed, path, each.operator, each.key, each.line)).encode()
        order[hashlib.blake2b(name).digest()] = each
    return [order[digest] for digest in sorted(order)]


class _Once(Visitor):
    """Applies one occurrence of an operator."""

    def __init__(self, operator: Any, occurrence: int) -> None:
        self._operator, self._left = operator, occurrence

    def visit(self, node: Any) -> Any:
        for index, _ in enumerate(list(self._operator.mutation_positions(node))):
            if self._left == 0:
                node = self._operator.mutate(node, index)
            self._left -= 1
        return node


def _count(text: str, operator: Any) -> int:
    nodes = ast_nodes(get_ast(text))
    return sum(len(list(operator.mutation_positions(node))) for node in nodes)


def _compared(operator: str, text: str, code: str) -> Mutant | None:
    """The mutant by the lines between the first and the last that differ."""
    old, new = text.splitlines(), code.splitlines()
    if old == new:
        return None
    pairs = list(zip(old, new, strict=False))
    first = next((place for place, (x, y) in enumerate(pairs) if x != y), len(pairs))
    most = min(len(old), len(new)) - first
    backwards = zip(reversed(old), reversed(new), strict=False)
    same = next((place for place, (x, y) in enumerate(backwards) if x != y), most)
    was, becomes = (
        " ".join(" ".join(lines[first : len(lines) - min(same, most)]).split())
        for lines in (old, new)
    )
    return Mutant(operator, first + 1, was, becomes, code)


def _meaning(text: str) -> str | None:
    """The program without annotations, which are never evaluated; None if it is none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return ast.dump(_WithoutAnnotations().visit(tree))


class _WithoutAnnotations(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)


def statement_lines(text: str) -> Iterator[range]:
    """The lines of each statement; of one that holds others, those of its head."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = node.end_lineno or node.lineno
            yield range(node.lineno, body[0].lineno if body else end + 1)
