"""Two metrics at once: how the values of two closed lists go together.

The app records the two metrics and nothing more. When the window closes, the device joins the two
values that it has to one *cell*: value i of the first list and value j of the second, of k2, are
cell i * k2 + j. A number is cut into bins first. Subset selection reports the cell
(`deniable.protocol.mechanisms.subset_selection`). A device without one of the two values reports
nothing.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Any, ClassVar, Self

from deniable.protocol.checks import Check, is_number, one_of
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.errors import SchemeError
from deniable.protocol.frozen import frozen
from deniable.protocol.mechanisms import Mechanism
from deniable.protocol.mechanisms.number_range import number_text
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable.protocol.types.base import MetricType, Table, Value
from deniable.protocol.types.number import Number, read_number
from deniable.protocol.types.texts import Closed

MAX_PAIR_CELLS = 900
"""The most cells of a pair: the analysis is established by simulation for up to 30 x 30."""

TIMES = "×"
"""Stands between the two values in the text of a cell."""

_MOST_EDGES = MAX_PAIR_CELLS // 2 - 1


def check_of(value: Any) -> str | None:
    fine = isinstance(value, list) and len(value) == 2 and all(isinstance(i, str) for i in value)
    return None if fine else 'must name two metrics, like of = ["plan", "dark_mode"]'


def check_bins(value: Any) -> str | None:
    if not isinstance(value, dict):
        return "must say where each number is cut, like bins = { seconds = [1, 5, 30] }"
    for name, edges in value.items():
        fine = isinstance(edges, list) and all(map(is_number, edges))
        if not fine or not 1 <= len(edges) <= _MOST_EDGES:
            return f"must list from 1 to {_MOST_EDGES} numbers for {name}, like [1, 5, 30]"
        if any(one >= two for one, two in itertools.pairwise(edges)):
            return f"must list rising numbers for {name}"
    return None


@frozen
class PairPart:
    """One of the two metrics of a pair, as a closed list.

    Attributes:
        metric: its name.
        type: of the metric.
        values: its values, or the names of the bins that its numbers are cut into.
        edges: where they are cut, rising; a number on an edge belongs to the bin above it.
    """

    metric: str
    type: Closed | Number
    values: tuple[str, ...]
    edges: tuple[float, ...] = ()

    def place(self, text: str) -> int:
        """The place of a value in the list, from the text that it waits as.

        Raises:
            KeyError: it is none, as the registry has changed since it was recorded.
        """
        if isinstance(self.type, Closed):
            return self.type.place(text)
        return bisect_right(self.edges, read_number(text))


def read_parts(
    table: Table, of: Sequence[str], bins: Mapping[str, Sequence[float]]
) -> tuple[PairPart, PairPart] | None:
    """The two metrics as closed lists; None, after reports, if they make no pair."""
    first, second = of
    if first == second:
        table.report("of", f"names {first} twice: name two different metrics")
        return None
    for name in bins:
        if name not in of:
            table.report("bins", f"cuts {name}, which the pair is not of: remove it")
    found = [_part(table, name, bins.get(name)) for name in of]
    if None in found or any(name not in of for name in bins):
        return None
    one, two = (part for part in found if part is not None)
    where = [set(table.context.metrics[name].platform) for name in of]
    if all(where) and not set.intersection(*where):
        table.report(
            "of", f"{first} and {second} are recorded on different platforms, so no device has both"
        )
        return None
    cells = len(one.values) * len(two.values)
    if cells > MAX_PAIR_CELLS:
        table.report(
            "of",
            f"has {len(one.values)} x {len(two.values)} = {cells:,} cells, above the limit of "
            f"{MAX_PAIR_CELLS}: merge rare values, or cut numbers into fewer bins",
        )
        return None
    return one, two


def _part(table: Table, name: str, edges: Sequence[float] | None) -> PairPart | None:
    kind, metric = table.context.kinds.get(name), table.context.metrics.get(name)
    expires, window = table.settings.get("expires"), table.settings.get("window", "day")
    key, why = "of", None
    if kind is None:
        why = f"names {name}, which is not declared: declare it, or correct the name"
    elif kind == "pair":
        why = f"names {name}, which is a pair itself: name two other metrics"
    elif metric is None:  # its own mistakes are reported
        return None
    elif metric.longitudinal == "memoize":
        why = (
            f"{name} is memoized: a pair would add a fresh report about the value that its memo "
            'hides. Pairs need metrics with longitudinal = "fresh"'
        )
    elif table.settings.get("forget") is not None and metric.segments:
        why = f"{name} is counted by segments, which the pair does not tell: leave forget out"
    elif metric.answer == "at_once":
        why = f"{name} is answered at once, so its value is gone when the window closes"
    elif metric.window != window:
        why = (
            f"{name} has windows of a {metric.window}, and the pair of a {window}: give both the "
            "same"
        )
    elif isinstance(expires, date) and metric.expires < expires:
        why = (
            f"{name} expires on {metric.expires}, before the pair ({expires}): let the pair expire "
            "with it"
        )
    elif isinstance(metric.type, Number):
        if edges is not None:
            return _cut(table, name, metric.type, edges)
        why = f"{name} is a number: say where to cut it, like bins = {{ {name} = [1, 5, 30] }}"
    elif not isinstance(metric.type, Closed):
        why = f"{name} is a {kind}, which has no list of values: a pair needs two closed lists"
    elif edges is not None:
        key, why = "bins", f"cuts {name}, which is a {kind}: only numbers are cut"
    elif any(TIMES in value for value in metric.type.values):
        why = f"{name} has a value with {TIMES!r}, which stands between the values of a pair"
    else:
        return PairPart(name, metric.type, tuple(metric.type.values))
    table.report(key, why)
    return None


def _cut(table: Table, name: str, kind: Number, edges: Sequence[float]) -> PairPart | None:
    low, high = float(kind.range.low), float(kind.range.high)
    if not low < edges[0] or not edges[-1] <= high:
        table.report("bins", f"cuts {name} outside of its range, {low:g} to {high:g}")
        return None
    texts = [number_text(float(edge)) for edge in edges]
    between = [f"{one} to {two}" for one, two in itertools.pairwise(texts)]
    values = (f"below {texts[0]}", *between, f"{texts[-1]} or more")
    return PairPart(name, kind, values, tuple(map(float, edges)))


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
    aggregates = ("last",)
    suitable = SubsetSelection
    without_memos = (SubsetSelection.name,)
    explanation = CodedMessage(
        "joint_least_error",
        "subset selection over all cells has the least possible error, and tells both metrics "
        "and how they go together",
    )
    misfits: ClassVar[Mapping[str, str]] = {
        "memoize": "a pair has no memos: every combination of two values would need one, and all "
        'of them add up. Set longitudinal = "fresh"'
    }

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
        parts = read_parts(table, settings["of"], settings.get("bins", {}))
        return None if parts is None else cls(parts, settings.get("forget"))

    def compiled_keys(self) -> dict[str, Any]:
        bins = {part.metric: list(part.edges) for part in self.parts if part.edges}
        return {"of": list(self.of), "bins": bins, "forget": self.forget}

    def normalize(self, value: Value) -> str:
        raise ValueError("is a pair, which takes no values")

    def joined(self, texts: Sequence[str | None]) -> str | None:
        first, second = texts
        if first is None or second is None:
            return None
        try:
            one, two = self.parts[0].place(first), self.parts[1].place(second)
        except KeyError:
            return None
        return str(one * self.shape[1] + two)

    def item(self, text: str, mechanism: Mechanism[Any]) -> int:
        return int(text)

    def _design(
        self, mechanism: str, metric: str, epsilon: float, memo_epsilon: float | None
    ) -> Mechanism[Any]:
        one, two = self.shape
        return SubsetSelection.design(one * two, epsilon)

    def combines(self, before: MetricType) -> str:
        if isinstance(before, Pair) and before.values == self.values:
            return "combine both schemes"
        return (
            "over days of both tell those of the newest, as their cells differ: ask for days "
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
