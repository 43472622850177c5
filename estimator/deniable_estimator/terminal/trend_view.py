"""A trend in a terminal: a line for each period, with the change since the previous one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable_estimator.answers.units import Unit, half_width
from deniable_estimator.asking.trend import Period, Trend
from deniable_estimator.errors import EstimateError
from deniable_estimator.terminal.tables import interval, picture

_FEW = 12
"""The most series that an error names."""


def trend_view(trend: Trend, value: str) -> RenderableType:
    """One series, like the share of a value, in every period that has reports.

    Raises:
        EstimateError: no period knows the value.
    """
    shown = [(period, place) for period in trend.reported if (place := _place(period, value)) >= 0]
    if not shown:
        raise EstimateError(f"{value!r} is not one of the values of {trend.metric}{_known(trend)}")
    title = Text.assemble((trend.metric, "bold"), "  ", value, f"  ·  by {trend.by}")
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("period", no_wrap=True)
    unit, (what, measure) = trend.unit, trend.unit.heading
    for name in ("reports", f"{what}\n{measure}", f"{trend.level * 100:g}% interval\n{measure}"):
        table.add_column(name, justify="right", no_wrap=True)
    base, top = _axis(shown, unit)
    least = "0" if base == 0 else unit.text(base, top - base)
    most = unit.text(top, top - base)
    table.add_column(f"\n{least}{most:>{20 - len(least)}}", no_wrap=True)
    change = "since a week before" if trend.by == "day" else "since the one before"
    table.add_column(f"change {change}", overflow="fold")
    for period, place in shown:
        table.add_row(*_cells(period, place, value, (base, top)))
    notes = [Text(f"Note: {note}.", style="yellow") for note in trend.notes]
    return Group(title, table, *notes)


def _known(trend: Trend) -> str:
    """The series of a trend as advice, if they are few."""
    newest = next((each.estimate for each in reversed(trend.reported)), None)
    names = newest.series.names if newest else ()
    return f": choose one of {', '.join(names)}" if 0 < len(names) <= _FEW else ""


def _axis(shown: Sequence[tuple[Period, int]], unit: Unit) -> tuple[float, float]:
    """Where the bars of a series begin and end: from zero, or from below it if need be."""
    series = [(each.estimate.series, place) for each, place in shown if each.estimate]
    highs = [float(each.high[place]) for each, place in series]
    top = max((each for each in highs if math.isfinite(each)), default=math.nan)
    if math.isfinite(top) and unit.of_all:
        return 0.0, top
    numbers = [float(column[at]) for each, at in series for column in (each.value, each.low)]
    known = [0.0, *(each for each in (*numbers, top) if math.isfinite(each))]
    return min(known), max(known) if max(known) > min(known) else min(known) + 1


def _cells(period: Period, place: int, value: str, axis: tuple[float, float]) -> list[Text]:
    answer, change = period.estimate, period.change
    assert answer is not None
    series, unit = answer.series, answer.unit
    share, low, high = (float(column[place]) for column in (series.value, series.low, series.high))
    spread = half_width(share, low, high)
    base, top = axis
    told = Text()
    if change is not None and value in change.values:
        index = change.values.index(value)
        told = Text(change.describe(index), style="" if change.changed[index] else "dim")
    return [
        Text(
            period.label
            + (" (unfinished)" if period.unfinished else " (partial)" if period.partial else "")
        ),
        Text(f"{period.n:,}"),
        Text(unit.text(share, spread)),
        Text(interval(unit, low, high, spread)),
        picture(low - base, share - base, high - base, max(top - base, 1e-12))
        if math.isfinite(share)
        else Text(),
        told,
    ]


def _place(period: Period, name: str) -> int:
    place = period.estimate.series.place(name) if period.estimate else None
    return -1 if place is None else place
