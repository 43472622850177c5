"""How sure each test must be, so that the stated number of false alarms holds over all metrics.

`false_alarms` is a number B of false alarms that may be expected in a period, over all M metrics
that are watched. Each metric takes an equal part, B / M. Each complete window of a metric is judged
once, however often `deniable watch` runs, so a period of T days has at most T / d judgements of a
metric whose windows last d days, and a single "run" has one. A judgement then has the level ::

    a = B d / (M T),   or   a = B / M  if B is that of a run

and false alarms of all judgements add up to B. Of a, one tenth goes to the honesty figures of the
window (`Verdict`, adjusted by Holm), and nine tenths to changes. These are shared equally among the
spans that are compared (`SPANS`), and a span's part among the series of the metric (Bonferroni). A
series has changed if its p-value is at most the level that is left.

The sum of the levels bounds the *expected number* of false alarms whatever the metrics have in
common. It also bounds the chance of any false alarm in a run, and so the expected share of false
ones among what a run tells (the rate of false discoveries). What is not random (a metric expires,
is silent or has too few reports) takes no part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from deniable.protocol import windows

Per: TypeAlias = Literal["run", "week", "month", "year"]

PERIODS: dict[Per, float] = {"run": 0.0, "week": 7.0, "month": 30.0, "year": 365.0}
"""How many days each period has; a run has no length."""


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
