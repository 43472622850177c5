"""The geometry of lines in bands: of a trend, with its dots, and of a sparkline, which is so small
that it shows its shape alone.

The band of a sparkline is 1.96 standard errors. It has no axis: the numbers stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np

from deniable_estimator.document.plot.marks import Dot, DrawnLine
from deniable_estimator.document.plot.scales import Axis
from deniable_estimator.document.units import Unit

MOST_POINTS = 56
"""More windows are drawn by means of several, each weighted by its reports."""

_LABEL_GAP = 15.0
"""Pixels from one label at the end of a line to the next."""

Numbers = tuple[float, float, float]
"""A number, and the low and the high end of its interval."""

SPARK_HEIGHT = 24
"""Pixels of a sparkline."""
_Z = 1.96


class SparkPoint(NamedTuple):
    """One window's estimate; NaN where nothing is known."""

    n: int
    """Reports."""
    value: float
    std_error: float


def sparkline(points: Sequence[SparkPoint | None], unit: Unit) -> DrawnLine | None:
    """The line of these windows, the oldest first, None where one has no reports; None if fewer
    than two have any."""
    numbers = [each and _interval(each, unit) for each in _grouped(points)]
    known = [each for each in numbers if each]
    if len(known) < 2:
        return None
    axis = Axis.of(unit, np.array(known), gridlines=False)
    return axis and line_of("", 0, numbers, axis, SPARK_HEIGHT, small=True)


def _interval(point: SparkPoint, unit: Unit) -> Numbers | None:
    """A number with its interval; on a logarithmic axis, where a standard error is relative to the
    number, one that has a place there."""
    value, reach = point.value, _Z * point.std_error
    if not unit.log:
        return value, value - reach, value + reach
    if value <= 0:
        return None
    factor = math.exp(min(reach / value, _Z))
    return value, value / factor, value * factor


def _grouped(points: Sequence[SparkPoint | None]) -> list[SparkPoint | None]:
    """At most `MOST_POINTS`: each the mean of as many windows, by their reports."""
    known = [
        each if each and math.isfinite(each.value) and math.isfinite(each.std_error) else None
        for each in points
    ]
    size = math.ceil(len(known) / MOST_POINTS)
    if size <= 1:
        return known
    # From the newest back, so that the last point is a whole one.
    first = len(known) % size - size if len(known) % size else 0
    return [
        _mean([each for each in known[max(0, start) : start + size] if each])
        for start in range(first, len(known), size)
    ]


def _mean(points: Sequence[SparkPoint]) -> SparkPoint | None:
    n = sum(each.n for each in points)
    if not n:
        return None
    value = sum(each.n * each.value for each in points) / n
    return SparkPoint(
        n, value, math.sqrt(sum((each.n * each.std_error) ** 2 for each in points)) / n
    )


def line_of(
    label: str,
    style: int,
    numbers: Sequence[Numbers | None],
    axis: Axis,
    height: int,
    *,
    partial: Collection[int] = (),
    alarmed: Collection[int] = (),
    small: bool = False,
) -> DrawnLine:
    """The line of these numbers, one for each period, None where there is none. The periods at the
    places `partial` and `alarmed` have dots of their own.

    Where an interval has no limit on one side, the band reaches the edge, and neither line nor dot
    claims to know more.
    """
    found = {place: each for place, each in enumerate(numbers) if each is not None}
    runs = _runs(list(found))
    alone = {run[0] for run in runs if len(run) == 1}
    columns = list(zip(*found.values(), strict=True))
    down, low, high = (
        dict(zip(found, axis.down(column, height), strict=True)) for column in columns
    )
    ends = zip(found, *columns[1:], strict=True)
    open_ = {place for place, *both in ends if not all(map(math.isfinite, both))}
    whole = _runs([place for place in found if place not in open_]) if open_ else runs
    across, texts = _middles(len(numbers))
    marked = list(found)
    if small:
        # A small chart has dots only where there is no line or an alarm, and its label at the last.
        some = {place for place in found if place in alarmed}
        marked = sorted({*alone, *some, marked[-1]})
    return DrawnLine(
        label=label,
        style=style,
        paths=tuple(
            path([texts[place] for place in run], [down[place] for place in run])
            for run in whole
            if len(run) > 1
        ),
        bands=tuple(
            path(
                [texts[place] for place in (*run, *reversed(run))],
                [high[place] for place in run] + [low[place] for place in reversed(run)],
            )
            + "Z"
            for run in runs
            if len(run) > 1
        ),
        dots=tuple(
            Dot(
                *(across[place], down[place], low[place], high[place]),
                *(place in partial, place in alarmed, place in alone, place in open_),
            )
            for place in marked
        ),
    )


def path(across: Sequence[str], down: Sequence[float]) -> str:
    """A line through these corners."""
    # One call that writes all numbers takes a third of the time of one for each.
    return ("M" + " %gL".join(across) + " %g") % tuple(down)


def thousandths(percents: Sequence[float]) -> list[str]:
    """Places across as paths have them."""
    return [f"{10 * each:.1f}" for each in percents]


@lru_cache(maxsize=16)
def _middles(count: int) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """The middle of each of so many periods, in percent across and for paths: a page draws many
    charts of the same periods."""
    each = 100 / count
    found = tuple(round((place + 0.5) * each, 3) for place in range(count))
    return found, tuple(thousandths(found))


def _runs(places: Sequence[int]) -> list[list[int]]:
    """The places in unbroken runs."""
    numbered = enumerate(places)
    return [
        [place for _, place in run]
        for _, run in groupby(numbered, key=lambda pair: pair[1] - pair[0])
    ]


def apart(wanted: Sequence[float], height: int) -> list[float]:
    """Where labels stand that would stand there: as near as can be without touching each other."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    found = [0.0] * len(wanted)
    last = -math.inf
    for place in order:
        last = found[place] = max(wanted[place], last + _LABEL_GAP)
    last = height + _LABEL_GAP
    for place in reversed(order):
        last = found[place] = min(found[place], last - _LABEL_GAP)
    return [round(each, 1) for each in found]
