"""What published sums reveal of one device to a reader who sees nothing but sums.

A device's epsilon holds against everybody. A reader of sums learns far less, because the noise of
all other reports hides that of one. The figures here are (epsilon, delta) bounds for a reader who
knows the values of all other devices, but not their reports. They hold for sums of closed windows
that have at least so many reports each; `Outsider.assumed` says what else is assumed.

Two devices' histories are compared: all values of one device, over all windows, are replaced. Every
report of the device counts, whether or not the reader knows when it reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from deniable import Metric, Registry
from deniable_estimator.document.document import plain
from deniable_estimator.messages import message
from deniable_estimator.privacy.computing import guarantee, guarantee_in
from deniable_estimator.privacy.guarantees import Bound
from deniable_estimator.privacy.spans import (
    SPANS,
    ReleasedSums,
    most_reports,
    released_together,
    spent_by,
)
from deniable_estimator.privacy.words import rounded_up

OPERATOR = message(
    "The collector's operator sees single reports as they come in. Against the operator stands "
    "the device's epsilon alone, unless a relay that others run stands between."
)
MAY_FAIL = message(
    "Delta is the probability with which a bound may fail. Even then the device's epsilon holds."
)
"""What is assumed of a release, too."""


def figure(bound: Bound) -> str:
    """An epsilon as tables show it, rounded up."""
    epsilon = bound.epsilon
    return rounded_up(epsilon, 4 if epsilon < 0.1 else 3 if epsilon < 100 else 0)


def plain_delta(delta: float) -> str:
    """A delta as people write it: 1e-8."""
    return f"{delta:g}".replace("e-0", "e-")


_READER = message(
    "The reader sees nothing but sums, and may know the values of all other devices. Whoever "
    "also knows the other reports, or sent them, subtracts them and learns what the device's "
    "own report reveals. If c of the devices work together, count c reports fewer."
)
_PUBLISHED = message(
    "Sums are published when their window takes no more reports, seven days after its end. Two "
    "readings of a window that grows publish their difference too: then n is the number of "
    "reports between the two."
)
_SEGMENTS = message("n is the number of reports of a segment, not of the whole metric.")
_SAMPLED = message(
    "A device draws by lot in which windows it reports. The figures hold "
    "even if the reader knows in which it did."
)
_REMEMBERS = message(
    "With memos, reports of a device depend on each other. The figures for several windows "
    "allow values to change at any time; where no such bound is known, they are the "
    "device's own epsilon."
)


DELTA = 1e-8
"""The delta that is taken if none is given."""

SMALLEST_DELTA = 1e-30
MOST_DELTA = 1e-3

LEAST_REPORTS = 1000
"""The figures are for so many reports in each published sum if nothing else is said."""


@dataclass(frozen=True, slots=True)
class Outsider:
    """What published sums reveal, of one metric or (`metric` is None) of all together.

    Attributes:
        reports: how many reports each published sum has at least.
        delta: the probability with which a bound may fail; the device's epsilon holds even then.
        spans: by the name of a span; a lifetime is missing where nothing ends the reports.
        segments: whether the sums of a metric are published by segments.
    """

    metric: str | None
    mechanism: str | None
    reports: int
    delta: float
    spans: dict[str, ReleasedSums]
    segments: bool
    remembers: bool
    sampled: bool
    """Whether devices draw by lot in which windows they report."""

    @property
    def assumed(self) -> tuple[str, ...]:
        """What must hold for the figures, in sentences."""
        told = (
            *((True, _READER), (True, OPERATOR), (True, _PUBLISHED), (self.segments, _SEGMENTS)),
            *((self.sampled, _SAMPLED), (True, MAY_FAIL), (self.remembers, _REMEMBERS)),
        )
        return tuple(each for holds, each in told if holds)

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON, with what is assumed."""
        told = ("metric", "mechanism", "reports", "delta", "spans", "assumed")
        return {name: plain(getattr(self, name)) for name in told}


def outsider_of(
    registry: Registry, metric: Metric, reports: int = LEAST_REPORTS, delta: float = DELTA
) -> Outsider:
    """What the published sums of a metric reveal. Where devices report a pair in its place, the
    figures are those of the pair.

    Raises:
        ValueError: `reports` is not positive, or `delta` cannot be.
    """
    _check(reports, delta)
    source = registry.unasked.get(metric.name, metric)
    found = _outsider((source,), registry.lifetime_epsilon, None, reports, delta)
    return replace(found, metric=metric.name, mechanism=source.scheme.mechanism.name)


@lru_cache(maxsize=1024)
def _outsider(
    metrics: tuple[Metric, ...], cap: float | None, most: float | None, reports: int, delta: float
) -> Outsider:
    """That of metrics that devices report, under the cap of their registry; together they reveal
    `most` at most, if it is given."""
    given = [guarantee(metric, cap) for metric in metrics]
    # Each metric spends its part of delta; what composes takes the rest.
    share = delta / len(metrics)
    spans = {}
    for span in SPANS:
        counts = [count for each in given if (count := most_reports(each, span)) is not None]
        if len(counts) == len(metrics):
            parts = [
                spent_by(metric, each, count, reports, share)
                for metric, each, count in zip(metrics, given, counts, strict=True)
            ]
            spans[span] = released_together(parts, delta, most)
    return Outsider(
        None,
        None,
        reports,
        delta,
        spans,
        any(each.segments for each in given),
        any(each.memory is not None for each in given),
        any(each.sample_rate < 1 for each in given),
    )


def released_sums(
    registry: Registry, metric: Metric, windows: int, reports: int, delta: float = DELTA
) -> ReleasedSums:
    """What sums reveal to which a device gave `windows` reports at most, each of them hidden among
    `reports` reports of its own. One sum of n reports, to which it gave k, is no more than k sums
    of n // k reports each, because all reports are of one kind.

    Raises:
        ValueError: `windows` or `reports` is not positive, or `delta` cannot be.
    """
    _check(reports, delta)
    if windows < 1:
        raise ValueError(f"a device gave at least one report, not {windows}")
    given = guarantee_in(registry, metric)
    limit = given.lifetime_reports
    count = windows if limit is None else min(windows, limit)
    return released_together([spent_by(metric, given, count, reports, delta)], delta, None)


def outsider_together(
    registry: Registry, reports: int = LEAST_REPORTS, delta: float = DELTA
) -> Outsider:
    """What the published sums of all metrics reveal together, of a device that reports them all.

    Raises:
        ValueError: `reports` is not positive, `delta` cannot be, or the registry has no metric.
    """
    _check(reports, delta)
    metrics = tuple(metric for metric in registry if metric.name not in registry.unasked)
    if not metrics:
        raise ValueError("the registry declares no metric: there is nothing to publish")
    cap = registry.lifetime_epsilon
    return _outsider(metrics, cap, cap, reports, delta)


def _check(reports: int, delta: float) -> None:
    if not SMALLEST_DELTA <= delta <= MOST_DELTA:
        raise ValueError(
            f"delta must be from {SMALLEST_DELTA:g} to {MOST_DELTA:g}, not {delta:g}: it is the "
            "probability with which a bound may fail"
        )
    if reports < 1:
        raise ValueError(f"a published sum has at least one report, not {reports}")
