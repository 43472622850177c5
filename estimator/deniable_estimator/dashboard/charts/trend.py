"""The geometry of a trend: one or several series over time on one scale, each a line in a band.

Across, points are in percent of the plot; lines and bands, which SVG cannot draw in percent, are
in thousandths of it and stretched. Down, all is in pixels. The scale need not begin at zero,
because it is the change that a trend is about; nothing is clipped. Where an interval has no limit
on one side, the band reaches the edge, and neither line nor dot claims to know more.

What is drawn is given as plain numbers (`trend_axis.TrendLine`), and the axis apart from them, so
that several charts can share one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import groupby

from markupsafe import Markup

from deniable import windows
from deniable_estimator.asking.trend import Period, Trend
from deniable_estimator.dashboard.charts.date_labels import DateLabel, date_labels
from deniable_estimator.dashboard.charts.ticks import Tick, date_ticks
from deniable_estimator.dashboard.charts.trend_axis import (
    TrendAxis,
    TrendLine,
    axis_of,
    is_open,
    lines_of,
)
from deniable_estimator.dashboard.charts.trend_shapes import Mark, Plot, dotted, stretched
from deniable_estimator.dashboard.charts.trend_words import Point, described, points_of
from deniable_estimator.dashboard.words import day as day_text
from deniable_estimator.messages import listed, message, sentence, spaced

MOST_LINES = 8
"""At most so many series in one chart: more cannot be told apart, by colour or by dashes."""

_TITLES = {
    "day": sentence("{value} by day"),
    "week": sentence("{value} by week"),
    "month": sentence("{value} by month"),
}
_CROWDED = 62
"""From so many dots on they are small."""

_LABEL_GAP = 15.0
"""Pixels from one label at the end of a line to the next."""


@dataclass(frozen=True, slots=True)
class TrendChart:
    """One or several series over time."""

    name: str
    """Makes the ids inside the SVG unique on a page with several."""
    title: str
    description: str
    height: int
    plots: tuple[Plot, ...]
    points: tuple[Point, ...]
    """One for each period, also where nothing was reported."""
    levels: tuple[Tick, ...]
    """Gridlines, in pixels down."""
    dates: tuple[DateLabel, ...]
    years: tuple[DateLabel, ...]
    """The same dates, with the year in each, for a picture that leaves the page."""

    @property
    def several(self) -> bool:
        """Whether there are lines to be told apart."""
        return len(self.plots) > 1

    @property
    def areas(self) -> Markup:
        """Bands and lines as SVG, across in thousandths; every band lies below all lines."""
        return stretched(self.plots, several=self.several)

    def dots(self, *, each: bool) -> Markup:
        """Whiskers and dots as SVG; unless `each` has one, only where there is no line or an
        alarm."""
        crowded = len(self.points) * len(self.plots) >= _CROWDED
        return dotted(self.plots, each=each and not (crowded and self.several), crowded=crowded)


def trend_chart(
    trend: Trend,
    values: Sequence[str],
    *,
    height: int,
    name: str,
    alarmed: Collection[str] = (),
    gridlines: bool = True,
) -> TrendChart | None:
    """The chart of these series of a trend on one scale; None where no period has a report about
    any. The periods `alarmed` are marked. Without `gridlines` the axis ends
    where the numbers do.

    Raises:
        ValueError: there are more than `MOST_LINES` of them.
    """
    lines = lines_of(trend, values)
    return chart_of_lines(
        trend, lines, height=height, name=name, alarmed=alarmed, gridlines=gridlines
    )


def chart_of_lines(
    trend: Trend,
    lines: Sequence[TrendLine],
    *,
    height: int,
    name: str,
    alarmed: Collection[str] = (),
    gridlines: bool = True,
) -> TrendChart | None:
    """What `trend_chart` draws of series whose lines are known."""
    axis = axis_of(trend.unit, lines, gridlines=gridlines)
    if axis is None:
        return None
    return draw_trend(trend.periods, lines, axis, height=height, name=name, alarmed=alarmed)


def draw_trend(
    periods: Sequence[Period],
    lines: Sequence[TrendLine],
    axis: TrendAxis,
    *,
    height: int,
    name: str,
    alarmed: Collection[str] = (),
) -> TrendChart | None:
    """The chart of these lines on this axis; None where none of them has a number.

    Raises:
        ValueError: there are more than `MOST_LINES` of them.
    """
    if len(lines) > MOST_LINES:
        raise ValueError(f"a chart has {MOST_LINES} lines at most, not {len(lines)}")
    known = [
        (style, line)
        for style, line in enumerate(lines, 1)
        if any(numbers is not None for numbers in line.numbers)
    ]
    if not known:
        return None
    plots = [_plot(periods, line, axis, height, style, alarmed) for style, line in known]
    labels = _apart([plot.marks[-1].share for plot in plots], height)
    dates, years = _dates(tuple(period.label for period in periods))
    kind = windows.kind_of(periods[0].label)
    return TrendChart(
        name=name,
        title=message(_TITLES[kind], value=listed(line.label for _, line in known)),
        description=spaced(described(axis.unit, periods, line) for _, line in known),
        height=height,
        plots=tuple(
            Plot(plot.label, plot.style, plot.marks, plot.lines, plot.bands, at)
            for plot, at in zip(plots, labels, strict=True)
        ),
        points=points_of(axis.unit, periods, known if axis.levels else (), alarmed),
        levels=tuple(
            Tick(at, axis.unit.tick(level, step))
            for at, (level, step) in zip(
                axis.down([level for level, _ in axis.levels], height), axis.levels, strict=True
            )
        ),
        dates=dates,
        years=years,
    )


@lru_cache(maxsize=16)
def _dates(labels: tuple[str, ...]) -> tuple[tuple[DateLabel, ...], tuple[DateLabel, ...]]:
    """The dates on the axis of these periods, without and with the year in each: a page draws
    many charts of the same periods."""
    ticks = date_ticks(
        windows.first_day(labels[0]), windows.last_day(labels[-1]), windows.kind_of(labels[0])
    )
    across = [(_across(labels, tick.day), tick) for tick in ticks]
    return (
        date_labels([Tick(at, tick.text) for at, tick in across]),
        date_labels([Tick(at, day_text(tick.day)) for at, tick in across]),
    )


def _plot(
    periods: Sequence[Period],
    line: TrendLine,
    axis: TrendAxis,
    height: int,
    style: int,
    alarmed: Collection[str],
) -> Plot:
    found = {place: numbers for place, numbers in enumerate(line.numbers) if numbers is not None}
    runs = _runs(list(found))
    alone = {run[0] for run in runs if len(run) == 1}
    columns = list(zip(*found.values(), strict=True))
    share, low, high = (
        dict(zip(found, axis.down(column, height), strict=True)) for column in columns
    )
    ends = zip(found, *columns[1:], strict=True)
    open_ = {place for place, least, most in ends if is_open(least, most)}
    whole = _runs([place for place in found if place not in open_]) if open_ else runs
    across, texts = _middles(len(periods))
    marked = list(found)
    if not axis.levels:
        # A small chart has dots only where there is no line or an alarm, and its label at the last.
        some = {place for place in found if periods[place].label in alarmed}
        marked = sorted({*alone, *some, marked[-1]})
    return Plot(
        label=line.label,
        style=style,
        marks=tuple(
            Mark(
                *(across[place], share[place], low[place], high[place]),
                partial=periods[place].partial,
                alarmed=periods[place].label in alarmed,
                alone=place in alone,
                open=place in open_,
            )
            for place in marked
        ),
        lines=tuple(
            _path([texts[place] for place in run], [share[place] for place in run])
            for run in whole
            if len(run) > 1
        ),
        bands=tuple(
            _path(
                [texts[place] for place in (*run, *reversed(run))],
                [high[place] for place in run] + [low[place] for place in reversed(run)],
            )
            + "Z"
            for run in runs
            if len(run) > 1
        ),
    )


@lru_cache(maxsize=16)
def _middles(count: int) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """The middle of each of so many periods, in percent across and, for paths, in thousandths: a
    page draws many charts of the same periods."""
    each = 100 / count
    found = tuple(round((place + 0.5) * each, 3) for place in range(count))
    return found, tuple(f"{at * 10:.1f}" for at in found)


def _runs(places: Sequence[int]) -> list[list[int]]:
    """The places in unbroken runs."""
    numbered = enumerate(places)
    return [
        [place for _, place in run]
        for _, run in groupby(numbered, key=lambda pair: pair[1] - pair[0])
    ]


def _path(across: Sequence[str], down: Sequence[float]) -> str:
    # One call that writes all numbers takes a third of the time of one for each.
    return ("M" + " %gL".join(across) + " %g") % tuple(down)


def _apart(wanted: Sequence[float], height: int) -> list[float]:
    """Where labels stand that would stand there: as near as can be without touching each other."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    found = [0.0] * len(wanted)
    last = -math.inf
    for place in order:
        last = found[place] = max(wanted[place], last + _LABEL_GAP)
    last = height + _LABEL_GAP
    for place in reversed(order):
        last = found[place] = min(found[place], last - _LABEL_GAP)
    return [round(each, 1) for each in found]


def _across(labels: Sequence[str], day: date) -> float:
    """Where a day lies: a day below its dot, and in a longer period where the day begins."""
    label = windows.window_at(
        windows.kind_of(labels[0]),
        datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp(),
    )
    begins, ends = windows.first_day(label), windows.last_day(label)
    part = (day - begins).days / ((ends - begins).days + 1) if ends > begins else 0.5
    return round((labels.index(label) + part) * (100 / len(labels)), 3)
