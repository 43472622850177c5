"""Judges the newest window of a metric: what changed beyond noise. Whether it and those before it
are honest is judged by `deniable_estimator.asking.history`.

A day is compared with the same weekdays of up to four weeks before, so that a weekend is no change;
a week or a month with up to four before it. Two or seven days are taken together in the same way
(`SPANS`). Only whole weeks count: where a weekday has no reports, that week is left out.

A change must also hold, at 95%, beside the earlier spans without any one of them. Otherwise one
odd day would be told again, as a change back, in each week in which others are compared with it.

Each test is so sure that the stated number of false alarms holds over all metrics.

`false_alarms` is a number B of false alarms that may be expected in a period, over all M metrics
that are watched. Each metric takes an equal part, B / M. Each complete window of a metric is judged
once, however often `deniable watch` runs, so a period of T days has at most T / d judgements of a
metric whose windows last d days, and a single "run" has one. A judgement then has the level ::

    a = B d / (M T),   or   a = B / M  if B is that of a run

and false alarms of all judgements add up to B. Of a, one tenth goes to the honesty figures
of the windows, and nine tenths to changes. These are shared equally among the
spans that are compared (`SPANS`), and a span's part among the series of the metric (Bonferroni). A
series has changed if its p-value is at most the level that is left.

The sum of the levels bounds the *expected number* of false alarms whatever the metrics have in
common. It also bounds the chance of any false alarm in a run, and so the expected share of false
ones among what a run tells (the rate of false discoveries). What is not random (a metric expires,
is silent or has too few reports) takes no part of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from deniable.protocol import windows
from deniable_estimator.analyses.anomalies import LEAST_REPORTS
from deniable_estimator.asking.comparison import compare
from deniable_estimator.asking.fetch import Question
from deniable_estimator.kinds.base import Answer, ChangeTest, Comparison

Per: TypeAlias = Literal["run", "week", "month", "year"]

PERIODS: dict[Per, float] = {"run": 0.0, "week": 7.0, "month": 30.0, "year": 365.0}
"""How many days each period has; a run has no length."""

WAIT_DAYS = 1
"""A window is judged so many days after its end if nothing else is said: devices report late."""


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """How many false alarms are expected at most, over all metrics together."""

    number: float
    per: Per


@dataclass(frozen=True, slots=True)
class MetricRules:
    """What is told of one metric."""

    points: float = 1.0
    """The least change of a share that is told, in percentage points."""
    percent: float = 5.0
    """The least change of a number that is told, in percent of what it was."""
    expires_days: int = 30
    stale_days: int = 3
    share: float = 0.05
    """The share that must be visible in each window."""


SPANS: dict[windows.Kind, tuple[int, ...]] = {"day": (1, 2, 7), "week": (1, 2), "month": (1,)}
"""How many of the newest windows are taken together, of each kind. Two windows find what one is too
noisy for, and a week finds small changes that stay."""

DAYS: dict[windows.Kind, float] = {"day": 1.0, "week": 7.0, "month": 28.0}
"""The least length of a window of each kind, in days."""

_ANOMALIES = 0.1
"""The part of the level that the honesty figures take."""

_MOST = 0.05
"""No test is weaker than this, however many false alarms are allowed."""


@dataclass(frozen=True, slots=True)
class JudgementLevel:
    """The levels of one judgement of a metric."""

    span: float
    """That of the changes in each span, for all series together."""
    anomaly: float
    """That of the honesty figures together."""


def judgement_level(allowed: FalseAlarms, metrics: int, kind: windows.Kind) -> JudgementLevel:
    """The level of each judgement where so many metrics are watched."""
    looks = max(1.0, PERIODS[allowed.per] / DAYS[kind])
    level = allowed.number / max(1, metrics) / looks
    return JudgementLevel(
        span=min(_MOST, (1 - _ANOMALIES) * level / len(SPANS[kind])),
        anomaly=min(_MOST, _ANOMALIES * level),
    )


Ask: TypeAlias = Callable[[tuple[str, ...]], Question]
"""The data of these windows together."""

WEEKS_BEFORE = 4
"""With how many earlier spans one is compared."""

TOLD_LEVEL = 0.95
"""The level of the interval that a message names."""

_HALF = 0.5
"""The part of the usual reports that a window must have: the devices that report first need not be
like the others."""


@dataclass(frozen=True, eq=False, slots=True)
class WatchedChange:
    """The change of one series that is to be told."""

    comparison: Comparison
    """At `TOLD_LEVEL`."""
    place: int
    """The series."""
    since: str
    """The first window of the span."""

    @property
    def series(self) -> str:
        return self.comparison.values[self.place]

    @property
    def detail(self) -> str:
        """What distinguishes it from other changes: the series, and whether it is up or down."""
        return _details(self.comparison)[self.place]


@dataclass(frozen=True, eq=False, slots=True)
class Judgement:
    """What one window says."""

    window: str
    n: int
    """Reports."""
    changes: tuple[WatchedChange, ...] = ()
    leaning: frozenset[str] = frozenset()
    """How each series compares with before in the longest span, noise or not: as the `detail` of a
    change."""


def newest_settled(labels: Collection[str], now: float, wait_days: int = WAIT_DAYS) -> str | None:
    """The newest of these windows that ended at least so many days ago."""
    ended = [each for each in labels if windows.end(each) <= now - wait_days * 86_400]
    return max(ended, key=windows.start, default=None)


def judge(
    ask: Ask,
    labels: Collection[str],
    window: str,
    rules: MetricRules,
    level: float,
) -> Judgement | None:
    """What `window` says beside those before it; None if it has too few of the usual reports yet.

    Args:
        labels: all windows that have reports.
        level: that of the changes in each span, for all series together.
    """
    ask = cache(ask)
    newest = ask((window,))
    before = _spans_before(window, 1, labels)
    usual = ask(_together(before)).n / len(before) if before else 0.0
    if newest.n < _HALF * usual:
        return None
    if any(part.unnamed for part in newest.parts):
        return Judgement(window, newest.n)
    told: dict[str, WatchedChange] = {}
    leaning: frozenset[str] = frozenset()
    for size in SPANS[windows.kind_of(window)]:
        found, changes = _changes(ask, labels, window, size, rules, level)
        for each in changes:
            told.setdefault(each.series, each)
        if found is not None:
            sizes = zip(_details(found), found.difference.tolist(), strict=True)
            leaning = frozenset(detail for detail, size in sizes if abs(size) > 0)
    return Judgement(window, newest.n, tuple(told.values()), leaning)


def _changes(
    ask: Ask,
    labels: Collection[str],
    window: str,
    size: int,
    rules: MetricRules,
    level: float,
) -> tuple[Comparison | None, list[WatchedChange]]:
    """The newest `size` windows beside those before, None without enough of them; and the series
    that changed beyond noise and beyond the stated size."""
    span = _span(window, size)
    before = _spans_before(window, size, labels)
    if not before or not all(each in labels for each in span):
        return None, []
    old, new = ask(_together(before)), ask(span)
    if min(old.n, new.n) < LEAST_REPORTS:
        return None, []
    after = _answer(new)
    told = compare(_answer(old), after, ChangeTest(adjust="bonferroni", alpha=level))
    large = [place for place in told.places if _large(told, place, rules)]
    others = [
        compare(_answer(ask(_together(before, without=each))), after, ChangeTest(together=False))
        for each in (before if large and len(before) > 1 else ())
    ]
    agreed = [place for place in large if all(_agrees(told, place, each) for each in others)]
    return told, [WatchedChange(told, place, span[0]) for place in agreed]


def _details(found: Comparison) -> list[str]:
    """Each series, and whether it is up or down."""
    rises = zip(found.values, found.difference.tolist(), strict=True)
    return [f"{series}/{'up' if difference > 0 else 'down'}" for series, difference in rises]


def _answer(question: Question) -> Answer:
    return question.estimate(level=TOLD_LEVEL, adjust="bonferroni")


def _large(found: Comparison, place: int, rules: MetricRules) -> bool:
    """Whether a change is as large as the rules state."""
    size = abs(float(found.difference[place]))
    if not math.isfinite(size):
        return False
    if found.after.unit.of_all:
        return size * 100 >= rules.points
    return size >= rules.percent / 100 * abs(float(found.old[place]))


def _agrees(found: Comparison, place: int, other: Comparison) -> bool:
    """Whether a series changes in the same direction in another comparison, beyond its interval."""
    if found.values[place] not in other.values:
        return False
    at = other.values.index(found.values[place])
    rises = float(found.difference[place]) > 0
    return float(other.low[at]) > 0 if rises else float(other.high[at]) < 0


def _together(spans: Sequence[Sequence[str]], without: Sequence[str] = ()) -> tuple[str, ...]:
    """All windows of these spans, but those of one."""
    return tuple(label for span in spans if span is not without for label in span)


def _span(window: str, size: int) -> tuple[str, ...]:
    """The `size` windows that end with this one, the oldest first."""
    return tuple(windows.shifted(window, -before) for before in range(size - 1, -1, -1))


def _spans_before(window: str, size: int, labels: Collection[str]) -> list[list[str]]:
    """The earlier spans that are compared, of which every window has reports."""
    span = _span(window, size)
    found: list[list[str]] = []
    days = windows.kind_of(window) == "day"
    for number in range(1, WEEKS_BEFORE + 1):
        if days:
            shifted = [windows.shifted(each, -7 * number) for each in span]
        else:
            shifted = [windows.shifted(span[0], -number)]
        if all(each in labels for each in shifted):
            found.append(shifted)
    return found
