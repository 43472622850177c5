"""Scales: where a number lies on a plot, in percent across or in pixels down; and ticks: where the
gridlines of an axis lie, four or five of them at round numbers or dates.

A linear axis that may be widened has four or five ticks, whatever it holds. Of the steps 1, 2,
2.5 and 5 times a power of ten, the smallest is taken with which at most four steps reach from the
tick below the lowest number to the one above the highest. There are at least three then: the next
step is at most twice as long, or 2.5 times one from which at least six would remain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import count, islice, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms.number_range import NumberRange
from deniable_estimator.document.units import NumberUnit, Unit
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


STRIP = 6.0
"""How wide the strip for what lies outside of a range of numbers is, in percent."""
_GAP = 1.5
_TICKS = 5
_DECADES = 3
"""Fewer powers of ten than this have ticks between them."""
_LETTER = 2.6
"""How wide a letter is on a phone, in percent of the plot: the ends have texts of their own, which
no tick may touch."""
_ROOM = 0.06
"""The part of its height that a plot without gridlines leaves free above and below."""

_BARE = NumberUnit()


def scale_from_zero(lowest: float, highest: float) -> tuple[NumberAxis, tuple[float, ...]]:
    """A scale that holds both, and its ticks: zero, with three or four more."""
    levels, step = levels_from_zero(max(highest, 1e-6))
    if lowest < -step:
        levels, _ = round_levels(lowest, highest)
        return NumberAxis(levels[0], levels[-1]), tuple(levels)
    # A whisker that ends at the very edge looks cut off.
    top = max(highest, levels[-1])
    room = 0.02 * (top - lowest)
    bottom = lowest - room if lowest < 0 else 0.0
    return NumberAxis(bottom, top if top == levels[-1] else top + room), tuple(levels)


class Axis(NamedTuple):
    """The scale of lines over time, down a plot; several charts may share one."""

    unit: Unit
    bottom: float
    top: float
    """Of a logarithmic axis both are logarithms."""
    levels: tuple[tuple[float, float], ...] = ()
    """Gridlines, each with the step of its digits."""

    @classmethod
    def of(cls, unit: Unit, ends: NDArray[np.float64], *, gridlines: bool = True) -> Axis | None:
        """The axis that holds all of these numbers with their ends, shape (n, 3); None where
        nothing is known. Without `gridlines` it ends where the numbers do."""
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
            return cls(unit, bottom, levels[-1], tuple((level, step) for level in levels))
        bottom, top = lowest - _ROOM * span, highest + _ROOM * span
        found = log_levels(10**bottom, 10**top) if gridlines else ()
        return cls(unit, bottom, top, tuple(found))

    def down(self, numbers: Sequence[float], height: int) -> list[float]:
        """Where numbers lie, in pixels from the top; what is beyond the axis is at its edge."""
        at = np.array([_place(self.unit, each) for each in numbers] if self.unit.log else numbers)
        part = (self.top - np.clip(at, self.bottom, self.top)) / (self.top - self.bottom)
        # Not by numpy, which rounds some numbers in another way.
        return [round(each, 1) for each in (part * height).tolist()]

    def ticks(self, height: int) -> tuple[Tick, ...]:
        """The gridlines, in pixels down, and what they say."""
        down = self.down([level for level, _ in self.levels], height)
        return tuple(
            Tick(at, self.unit.tick(level, step))
            for at, (level, step) in zip(down, self.levels, strict=True)
        )


def _place(unit: Unit, number: float) -> float:
    """Where a number lies on its axis."""
    if unit.log and number != math.inf:
        return math.log10(number) if number > 0 else -math.inf
    return number


class NumberAxis(NamedTuple):
    """Where numbers lie across a plot."""

    low: float
    high: float
    log: bool = False
    start: float = 0.0
    """Where `low` and `high` are, in percent."""
    end: float = 100.0
    shift: float = 0.0
    """Where a number is marked: a whole number owns the stretch up to the next one, and is marked
    in the middle of it."""

    @classmethod
    def of(cls, numbers: NumberRange) -> NumberAxis:
        """That of a distribution, between the strips for what lies outside."""
        inner = STRIP + _GAP
        shift = 0.5 if numbers.integer else 0.0
        return cls(numbers.start, numbers.end, numbers.scale == "log", inner, 100 - inner, shift)

    def at(self, number: float) -> float:
        """Where a number is marked."""
        return self.across(number + self.shift)

    def across(self, number: float) -> float:
        """Where a number lies; outside of the range it is in the middle of a strip."""
        # The logarithm of an end may be off by the last digit.
        slack = 1e-9 * (self.low if self.log else self.high - self.low)
        if number < self.low - slack:
            return round(self.start / 2, 2)
        if number > self.high + max(slack, 1e-9 * abs(self.high)):
            return round((100 + self.end) / 2, 2)
        number = min(max(number, self.low), self.high)
        if self.log:
            part = math.log(number / self.low) / math.log(self.high / self.low)
        else:
            part = (number - self.low) / (self.high - self.low)
        return round(self.start + part * (self.end - self.start), 2)

    def ticks(self) -> tuple[Tick, ...]:
        """Round numbers, as many as a phone has room for."""
        step = self._step()
        outside = 2 if self.start else 0  # "< " or "≥ " before the text of an end
        least = _LETTER * (len(end_text(self.low)) + outside + 1)
        most = 100 - _LETTER * (len(end_text(self.high)) + outside + 1)
        found = []
        for number in self._levels():
            at, text = self.at(number), _BARE.tick(number, number if self.log else step)
            half = _LETTER * len(text) / 2
            if least + half <= at <= most - half:
                found.append(Tick(at, text))
        while any(_touch(one, two) for one, two in pairwise(found)):
            found = found[1::2]
        # Levels that their digits do not tell apart say nothing.
        return tuple(found) if len({each.text for each in found}) == len(found) else ()

    def _step(self) -> float:
        return nice_step((self.high - self.low) / _TICKS)

    def _levels(self) -> list[float]:
        if not self.log:
            step = self._step()
            first = math.ceil(self.low / step - 1e-9)
            last = math.floor(self.high / step + 1e-9)
            return [each * step for each in range(first, last + 1)]
        low, high = math.log10(self.low), math.log10(self.high)
        if high - low < _DECADES:
            decades = range(math.floor(low), math.ceil(high) + 1)
            levels = [factor * 10.0**each for each in decades for factor in (1, 2, 5)]
        else:
            every = math.ceil((high - low) / (_TICKS + 1))
            levels = [10.0**each for each in range(math.ceil(low), math.floor(high) + 1, every)]
        return [each for each in levels if self.low <= each <= self.high]


def _touch(one: Tick, two: Tick) -> bool:
    return two.at - one.at < _LETTER * ((len(one.text) + len(two.text)) / 2 + 1)


def end_text(end: float) -> str:
    """An end of an axis."""
    size = abs(end)
    if size and not 1e-3 <= size < 1e5:
        return _BARE.tick(end, 1)
    return _BARE.exact(float(f"{end:.5g}"))
