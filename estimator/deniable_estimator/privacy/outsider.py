"""What published sums reveal of one device to a reader who sees nothing but sums.

A device's epsilon holds against everybody. A reader of sums learns far less, because the noise of
all other reports hides that of one. The figures here are (epsilon, delta) bounds for a reader who
knows the values of all other devices, but not their reports. They hold for sums of closed windows
that have at least so many reports each; `Outsider.assumed` says what else is assumed.

Two devices' histories are compared: all values of one device, over all windows, are replaced. Every
report of the device counts, whether or not the reader knows when it reported.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from deniable import Metric, Registry
from deniable.protocol.mechanisms import Memoizing
from deniable_estimator.messages import message
from deniable_estimator.privacy import composition
from deniable_estimator.privacy.blanket import Blanket, crowd_epsilon
from deniable_estimator.privacy.computing import MOST_IN_A_YEAR, guarantee, guarantee_in
from deniable_estimator.privacy.guarantees import Bound, Guarantee
from deniable_estimator.privacy.mechanism_blankets import blanket_of, fresh_round
from deniable_estimator.privacy.words import assumed_of_sums

SPANS = {
    "window": message("one window"),
    "month": message("a month"),
    "year": message("a year"),
    "lifetime": message("a lifetime"),
}
"""The spans of time, each as a heading."""

_IN_A_MONTH = {"day": 31, "week": 5, "month": 1}

_BEYOND = 1e-3
"""This part of delta is spent on losses beyond those that are added up."""

_ROWS = 0.1
"""This part of delta is spent on a device's row having fewer reports than counted with."""


DELTA = 1e-8
"""The delta that is taken if none is given."""

SMALLEST_DELTA = 1e-30
MOST_DELTA = 1e-3

LEAST_REPORTS = 1000
"""The figures are for so many reports in each published sum if nothing else is said."""


