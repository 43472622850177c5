"""Trends as tables: a line for each period, which pages and terminal show alike."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from deniable.protocol import windows
from deniable_estimator.answers.words.texts import (
    estimate_title,
    interval_title,
    series_cell,
    window,
)
from deniable_estimator.asking.trend import Period, Trend
from deniable_estimator.document.document import Column, Frame, Tone, WordedValue
from deniable_estimator.errors import EstimateError
from deniable_estimator.isolation import isolated
from deniable_estimator.messages import message

_FEW = 12
"""The most series that an error names."""

_SINCE: dict[windows.Kind, str] = {
    "day": message("Change since a week before"),
    "week": message("Change since the one before"),
    "month": message("Change since the one before"),
}


def trend_frame(
    trend: Trend,
    values: Sequence[str],
    *,
    title: str = "",
    charted: bool = False,
    alarmed: Collection[str] = (),
) -> Frame:
    """Each period that has reports: these series, and of a single one its change too.

    Under a chart (`charted`) the newest period comes first, and there are no bars. Nothing is said
    of changes from or to the periods that are `alarmed`.

    Raises:
        EstimateError: no period knows a series.
    """
    reported, unit = trend.reported, trend.unit
    columns = [Column("period", message("Period"), "words")]
    columns.append(Column("n", message("Reports"), "count"))
    axes = {value: _axis(trend, value) for value in values}
    if len(values) == 1:
        ((base, top),) = axes.values()
        ends = "0" if base == 0 else unit.full(base, top - base), unit.full(top, top - base)
        columns.append(
            Column(
                *("estimate", estimate_title(unit), "estimate"),
                interval=interval_title(trend.level),
                scale=ends,
            )
        )
        columns.append(Column("change", _SINCE[trend.by], "words"))
    else:
        columns += [Column(each, isolated(unit.label(each))) for each in values]
    rows, tones = [], list[Tone]()
    for period in reversed(reported) if charted else reported:
        alarm = period.label in alarmed
        name = _name(period, window(period.label) if charted else period.label)
        cells = [
            period.estimate and series_cell(period.estimate, value, None if charted else axis)
            for value, axis in axes.items()
        ]
        change = [_change(period, values[0], alarmed)] if len(values) == 1 else []
        tag = message("anomalous") if alarm else ""
        rows.append((WordedValue(period.label, name, tag=tag), period.n, *cells, *change))
        tones.append("alarm" if alarm else "plain")
    return Frame("periods", title, tuple(columns), rows, tones)


def _name(period: Period, name: str) -> str:
    if period.unfinished:
        return message("{period} (unfinished)", period=name)
    if period.partial:
        return message("{period} (partial)", period=name)
    return name


def _change(period: Period, value: str, alarmed: Collection[str]) -> WordedValue | None:
    change = period.change
    if change is None or value not in change.values:
        return None
    at = change.values.index(value)
    difference = float(change.difference[at])
    if period.label in alarmed or period.since in alarmed:
        return WordedValue(difference, message("not compared: anomalous"), "quiet")
    tone: Tone = "plain" if change.changed[at] else "quiet"
    return WordedValue(difference, change.describe(at), tone)


def _axis(trend: Trend, value: str) -> tuple[float, float]:
    """Where the bars of a series begin and end: from zero, or from below it if need be."""
    answers = [each.estimate for each in trend.reported if each.estimate]
    shown = [each.series.at(value) for each in answers if value in each.series.names]
    if not shown:
        names = answers[-1].series.names if answers else ()
        known = f": choose one of {', '.join(names)}" if 0 < len(names) <= _FEW else ""
        raise EstimateError(f"{value!r} is not one of the values of {trend.metric}{known}")
    top = max((high for *_, high in shown if math.isfinite(high)), default=math.nan)
    if math.isfinite(top) and trend.unit.of_all:
        return 0.0, top
    numbers = [each for value, low, _ in shown for each in (value, low)]
    known_ends = [0.0, *(each for each in (*numbers, top) if math.isfinite(each))]
    least, most = min(known_ends), max(known_ends)
    return least, most if most > least else least + 1
