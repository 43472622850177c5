"""What published sums reveal of one device to a reader who sees nothing but sums.

A device's epsilon holds against everybody. A reader of sums learns far less, because the noise of
all other reports hides that of one. The figures here are (epsilon, delta) bounds for a reader who
knows the values of all other devices, but not their reports. They hold for sums of closed windows
that have at least so many reports each; `ASSUMED` says what else is assumed.

Two devices' histories are compared: all values of one device, over all windows, are replaced. Every
report of the device counts, whether or not the reader knows when it reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from deniable import Metric, Registry
from deniable.mechanisms import Memoizing
from deniable_estimator.privacy import Bound, Guarantee, guarantee_in
from deniable_estimator.privacy.blanket import Blanket, crowd_epsilon
from deniable_estimator.privacy.composition import (
    Repeated,
    advanced,
    composed_delta,
    composed_epsilon,
    least_epsilon,
    loss_of,
    renyi,
)
from deniable_estimator.privacy.mechanism_blankets import blanket_of, fresh_round

__all__ = [
    "DELTA",
    "LEAST_REPORTS",
    "MOST_DELTA",
    "SMALLEST_DELTA",
    "SPANS",
    "Outsider",
    "Published",
    "check_delta",
    "outsider_of",
    "outsider_together",
]

DELTA = 1e-8
"""The delta that is taken if none is given."""

SMALLEST_DELTA = 1e-30
MOST_DELTA = 1e-3

LEAST_REPORTS = 1000
"""Public views show a segment from so many reports on, so the figures of a label are for these."""

SPANS = ("window", "month", "year", "lifetime")

_WINDOWS = {
    "day": {"window": 1, "month": 31, "year": 366},
    "week": {"window": 1, "month": 5, "year": 53},
    "month": {"window": 1, "month": 1, "year": 12},
}

_BEYOND = 1e-3
"""This part of delta is spent on losses beyond those that are added up."""

_ROWS = 0.1
"""This part of delta is spent on a device's row having fewer reports than counted with."""


