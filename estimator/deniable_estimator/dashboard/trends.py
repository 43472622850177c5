"""Trends as charts: one or several series over time on one scale, with what each period says.

What is drawn is given as plain numbers (`TrendLine`), and the axis apart from them, so that several
charts can share one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from deniable.protocol import windows
from deniable_estimator.asking.trend import Period, Trend
from deniable_estimator.document.plot.lines import Numbers, apart, line_of
from deniable_estimator.document.plot.marks import LineChart, Point
from deniable_estimator.document.plot.scales import Axis, Tick, date_ticks
from deniable_estimator.document.units import Unit
from deniable_estimator.kinds.formats import day as day_text
from deniable_estimator.kinds.formats import window, with_ends
from deniable_estimator.messages import counted, listed, message, sentence, spaced

_TITLES = {
    "day": sentence("{value} by day"),
    "week": sentence("{value} by week"),
    "month": sentence("{value} by month"),
}


def lines_of(trend: Trend, values: Sequence[str]) -> list[TrendLine]:
    """These series of a trend, as they are drawn."""
    unit = trend.unit
    of_periods = [_numbers(period, values) for period in trend.periods]
    return [
        TrendLine(unit.label(value), tuple(each[place] for each in of_periods))
        for place, value in enumerate(values)
    ]


def trend_axis(unit: Unit, lines: Sequence[TrendLine], *, gridlines: bool = True) -> Axis | None:
    """The axis that holds all of these lines and their bands; None where nothing is known. Without
    `gridlines` it ends where the numbers do."""
    found = [numbers for line in lines for numbers in line.numbers if numbers is not None]
    return Axis.of(unit, np.array(found, np.float64).reshape(-1, 3), gridlines=gridlines)


def draw_trend(
    unit: Unit,
    periods: Sequence[Period],
    lines: Sequence[TrendLine],
    *,
    height: int,
    name: str,
    axis: Axis | None = None,
    alarmed: Collection[str] = (),
    small: bool = False,
) -> LineChart | None:
    """The chart of these lines, on an axis that several charts share or on their own; None where
    none of them has a number. The periods `alarmed` are marked. A `small` one is drawn without the
    axis. There are styles for `MOST_LINES` lines.
    """
    axis = axis or trend_axis(unit, lines, gridlines=not small)
    known = [(style, line) for style, line in enumerate(lines, 1) if any(line.numbers)]
    if axis is None or not known:
        return None
    partial = {place for place, each in enumerate(periods) if each.partial}
    marked = frozenset(place for place, each in enumerate(periods) if each.label in alarmed)
    drawn = [
        line_of(
            *(line.label, style, line.numbers, axis, height),
            partial=partial,
            alarmed=marked,
            small=small,
        )
        for style, line in known
    ]
    places = apart([each.dots[-1].down for each in drawn], height)
    dates, years = _dates(tuple(period.label for period in periods))
    kind = windows.kind_of(periods[0].label)
    points = _silent(len(periods), marked)
    if not small:
        points = tuple(
            _point(unit, place, point, period, known)
            for place, (point, period) in enumerate(zip(points, periods, strict=True))
        )
    return LineChart(
        form="trend small" if small else "trend",
        name=name,
        title=message(_TITLES[kind], value=listed(line.label for _, line in known)),
        description=spaced(_described(unit, periods, line) for _, line in known),
        height=height,
        lines=tuple(each._replace(label_at=at) for each, at in zip(drawn, places, strict=True)),
        points=points,
        levels=() if small else axis.ticks(height),
        ticks=() if small else dates,
        years=() if small else years,
    )


@lru_cache(maxsize=16)
def _dates(labels: tuple[str, ...]) -> tuple[tuple[Tick, ...], tuple[Tick, ...]]:
    """The dates on the axis of these periods, without and with the year in each: a page draws
    many charts of the same periods."""
    ticks = date_ticks(
        windows.first_day(labels[0]), windows.last_day(labels[-1]), windows.kind_of(labels[0])
    )
    # There are six at most, so that a phone has room for every second one.
    dates = tuple(
        Tick(_across(labels, day), text, spare=place % 2 == 1)
        for place, (day, text) in enumerate(ticks)
    )
    years = zip(dates, ticks, strict=True)
    return dates, tuple(tick._replace(text=day_text(day)) for tick, (day, _) in years)


def _across(labels: Sequence[str], day: date) -> float:
    """Where a day lies: a day below its dot, and in a longer period where the day begins."""
    label = windows.window_at(
        windows.kind_of(labels[0]),
        datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp(),
    )
    begins, ends = windows.first_day(label), windows.last_day(label)
    part = (day - begins).days / ((ends - begins).days + 1) if ends > begins else 0.5
    return round((labels.index(label) + part) * (100 / len(labels)), 3)


def _numbers(period: Period, values: Sequence[str]) -> list[Numbers | None]:
    """Number, low and high of each of these series in one period."""
    if period.estimate is None:
        return [None] * len(values)
    found = map(period.estimate.series.at, values)
    return [each if math.isfinite(each[0]) else None for each in found]


_POINT = sentence("{period}: {value} {share}, {low} to {high}, {reports}")
_POINTS = sentence("{period}, {reports}")
_OF_LINE = sentence("{value}: {share}, {low} to {high}")
"""What a tooltip says of the only line of a period; of the period over several lines, and of each
of these."""


class TrendLine(NamedTuple):
    """One series over the periods of a trend."""

    label: str
    """What people call it."""
    numbers: tuple[Numbers | None, ...]
    """Number, low and high of each period; None where there is none."""


def _described(unit: Unit, periods: Sequence[Period], line: TrendLine) -> str:
    """The first and the last number of a series, for screen readers."""
    found = [each for each in zip(periods, line.numbers, strict=True) if each[1]]
    first, last = (
        message(_POINT, **_of_period(period), **_of_line(unit, line.label, numbers))
        for period, numbers in (found[0], found[-1])
    )
    return message("From {first} to {last}.", first=first, last=last)


@lru_cache(maxsize=16)
def _silent(count: int, alarmed: frozenset[int]) -> tuple[Point, ...]:
    """So many points without words: a page draws many charts of the same periods."""
    each = 100 / count
    return tuple(
        Point("", round(place * each, 3), round(each, 3), place in alarmed)
        for place in range(count)
    )


def _point(
    unit: Unit, place: int, silent: Point, period: Period, lines: Sequence[tuple[int, TrendLine]]
) -> Point:
    """What the tooltip of one period says of all lines, each with its style."""
    told = [
        (style, _of_line(unit, line.label, numbers))
        for style, line in lines
        if (numbers := line.numbers[place]) is not None
    ]
    if not told:
        return silent
    whole = _of_period(period, alarmed=silent.alarmed)
    if len(lines) == 1:
        return silent._replace(text=message(_POINT, **whole, **told[0][1]))
    each_line = tuple((style, message(_OF_LINE, **each)) for style, each in told)
    return silent._replace(text=message(_POINTS, **whole), numbers=each_line)


def _of_period(period: Period, *, alarmed: bool = False) -> dict[str, str]:
    """A period, and what it is not like others in; and how many reports it has."""
    name = window(period.label)
    if alarmed:
        name = message("{period}, anomalous", period=name)
    elif period.unfinished:
        name = message("{period}, unfinished", period=name)
    elif period.partial:
        name = message("{period}, partial", period=name)
    return {
        "period": name,
        "reports": counted("{count:,} report", "{count:,} reports", period.n),
    }


def _of_line(unit: Unit, label: str, numbers: Numbers | None) -> dict[str, str]:
    """What is said of a number of a line."""
    assert numbers is not None
    share, low, high = with_ends(unit, *numbers)
    return {"value": label, "share": share, "low": low, "high": high}
