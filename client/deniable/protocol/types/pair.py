"""Two metrics at once: how the values of two closed lists go together.

The app records the two metrics and nothing more. When the window closes, the device joins the two
values that it has to one *cell*: value i of the first list and value j of the second, of k2, are
cell i * k2 + j. A number is cut into bins first. Subset selection reports the cell
(`deniable.protocol.mechanisms.subset_selection`). A device without one of the two values reports
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

from deniable.protocol.checks import Check, one_of
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.errors import SchemeError
from deniable.protocol.frozen import frozen
from deniable.protocol.mechanisms import AUTO, Mechanism
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable.protocol.types.base import MetricType, Table, Value
from deniable.protocol.types.pair_parts import TIMES, PairPart, check_bins, check_of, read_parts

FORGET = ("marginals",)
"""What `forget` may say."""


@frozen
class Pair(MetricType):
    """The joint of two metrics.

    Attributes:
        parts: the two metrics.
        forget: the name of what is not asked: "marginals" if the two metrics are not reported by
            themselves; None if they are.
    """

    name = "pair"
    keys: ClassVar[Mapping[str, Check]] = {
        "of": check_of,
        "bins": check_bins,
        "forget": one_of(FORGET),
    }
    foreign: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("values", "values_file", "other"), "its values are those of its metrics"),
        "aggregate": "the two metrics say how several records become one value",
        "answer": "it is joined when the window closes",
        "segments": "it is not counted by segments, which would multiply its cells",
    }
    undefaulted = frozenset({"aggregate", "answer", "segments"})
    aggregates = ("last",)
    joins = True

    parts: tuple[PairPart, PairPart]
    forget: str | None = None

    @property
    def of(self) -> tuple[str, ...]:
        return tuple(part.metric for part in self.parts)

    @property
    def shape(self) -> tuple[int, int]:
        """How many values each of the two has."""
        first, second = self.parts
        return len(first.values), len(second.values)

    @cached_property
    def values(self) -> tuple[str, ...]:  # type: ignore[override]
        """The text of every cell, in order."""
        first, second = self.parts
        return tuple(
            cell_text(first.metric, one, second.metric, two)
            for one in first.values
            for two in second.values
        )

    @property
    def domain(self) -> str:
        return "{} x {}".format(*self.shape)

    @classmethod
    def read(cls, table: Table) -> Self | None:
        settings = table.settings
        if "of" not in settings:
            table.report(None, 'lacks of: name two metrics, like of = ["plan", "dark_mode"]')
            return None
        if any(cls.keys[key](settings[key]) for key in cls.keys if key in settings):
            return None
        fresh = settings.get("longitudinal", "fresh") == "fresh"
        if not fresh:
            table.report(
                "longitudinal",
                "is memoize, but a pair has no memos: every combination of two values would need "
                'one, and all of them add up. Set longitudinal = "fresh"',
            )
        parts = read_parts(table, settings["of"], settings.get("bins", {}))
        if parts is None or not fresh:
            return None
        return cls(parts, settings.get("forget"))

    def compiled_keys(self) -> dict[str, Any]:
        bins = {part.metric: list(part.edges) for part in self.parts if part.edges}
        return {"of": list(self.of), "bins": bins, "forget": self.forget}

    @classmethod
    def mechanisms(cls, *, memoize: bool) -> tuple[str, ...]:
        return () if memoize else (AUTO, SubsetSelection.name)

    @classmethod
    def suits(cls, mechanism: Mechanism[Any]) -> bool:
        return isinstance(mechanism, SubsetSelection)

    def normalize(self, value: Value) -> str:
        raise ValueError("is a pair, which takes no values")

    def joined(self, texts: Sequence[str | None]) -> str | None:
        places = []
        for part, text in zip(self.parts, texts, strict=True):
            try:
                places.append(part.place(text) if text is not None else None)
            except KeyError:
                return None
        one, two = places
        if one is None or two is None:
            return None
        return str(one * self.shape[1] + two)

    def item(self, text: str, mechanism: Mechanism[Any]) -> int:
        return int(text)

    def _design(
        self, mechanism: str, metric: str, epsilon: float, memo_epsilon: float | None
    ) -> Mechanism[Any]:
        one, two = self.shape
        return SubsetSelection.design(one * two, epsilon)

    def explain(self, metric: str, epsilon: float, memo_epsilon: float | None) -> CodedMessage:
        return CodedMessage(
            "joint_least_error",
            "subset selection over all cells has the least possible error, and tells both metrics "
            "and how they go together",
        )

    def loss(self, mechanism: Mechanism[Any], epsilon: float) -> float:
        return 1.0

    def combines(self, before: MetricType) -> str:
        if isinstance(before, Pair) and before.values == self.values:
            return "combine both schemes"
        return (
            "over days of both tell those of the larger part, as their cells differ: ask for days "
            "before or after the change"
        )


def cell_text(first: str, one: str, second: str, two: str) -> str:
    """The text of a cell: "plan=free × dark_mode=true"."""
    return f"{first}={one} {TIMES} {second}={two}"


def margins_of(
    cells: Sequence[str],
) -> tuple[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]]:
    """The names of the two metrics and their values, from the texts of all cells of a scheme.

    Raises:
        SchemeError: they are not the cells of a pair.
    """
    split = [cell.split(f" {TIMES} ") for cell in cells]
    if not split or any(len(each) != 2 or "=" not in each[0] + each[1] for each in split):
        raise SchemeError("the scheme's values are not the cells of a pair")
    ones, twos = ([each[side].partition("=") for each in split] for side in (0, 1))
    first, second = (tuple(dict.fromkeys(value for _, _, value in side)) for side in (ones, twos))
    names = ones[0][0], twos[0][0]
    made = [cell_text(names[0], one, names[1], two) for one in first for two in second]
    if made != list(cells) or min(len(first), len(second)) < 2:
        raise SchemeError("the scheme's values are not the cells of a pair")
    return names, (first, second)
