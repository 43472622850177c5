"""Numbers on a scale: the axis of a metric's range, marks with intervals, and a mean on its scale.

Across, positions are in percent of the plot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from deniable.mechanisms.number_range import NumberRange
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.mean import Mean
from deniable_estimator.answers.units import NumberUnit
from deniable_estimator.dashboard.charts import Tick, nice_step
from deniable_estimator.dashboard.words import SeriesText, series_text
from deniable_estimator.messages import counted, joined, message, sentence

STRIP = 6.0
"""How wide the strip for what lies outside of the range is, in percent."""
_GAP = 1.5
_TICKS = 5
_DECADES = 3
"""Fewer powers of ten than this have ticks between them."""
_LETTER = 2.6
"""How wide a letter is on a phone, in percent of the plot: the ends have texts of their own, which
no tick may touch."""

_BARE = NumberUnit()
_TOLD = sentence("{name}: {estimate}, {low} to {high}")


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


@dataclass(frozen=True, slots=True)
class NumberMark:
    """A number with its interval, in percent across."""

    name: str
    text: SeriesText
    at: float | None
    """None where it is not known."""
    low: float
    high: float
    open_low: bool
    """The interval has no limit on this side."""
    open_high: bool

    @property
    def known(self) -> bool:
        """Whether the interval has any limit."""
        return not (self.open_low and self.open_high)


@dataclass(frozen=True, slots=True)
class ScaleChart:
    """A mean on the scale of its range."""

    name: str
    title: str
    description: str
    ticks: tuple[Tick, ...]
    outside: tuple[str, str]
    """The ends of the scale."""
    mark: NumberMark


def scale_chart(answer: Mean, *, name: str) -> ScaleChart:
    """A mean with its interval, on a scale that holds both and the range."""
    numbers, series = answer.range, answer.series
    log = numbers.scale == "log"
    ends = [
        float(each)
        for each in (*series.value, *series.low, *series.high)
        if math.isfinite(each) and (each > 0 or not log)
    ]
    axis = NumberAxis(min(numbers.start, *ends), max(float(numbers.high), *ends), log)
    mark = marks_of(answer, axis)[0]
    return ScaleChart(
        name=name,
        title=message("{metric}: the mean on its scale", metric=answer.metric),
        description=described(answer, (mark,)),
        ticks=axis.ticks(),
        outside=(end_text(axis.low), end_text(axis.high)),
        mark=mark,
    )


def end_text(end: float) -> str:
    """An end of an axis."""
    size = abs(end)
    if size and not 1e-3 <= size < 1e5:
        return _BARE.tick(end, 1)
    return _BARE.exact(float(f"{end:.5g}"))


def marks_of(answer: Answer, axis: NumberAxis) -> tuple[NumberMark, ...]:
    """The series of an answer, in their order."""
    series, unit, marks = answer.series, answer.unit, []
    for place, name in enumerate(series.names):
        number, low, high = (
            float(column[place]) for column in (series.value, series.low, series.high)
        )
        text = series_text(unit, number, low, high, float(series.std_error[place]))
        open_low, open_high = not math.isfinite(low), not math.isfinite(high)
        told = math.isfinite(number) and not open_high and not open_low
        marks.append(
            NumberMark(
                name=unit.label(name),
                text=text,
                at=axis.at(number) if told else None,
                low=0.0 if open_low else axis.at(low),
                high=100.0 if open_high else axis.at(high),
                open_low=open_low,
                open_high=open_high,
            )
        )
    return tuple(marks)


def described(answer: Answer, marks: Sequence[NumberMark]) -> str:
    """A description of the picture for screen readers."""
    parts = (
        message(
            _TOLD,
            name=mark.name,
            estimate=mark.text.estimate,
            low=mark.text.low,
            high=mark.text.high,
        )
        for mark in marks
    )
    return counted(
        "From {count:,} report, with {level:.0%} intervals: {told}.",
        "From {count:,} reports, with {level:.0%} intervals: {told}.",
        answer.n,
        level=answer.level,
        told=joined(parts),
    )
