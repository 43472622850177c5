"""What the published sums of one span of time reveal: what the reports of each metric spend, and
what all of them reveal together."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from deniable import Metric
from deniable.protocol.mechanisms import Memoizing
from deniable_estimator.messages import message
from deniable_estimator.privacy.blanket import Blanket, crowd_epsilon
from deniable_estimator.privacy.composition import (
    Repeated,
    advanced,
    composed_delta,
    least_epsilon,
    loss_of,
    renyi,
)
from deniable_estimator.privacy.guarantees import Bound, Guarantee
from deniable_estimator.privacy.mechanism_blankets import blanket_of, fresh_round

SPANS = {
    "window": message("one window"),
    "month": message("a month"),
    "year": message("a year"),
    "lifetime": message("a lifetime"),
}
"""The spans of time, each as a heading."""

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
    repeated: Repeated | None = None
    basic: float = 0.0
    half: float = 0.0
    lost: float = 0.0
    memo: float | None = None
    steady: tuple[Repeated, float] | None = None


def most_reports(given: Guarantee, span: str) -> int | None:
    """How many reports a device makes in a span at most; None if nothing ends them."""
    if span == "lifetime":
        return given.lifetime_reports
    count = _WINDOWS[given.window][span]
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
) -> tuple[Repeated, float, float]:
    """What composes, of `reports` reports in each sum, with `basic` and `half` of `Spent`."""
    loss = loss_of(blanket, reports, _BEYOND * delta / longest)
    if count == 1:
        each = crowd_epsilon(blanket, reports, delta)
    else:
        each = least_epsilon(loss.delta, delta / count, blanket.epsilon)
    half = least_epsilon(loss.delta, delta / (2 * count), blanket.epsilon)
    return Repeated(loss, count), count * each, half


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
    by_advanced = advanced([(part.half, part.count) for part in parts], rest / 2)
    by_renyi = renyi(composed, rest) if composed else 0.0
    others = min(most, basic, by_advanced, by_renyi)
    return ReleasedSums(
        windows=max((part.count for part in parts), default=0),
        epsilon=least(least_epsilon(lambda each: composed_delta(composed, each), rest, others)),
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
        return apart * composed_delta([repeated], math.log1p(math.expm1(epsilon) / apart))

    return Bound.of(least_epsilon(profile, delta, most))
