"""What a crowd will tell of who comes back, computed before the first report.

The variances are those of `deniable_estimator.analyses.retention`, with n reports of a window that
answer the question, p and q of its channel, and a retention R of cohorts of N devices ::

    a share f:  [f p (1-p) + (1-f) q (1-q)] / (n (p-q)**2), and f (1-f) / n for other devices
    R:          [n u (1 + R**2) + N v R (1 + R) + N R (1-R)] / (c N**2), an average over c cohorts
"""

from __future__ import annotations

import math
from typing import NamedTuple

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection
from deniable.protocol.metric import Metric
from deniable.protocol.windows import IN_A
from deniable_estimator.forecasting.lifetime_split import report_variance
from deniable_estimator.forecasting.number_forecast import Z

NEW = 0.1
"""The part of the active devices that is taken for new where nothing is said."""

BACK = 0.4
"""The retention that is planned for: the larger it is, the less is known of it."""

USEFUL = 0.1
"""An average retention that is not even known to ten points gets a warning."""


class RetentionForecast(NamedTuple):
    """Half widths of 95% intervals, as parts of 1; None where a question is not asked."""

    reports: float
    """Reports of a window that answer each question."""
    exact: float | None
    """Of a share of the lifecycle among the devices that answered: how far it may be from an exact
    count. The largest over all shares."""
    lifecycle: float | None
    """Of the same among all devices like them, which more of them would have told."""
    cohort: float | None
    """Of the retention of one cohort; 1/2 where nothing is known."""
    average: float | None
    """Of the average of `ages` cohorts."""

    @classmethod
    def of(cls, mechanism: MemoizedRetention, active: float, new: float) -> RetentionForecast:
        """That of so many reports in a window, of which the part `new` is from new devices."""
        channels = dict(zip(mechanism.asks, mechanism.channels, strict=True))
        answers = active / len(channels)
        exact = lifecycle = cohort = average = None
        if channel := channels.get("lifecycle"):
            found = [report_variance(channel, place / 100) for place in range(101)]
            exact = max(Z * math.sqrt(each.noise / answers) for each in found)
            lifecycle = max(Z * math.sqrt(each.total / answers) for each in found)
        if channel := channels.get("cohorts"):
            cohort = _quotient(channel, answers, new, 1)
            average = _quotient(channel, answers, new, mechanism.ages)
        return cls(answers, exact, lifecycle, cohort, average)


def retention_forecast(
    metric: Metric, mechanism: MemoizedRetention, reports: float
) -> CodedMessage | None:
    """What so many reports cannot tell; None if the average retention is known to ten points, or
    the lifecycle where it alone is asked for."""
    found = RetentionForecast.of(mechanism, reports, NEW)
    width = found.lifecycle if found.average is None else found.average
    if width is None or width <= USEFUL:
        return None
    if found.average is None:
        return CodedMessage(
            "weak_lifecycle",
            "with {devices:,} devices who is new, stayed or returned is known to +-{points:.0f} "
            "points {when}: it takes a larger epsilon or more devices",
            blind=True,
            devices=metric.devices,
            points=100 * width,
            when=IN_A[metric.window],
        )
    return CodedMessage(
        "weak_retention",
        "with {devices:,} devices the average retention is known to +-{points:.0f} points at best, "
        "if {new:.0%} of them are new {when}: it takes a larger epsilon or more devices",
        blind=True,
        devices=metric.devices,
        points=100 * width,
        new=NEW,
        when=IN_A[metric.window],
    )


def retention_words(mechanism: MemoizedRetention, reports: float, when: str) -> str:
    """What so many reports tell in a window and over its ages, as the end of a sentence."""
    found = RetentionForecast.of(mechanism, reports, NEW)
    told = []
    if found.exact is not None:
        told.append(
            f"who is new, stayed or returned is known to +-{100 * found.exact:.2g} points {when}"
        )
    if found.average is not None:
        told.append(
            f"how many come back to +-{100 * found.average:.2g} points, on average over "
            f"{mechanism.ages} cohorts, if {NEW:.0%} of the devices are new"
        )
    return "; ".join(told)


def _quotient(channel: MemoizedSubsetSelection, answers: float, new: float, cohorts: int) -> float:
    """The half width of the retention of so many cohorts together; 1/2 if they cannot be told from
    none."""
    p, q = float(channel.p), float(channel.q)
    each = answers * q * (1 - q) / (p - q) ** 2
    own, devices = (1 - p - q) / (p - q), answers * new
    begun = cohorts * devices
    below = cohorts * (each + own * devices)
    if begun**2 <= Z**2 * below:
        return 0.5
    variance = each * (1 + BACK**2) + devices * (own * BACK * (1 + BACK) + BACK * (1 - BACK))
    return min(0.5, Z * math.sqrt(cohorts * variance) / begun)
