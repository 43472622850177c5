"""The geometry of numbers: a histogram, the curve of shares below each number, and a scale.

Across, positions are in percent of the plot, on the scale of the metric's range. At both ends of a
distribution there is a strip for what lies outside of the range, however far away that is. Lines
and bands are in thousandths across and stretched; down, all is in pixels.

A bar is as high as the share of its cells, divided by how wide it is beside the others: where
whole numbers or the end of the range make bars of different widths, areas stay comparable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms.number_range import NumberRange
from deniable_estimator.answers.base import Series
from deniable_estimator.answers.distribution import Distribution
from deniable_estimator.answers.mean import Mean
from deniable_estimator.answers.units import SHARES, NumberUnit
from deniable_estimator.dashboard.charts import Tick, nice_step
from deniable_estimator.dashboard.words import SeriesText, percent, series_text
from deniable_estimator.messages import joined, message, sentence
from deniable_estimator.statistics.intervals import FloatArray

__all__ = [
    "Column",
    "Curve",
    "Histogram",
    "Mark",
    "NumberAxis",
    "ScaleChart",
    "curve_chart",
    "histogram_chart",
    "scale_chart",
]

MOST_BARS = 64
"""At most so many bars: on a phone each is then four pixels wide."""

_STRIP = 6.0
"""How wide the strip for what lies outside of the range is, in percent."""
_GAP = 1.5
_TICKS = 5
_LEVELS = 3
_ROOM = 17.0
"""No tick stands closer to an end of the plot than this: what lies outside is told there."""

_BARE = NumberUnit()

_CELL = sentence("{low} to {high}: {share}")
_BELOW = sentence("below {low}: {share}")
_ABOVE = sentence("{high} or above: {share}")
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
        inner = _STRIP + _GAP
        shift = 0.5 if numbers.integer else 0.0
        return cls(numbers.start, numbers.end, numbers.scale == "log", inner, 100 - inner, shift)

    def at(self, number: float) -> float:
        """Where a number is marked."""
        return self.across(number + self.shift)

    def across(self, number: float) -> float:
        """Where a number lies; outside of the range it is in the middle of a strip."""
        if number < self.low:
            return round(self.start / 2, 2)
        if number > self.high:
            return round((100 + self.end) / 2, 2)
        if self.log:
            part = math.log(number / self.low) / math.log(self.high / self.low)
        else:
            part = (number - self.low) / (self.high - self.low)
        return round(self.start + part * (self.end - self.start), 2)

    def ticks(self) -> tuple[Tick, ...]:
        """Round numbers, as many as a phone has room for."""
        found = [(number, self.at(number)) for number in self._levels()]
        kept = [(number, at) for number, at in found if _ROOM <= at <= 100 - _ROOM]
        step = self._step()
        return tuple(
            Tick(at, _BARE.tick(number, number if self.log else step)) for number, at in kept
        )

    def _step(self) -> float:
        return nice_step((self.high - self.low) / _TICKS)

    def _levels(self) -> list[float]:
        if not self.log:
            step = self._step()
            first = math.ceil(self.low / step - 1e-9)
            last = math.floor(self.high / step + 1e-9)
            return [each * step for each in range(first, last + 1)]
        low, high = math.log10(self.low), math.log10(self.high)
        if high - low < _LEVELS:
            decades = range(math.floor(low), math.ceil(high) + 1)
            levels = [factor * 10.0**each for each in decades for factor in (1, 2, 5)]
        else:
            every = math.ceil((high - low) / (_TICKS + 1))
            levels = [10.0**each for each in range(math.ceil(low), math.floor(high) + 1, every)]
        return [each for each in levels if self.low <= each <= self.high]


@dataclass(frozen=True, slots=True)
class Column:
    """A bar: `start` and `width` in percent, `height` in pixels from the floor."""

    start: float
    width: float
    height: float
    outside: bool
    """It stands for what lies outside of the range."""
    text: str
    """Its tooltip."""


@dataclass(frozen=True, slots=True)
class Mark:
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
class Histogram:
    """How numbers are distributed, and where quantiles lie."""

    name: str
    """Makes the ids inside the SVG unique on a page with several."""
    title: str
    description: str
    height: int
    columns: tuple[Column, ...]
    levels: tuple[Tick, ...]
    """Gridlines, in pixels down."""
    ticks: tuple[Tick, ...]
    outside: tuple[str, str]
    """What the strips at both ends are called."""
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """The share of devices below each number, with its band."""

    name: str
    title: str
    description: str
    height: int
    line: str
    band: str
    levels: tuple[Tick, ...]
    ticks: tuple[Tick, ...]
    outside: tuple[str, str]
    limit: float | None
    """Where the limit that was asked for lies, in percent."""


@dataclass(frozen=True, slots=True)
class ScaleChart:
    """A mean on the scale of its range."""

    name: str
    title: str
    description: str
    ticks: tuple[Tick, ...]
    outside: tuple[str, str]
    """The ends of the scale."""
    mark: Mark


def histogram_chart(
    answer: Distribution, *, height: int, name: str, limit: int = MOST_BARS
) -> Histogram:
    """The histogram of a distribution, of at most so many bars, with the marks of its series."""
    axis, unit = NumberAxis.of(answer.range), answer.unit
    cells = answer.cells
    groups = _groups(len(cells.shares) - 2, limit)
    shares = np.add.reduceat(cells.shares[1:-1], groups)
    starts = cells.starts[1:-1][groups]
    ends = np.append(starts[1:], cells.starts[-1])
    at = np.array([axis.across(each) for each in (*starts, ends[-1])])
    widths = np.diff(at)
    drawn = shares * np.median(widths) / widths
    top, step = _top(float(max(drawn.max(), cells.shares[0], cells.shares[-1])))
    spread = _digits(axis)

    def column(
        start: float, width: float, share: float, text: str, *, outside: bool = False
    ) -> Column:
        high = round(share / top * height, 1)
        return Column(round(start, 2), round(width, 2), high, outside, text)

    below, above = float(cells.shares[0]), float(cells.shares[-1])
    columns = [column(0, _STRIP, below, _strip_text(answer, below, low=True), outside=True)]
    columns += [
        column(
            left,
            width,
            share,
            message(
                _CELL,
                low=unit.short(start, spread(start)),
                high=unit.short(end, spread(end)),
                share=percent(real, 0.01),
            ),
        )
        for left, width, share, start, end, real in zip(
            *(each.tolist() for each in (at[:-1], widths, drawn, starts, ends, shares)), strict=True
        )
    ]
    columns.append(
        column(100 - _STRIP, _STRIP, above, _strip_text(answer, above, low=False), outside=True)
    )
    series = answer.series
    marks = _marks(series, unit, axis)
    return Histogram(
        name=name,
        title=message("{metric}: how the numbers are distributed", metric=answer.metric),
        description=_describe(answer, marks),
        height=height,
        columns=tuple(columns),
        levels=tuple(
            Tick(round((1 - place * step / top) * height, 1), SHARES.tick(place * step, step))
            for place in range(1, round(top / step) + 1)
        ),
        ticks=axis.ticks(),
        outside=_outside(answer.range),
        marks=marks,
    )


def curve_chart(
    answer: Distribution, *, height: int, name: str, limit: float | None = None
) -> Curve:
    """The curve of a distribution, its band, and a limit that is asked for."""
    axis, cells = NumberAxis.of(answer.range), answer.cells
    every = max(1, math.ceil(len(cells.curve) / 256))
    kept = np.unique(np.append(np.arange(0, len(cells.curve), every), len(cells.curve) - 1))
    across = [axis.across(each) for each in cells.ends[:-1][kept].tolist()]

    def points(numbers: FloatArray) -> list[tuple[float, float]]:
        # A share outside of 0 to 1 is drawn at the edge; the files have it as it is.
        within = np.clip(np.nan_to_num(numbers[kept], nan=0.5), 0, 1)
        return list(zip(across, ((1 - within) * height).tolist(), strict=True))

    low, high = points(cells.low), points(cells.high)
    return Curve(
        name=name,
        title=message("{metric}: the share of devices below each number", metric=answer.metric),
        description=_describe(answer, _marks(answer.series, answer.unit, axis)),
        height=height,
        line=_path(points(cells.curve)),
        band=_path(high + low[::-1]) + "Z",
        levels=tuple(Tick((1 - part / 4) * height, f"{part * 25}%") for part in range(5)),
        ticks=axis.ticks(),
        outside=_outside(answer.range),
        limit=None if limit is None else axis.across(math.ceil(limit) if axis.shift else limit),
    )


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
    unit = answer.unit
    mark = _marks(series, unit, axis)[0]
    return ScaleChart(
        name=name,
        title=message("{metric}: the mean on its scale", metric=answer.metric),
        description=_described(answer.n, answer.level, (mark,)),
        ticks=axis.ticks(),
        outside=(_short(axis.low), _short(axis.high)),
        mark=mark,
    )


def _short(end: float) -> str:
    """An end of an axis."""
    size = abs(end)
    if size and not 1e-3 <= size < 1e6:
        return _BARE.tick(end, 1)
    return _BARE.exact(float(f"{end:.5g}"))


def _groups(cells: int, limit: int) -> NDArray[np.intp]:
    """Where each bar begins, of so many cells: as many in each, except in the last."""
    return np.arange(0, cells, max(1, math.ceil(cells / limit)))


def _top(highest: float) -> tuple[float, float]:
    """The top of an axis of shares, and the distance of its gridlines."""
    step = nice_step(max(highest, 1e-6) / _LEVELS)
    return step * math.ceil(highest / step - 1e-9) or step, step


def _digits(axis: NumberAxis) -> _Digits:
    return _Digits((axis.high - axis.low) / 50, axis.log)


class _Digits(NamedTuple):
    """How exactly the edge of a bar is written."""

    step: float
    log: bool

    def __call__(self, number: float) -> float:
        return abs(number) / 10 if self.log else self.step


def _outside(numbers: NumberRange) -> tuple[str, str]:
    low, high = numbers.start, numbers.end
    return (
        message("< {number}", number=_short(low)),
        message("≥ {number}", number=_short(high)),
    )


def _strip_text(answer: Distribution, share: float, *, low: bool) -> str:
    unit, numbers = answer.unit, answer.range
    end = numbers.start if low else numbers.end
    number = unit.exact(end)
    told = percent(share, 0.01)
    if low:
        return message(_BELOW, low=number, share=told)
    return message(_ABOVE, high=number, share=told)


def _marks(series: Series, unit: NumberUnit, axis: NumberAxis) -> tuple[Mark, ...]:
    marks = []
    for place, name in enumerate(series.names):
        number, low, high = (
            float(column[place]) for column in (series.value, series.low, series.high)
        )
        text = series_text(unit, number, low, high, float(series.std_error[place]))
        open_low, open_high = not math.isfinite(low), not math.isfinite(high)
        told = math.isfinite(number) and not open_high and not open_low
        marks.append(
            Mark(
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


def _path(corners: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x * 10:.1f} {y:.1f}" for x, y in corners)


def _describe(answer: Distribution, marks: tuple[Mark, ...]) -> str:
    return _described(answer.n, answer.level, marks)


def _described(n: int, level: float, marks: tuple[Mark, ...]) -> str:
    """A description of the picture for screen readers."""
    told = (
        message(
            _TOLD,
            name=mark.name,
            estimate=mark.text.estimate,
            low=mark.text.low,
            high=mark.text.high,
        )
        for mark in marks
    )
    return message(
        "From {n:,} reports, with {level:.0%} intervals: {told}.", n=n, level=level, told=joined(told)
    )
