"""Since something happened: the complete windows after it against as many before it.

The window in which it happened belongs to neither, as it holds both. The days before hold the same
weekdays as those after, so that a weekend is no change; up to six days between them and the
moment are in neither. Weeks and months are compared with as many just before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from deniable import windows
from deniable_estimator.annotations import Annotation
from deniable_estimator.answers.base import Comparison
from deniable_estimator.answers.units import half_width
from deniable_estimator.checked_files import nearest
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message, sentence

_HEADLINE = sentence("{series}: {value}, {change} since {moment}")
_OTHERS = sentence("{told}; {count} more changed")


@dataclass(frozen=True, slots=True)
class Moment:
    """What is asked about, as people call it, and its day (UTC)."""

    name: str
    day: date


@dataclass(frozen=True, slots=True)
class SinceDays:
    """The days after and before a moment; each range holds its first and its last day."""

    first: date
    last: date
    before_first: date
    before_last: date


def find_moment(asked: str, annotations: Sequence[Annotation], metric: str | None = None) -> Moment:
    """The latest annotation of that text, whatever its case: of those that concern a metric, if
    there is one, and else of the others, as it is asked for by name; or a day, like 2026-11-20.

    Raises:
        EstimateError: there is neither.
    """
    named = [each for each in annotations if each.text.casefold() == asked.strip().casefold()]
    found = [each for each in named if metric is None or each.concerns(metric)] or named
    if found:
        latest = max(found, key=lambda each: each.day)
        return Moment(latest.text, latest.day)
    try:
        return Moment(asked, date.fromisoformat(asked))
    except ValueError:
        raise EstimateError(
            message(
                "“{asked}” is no annotation and no day like 2026-11-20{near}",
                asked=asked[:200],
                near=nearest(
                    asked,
                    [each.text for each in annotations if metric is None or each.concerns(metric)],
                ),
            )
        ) from None


def days_since(moment: Moment, kind: windows.Kind, last: date) -> SinceDays:
    """The complete windows after a moment, of which the last one ended with the day `last`, and as
    many before it.

    Raises:
        EstimateError: no window after it is complete.
    """
    own = windows.window_of(kind, moment.day)
    first = windows.last_day(own) + timedelta(1)
    if first > last:
        raise EstimateError(
            message(
                "no {kind} after {moment} is complete yet: look again later",
                kind=kind,
                moment=moment.name,
            )
        )
    if kind == "day":
        back = timedelta(7 * (-(-((last - moment.day).days + 1) // 7)))
        return SinceDays(first, last, first - back, last - back)
    earlier = windows.first_day(own) - timedelta(1)
    before = earlier
    for _ in windows.span(kind, first, last):
        before = windows.first_day(windows.window_of(kind, before)) - timedelta(1)
    return SinceDays(first, last, before + timedelta(1), earlier)


def since_headline(metric: str, found: Comparison, moment: str) -> str:
    """What has changed since a moment, in a sentence: of the series that stands out furthest from
    its noise, or of the leading one."""
    place, others = chosen_series(found)
    unit, name = found.after.unit, found.values[place]
    value = float(found.new[place])
    series = found.after.series
    at = series.names.index(name)
    spread = half_width(value, float(series.low[at]), float(series.high[at]))
    label = metric if found.values == ("true", "false") else unit.label(name)
    told = message(
        _HEADLINE,
        series=label,
        value=unit.full(value, spread),
        change=found.describe(place),
        moment=moment,
    )
    return message(_OTHERS, told=told, count=others) if others else told


def chosen_series(found: Comparison, leading: str | None = None) -> tuple[int, int]:
    """The series that changed most for its noise, or the `leading` one if none changed, by default
    that of the later answer; and how many others changed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.nan_to_num(np.abs(found.difference / found.std_error), nan=0.0, posinf=0.0)
    if changed := found.places:
        return max(changed, key=lambda each: scores[each]), len(changed) - 1
    leading = leading or found.after.leading
    return (found.values.index(leading) if leading in found.values else 0), 0
