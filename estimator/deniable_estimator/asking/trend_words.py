"""Trends in words: a table with a line for each period, which pages and terminal show alike; and
when a trend stepped, and what was noted then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.protocol import windows
from deniable_estimator.annotations import Annotation, between
from deniable_estimator.asking.trend import Period, Trend
from deniable_estimator.document.document import Column, Frame, Tone, WordedValue
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.formats import estimate_title, interval_title, series_cell, window
from deniable_estimator.messages import isolated, joined, message, sentence, spaced
from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.participation import shared_noise
from deniable_estimator.statistics.step import Step, find_step

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
    change, why = period.change, period.uncompared
    if change is not None and value not in change.values:
        why = change.after.other or message("nothing before to compare with")
    if change is None or why:
        return WordedValue(None, why, "quiet") if why else None
    at = change.values.index(value)
    difference = float(change.difference[at])
    if period.label in alarmed or period.since in alarmed:
        return WordedValue(difference, message("not compared: anomalous"), "quiet")
    tone: Tone = "plain" if change.changed[at] else "quiet"
    return WordedValue(difference, change.describe(at), tone)


def _axis(trend: Trend, value: str) -> tuple[float, float]:
    """Where the bars of a series begin and end: from zero, or from below it if need be."""
    shown = [each.series.at(value) for each in trend.answers if value in each.series.names]
    if not shown:
        names = trend.answers[-1].series.names if trend.answers else ()
        known = ", ".join(names[:_FEW])
        more = f" and {len(names) - _FEW:,} more" if len(names) > _FEW else ""
        advice = f": choose one of {known}{more}" if known else ""
        raise EstimateError(f"{value!r} is not one of the values of {trend.metric}{advice}")
    top = max((high for *_, high in shown if math.isfinite(high)), default=math.nan)
    if math.isfinite(top) and trend.unit.of_all:
        return 0.0, top
    numbers = [each for value, low, _ in shown for each in (value, low)]
    known_ends = [0.0, *(each for each in (*numbers, top) if math.isfinite(each))]
    least, most = min(known_ends), max(known_ends)
    return least, most if most > least else least + 1


_NAMED = 3
_POINTS = sentence("A step of {size} points, {likely} ({level:g}% CI {first} to {last}).")
_STEP = sentence("A step of {size}, {likely} ({level:g}% CI {first} to {last}).")
_LIKELY: dict[windows.Kind, str] = {
    "day": sentence("most likely on {when}"),
    "week": sentence("most likely in week {when}"),
    "month": sentence("most likely in {when}"),
}
_NOTED = sentence("Noted then: {noted}.")


@dataclass(frozen=True, eq=False, slots=True)
class TrendStep:
    """The one step of a series; that something was noted then says nothing about a cause."""

    trend: Trend
    value: str
    """The series."""
    found: Step
    periods: tuple[Period, ...]
    """Those of the confidence set, from its first to its last; of weeks and months with the one
    before, because what happens late in a period shows in the next one."""
    period: Period
    """The most likely one: the first at the new level."""
    noted: tuple[Annotation, ...]
    """The annotations within the confidence set; of days, since the one before that has reports."""

    def told(self, called: Callable[[str], str] = str) -> str:
        """A sentence or two; `called` says what people call a period."""
        unit = self.trend.unit
        told = message(
            _POINTS if unit.of_all else _STEP,
            size=unit.signed(self.found.size, deviations(self.trend.level) * self.found.std_error),
            likely=message(_LIKELY[self.trend.by], when=called(self.period.label)),
            level=self.trend.level * 100,
            first=called(self.periods[0].label),
            last=called(self.periods[-1].label),
        )
        if not self.noted:
            return told
        names = joined(isolated(each.text) for each in self.noted[-_NAMED:])
        return spaced((told, message(_NOTED, noted=names)))

    def to_dict(self) -> dict[str, Any]:
        """For JSON: `value`, `period`, `first` and `last` (periods), `size`, `std_error`,
        `p_value`, `annotations` (texts) and `text`."""
        return {
            "value": self.value,
            "period": self.period.label,
            "first": self.periods[0].label,
            "last": self.periods[-1].label,
            "size": self.found.size,
            "std_error": self.found.std_error,
            "p_value": self.found.p_value,
            "annotations": [each.text for each in self.noted],
            "text": self.told(),
        }

    def column(self) -> Mapping[tuple[str, str], str]:
        """Labels of a period and the series -> "most likely" or "possible", for a table."""
        possible = {(each.label, self.value): "possible" for each in self.periods}
        return {**possible, (self.period.label, self.value): "most likely"}


def step_of(
    trend: Trend, values: Collection[str], annotations: Sequence[Annotation]
) -> TrendStep | None:
    """When the one series that is asked for, or the leading one, made its one step, from the
    complete periods that can be compared with the newest, and the annotations near it; None if
    several are asked for, and if it made none, or several."""
    periods = [each for each in trend.reported if not each.partial]
    if len(values) > 1 or not periods:
        return None
    newest = periods[-1].estimate
    assert newest is not None
    periods = [
        each
        for each in periods
        if (found := each.estimate) and type(found) is type(newest) and newest.alike(found)
    ]
    value = next(iter(values), trend.leading)
    numbers = np.full((2, len(periods)), np.nan)
    for at, each in enumerate(periods):
        place = each.estimate.series.place(value) if each.estimate else None
        if each.estimate and place is not None:
            series = each.estimate.series
            numbers[:, at] = series.value[place], series.std_error[place]
    y, error = numbers
    days = np.array([each.first.weekday() for each in periods]) if trend.by == "day" else None
    kept = shared_noise([each.estimate.participation for each in periods if each.estimate])
    step = find_step(y, error**2, days, kept=kept, level=trend.level)
    if step is None:
        return None
    before = step.first - 1
    within = tuple(periods[before + (trend.by == "day") : step.last + 1])
    noted = between(annotations, periods[before].first, within[-1].last, trend.metric)
    return TrendStep(trend, value, step, within, periods[step.place], noted)
