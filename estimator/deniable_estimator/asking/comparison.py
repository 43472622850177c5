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
window in which it happened belongs to neither, as it holds both. Days are compared with days that
hold the same weekdays, so that a weekend is no change: whole weeks with those just before it, and
others with the latest that begin on the same weekday, so that up to five days before the moment are
in neither. Both periods are as long as what the store has before the moment: reports may begin only
then, and the registry may keep windows only for some time. If the weeks, months or quarters whose
sums it keeps compare more days, these are taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np

from deniable import Metric
from deniable.protocol import windows
from deniable_estimator.annotations import Annotation
from deniable_estimator.asking.query import Days
from deniable_estimator.document.units import half_width
from deniable_estimator.errors import EstimateError
from deniable_estimator.files import nearest
from deniable_estimator.inputs import Asked
from deniable_estimator.kinds.base import TOGETHER, Answer, ChangeTest, Comparison
from deniable_estimator.messages import counted, message, sentence


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


_NOTHING = sentence("{metric}: nothing to compare with since {moment}, because {changed}")
_HEADLINE = sentence("{series}: {value}, {change} since {moment}")
_FEW = sentence("{told} ({windows} before, {after:,} after)")


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
    oldest: date = date.min,
) -> Days:
    """The days that `from`, `to`, `since` and `without` ask for (`deniable_estimator.inputs`), or
    the usual ones; with `since`, as `asked_since` finds them.

    Raises:
        EstimateError: the windows to leave out are of another kind, `since` is not the only one
            that names days, or the range ends before it begins; or as `asked_since`.
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
    return replace(asked_since(asked["since"], noted, kind, now, metric, oldest), without=without)


def asked_since(
    asked: str,
    annotations: Sequence[Annotation],
    kind: windows.Kind,
    now: float,
    metric: Metric | None = None,
    oldest: date = date.min,
) -> Days:
    """The days after what is asked about, as `find_moment` finds it, and before it, up to the last
    complete window of that kind; `now` is POSIX time in seconds, and `oldest` the first day that
    has reports of the metric (`deniable_estimator.asking.fetch.first_day`).

    Raises:
        EstimateError: there is no such moment, or no window after or before it.
    """
    moment = find_moment(asked, annotations, metric.name if metric else None)
    last = windows.last_complete(kind, now)
    return days_since(*moment, kind, last, kept_since(metric, now), oldest)


def kept_since(metric: Metric | None, now: float) -> dict[str, date]:
    """Of each calendar that a metric's `keep` names, the day since which its periods are kept;
    `now` is POSIX time in seconds."""
    today = datetime.fromtimestamp(now, UTC).date()
    return {
        calendar: date.min if days is None else today - timedelta(days)
        for calendar, days in (metric.keep if metric else ())
    }


_DAY = timedelta(1)
_ODD = Fraction(1, 28)
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3}


def period_number(calendar: str, day: date) -> int:
    """The place of the day, week, month or quarter that holds a day among all of its calendar; also
    of the last day that there is, whose window has no label (`windows.number`)."""
    if calendar in _DAYS:
        # Day 1 of the calendar was a Monday.
        return (day.toordinal() - 1) // _DAYS[calendar]
    return (12 * day.year + day.month - 1) // _MONTHS[calendar]


def _first_day(calendar: str, number: int) -> date:
    """The first day of the period at that place."""
    if calendar in _DAYS:
        return date.fromordinal(number * _DAYS[calendar] + 1)
    year, month = divmod(number * _MONTHS[calendar], 12)
    return date(year, month + 1, 1)


def days_since(
    name: str,
    day: date,
    kind: windows.Kind,
    last: date,
    kept: Mapping[str, date],
    oldest: date = date.min,
) -> Days:
    """The complete windows after a day that has a name, of which the last one ended with the day
    `last`, and as many before it; or the periods of a calendar whose sums are `kept` from an
    earlier day on than windows, if they hold more days. There are none before the `oldest`
    day, unless too few are left from it on to hold the weekdays of as many after.

    Raises:
        EstimateError: no window after it is complete, or none before it is there.
    """
    if period_number(kind, last) <= period_number(kind, day):
        raise EstimateError(
            message(
                "no {kind} after {moment} is complete yet: look again later",
                kind=kind,
                moment=name,
            )
        )

    def longest(begin: date) -> Days | None:
        calendars = dict.fromkeys((kind, *kept))
        reach = {each: max(begin, kept.get(each, date.min)) for each in calendars}
        found = (_days_since(day, each, last, reach[each]) for each in calendars)
        return max(filter(None, found), key=lambda days: days.days, default=None)

    days = longest(oldest) or longest(date.min)
    if days is None:
        raise EstimateError(message("no {kind} before {moment} is kept", kind=kind, moment=name))
    first, end = days.earlier.first, days.earlier.last
    first = max(first, oldest) if oldest <= end else first
    return replace(days, since=name, before=(first, end))


def _days_since(day: date, calendar: str, last: date, kept: date) -> Days | None:
    """The same of the periods of one calendar; None where there are none on either side."""
    own = period_number(calendar, day)
    oldest = period_number(calendar, kept)
    if _first_day(calendar, oldest) < kept:
        oldest += 1
    most = period_number(calendar, last + _DAY) - own - 1
    for count in range(min(most, own - oldest), 0, -1):
        # As many days as it takes that both begin on the same weekday; whole weeks need not.
        between = -(count + 1) % 7 if calendar == "day" and count % 7 else 0
        if own - between - count >= oldest:
            end, begin = (_first_day(calendar, own - each) for each in (between, between + count))
            first, after = (_first_day(calendar, own + each) for each in (1, count + 1))
            return Days(first, after - _DAY, before=(begin, end - _DAY))
    return None


def left_out_alike(earlier: Days, days: Days) -> Days:
    """The earlier days without what is left out of the others. Where both hold the same weekdays,
    single days that are left out of one leave out days of the same weekdays of the other."""
    back, gone = (days.first - earlier.first).days, list[str]()
    if earlier.days == days.days and not (back % 7 and days.days % 7):
        for label in days.without:
            if windows.kind_of(label) == "day" and days.touches(label):
                place = (date.fromisoformat(label) - days.first).days + back % 7
                gone.append((earlier.first + timedelta(place % days.days)).isoformat())
    return earlier.leaving_out(*days.without, *gone)


def lacks_weekdays(found: Comparison, earlier: Days, days: Days) -> bool:
    """Whether weekdays weigh more in the reports of one of these periods than in the other's, by
    more than a day that is missing in four weeks: that alone can change a number. Months are
    compared whatever weekdays they hold."""
    months = all(each.first.day == (each.last + _DAY).day == 1 for each in (earlier, days))
    return found.uneven > _ODD and not months


def periods_told(found: Comparison, earlier: Days, days: Days) -> dict[str, dict[str, Any]]:
    """What JSON has of both periods, with the days that were asked for."""
    asked = {"before": earlier.told, "after": days.told}
    return {name: {**asked[name], **told} for name, told in found.periods.items()}


def since_headline(metric: str, found: Comparison, moment: str) -> str:
    """What has changed since a moment, in a sentence: of the series that stands out furthest from
    its noise, or of the leading one; if both periods tell nothing alike, that."""
    if not found.values:
        return message(_NOTHING, metric=metric, moment=moment, changed=found.after.other)
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
        before = counted("{count:,} window with reports", "{count:,} windows with reports", held[0])
        told = message(_FEW, told=told, windows=before, after=held[1])
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
