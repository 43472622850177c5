"""When a trend stepped, and what was noted then, in words and for programs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from deniable_estimator.annotations import Annotation, between
from deniable_estimator.asking.trend import Period, Trend
from deniable_estimator.isolation import isolated
from deniable_estimator.messages import joined, message, sentence, spaced
from deniable_estimator.statistics.step import Step, find_step

_NAMED = 3
_POINTS = sentence(
    "A step of {size} points, most likely on {when} ({level:g}% CI {first} to {last})."
)
_STEP = sentence("A step of {size}, most likely on {when} ({level:g}% CI {first} to {last}).")
_NOTED = sentence("Noted then: {noted}.")


@dataclass(frozen=True, eq=False, slots=True)
class TrendStep:
    """The one step of a series; that something was noted then says nothing about a cause."""

    trend: Trend
    value: str
    """The series."""
    found: Step
    periods: tuple[Period, ...]
    """Those of the confidence set, from its first to its last."""
    period: Period
    """The most likely one: the first at the new level."""
    noted: tuple[Annotation, ...]
    """The annotations within the confidence set, and of the day before it: what happens late on a
    day shows on the next one."""

    def told(self, called: Callable[[str], str] = str) -> str:
        """A sentence or two; `called` says what people call a period."""
        unit = self.trend.unit
        told = message(
            _POINTS if unit.of_all else _STEP,
            size=unit.signed(self.found.size, self.found.std_error),
            when=called(self.period.label),
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


def step_asked(
    trend: Trend, values: Collection[str], annotations: Sequence[Annotation]
) -> TrendStep | None:
    """The step of the one series that is asked for, of the leading one if none is; None if several
    are."""
    if len(values) > 1 or not trend.reported:
        return None
    return step_of(trend, next(iter(values), trend.leading), annotations)


def step_of(trend: Trend, value: str, annotations: Sequence[Annotation]) -> TrendStep | None:
    """When a series made its one step, from the complete periods, and the annotations within the
    confidence set; None if it made none, or several."""
    periods = [each for each in trend.reported if not each.partial]
    numbers = []
    for each in periods:
        series = each.estimate.series if each.estimate else None
        place = series.place(value) if series else None
        if series is None or place is None:
            numbers.append((np.nan, np.nan))
        else:
            numbers.append((float(series.value[place]), float(series.std_error[place])))
    if not numbers:
        return None
    y, error = np.array(numbers).T
    days = np.array([each.first.weekday() for each in periods]) if trend.by == "day" else None
    found = find_step(y, error**2, days, level=trend.level)
    if found is None:
        return None
    within = tuple(periods[found.first : found.last + 1])
    noted = between(annotations, within[0].first - timedelta(1), within[-1].last, trend.metric)
    return TrendStep(trend, value, found, within, periods[found.place], noted)
