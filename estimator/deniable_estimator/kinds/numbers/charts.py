"""The charts of numbers: a histogram with its quantiles (in letters, where nothing is drawn), the
curve of shares below each number, and a mean on its scale.

Across, numbers lie on the scale of the metric's range. At both ends there is a strip for what lies
outside of the range, however far away that is.

A bar is as high as the share of its cells, divided by how wide it is beside the others: where
whole numbers or the end of the range make bars of different widths, areas stay comparable.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable.protocol.mechanisms.number_range import NumberRange
from deniable_estimator.document.document import Column, Frame
from deniable_estimator.document.plot.lines import path, thousandths
from deniable_estimator.document.plot.marks import (
    BarRow,
    Columns,
    Dots,
    DrawnLine,
    HistogramBar,
    LineChart,
    RuleLine,
)
from deniable_estimator.document.plot.scales import STRIP, NumberAxis, Tick, end_text, nice_step
from deniable_estimator.document.units import SHARES
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.formats import described, estimate_of
from deniable_estimator.kinds.numbers.distribution import CellShares, Distribution
from deniable_estimator.kinds.numbers.mean import Mean
from deniable_estimator.messages import message, sentence
from deniable_estimator.statistics.intervals import FloatArray

MOST_BARS = 64
"""At most so many bars: on a phone each is then four pixels wide."""

_CURVE_HEIGHT = 160

_LEVELS = 3
"""About so many gridlines."""
_POINTS = 256
"""The curve is drawn through so many edges at most."""

_BARS = 22
"""The most bars of a histogram in letters between the first and the last, which have no ends."""
_TAIL = 0.005
"""The share that the first and the last of them hold at most, so that the others are narrow."""
_WIDTH = 30
"""Letters of the longest of them."""

_CELL = sentence("{low} to {high}: {share}")
_ONE = sentence("{number}: {share}")
_BELOW = sentence("below {low}: {share}")
_ABOVE = sentence("{high} or above: {share}")
_TOLD = sentence("{name}: {estimate}, {between}")
_UNKNOWN = sentence("{name}: {estimate}")


def histogram_chart(answer: Distribution, *, height: int, limit: int = MOST_BARS) -> Columns:
    """The histogram of a distribution, of at most so many bars, with the marks of its series."""
    axis = NumberAxis.of(answer.range)
    cells = answer.cells
    # Where each bar begins: as many cells in each, except in the last.
    inner = len(cells.shares) - 2
    groups = np.arange(0, inner, max(1, math.ceil(inner / limit)))
    shares = np.add.reduceat(cells.shares[1:-1], groups)
    starts = cells.starts[1:-1][groups]
    ends = np.append(starts[1:], cells.starts[-1])
    at = np.array([axis.across(each) for each in (*starts, ends[-1])])
    widths = np.diff(at)
    drawn = shares * np.median(widths) / widths
    top, step = _top(float(max(drawn.max(), cells.shares[0], cells.shares[-1])))

    def column(
        start: float, width: float, share: float, text: str, *, outside: bool = False
    ) -> HistogramBar:
        high = round(share / top * height, 1)
        return HistogramBar(round(start, 2), round(width, 2), high, outside, text)

    below, above = float(cells.shares[0]), float(cells.shares[-1])
    low, high = (answer.unit.exact(end) for end in (answer.range.start, answer.range.end))
    text = message(_BELOW, low=low, share=SHARES.full(below, 0.01))
    columns = [column(0, STRIP, below, text, outside=True)]
    columns += [
        column(left, width, share, _cell_text(answer, start, end, real))
        for left, width, share, start, end, real in zip(
            *(each.tolist() for each in (at[:-1], widths, drawn, starts, ends, shares)), strict=True
        )
    ]
    text = message(_ABOVE, high=high, share=SHARES.full(above, 0.01))
    columns.append(column(100 - STRIP, STRIP, above, text, outside=True))
    marks = marks_of(answer, axis)
    return Columns(
        name=answer.metric,
        title=message("{metric}: how the numbers are distributed", metric=answer.metric),
        description=_described(answer, marks),
        height=height,
        columns=tuple(columns),
        levels=tuple(
            Tick(round((1 - place * step / top) * height, 1), SHARES.tick(place * step, step))
            for place in range(1, round(top / step) + 1)
        ),
        marks=Dots(rows=marks, ticks=_ticks(axis, _outside(answer.range))),
    )


def curve_chart(answer: Distribution, limit: float | None) -> LineChart:
    """The curve of a distribution, its band, and a limit that is asked for."""
    axis, cells = NumberAxis.of(answer.range), answer.cells
    every = max(1, math.ceil(len(cells.curve) / _POINTS))
    kept = np.unique(np.append(np.arange(0, len(cells.curve), every), len(cells.curve) - 1))
    across = [axis.across(each) for each in cells.ends[:-1][kept].tolist()]

    def down(numbers: FloatArray) -> list[float]:
        # A share outside of 0 to 1 is drawn at the edge; the files have it as it is.
        within = np.clip(np.nan_to_num(numbers[kept], nan=0.5), 0, 1)
        return [round(each, 1) for each in ((1 - within) * _CURVE_HEIGHT).tolist()]

    at = None if limit is None else axis.across(math.ceil(limit) if axis.shift else limit)
    return LineChart(
        form="numbers",
        name=f"{answer.metric}-below",
        title=message("{metric}: the share of devices below each number", metric=answer.metric),
        description=_described(answer, marks_of(answer, axis)),
        height=_CURVE_HEIGHT,
        lines=(band_line(across, down(cells.curve), down(cells.low), down(cells.high)),),
        levels=tuple(Tick((1 - part / 4) * _CURVE_HEIGHT, f"{part * 25}%") for part in range(5)),
        ticks=_ticks(axis, _outside(answer.range)),
        rules=() if at is None else (RuleLine((at, 0), (at, _CURVE_HEIGHT)),),
    )


def histogram_frame(answer: Distribution) -> Frame:
    """Bars of neighbouring cells in letters, with the quantiles that lie in them."""
    bars = _bars(answer.cells)
    widest = max(max(share for _, _, share in bars), 1e-12)
    columns = (
        Column("from", message("From")),
        Column("share", message("Share")),
        Column("bar", message("Histogram (points, without intervals)"), "words"),
        Column("quantiles", "", "words"),
    )
    rows, width = [], 0.0
    for start, end, share in bars:
        # The last bars may be narrower, or have no end: they are written like the others.
        width = max(width, (end - start) / 2) if math.isfinite(end - start) else width
        marks = [
            f"p{100 * each.p:g}"
            for each, value in zip(answer.quantiles, answer.series.value.tolist(), strict=False)
            if start <= value < end
        ]
        rows.append(
            (
                "" if math.isinf(start) else answer.unit.full(start, width or abs(start)),
                SHARES.full(share, 0.0),
                "█" * round(share / widest * _WIDTH),
                " ".join(marks),
            )
        )
    return Frame("histogram", "", columns, rows)


def _bars(cells: CellShares) -> list[tuple[float, float, float]]:
    """(start, end, share) of so many cells each that there are at most `_BARS` and two."""
    before = np.concatenate([[0.0], np.cumsum(cells.shares)])
    inner = len(cells.shares) - 1
    first = max(1, min(int(np.searchsorted(before, _TAIL, side="right")) - 1, inner))
    last = max(first, min(int(np.searchsorted(before, 1 - _TAIL)), inner))
    step = max(1, math.ceil((last - first) / _BARS))
    cuts = sorted({0, *range(first, last, step), last, inner + 1})
    return [
        (float(cells.starts[a]), float(cells.ends[b - 1]), float(before[b] - before[a]))
        for a, b in itertools.pairwise(cuts)
    ]


def band_line(
    across: Sequence[float], down: Sequence[float], low: Sequence[float], high: Sequence[float]
) -> DrawnLine:
    """A line in its band through corners: percent across, pixels down."""
    at = thousandths(across)
    band = path([*at, *reversed(at)], [*high, *reversed(low)]) + "Z"
    return DrawnLine(paths=(path(at, down),), bands=(band,))


def _ticks(axis: NumberAxis, ends: tuple[str, str]) -> tuple[Tick, ...]:
    return Tick(0, ends[0]), *axis.ticks(), Tick(100, ends[1])


def _top(highest: float) -> tuple[float, float]:
    """The top of an axis of shares, and the distance of its gridlines."""
    step = nice_step(max(highest, 1e-6) / _LEVELS)
    return step * math.ceil(highest / step - 1e-9) or step, step


def _cell_text(answer: Distribution, start: float, end: float, share: float) -> str:
    """The tooltip of a bar; whole numbers are told up to the last one in it."""
    unit, numbers, told = answer.unit, answer.range, SHARES.full(share, 0.01)
    if not numbers.integer:
        low, high = (unit.full(each, _digits(numbers, each)) for each in (start, end))
        return message(_CELL, low=low, high=high, share=told)
    first, last = round(start), round(end) - 1
    if first == last:
        return message(_ONE, number=unit.exact(first), share=told)
    return message(_CELL, low=unit.exact(first), high=unit.exact(last), share=told)


def _digits(numbers: NumberRange, number: float) -> float:
    """How exactly the edge of a bar is written: the `spread` of `Unit.full`."""
    if numbers.scale == "log":
        return abs(number) / 10
    return (numbers.end - numbers.start) / 50


def _outside(numbers: NumberRange) -> tuple[str, str]:
    low, high = numbers.start, numbers.end
    return (
        message("< {number}", number=end_text(low)),
        message("≥ {number}", number=end_text(high)),
    )


def scale_chart(answer: Mean) -> Dots:
    """A mean with its interval, on a scale that holds both and the range."""
    numbers, series = answer.range, answer.series
    log = numbers.scale == "log"
    ends = [
        float(each)
        for each in (*series.value, *series.low, *series.high)
        if math.isfinite(each) and (each > 0 or not log)
    ]
    axis = NumberAxis(min(numbers.start, *ends), max(float(numbers.high), *ends), log)
    rows = marks_of(answer, axis)
    return Dots(
        name=answer.metric,
        title=message("{metric}: the mean on its scale", metric=answer.metric),
        description=_described(answer, rows),
        rows=rows,
        ticks=_ticks(axis, (end_text(axis.low), end_text(axis.high))),
    )


def marks_of(answer: Answer, axis: NumberAxis) -> tuple[BarRow, ...]:
    """The series of an answer, in their order."""
    marks, unit = [], answer.unit
    for name in answer.series.names:
        number, low, high = answer.series.at(name)
        drawn = _part(axis, low), _part(axis, number), _part(axis, high)
        told = replace(estimate_of(unit, number, low, high), drawn=drawn)
        marks.append(told.bar(unit.label(name)))
    return tuple(marks)


def _part(axis: NumberAxis, number: float) -> float:
    """Where a number lies, from 0 to 1."""
    return axis.at(number) / 100 if math.isfinite(number) else number


def _described(answer: Answer, marks: Sequence[BarRow]) -> str:
    return described(
        answer,
        (
            message(
                _TOLD if mark.known else _UNKNOWN,
                name=mark.label,
                estimate=mark.number,
                between=mark.between,
            )
            for mark in marks
        ),
    )