@dataclass(frozen=True, slots=True)
class ReleasedSums:
    """What the sums of some windows reveal of one device.

    Attributes:
        windows: with how many reports of each metric; the largest, of several metrics.
        epsilon: the bound, at the stated delta; never above `device`.
        device: what the reports themselves reveal at most.
        basic, advanced, renyi: the same by other ways of composition, to compare.
        known: whether there is a bound below the device's for every metric.
        steady: the bound for a device whose values never change; None if it is no smaller.
    """

    windows: int
    epsilon: Bound
    device: Bound
    basic: Bound
    advanced: Bound
    renyi: Bound
    known: bool
    steady: Bound | None = None

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON."""
        return {
            "windows": self.windows,
            "epsilon": self.epsilon.epsilon,
            "device_epsilon": self.device.epsilon,
            "composition": {
                "basic": self.basic.epsilon,
                "advanced": self.advanced.epsilon,
                "renyi": self.renyi.epsilon,
            },
            "known": self.known,
            "steady_epsilon": None if self.steady is None else self.steady.epsilon,
        }


@dataclass(frozen=True, slots=True)
class Spent:
    """The reports of one metric in one span, and what they reveal.

    Attributes:
        count: how many reports a device makes.
        device: the epsilon of the reports themselves.
        repeated: what composes; None where no bound is known.
        basic: the epsilons of all sums added, at the metric's part of delta; 0 without `repeated`.
        half: that of one sum, at half of this part; 0 without `repeated`.
        lost: what of delta is spent beforehand.
        memo: with memos, the epsilon of one memo.
        steady: what composes if the value never changes, and how far two memos differ.
    """

    count: int
    device: Fraction
    repeated: composition.Repeated | None = None
    basic: float = 0.0
    half: float = 0.0
    lost: float = 0.0
    memo: float | None = None
    steady: tuple[composition.Repeated, float] | None = None


def most_reports(given: Guarantee, span: str) -> int | None:
    """How many reports a device makes in a span at most; None if nothing ends them."""
    if span == "lifetime":
        return given.lifetime_reports
    month, year = _IN_A_MONTH[given.window], MOST_IN_A_YEAR[given.window]
    count = {"window": 1, "month": month, "year": year}[span]
    limit = given.lifetime_reports
    return count if limit is None else min(count, limit)


def spent_by(metric: Metric, given: Guarantee, count: int, reports: int, delta: float) -> Spent:
    """What `count` reports of a device spend, each hidden in a sum of `reports` reports."""
    if not count:
        return Spent(0, Fraction(0))
    mechanism = metric.scheme.mechanism
    # One profile serves all spans: it reaches as far as the longest one needs.
    longest = max(most_reports(given, span) or 1 for span in SPANS)
    if not isinstance(mechanism, Memoizing) or count == 1:
        composed = _composed(blanket_of(mechanism), reports, delta, count, longest)
        return Spent(count, count * Fraction(given.report.epsilon), *composed)
    memo = mechanism.lifetime_epsilon
    unknown = Spent(count, count * Fraction(given.each.epsilon), memo=memo)
    fresh = fresh_round(mechanism)
    if fresh is None:
        return unknown
    lost, near = 0.0, reports
    if fresh.rows > 1:
        lost = _ROWS * delta
        near = _sharing(reports, fresh.rows, lost / count)
    if near < 1:
        return unknown
    composed = _composed(fresh.report, near, delta - lost, count, longest)
    steady = composed[0], fresh.apart
    if not fresh.any_history:
        return replace(unknown, lost=lost, steady=steady)
    return Spent(count, unknown.device, *composed, lost, memo, steady)


def _composed(
    blanket: Blanket, reports: int, delta: float, count: int, longest: int
) -> tuple[composition.Repeated, float, float]:
    """What composes, of `reports` reports in each sum, with `basic` and `half` of `Spent`."""
    loss = composition.loss_of(blanket, reports, _BEYOND * delta / longest)
    if count == 1:
        each = crowd_epsilon(blanket, reports, delta)
    else:
        each = composition.least_epsilon(loss.delta, delta / count, blanket.epsilon)
    half = composition.least_epsilon(loss.delta, delta / (2 * count), blanket.epsilon)
    return composition.Repeated(loss, count), count * each, half


def _sharing(reports: int, rows: int, chance: float) -> int:
    """How many reports are in a given device's row, itself included, but with this chance fewer:
    from the Chernoff bound P(Bin(n, 1/rows) <= m) <= exp(-n KL(m/n, 1/rows))."""
    others, rate = reports - 1, 1 / rows
    limit = math.log(1 / chance)

    def rare(count: int) -> bool:
        part = count / others
        if part == 0:
            return -others * math.log1p(-rate) >= limit
        if part >= rate:
            return False
        distance = part * math.log(part / rate) + (1 - part) * math.log((1 - part) / (1 - rate))
        return others * distance >= limit

    if others < 1 or not rare(0):
        return 0
    # But with this chance there are at least so many others, and the device itself.
    return bisect_left(range(others), True, key=lambda count: not rare(count)) + 1


def released_together(parts: Sequence[Spent], delta: float, cap: float | None) -> ReleasedSums:
    """What the sums of all parts reveal together; none beyond the cap of the registry."""
    parts = [part for part in parts if part.count]
    device = sum((part.device for part in parts), Fraction(0))
    if cap is not None:
        device = min(device, Fraction(cap))
    most = float(Bound.of(device).epsilon)
    rest = delta - sum(part.lost for part in parts)
    composed = [part.repeated for part in parts if part.repeated is not None]
    # Where no bound is known, the device's epsilon stands, and adds to the rest.
    plain = math.fsum(float(part.device) for part in parts if part.repeated is None)

    def least(found: float) -> Bound:
        return Bound.of(min(most, found + plain))

    basic = math.fsum(part.basic for part in parts)
    by_advanced = composition.advanced([(part.half, part.count) for part in parts], rest / 2)
    by_renyi = composition.renyi(composed, rest) if composed else 0.0
    others = min(most, basic, by_advanced, by_renyi)

    def profile(epsilon: float) -> float:
        return composition.composed_delta(composed, epsilon)

    return ReleasedSums(
        windows=max((part.count for part in parts), default=0),
        epsilon=least(composition.least_epsilon(profile, rest, others)),
        device=Bound.of(device),
        basic=least(basic),
        advanced=least(by_advanced),
        renyi=least(by_renyi),
        known=not plain,
        steady=_steady(parts[0], rest) if len(parts) == 1 else None,
    )


def _steady(part: Spent, delta: float) -> Bound | None:
    """The bound for a value that never changes, with memos.

    All reports tell no more than the memo. Given two memos, all sums satisfy (y, d). The memos of
    two values are the same but for `apart`, so the sums satisfy (ln(1 + apart (e**y - 1)),
    apart d): advanced joint convexity (Balle, Barthe and Gaboardi, NeurIPS 2018, theorem 2).
    """
    if part.memo is None:
        return None
    most = min(part.memo, float(part.device))
    if part.steady is None:
        return Bound.of(most)
    repeated, apart = part.steady

    def profile(epsilon: float) -> float:
        return apart * composition.composed_delta(
            [repeated], math.log1p(math.expm1(epsilon) / apart)
        )

    return Bound.of(composition.least_epsilon(profile, delta, most))


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
        ValueError: the registry has no metric.
    """
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
    assumed = assumed_of_sums(
        segments=any(each.segments for each in given),
        sampled=any(each.sample_rate < 1 for each in given),
        remembers=any(each.memory is not None for each in given),
    )
    return Outsider(None, None, reports, delta, spans, assumed)


def released_sums(
    registry: Registry, metric: Metric, windows: int, reports: int, delta: float = DELTA
) -> ReleasedSums:
    """What sums reveal to which a device gave `windows` reports at most, each of them hidden among
    `reports` reports of its own. One sum of n reports, to which it gave k, is no more than k sums
    of n // k reports each, because all reports are of one kind.
    """
    given = guarantee_in(registry, metric)
    limit = given.lifetime_reports
    count = windows if limit is None else min(windows, limit)
    return released_together([spent_by(metric, given, count, reports, delta)], delta, None)
