"""The series of a trend as plain numbers, and the axis that holds them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deniable_estimator.answers.units import Unit
from deniable_estimator.dashboard.charts.ticks import log_levels, round_levels
from deniable_estimator.questions.trend import Period, Trend

__all__ = ["TrendAxis", "TrendLine", "axis_of", "is_open", "lines_of"]

_ROOM = 0.06
"""The part of its height that a chart without gridlines leaves free above and below."""


class TrendLine(NamedTuple):
    """One series over the periods of a trend."""

    label: str
    """What people call it."""
    numbers: tuple[tuple[float, float, float] | None, ...]
    """Number, low and high of each period; None where there is none."""


class TrendAxis(NamedTuple):
    """The scale of a trend; several charts may share one."""

    unit: Unit
    bottom: float
    top: float
    """Of a logarithmic axis both are logarithms."""
    levels: tuple[tuple[float, float], ...] = ()
    """Gridlines, each with the step of its digits."""

    def down(self, number: float, height: int) -> float:
        """Where a number lies, in pixels from the top; what is beyond the axis is at its edge."""
        at = _place(self.unit, number)
        part = (self.top - min(max(at, self.bottom), self.top)) / (self.top - self.bottom)
        return round(part * height, 1)


def lines_of(trend: Trend, values: Sequence[str]) -> list[TrendLine]:
    """These series of a trend, as they are drawn."""
    unit = trend.unit
    return [
        TrendLine(unit.label(value), tuple(_numbers(period, value) for period in trend.periods))
        for value in values
    ]


def axis_of(unit: Unit, lines: Sequence[TrendLine], *, gridlines: bool = True) -> TrendAxis | None:
    """The axis that holds all of these lines and their bands; None where nothing is known."""
    ends = [
        end
        for line in lines
        for numbers in line.numbers
        if numbers is not None
        for end in _known(*numbers)
    ]
    if not ends:
        return None
    lowest, highest = _place(unit, min(ends)), _place(unit, max(ends))
    span = max(highest - lowest, 1e-3 if unit.log else unit.least_span(max(ends)))
    if gridlines and not unit.log:
        middle = (lowest + highest) / 2
        low, high = middle - span / 2, middle + span / 2
        levels, step = round_levels(low, high)
        bottom = levels[0]
        if low < 0 < high:
            # A whole step below zero is too much for what hardly reaches there.
            above, wide = round_levels(0.0, high)
            if -low < wide / 2:
                levels, step, bottom = above, wide, low - _ROOM * wide
        return TrendAxis(unit, bottom, levels[-1], tuple((level, step) for level in levels))
    bottom, top = lowest - _ROOM * span, highest + _ROOM * span
    return TrendAxis(unit, bottom, top, tuple(log_levels(10**bottom, 10**top) if gridlines else ()))


def is_open(low: float, high: float) -> bool:
    """Whether an interval has no limit on one side."""
    return not (math.isfinite(low) and math.isfinite(high))


def _numbers(period: Period, value: str) -> tuple[float, float, float] | None:
    series = period.estimate.series if period.estimate else None
    place = None if series is None else series.place(value)
    if series is None or place is None:
        return None
    share, low, high = (float(column[place]) for column in (series.value, series.low, series.high))
    return (share, low, high) if math.isfinite(share) else None


def _known(number: float, low: float, high: float) -> Iterator[float]:
    """The ends that an axis must hold."""
    if not is_open(low, high):
        yield number
    yield from (end for end in (low, high) if math.isfinite(end))


def _place(unit: Unit, number: float) -> float:
    """Where a number lies on its axis."""
    if unit.log and number != math.inf:
        return math.log10(number) if number > 0 else -math.inf
    return number
