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

from deniable import Metric, Registry
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
        assumed: what must hold for the figures, in sentences.
    """

    metric: str | None
    mechanism: str | None
    reports: int
    delta: float
    spans: dict[str, ReleasedSums]
    assumed: tuple[str, ...]


def outsider_of(
    registry: Registry, metric: Metric | None, reports: int = LEAST_REPORTS, delta: float = DELTA
) -> Outsider:
    """What the published sums of a metric reveal, or (None) those of all metrics together, of a
    device that reports them all. Where devices report a pair in place of the metric, the figures
    are those of the pair.

    Raises:
        ValueError: `reports` is not positive, `delta` cannot be, or the registry has no metric.
    """
    _check(reports, delta)
    cap = registry.lifetime_epsilon
    if metric is not None:
        source = registry.unasked.get(metric.name, metric)
        found = _outsider((source,), cap, None, reports, delta)
        return replace(found, metric=metric.name, mechanism=source.scheme.mechanism.name)
    metrics = tuple(each for each in registry if each.name not in registry.unasked)
    if not metrics:
        raise ValueError("the registry declares no metric: there is nothing to publish")
    return _outsider(metrics, cap, cap, reports, delta)


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
    segments = any(each.segments for each in given)
    sampled = any(each.sample_rate < 1 for each in given)
    remembers = any(each.memory is not None for each in given)
    told = (
        *((True, _READER), (True, OPERATOR), (True, _PUBLISHED), (segments, _SEGMENTS)),
        *((sampled, _SAMPLED), (True, MAY_FAIL), (remembers, _REMEMBERS)),
    )
    assumed = tuple(each for holds, each in told if holds)
    return Outsider(None, None, reports, delta, spans, assumed)


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


def _check(reports: int, delta: float) -> None:
    if not SMALLEST_DELTA <= delta <= MOST_DELTA:
        raise ValueError(
            f"delta must be from {SMALLEST_DELTA:g} to {MOST_DELTA:g}, not {delta:g}: it is the "
            "probability with which a bound may fail"
        )
    if reports < 1:
        raise ValueError(f"a published sum has at least one report, not {reports}")
