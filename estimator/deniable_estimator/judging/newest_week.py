"""Judges whether a metric's newest complete week differs from the week before, or the days since
something happened from as many before: for the overview and the digest.

Weeks begin on Monday; a metric whose windows are months is compared by months. Over all values and
metrics of an overview or a digest together, the expected number of false changes is at most 1 in
20: a metric's part of .05 is shared by its values (Bonferroni). Nothing is said of days that do not
look honest, or do not hold the same weekdays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from deniable_estimator.asking.comparison import compare, lacks_weekdays
from deniable_estimator.asking.history import History
from deniable_estimator.asking.query import Days
from deniable_estimator.errors import OnlyLongerError
from deniable_estimator.kinds.base import Answer, ChangeTest, Comparison
from deniable_estimator.kinds.formats import kind
from deniable_estimator.messages import message, sentence

LEVEL = 0.05
"""The expected number of false changes of all metrics together."""

NoChange: TypeAlias = Literal[
    "no_reports", "nothing_before", "anomalous", "uneven", "incomplete", "redefined", "dropped"
]
"""Why a week is not compared: it has no reports; the week before has
none; one of the two looks dishonest; one has reports of weekdays that the other lacks;
no window after what happened is complete; the two tell nothing alike; or of one of the two only
sums of longer periods are kept."""

_NOT_COMPARED: dict[NoChange, str] = {
    "no_reports": sentence("nothing to compare: no reports in the newest complete {kind}"),
    "nothing_before": sentence("nothing to compare: no reports in the {kind} before"),
    "anomalous": sentence("not compared, because one of the two looks dishonest"),
    "incomplete": sentence("no {kind} after it is complete yet"),
    "dropped": sentence("not compared, because only sums of longer periods are kept"),
    "uneven": sentence("not compared, because the two do not hold the same weekdays"),
    "redefined": sentence("not compared, because the metric's definition has changed between them"),
}


def judge_week(
    ask: Callable[[Days], Answer | None],
    week: Days,
    before: Days,
    seen: History | None,
    family: int,
) -> Comparison | NoChange:
    """The change from the days `before` to a week, or why nothing is said of it.

    Args:
        ask: the answer of some days, if there is one.
        seen: what is strange in the windows of both.
        family: how many tests share `LEVEL`.
    """
    if seen and any(week.touches(each) or before.touches(each) for each in seen.labels):
        return "anomalous"
    try:
        new = ask(week)
        if new is None or not new.n:
            return "no_reports"
        old = ask(before)
    except OnlyLongerError:
        return "dropped"
    if old is None or not old.n:
        return "nothing_before"
    found = compare(old, new, ChangeTest(adjust="bonferroni", alpha=LEVEL / family))
    if not found.values:
        return "redefined"
    return "uneven" if lacks_weekdays(found, before, week) else found


def why_not(reason: NoChange, window: str) -> str:
    """In words, for a metric with such windows."""
    return message(_NOT_COMPARED[reason], kind=kind("month" if window == "month" else "week"))