@dataclass(frozen=True, slots=True)
class Published:
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
    spans: dict[str, Published]
    segments: bool
    remembers: bool

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON, with what is assumed."""
        from deniable_estimator.privacy.outsider_words import assumed

        return {
            "metric": self.metric,
            "mechanism": self.mechanism,
            "reports": self.reports,
            "delta": self.delta,
            "spans": {name: each.to_dict() for name, each in self.spans.items()},
            "assumed": list(assumed(self)),
        }


@dataclass(frozen=True, slots=True)
class _Spent:
    """The reports of one metric in one span, and what they reveal.

    Attributes:
        count: how many reports a device makes.
        device: the epsilon of the reports themselves.
        repeated: what composes; None where no bound is known.
        basic: the epsilons of all sums added, at the metric's part of delta.
        half: that of one sum, at half of this part.
        lost: what of delta is spent beforehand.
        memo: with memos, the epsilon of one memo.
        steady: what composes if the value never changes, and how far two memos differ.
    """

    count: int
    device: Fraction
    repeated: Repeated | None = None
    basic: float = 0.0
    half: float = 0.0
    lost: float = 0.0
    memo: float | None = None
    steady: tuple[Repeated, float] | None = None


def check_delta(delta: float) -> float:
    """The delta, if figures can be computed for it.

    Raises:
        ValueError: it is not from SMALLEST_DELTA to MOST_DELTA.
    """
    if not SMALLEST_DELTA <= delta <= MOST_DELTA:
        raise ValueError(
            f"delta must be from {SMALLEST_DELTA:g} to {MOST_DELTA:g}, not {delta:g}: it is the "
            "probability with which a bound may fail"
        )
    return delta


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
    given = guarantee_in(registry, source)
    spans = {
        span: _together([_part(source, given, count, reports, delta)], delta, None)
        for span in SPANS
        if (count := _windows(given, span)) is not None
    }
    return Outsider(
        metric.name,
        given.mechanism,
        reports,
        delta,
        spans,
        bool(given.segments),
        given.memory is not None,
    )


def outsider_together(
    registry: Registry, reports: int = LEAST_REPORTS, delta: float = DELTA
) -> Outsider:
    """What the published sums of all metrics reveal together, of a device that reports them all.

    Raises:
        ValueError: `reports` is not positive, `delta` cannot be, or the registry has no metric.
    """
    _check(reports, delta)
    metrics = [metric for metric in registry if metric.name not in registry.unasked]
    if not metrics:
        raise ValueError("the registry declares no metric: there is nothing to publish")
    given = [guarantee_in(registry, metric) for metric in metrics]
    spans = {}
    for span in SPANS:
        counts = [_windows(each, span) for each in given]
        # Each metric spends its part of delta; what composes takes the rest.
        share = delta / len(metrics)
        parts = [
            _part(metric, each, count, reports, share)
            for metric, each, count in zip(metrics, given, counts, strict=True)
            if count is not None
        ]
        if len(parts) == len(metrics):
            spans[span] = _together(parts, delta, registry.lifetime_epsilon)
    return Outsider(
        None,
        None,
        reports,
        delta,
        spans,
        any(each.segments for each in given),
        any(each.memory is not None for each in given),
    )


def _check(reports: int, delta: float) -> None:
    check_delta(delta)
    if reports < 1:
        raise ValueError(f"a published sum has at least one report, not {reports}")


def _windows(given: Guarantee, span: str) -> int | None:
    """How many reports a device makes in a span at most; None if nothing ends them."""
    if span == "lifetime":
        return given.lifetime_reports
    count = _WINDOWS[given.window][span]
    limit = given.lifetime_reports
    return count if limit is None else min(count, limit)


def _part(metric: Metric, given: Guarantee, count: int, reports: int, delta: float) -> _Spent:
    mechanism = metric.scheme.mechanism
    # One profile serves all spans: it reaches as far as the longest one needs.
    longest = max(_windows(given, span) or 1 for span in SPANS)
    if not isinstance(mechanism, Memoizing) or count <= 1:
        device = count * Fraction(given.report.epsilon)
        return _composing(
            blanket_of(mechanism), reports, delta, count, longest, _Spent(count, device)
        )
    memo = mechanism.lifetime_epsilon
    unknown = _Spent(count, count * Fraction(given.each.epsilon), memo=memo)
    fresh = fresh_round(mechanism)
    if fresh is None:
        return unknown
    lost, near = 0.0, reports
    if fresh.rows > 1:
        lost = _ROWS * delta
        near = _sharing(reports, fresh.rows, lost / count)
    if near < 1:
        return unknown
    found = replace(unknown, lost=lost)
    found = _composing(fresh.report, near, delta - lost, count, longest, found)
    assert found.repeated is not None
    found = replace(found, steady=(found.repeated, fresh.apart))
    return found if fresh.any_history else replace(found, repeated=None)


def _composing(
    blanket: Blanket, reports: int, delta: float, count: int, longest: int, part: _Spent
) -> _Spent:
    """The part with what composes, of `reports` reports in each sum."""
    if not count:
        return part
    loss = loss_of(blanket, reports, _BEYOND * delta / longest)
    if count == 1:
        each = crowd_epsilon(blanket, reports, delta)
    else:
        each = least_epsilon(loss.delta, delta / count, blanket.epsilon)
    half = least_epsilon(loss.delta, delta / (2 * count), blanket.epsilon)
    return replace(part, repeated=Repeated(loss, count), basic=count * each, half=half)


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
    low, high = 0, others
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rare(middle) else (low, middle)
    # But with this chance there are more than `low` others, and the device itself.
    return low + 2


def _together(parts: Sequence[_Spent], delta: float, cap: float | None) -> Published:
    parts = [part for part in parts if part.count]
    if not parts:
        nothing = Bound.of(0.0)
        return Published(0, nothing, nothing, nothing, nothing, nothing, True)
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

    own = [part for part in parts if part.repeated is not None]
    basic = math.fsum(part.basic for part in own)
    by_advanced = advanced([(part.half, part.count) for part in own], rest / 2)
    by_renyi = renyi(composed, rest) if own else 0.0
    others = min(most, basic, by_advanced, by_renyi)
    by_losses = composed_epsilon(composed, rest, others) if own else 0.0
    return Published(
        windows=max(part.count for part in parts),
        epsilon=least(min(by_losses, basic, by_advanced, by_renyi)),
        device=Bound.of(device),
        basic=least(basic),
        advanced=least(by_advanced),
        renyi=least(by_renyi),
        known=not plain,
        steady=_steady(parts[0], rest) if len(parts) == 1 else None,
    )


def _steady(part: _Spent, delta: float) -> Bound | None:
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
        return apart * composed_delta([repeated], math.log1p(math.expm1(epsilon) / apart))

    return Bound.of(least_epsilon(profile, delta, most))
