"""How a metric's newest complete week differs from the week before it, for its card, or the days
since something happened from as many before it; and what `deniable watch` would tell of its newest
window.

The interval that is shown has 95%.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from deniable.protocol import windows
from deniable_estimator.asking.comparison import chosen_series
from deniable_estimator.asking.history import History
from deniable_estimator.asking.query import LENGTHS, Days
from deniable_estimator.asking.results import key_of
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.ranges import before as days_before
from deniable_estimator.dashboard.ranges import newest_period
from deniable_estimator.judging.findings import MetricFinding, findings_of
from deniable_estimator.judging.newest_week import NoChange, judge_week
from deniable_estimator.judging.newest_window import (
    WAIT_DAYS,
    FalseAlarms,
    MetricRules,
    judge,
    judgement_level,
    newest_settled,
)
from deniable_estimator.kinds.base import Answer, Comparison


@dataclass(frozen=True, slots=True)
class WeekChange:
    """The change of one series."""

    days: Days
    before: Days
    series: str
    label: str
    """What people call it."""
    old: float
    new: float
    difference: float
    low: float
    high: float
    """Of 95%."""
    changed: bool
    """Beyond noise, corrected for all values and metrics."""
    text: str
    """In words: "up 2.1 points (95% CI +0.4 to +3.8)"."""
    short: str
    """The difference with its sign and unit."""
    ends: tuple[str, str]
    """The ends of the interval, likewise."""
    others: int
    """How many more series have changed."""
    score: float
    """The difference in standard errors, whatever its direction: what changes are sorted by."""


def week_change(
    reading: PageReading, answer: Answer, family: int, alarm: History | None
) -> WeekChange | NoChange:
    """The change of the series that changed most for its noise; of the leading one, if none
    changed.

    Args:
        answer: that of all the days.
        family: how many metrics share `LEVEL`.
        alarm: that of all the days.

    Raises:
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    source, metric, days = reading.source, reading.metric, reading.days
    if days.since and windows.window_of(metric.window, days.first - timedelta(1)) in (
        windows.span(metric.window, days.first, days.last)
    ):
        return "incomplete"
    week = days if days.since else newest_period(days, source.seen_until, metric.window)
    if week is None:
        return "nothing_before"
    before = days_before(week, metric.window)
    if before.first < days.first:
        alarm = reading.over(replace(days, first=before.first)).alarm(family=family)

    def ask(some: Days) -> Answer:
        return reading.over(some).estimate().answer

    found = judge_week(ask, week, before, alarm, family)
    return found if isinstance(found, str) else _change_words(week, before, found, answer.leading)


def _change_words(week: Days, before: Days, found: Comparison, leading: str) -> WeekChange:
    place, others = chosen_series(found, leading)
    unit = found.after.unit
    numbers = (found.old, found.new, found.difference, found.low, found.high)
    old, new, difference, low, high = (float(each[place]) for each in numbers)
    spread = (high - low) / 2
    return WeekChange(
        week,
        before,
        found.values[place],
        unit.label(found.values[place]),
        *(old, new, difference, low, high),
        changed=bool(found.changed[place]),
        text=found.describe(place),
        short=unit.signed(difference, spread),
        ends=found.ends(place),
        others=others,
        score=abs(difference) / error if (error := float(found.std_error[place])) > 0 else 0.0,
    )


FALSE_ALARMS = FalseAlarms(0.05, "run")
"""How many changes may be expected to need attention on one overview although nothing changed."""

OLD_DAYS = 7
"""What changed so long ago is no news, as in a metric that is silent or has expired."""

RULES = MetricRules()
"""What `deniable watch` tells unless its rules say otherwise."""

_REACH = 35 + WAIT_DAYS + OLD_DAYS + 1
"""How many windows before today a judgement looks back: four weeks before a week of days, which may
have ended as long ago as is still news."""


def newest_findings(reading: PageReading, family: int) -> tuple[MetricFinding, ...]:
    """What changed in the newest settled window, and that it has too few reports.

    `family` is the number of metrics, which share `FALSE_ALARMS`. Whether the window looks honest
    is left to the alarm of the card, which looks at the same figures in more windows.
    """
    source, metric = reading.source, reading.metric
    now, today = source.clock(), source.today
    reach = Days(today, today).reaching_back(_REACH, metric.window)
    selection = reading.over(reach).select().apart()
    window = newest_settled(selection.labels, now)
    if window is None:
        return ()
    end = windows.end(window)
    if timedelta(seconds=now - end) > LENGTHS[metric.window] + timedelta(OLD_DAYS):
        return ()
    labels = frozenset(each for each in selection.labels if windows.end(each) <= end)
    selection = selection.within(labels)
    level = judgement_level(FALSE_ALARMS, family, metric.window).span
    known = "judged", *selection.version(), window, level, reading.strings

    def work() -> list[MetricFinding]:
        found = judge(*(lambda each: selection.within(each).read(), labels, window, RULES, level))
        own = not selection.of_pair
        return list(findings_of(metric, found, RULES, own=own)) if found else []

    found = source.results.get(key_of(*known), work)
    # Of a boolean one half says it all.
    halves = metric.values == ("true", "false")
    return tuple(each for each in found if not (halves and each.facts.get("series") == "false"))
