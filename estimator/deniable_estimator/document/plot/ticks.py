"""Ticks: where the gridlines of an axis lie, four or five of them at round numbers or dates.

A linear axis that may be widened has four or five ticks, whatever it holds. Of the steps 1, 2,
2.5 and 5 times a power of ten, the smallest is taken with which at most four steps reach from the
tick below the lowest number to the one above the highest. There are at least three then: the next
step is at most twice as long, or 2.5 times one from which at least six would remain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import count, islice
from typing import NamedTuple

from deniable_estimator.messages import Dated

_FACTORS = (1.0, 2.0, 2.5, 5.0)
_MOST_STEPS = 4
_LEAST_TICKS, _MOST_TICKS = 4, 5
_MOST_MONTHS = 6
"""The names of months are short enough for one more."""
_DAYS = (1, 2, 3, 4)
_WEEKS = (1, 2, 3)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120)
_MONDAY = date(2001, 1, 1).toordinal()

_AT_START, _AT_END = 3.0, 96.0
"""In percent: a label before the one begins at its notch, one after the other ends there."""


class Tick(NamedTuple):
    """A gridline at a percentage of the plot, or so many pixels down, and what it says."""

    at: float
    text: str
    spare: bool = False
    """It is left out where the plot is narrow."""

    @property
    def anchor(self) -> str:
        """Which part of the text stands at the notch: its `first`, `middle` or `last`."""
        return "first" if self.at < _AT_START else "last" if self.at > _AT_END else "middle"


def nice_step(least: float) -> float:
    """The smallest of 1, 2, 5, 10 times a power of ten that is at least so much."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))


def _steps(about: float) -> Iterator[float]:
    """All round steps from a tenth of the power of ten of this number on."""
    for power in count(math.floor(math.log10(about)) - 1):
        yield from (factor * 10.0**power for factor in _FACTORS)


def round_levels(lowest: float, highest: float) -> tuple[list[float], float]:
    """Four or five round numbers, the first at `lowest` or below it and the last at `highest`,
    which is larger, or above it; and the step between them."""

    def ends(step: float) -> tuple[int, int]:
        return math.floor(lowest / step + 1e-9), math.ceil(highest / step - 1e-9)

    steps = ((step, *ends(step)) for step in _steps((highest - lowest) / _MOST_STEPS))
    step, first, last = next(each for each in steps if each[2] - each[1] <= _MOST_STEPS)
    return [each * step for each in range(first, last + 1)], step


def levels_from_zero(highest: float) -> tuple[list[float], float]:
    """Zero and three or four multiples of a round step up to `highest`, and the step. The third
    may lie beyond it, by a sixth of it at most."""
    steps = _steps(highest / _MOST_TICKS)
    step = next(each for each in steps if highest / each < _MOST_TICKS - 1e-9)
    last = max(_LEAST_TICKS - 1, math.floor(highest / step + 1e-9))
    return [each * step for each in range(last + 1)], step


def log_levels(lowest: float, highest: float) -> list[tuple[float, float]]:
    """Round numbers within a logarithmic axis from `lowest` to `highest` (both above 0), each with
    the step that tells its digits; four or five, where that is possible."""
    found = [levels for levels in _log_candidates(lowest, highest) if levels]
    middle = (_LEAST_TICKS + _MOST_TICKS) / 2
    return min(found, key=lambda levels: abs(len(levels) - middle), default=[])


def _log_candidates(lowest: float, highest: float) -> Iterator[list[tuple[float, float]]]:
    low, high = math.log10(lowest), math.log10(highest)
    decades = range(math.floor(low), math.ceil(high) + 1)
    for every in range(1, max(2, len(decades))):
        yield [(10.0**each, 10.0**each) for each in decades if low <= each <= high][::every]
    for factors in ((1, 3), (1, 2, 5)):
        yield [
            (factor * 10.0**each, 10.0**each)
            for each in decades
            for factor in factors
            if low <= each + math.log10(factor) <= high
        ]
    for step in islice(_steps(highest - lowest), 2 * len(_FACTORS)):
        first, last = math.ceil(lowest / step - 1e-9), math.floor(highest / step + 1e-9)
        if last - first < 2 * _MOST_TICKS:
            yield [(each * step, step) for each in range(first, last + 1)]


def date_ticks(first: date, last: date, shortest: str) -> list[tuple[date, str]]:
    """Dates from the first to the last day, four or five where that is possible: some of the days,
    Mondays, or the first days of months. None is closer to the next than the `shortest` period, a
    day, a week or a month. Each is told shortly: the reader sees on the page which year it is."""
    found: Sequence[date] = ()
    for found in _date_candidates(first, last, shortest):
        most = _MOST_MONTHS if all(each.day == 1 for each in found) else _MOST_TICKS
        if found and len(found) <= most:
            break
    months = len(found) > 1 and all(each.day == 1 for each in found)
    return [(day, _month(day) if months else _day(day)) for day in found]


def _date_candidates(first: date, last: date, shortest: str) -> Iterator[list[date]]:
    days = (last - first).days + 1
    if shortest == "day":
        for step in _DAYS:
            yield [first + timedelta(each) for each in range(0, days, step)]
    if shortest != "month":
        monday = first + timedelta((_MONDAY - first.toordinal()) % 7)
        for step in _WEEKS:
            yield [
                monday + timedelta(each)
                for each in range(0, max(0, (last - monday).days + 1), 7 * step)
            ]
    begin = 12 * first.year + first.month - 1 + (first.day > 1)
    end = 12 * last.year + last.month - 1
    for step in _MONTHS:
        yield [
            date(each // 12, each % 12 + 1, 1)
            for each in range(-(-begin // step) * step, end + 1, step)
        ]


def _day(day: date) -> str:
    return Dated.of(f"{day.day} {day:%b}", day, "MMMd")


def _month(day: date) -> str:
    """The month; where a year begins, with the year."""
    if day.month == 1:
        return Dated.of(f"{day:%b %Y}", day, "yMMM")
    return Dated.of(f"{day:%b}", day, "MMM")
