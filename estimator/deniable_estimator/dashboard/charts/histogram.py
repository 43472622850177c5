"""The geometry of a distribution: a histogram, and the curve of shares below each number.

Across, positions are in percent of the plot, on the scale of the metric's range. At both ends there
is a strip for what lies outside of the range, however far away that is. Lines and bands are in
thousandths across and stretched; down, all is in pixels.

A bar is as high as the share of its cells, divided by how wide it is beside the others: where
whole numbers or the end of the range make bars of different widths, areas stay comparable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms.number_range import NumberRange
from deniable_estimator.answers.distribution import Distribution
from deniable_estimator.answers.units import SHARES
from deniable_estimator.dashboard.charts import Tick, nice_step
from deniable_estimator.dashboard.charts.number_scale import (
    STRIP,
    NumberAxis,
    NumberMark,
    described,
    end_text,
    marks_of,
)
from deniable_estimator.dashboard.words import percent
from deniable_estimator.messages import message, sentence
from deniable_estimator.statistics.intervals import FloatArray

MOST_BARS = 64
"""At most so many bars: on a phone each is then four pixels wide."""

_LEVELS = 3
"""About so many gridlines."""
_POINTS = 256
"""The curve is drawn through so many edges at most."""

_CELL = sentence("{low} to {high}: {share}")
_ONE = sentence("{number}: {share}")
_BELOW = sentence("below {low}: {share}")
_ABOVE = sentence("{high} or above: {share}")


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
class HistogramChart:
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
    marks: tuple[NumberMark, ...]


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


def histogram_chart(
    answer: Distribution, *, height: int, name: str, limit: int = MOST_BARS
) -> HistogramChart:
    """The histogram of a distribution, of at most so many bars, with the marks of its series."""
    axis = NumberAxis.of(answer.range)
    cells = answer.cells
    groups = _groups(len(cells.shares) - 2, limit)
    shares = np.add.reduceat(cells.shares[1:-1], groups)
    starts = cells.starts[1:-1][groups]
    ends = np.append(starts[1:], cells.starts[-1])
    at = np.array([axis.across(each) for each in (*starts, ends[-1])])
    widths = np.diff(at)
    drawn = shares * np.median(widths) / widths
    top, step = _top(float(max(drawn.max(), cells.shares[0], cells.shares[-1])))

    def column(
        start: float, width: float, share: float, text: str, *, outside: bool = False
    ) -> Column:
        high = round(share / top * height, 1)
        return Column(round(start, 2), round(width, 2), high, outside, text)

    below, above = float(cells.shares[0]), float(cells.shares[-1])
    columns = [column(0, STRIP, below, _strip_text(answer, below, low=True), outside=True)]
    columns += [
        column(
            left,
            width,
            share,
            _cell_text(answer, start, end, real),
        )
        for left, width, share, start, end, real in zip(
            *(each.tolist() for each in (at[:-1], widths, drawn, starts, ends, shares)), strict=True
        )
    ]
    columns.append(
        column(100 - STRIP, STRIP, above, _strip_text(answer, above, low=False), outside=True)
    )
    marks = marks_of(answer, axis)
    return HistogramChart(
        name=name,
        title=message("{metric}: how the numbers are distributed", metric=answer.metric),
        description=described(answer, marks),
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
    every = max(1, math.ceil(len(cells.curve) / _POINTS))
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
        description=described(answer, marks_of(answer, axis)),
        height=height,
        line=_path(points(cells.curve)),
        band=_path(high + low[::-1]) + "Z",
        levels=tuple(Tick((1 - part / 4) * height, f"{part * 25}%") for part in range(5)),
        ticks=axis.ticks(),
        outside=_outside(answer.range),
        limit=None if limit is None else axis.across(math.ceil(limit) if axis.shift else limit),
    )


def _groups(cells: int, limit: int) -> NDArray[np.intp]:
    """Where each bar begins, of so many cells: as many in each, except in the last."""
    return np.arange(0, cells, max(1, math.ceil(cells / limit)))


def _top(highest: float) -> tuple[float, float]:
    """The top of an axis of shares, and the distance of its gridlines."""
    step = nice_step(max(highest, 1e-6) / _LEVELS)
    return step * math.ceil(highest / step - 1e-9) or step, step


def _cell_text(answer: Distribution, start: float, end: float, share: float) -> str:
    """The tooltip of a bar; whole numbers are told up to the last one in it."""
    unit, numbers, told = answer.unit, answer.range, percent(share, 0.01)
    if not numbers.integer:
        low, high = (unit.full(each, _digits(numbers, each)) for each in (start, end))
        return message(_CELL, low=low, high=high, share=told)
    first, last = round(start), round(end) - 1
    if first == last:
        return message(_ONE, number=unit.exact(first), share=told)
    return message(_CELL, low=unit.exact(first), high=unit.exact(last), share=told)


def _digits(numbers: NumberRange, number: float) -> float:
    """How exactly the edge of a bar is written: the `spread` of `Unit.short`."""
    if numbers.scale == "log":
        return abs(number) / 10
    return (numbers.end - numbers.start) / 50


def _outside(numbers: NumberRange) -> tuple[str, str]:
    low, high = numbers.start, numbers.end
    return (
        message("< {number}", number=end_text(low)),
        message("≥ {number}", number=end_text(high)),
    )


def _strip_text(answer: Distribution, share: float, *, low: bool) -> str:
    unit, numbers = answer.unit, answer.range
    end = numbers.start if low else numbers.end
    number = unit.exact(end)
    told = percent(share, 0.01)
    if low:
        return message(_BELOW, low=number, share=told)
    return message(_ABOVE, high=number, share=told)


def _path(corners: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x * 10:.1f} {y:.1f}" for x, y in corners)
