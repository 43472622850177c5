"""What changed between two windows: quantiles, and by how much.

Windows are independent, as each report has fresh noise. If the same devices with the same numbers
report in both, the difference varies less than assumed, so that the tests are cautious.

A quantile has changed if the two windows differ in the share below the quantile of both together:
t* is where the monotone curve of (F1 + F2) / 2 reaches p, and the shares below it are compared as
other shares are (`deniable_estimator.statistics.counts`). Its shift has the interval of Zou and
Donner (Stat. Med. 2008), from the intervals (l, u) of both quantiles (q)::

    D = q2 - q1,   from D - hypot(q2 - l2, u1 - q1) to D + hypot(u2 - q2, q1 - l1)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from deniable_estimator.analyses.numbers.distribution import (
    DistributionEstimate,
    Quantile,
    monotone,
)
from deniable_estimator.statistics.counts import change_p_values


class Shift(NamedTuple):
    """A difference in positions, later minus earlier."""

    change: float
    low: float
    high: float
    """The interval; infinite where a quantile has no limit."""
    p_value: float
    """Two-sided; 1 if nothing is known."""


def quantile_shift(before: DistributionEstimate, after: DistributionEstimate, p: float) -> Shift:
    """How far quantile p moved, in positions, between estimates of the same edges; the interval has
    their level."""
    variance = before.variance + after.variance
    known = np.isfinite(variance)
    p_value = 1.0
    if known.any():
        middle = (before.cdf + after.cdf)[known] / 2
        pooled = monotone(middle, 1 / np.maximum(variance[known], 1e-18))
        at = np.flatnonzero(known)[[min(int((pooled < p).sum()), len(pooled) - 1)]]
        first, second = before.noise.taken(at), after.noise.taken(at)
        p_value = float(change_p_values(before.cdf[at], first, after.cdf[at], second)[0])
    one, two = before.quantile(p), after.quantile(p)
    change = two.point - one.point
    (down1, up1), (down2, up2) = _reach(one), _reach(two)
    low, high = change - math.hypot(down2, up1), change + math.hypot(up2, down1)
    return Shift(change, low, high, p_value)


def _reach(quantile: Quantile) -> tuple[float, float]:
    """How far the interval reaches to both sides of the point."""
    down = math.inf if quantile.low is None else quantile.point - quantile.low
    up = math.inf if quantile.high is None else quantile.high - quantile.point
    return max(0.0, down), max(0.0, up)
