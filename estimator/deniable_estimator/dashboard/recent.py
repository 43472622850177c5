"""What has changed on a metric's page: the newest complete week against the one before, or the
days that are shown against as many before them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from deniable import Metric
from deniable_estimator.asking.comparison import compare, lacks_weekdays, since_headline
from deniable_estimator.asking.query import Days
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes
from deniable_estimator.dashboard import words
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.ranges import before, newest_period
from deniable_estimator.dashboard.view import View
from deniable_estimator.errors import OnlyLongerError
from deniable_estimator.kinds import formats
from deniable_estimator.kinds.base import Answer, Comparison
from deniable_estimator.kinds.formats import order_of
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.messages import isolated, joined, message, spaced

_NAMED = 3
"""The most changes that a headline names."""


@dataclass(frozen=True, slots=True)
class Recent:
    """What has changed."""

    days: Days
    earlier: Days
    changes: str
    """What has changed, or why nothing can be said of it."""
    told: str | None = None
    """The leading number of the newest days; None for days that the headline is about."""
    leader: str | None = None
    """That another value leads by now, if it does so beyond noise."""
    comparison: Comparison | None = None
    headline: str | None = None
    """What has changed since something happened, if the days were asked by that."""
    waiting: bool = False
    """Whether it is still being calculated."""

    @property
    def tested(self) -> str | None:
        """How many changed, and what that means; None of few values, and where none changed."""
        found = self.comparison
        if found is None or len(found.values) < 3 or found.values == ("true", "false"):
            return None
        count, family = int(found.changed.sum()), len(found.values)
        if not count:
            return None
        told = message(
            "{changed:,} of {family:,} changed by more than noise.", changed=count, family=family
        )
        if found.after.kind != "shares":
            return told
        rate = message("On average, at most 5% of those that are said to have changed have not.")
        return spaced((told, rate))


def recent(reading: PageReading, view: View, answer: Answer) -> Recent | None:
    """The changes that the view asks for; None where there is nothing to compare, and of strings
    unless the address asks for it: each of the two periods takes about a second."""
    source, metric = reading.source, reading.metric
    if metric.needs_candidates and not (view.asked["change"] or view.days.since):
        return None
    whole = view.compared == "range"
    days = view.days if whole else newest_period(view.days, source.seen_until, metric.window)
    if days is None:
        return None
    earlier = before(days, metric.window)
    try:
        newest = answer if whole else reading.over(days).estimate().answer
        old = reading.over(earlier).estimate().answer
        if not newest.n:
            return None
        told = None if whole else _new_leader_words(metric, days, newest)
        leader = None if whole else _new_leader(reading, days, answer, newest)
    except (StillDecoding, TooManyDecodes):
        waiting = message("The changes are being calculated, and appear here.")
        return Recent(days, earlier, waiting, waiting=True)
    except OnlyLongerError:
        kept = message("Not compared: only sums of longer periods are kept of these days.")
        return Recent(days, earlier, kept)
    if refused := _refused(reading, days, earlier, newest, old):
        return Recent(days, earlier, refused, told)
    found = compare(old, newest)
    if whole and days.since:
        headline = since_headline(metric.name, found, isolated(days.since))
        compared = _since_days(days, earlier)
        return Recent(days, earlier, compared, comparison=found, headline=headline)
    changes = message(
        "{changes} Compared with {period}.",
        period=words.days_of(earlier),
        changes=change_headline(found),
    )
    return Recent(days, earlier, changes, told, leader, found)


def change_headline(comparison: Comparison) -> str:
    """What has changed, in a sentence."""
    if not comparison.values:
        return message("Not compared: {changed}.", changed=comparison.after.other)
    changed = [place for place in order_of(comparison) if comparison.changed[place]]
    if not changed:
        return message("No change that can be told from noise.")
    if comparison.values == ("true", "false"):
        return message("Yes is {change}.", change=comparison.describe(0))
    told = joined(
        message(
            "{value} is {change}",
            value=formats.series_name(comparison.after, comparison.values[at]),
            change=comparison.describe(at),
        )
        for at in changed[:_NAMED]
    )
    rest = len(changed) - _NAMED
    if rest > 0:
        return message("{told}; and {rest:,} more have changed.", told=told, rest=rest)
    return message("{told}.", told=told)


def headline_of(reading: PageReading, view: View, answer: Answer) -> str:
    """The answer in a sentence; of the days since something happened, what has changed since, or
    that nothing is said of it because of the weekdays: there is no room for a note beside it."""
    own = kind_of(answer).headline(answer)
    changes = recent(reading, view, answer) if view.days.since else None
    if changes is None or changes.comparison is None:
        return own
    uneven = uneven_words(changes.comparison, changes.earlier, changes.days)
    return spaced((own, uneven)) if uneven else changes.headline or own


def uneven_words(found: Comparison, earlier: Days, days: Days) -> str | None:
    """Why nothing is said of a change since something happened, if one of the two periods lacks
    weekdays of the other."""
    if not lacks_weekdays(found, earlier, days):
        return None
    return message(
        "Not compared with the days before {moment}: the two do not hold the same weekdays.",
        moment=isolated(days.since),
    )


def chart_told(reading: PageReading, view: View) -> dict[str, Any]:
    """What is told of these days beside a chart: their `estimate`, and with reports its `kind`, the
    `alarm` that they raise, and a `headline`."""
    estimate = reading.answer
    if estimate is None or not estimate.n:
        return {"estimate": estimate}
    alarm = reading.alarm(estimate)
    headline = alarm.text if alarm else headline_of(reading, view, estimate)
    return {"estimate": estimate, "kind": kind_of(estimate), "alarm": alarm, "headline": headline}


def _since_days(days: Days, earlier: Days) -> str:
    """Which days are compared, and which are in neither period."""
    gap = Days(earlier.last + timedelta(1), days.first - timedelta(1))
    return message(
        "{days} vs {earlier}. {gap} is in neither.",
        days=words.days_of(days),
        earlier=words.days_of(earlier),
        gap=words.days_of(gap),
    )


def _new_leader_words(metric: Metric, days: Days, newest: Answer) -> str:
    """The leading number of the newest days with its interval."""
    told = formats.estimate_of(newest.unit, *newest.series.at(newest.leading))
    return message(
        "Newest complete {kind}, {period}: {told}.",
        kind=formats.kind("month" if metric.window == "month" else "week"),
        period=words.days_of(days),
        told=message(
            "{value} {share} ({between})",
            value=formats.series_name(newest, newest.leading),
            share=told.text,
            between=told.between,
        ),
    )


def _new_leader(reading: PageReading, days: Days, answer: Answer, newest: Answer) -> str | None:
    """That another value leads than led before the newest days."""
    shown, last = reading.days, days.first - timedelta(days=1)
    asked = reading.metric.needs_candidates
    if newest.leading == answer.leading or asked or last < shown.first:
        return None
    rest = reading.over(shown.over(shown.first, last)).estimate().answer
    return kind_of(newest).new_leader(rest, newest) if rest.n else None


def _refused(
    reading: PageReading, days: Days, earlier: Days, newest: Answer, old: Answer
) -> str | None:
    """Why the two cannot be compared, if they cannot."""
    if not old.n:
        return message("No reports from {period} to compare with.", period=words.days_of(earlier))
    if newest.unfinished:
        return message("Not compared: a window of these days has not ended.")
    for each in (days, earlier):
        # Where the days that the page shows raise an alarm, it says nothing of changes.
        shown = reading.days.first <= each.first and each.last <= reading.days.last
        if not shown and (alarm := reading.over(each).alarm()):
            if each is days:
                return message("Not compared: {which} is anomalous.", which=alarm.which)
            return message(
                "Not compared with {days}: {which} is anomalous.",
                days=words.days_of(earlier),
                which=alarm.which,
            )
    if any(kind_of(each).unsound(each) for each in (newest, old)):
        return message("Not compared: the shares of one of the two are impossible.")
    return None
