"""How each value's share changed between two estimates, with an interval of its own; and what is
compared since something happened.

For independent estimates with intervals (l, u) the difference d = after - before lies between ::

    d - sqrt((after - l_after) ** 2 + (u_before - before) ** 2)
    d + sqrt((u_after - after) ** 2 + (before - l_before) ** 2)

(Newcombe, Statistics in Medicine 1998, method 10), which for large crowds is
d +- z sqrt(Var_before + Var_after). It is the change of the share among all devices, so each
variance counts devices as that of a single period does (see
`deniable_estimator.statistics.participation`). A report does not say which device it is from, so
the two periods are treated as coming from different devices. If the same devices report in both
and keep their values, the choice of devices cancels out, and the interval is too wide: hardly for
periods of one window, considerably for two months of daily reports. Treating them as the same
devices would report false changes as soon as other devices report.

Since something happened, the complete windows after it are compared with as many before it. The
window in which it happened belongs to neither, as it holds both. The days before hold the same
weekdays as those after, so that a weekend is no change; up to six days between them and the
moment are in neither. Weeks and months are compared with as many just before. Where the registry
keeps windows only for some time, both periods are as long as what is kept before the moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import groupby

import numpy as np

from deniable import Metric, WindowError
from deniable.protocol import windows
from deniable_estimator.annotations import Annotation
from deniable_estimator.asking.query import Days
from deniable_estimator.document.units import half_width
from deniable_estimator.errors import EstimateError
from deniable_estimator.files import nearest
from deniable_estimator.inputs import Asked
from deniable_estimator.kinds.base import TOGETHER, Answer, ChangeTest, Comparison
from deniable_estimator.messages import message, sentence


def compare(before: Answer, after: Answer, test: ChangeTest = TOGETHER) -> Comparison:
    """The change from `before` to `after` of every series that both have, in the order of `after`.

    Raises:
        EstimateError: they are of different metrics or levels, or share a window.
    """
    (found,) = compare_each([(before, after)], test)
    return found


def compare_each(pairs: Sequence[tuple[Answer, Answer]], test: ChangeTest) -> list[Comparison]:
    """The change of each of these pairs, with the same errors."""
    for before, after in pairs:
        if (before.metric, before.level, before.kind) != (after.metric, after.level, after.kind):
            raise EstimateError(message("only estimates of one metric and level can be compared"))
        if shared := set(before.windows) & set(after.windows):
            raise EstimateError(
                message(
                    "both periods hold {window}: a window cannot be compared with itself, so "
                    "choose two ranges that do not overlap",
                    window=min(shared),
                )
            )
    kinds = groupby(pairs, key=lambda pair: type(pair[1]))
    return [change for kind, same in kinds for change in kind.changes([*same], test)]


_HEADLINE = sentence("{series}: {value}, {change} since {moment}")
_FEW = sentence("{told} ({before:,} windows with reports before, {after:,} after)")


def find_moment(
    asked: str, annotations: Sequence[Annotation], metric: str | None = None
) -> tuple[str, date]:
    """What people call a moment, and its day (UTC): the latest annotation of that text, whatever
    its case: of those that concern a metric, if there is one, and else of the others, as it is
    asked for by name; or a day, like 2026-11-20.

    Raises:
        EstimateError: there is neither.
    """
    named = [each for each in annotations if each.text.casefold() == asked.strip().casefold()]
    found = [each for each in named if metric is None or each.concerns(metric)] or named
    if found:
        latest = max(found, key=lambda each: each.day)
        return latest.text, latest.day
    try:
        return asked, date.fromisoformat(asked)
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


def asked_days(
    asked: Asked,
    usual: Days,
    kind: windows.Kind,
    noted: Sequence[Annotation],
    now: float,
    metric: Metric | None = None,
) -> Days:
    """The days that `from`, `to`, `since` and `without` ask for (`deniable_estimator.inputs`), or
    the usual ones; with `since`, as `asked_since` finds them.

    Raises:
        EstimateError: the windows to leave out are of another kind, or `since` is not the only one
            that names days.
        EstimateError: the range ends before it begins; or as `asked_since`.
    """
    without = asked.get("without") or ()
    if {windows.kind_of(each) for each in without} - {kind}:
        example = windows.window_at(kind, now)
        told = message("“without” takes windows like {example} here.", example=example)
        raise EstimateError(told, "without")
    first, last = asked.get("from"), asked.get("to")
    if not asked.get("since"):
        found = Days(first or usual.first, last or usual.last, without)
        if found.days < 1:
            raise EstimateError(
                message(
                    "The range ends ({last}) before it begins ({first}). Swap the two dates.",
                    last=found.last,
                    first=found.first,
                )
            )
        return found
    if first or last:
        raise EstimateError(message("“since” takes the place of “from” and “to”."), "from", "to")
    return replace(asked_since(asked["since"], noted, kind, now, metric), without=without)


def asked_since(
    asked: str,
    annotations: Sequence[Annotation],
    kind: windows.Kind,
    now: float,
    metric: Metric | None = None,
) -> Days:
    """The days after what is asked about, as `find_moment` finds it, and before it, up to the last
    complete window of that kind; `now` is POSIX time in seconds.

    Raises:
        EstimateError: there is no such moment, or no window after or before it.
    """
    moment = find_moment(asked, annotations, metric.name if metric else None)
    kept = kept_from(metric, datetime.fromtimestamp(now, UTC).date()) if metric else None
    return days_since(*moment, kind, windows.last_complete(kind, now), kept)


def kept_from(metric: Metric, today: date) -> date | None:
    """The first day from which the windows of a metric are kept, as the registry says; None where
    all are."""
    days = dict(metric.keep).get(metric.window)
    return None if days is None else today - timedelta(days)


def days_since(
    name: str, day: date, kind: windows.Kind, last: date, kept: date | None = None
) -> Days:
    """The complete windows after a day that has a name, of which the last one ended with the day
    `last`, and as many before it; where windows are `kept` only from a day on, as many as there are
    before it.

    Raises:
        EstimateError: no window after it is complete, or none before it is there.
    """
    try:
        found = _days_since(day, kind, last, kept or date.min)
    except (OverflowError, ValueError, WindowError):
        # It lies at an end of the calendar.
        found = None if day <= last else Days(last, date.min)
    if found is None:
        raise EstimateError(message("no {kind} before {moment} is kept", kind=kind, moment=name))
    if found.first > found.last:
        raise EstimateError(
            message(
                "no {kind} after {moment} is complete yet: look again later",
                kind=kind,
                moment=name,
            )
        )
    return replace(found, since=name)


def _days_since(day: date, kind: windows.Kind, last: date, kept: date) -> Days | None:
    own = windows.window_of(kind, day)
    first = windows.last_day(own) + timedelta(1)
    if first > last:
        return Days(first, last)
    if kind == "day":
        weeks = min(-(-((last - day).days + 1) // 7), (first - kept).days // 7)
        if weeks < 1:
            return None
        back = timedelta(7 * weeks)
        last = min(last, day + back - timedelta(1))
        return Days(first, last, before=(first - back, last - back))
    after = windows.span(kind, first, last)
    count = len(after)
    while count and windows.first_day(windows.shifted(own, -count)) < kept:
        count -= 1
    if not count:
        return None
    before = windows.first_day(windows.shifted(own, -count)), windows.first_day(own) - timedelta(1)
    return Days(first, windows.last_day(after[count - 1]), before=before)


def since_headline(metric: str, found: Comparison, moment: str) -> str:
    """What has changed since a moment, in a sentence: of the series that stands out furthest from
    its noise, or of the leading one."""
    place, others = chosen_series(found)
    unit, name = found.after.unit, found.values[place]
    numbers = found.after.series.at(name)
    label = metric if found.values == ("true", "false") else unit.label(name)
    told = message(
        _HEADLINE,
        series=label,
        value=unit.full(numbers[0], half_width(*numbers)),
        change=found.describe(place),
        moment=moment,
    )
    held = len(found.before.windows), len(found.after.windows)
    if 2 * min(held) < max(held):
        told = message(_FEW, told=told, before=held[0], after=held[1])
    return with_others(told, others)


def with_others(told: str, others: int) -> str:
    """What is told of one series, and how many others changed."""
    return message("{told}; {count} more changed", told=told, count=others) if others else told


def chosen_series(found: Comparison, leading: str | None = None) -> tuple[int, int]:
    """The series that changed most for its noise, or the `leading` one if none changed, by default
    that of the later answer; and how many others changed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.nan_to_num(np.abs(found.difference / found.std_error), nan=0.0, posinf=0.0)
    if changed := found.places:
        return max(changed, key=lambda each: scores[each]), len(changed) - 1
    leading = leading or found.after.leading
    return (found.values.index(leading) if leading in found.values else 0), 0
