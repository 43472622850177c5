"""A trend in a terminal: a line for each period, with the change since the previous one."""

from __future__ import annotations

import math

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable_estimator.errors import EstimateError
from deniable_estimator.questions.comparison import points
from deniable_estimator.questions.trend import Period, Trend
from deniable_estimator.terminal.tables import picture

__all__ = ["leading_value", "trend_view"]


def leading_value(trend: Trend) -> str:
    """The default value to show of a trend: "true", or the one with the largest newest share.

    Raises:
        EstimateError: there are no reports.
    """
    if not trend.reported:
        raise EstimateError("there are no reports in that range: choose another")
    newest = trend.reported[-1].estimate
    assert newest is not None
    if newest.values == ("true", "false"):
        return "true"
    return newest.values[int(newest.share.argmax())]


def trend_view(trend: Trend, value: str) -> RenderableType:
    """The share of one value in every period that has reports.

    Raises:
        EstimateError: no period knows the value.
    """
    shown = [(period, place) for period in trend.reported if (place := _place(period, value)) >= 0]
    if not shown:
        raise EstimateError(f"{value!r} is not one of the values of {trend.metric}")
    title = Text.assemble((trend.metric, "bold"), "  ", value, f"  ·  by {trend.by}")
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("period", no_wrap=True)
    for name in ("reports", "share\n%", f"{trend.level * 100:g} % interval\n%"):
        table.add_column(name, justify="right", no_wrap=True)
    top = max(float(period.estimate.high[place]) for period, place in shown if period.estimate)
    table.add_column(f"\n0{points(top, 1):>19}", no_wrap=True)
    change = "since a week before" if trend.by == "day" else "since the one before"
    table.add_column(f"change {change}", overflow="fold")
    for period, place in shown:
        table.add_row(*_cells(period, place, value, top))
    notes = [Text(f"Note: {note}.", style="yellow") for note in trend.notes]
    return Group(title, table, *notes)


def _cells(period: Period, place: int, value: str, top: float) -> list[Text]:
    estimate, change = period.estimate, period.change
    assert estimate is not None
    share, low, high = (
        float(column[place]) for column in (estimate.share, estimate.low, estimate.high)
    )
    spread = (high - low) / 2
    told = Text()
    if change is not None and value in change.values:
        index = change.values.index(value)
        told = Text(change.describe(index), style="" if change.changed[index] else "dim")
    return [
        Text(period.label + (" (partial)" if period.partial else "")),
        Text(f"{period.n:,}"),
        Text(points(share, spread)),
        Text(f"{points(low, spread)} .. {points(high, spread)}"),
        picture(low, share, high, max(top, 1e-12)) if math.isfinite(share) else Text(),
        told,
    ]


def _place(period: Period, value: str) -> int:
    values = period.estimate.values if period.estimate else ()
    return values.index(value) if value in values else -1
