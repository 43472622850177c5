"""The series of a trend as plain numbers, and the axis that holds them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deniable_estimator.answers.units import Unit
from deniable_estimator.asking.trend import Period, Trend
from deniable_estimator.dashboard.charts.ticks import log_levels, round_levels

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

    def down(self, numbers: Sequence[float], height: int) -> list[float]:
        """Where numbers lie, in pixels from the top; what is beyond the axis is at its edge."""
        at = np.array([_place(self.unit, each) for each in numbers] if self.unit.log else numbers)
        part = (self.top - np.clip(at, self.bottom, self.top)) / (self.top - self.bottom)
        # Not by numpy, which rounds some numbers in another way.
        return [round(each, 1) for each in (part * height).tolist()]


def lines_of(trend: Trend, values: Sequence[str]) -> list[TrendLine]:
    """These series of a trend, as they are drawn."""
    unit = trend.unit
    of_periods = [_numbers(period, values) for period in trend.periods]
    return [
        TrendLine(unit.label(value), tuple(each[place] for each in of_periods))
        for place, value in enumerate(values)
    ]


def axis_of(unit: Unit, lines: Sequence[TrendLine], *, gridlines: bool = True) -> TrendAxis | None:
    """The axis that holds all of these lines and their bands; None where nothing is known."""
    found = [numbers for line in lines for numbers in line.numbers if numbers is not None]
    ends = np.array(found, np.float64).reshape(-1, 3)
    # A number without a limit on one side is not drawn, only its band.
    ends[~np.isfinite(ends[:, 1:]).all(axis=1), 0] = np.nan
    ends = ends[np.isfinite(ends)]
    if not ends.size:
        return None
    lowest, highest = _place(unit, float(ends.min())), _place(unit, float(ends.max()))
    span = max(highest - lowest, 1e-3 if unit.log else unit.least_span(float(ends.max())))
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


def _numbers(period: Period, values: Sequence[str]) -> list[tuple[float, float, float] | None]:
    """Number, low and high of each of these series in one period."""
    if period.estimate is None:
        return [None] * len(values)
    series = period.estimate.series
    found: list[tuple[float, float, float] | None] = []
    for value in values:
        place = series.place(value)
        numbers = None
        if place is not None:
            share = series.value.item(place)
            if math.isfinite(share):
                numbers = share, series.low.item(place), series.high.item(place)
        found.append(numbers)
    return found


def _place(unit: Unit, number: float) -> float:
    """Where a number lies on its axis."""
    if unit.log and number != math.inf:
        return math.log10(number) if number > 0 else -math.inf
    return number
