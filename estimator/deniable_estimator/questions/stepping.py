"""When a trend stepped, and what was noted then, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import numpy as np

from deniable_estimator.annotations import Annotation, between
from deniable_estimator.isolation import isolated
from deniable_estimator.messages import joined, message, sentence, spaced
from deniable_estimator.questions.trend import Trend
from deniable_estimator.statistics.step import find_step

_NAMED = 3
_POINTS = sentence(
    "A step of {size} points, most likely on {when} ({level:g}% CI {first} to {last})."
)
_STEP = sentence("A step of {size}, most likely on {when} ({level:g}% CI {first} to {last}).")
_NOTED = sentence("Noted then: {noted}.")


def step_in_words(
    trend: Trend,
    value: str,
    annotations: Sequence[Annotation],
    called: Callable[[str], str] = str,
) -> str | None:
    """When a series made its one step, from the complete periods, and the annotations within the
    confidence set; None if it made none, or several. `called` says what people call a period.

    That something was noted then says nothing about a cause.
    """
    periods = [each for each in trend.reported if not (each.partial or each.unfinished)]
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
    unit, spread = trend.unit, found.std_error
    first, last = periods[found.first], periods[found.last]
    told = message(
        _POINTS if unit.of_all else _STEP,
        size=unit.signed(found.size, spread),
        when=called(periods[found.place].label),
        level=trend.level * 100,
        first=called(first.label),
        last=called(last.label),
    )
    # What happened late on a day shows on the next one.
    noted = between(annotations, first.first - timedelta(1), last.last, trend.metric)
    if not noted:
        return told
    names = joined(isolated(each.text) for each in noted[-_NAMED:])
    return spaced((told, message(_NOTED, noted=names)))
