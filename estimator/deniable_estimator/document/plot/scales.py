"""Scales: where a number lies on a plot, in percent across or in pixels down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms.number_range import NumberRange
from deniable_estimator.document.plot.ticks import (
    Tick,
    levels_from_zero,
    log_levels,
    nice_step,
    round_levels,
)
from deniable_estimator.document.units import NumberUnit, Unit

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


class Scale(NamedTuple):
    """What the left and the right end of a plot stand for."""

    bottom: float
    top: float

    def across(self, value: float) -> float:
        """Where a value lies, as a percentage of the plot."""
        return round((value - self.bottom) / (self.top - self.bottom) * 100, 2)


def scale_from_zero(lowest: float, highest: float) -> tuple[Scale, tuple[float, ...]]:
    """A scale that holds both, and its ticks: zero, with three or four more."""
    levels, step = levels_from_zero(max(highest, 1e-6))
    if lowest < -step:
        levels, _ = round_levels(lowest, highest)
        return Scale(levels[0], levels[-1]), tuple(levels)
    # A whisker that ends at the very edge looks cut off.
    top = max(highest, levels[-1])
    room = 0.02 * (top - lowest)
    bottom = lowest - room if lowest < 0 else 0.0
    return Scale(bottom, top if top == levels[-1] else top + room), tuple(levels)


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
    log: bool
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
