"""What many answers of the same devices are worth, where devices keep their noise.

A mechanism with memory answers in two rounds. The fresh one averages out over windows; the
permanent one does not, nor does whom the crowd happens to be. Let T_i be how often device
i answered, n = sum of T_i and ::

    repeats = (sum of T_i**2) / n          1 where nobody answered twice

The variance of the average is largest where every device keeps its value, and then ::

    Var = [V - V1 + repeats * V1] / n,   V = r (1-r) / (p-q)**2,  V1 = m (1-m) / (p1-q1)**2

with V that of one answer and V1 that of the memos alone (m = q1 + f (p1-q1) is how
often a memo supports a value of share f): the law of total variance, device by device.

Nobody can count the T_i, since no device is known by its reports. But two windows of n_v
and n_w answers share at most min(n_v, n_w) devices, and where each device tosses a
coin of `sample_rate` for each window, that part of them. The sum over all pairs of
windows bounds the sum of T_i**2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.mechanisms import (
    BasicRappor,
    Mechanism,
    MemoizedLocalHashing,
    MemoizedSubsetSelection,
    Memoizing,
    Rappor,
)
from deniable_estimator.intervals import Noise

__all__ = ["memo_channel", "repeated_noise", "repeats", "worth"]

_SHARES = 1000
"""Steps of the grid of shares over which `worth` takes the worst."""


def repeats(reports: Sequence[int], sample_rate: float = 1.0) -> float:
    """The most that sum(T_i**2) / sum(T_i) can be, for windows of so many reports.

    `sample_rate` is the chance with which a device answers in a window, independently of
    other windows.
    """
    total = sum(reports)
    if total == 0:
        return 1.0
    # Each window is the smaller of the pair with every larger one: (rank from above) times.
    falling = sorted(reports, reverse=True)
    pairs = 2 * sum(rank * n for rank, n in enumerate(falling))
    return 1 + sample_rate * pairs / total


def memo_channel(mechanism: Memoizing[Any]) -> tuple[Fraction, Fraction]:
    """(p1, q1): how often a memo sets the column of its own value, and of a given other one.

    As p and q are to a report; of strings, without the collisions of their hashes.
    """
    if isinstance(mechanism, MemoizedSubsetSelection):
        return mechanism.permanent.p, mechanism.permanent.q
    if isinstance(mechanism, MemoizedLocalHashing):
        return memo_channel(mechanism.channel)
    if isinstance(mechanism, (BasicRappor, Rappor)):
        flipped = Fraction(mechanism.rounds.f, 2 << 53)
        return 1 - flipped, flipped
    raise TypeError(f"the memos of {mechanism.name} are not known here: add them")


def repeated_noise(mechanism: Mechanism[Any], reports: Any, size: int, again: float) -> Noise:
    """The noise of `size` shares from so many reports, with `again` as `repeats` gives it."""
    noise = Noise.of(mechanism.p, mechanism.q, reports, size)
    if again == 1 or not isinstance(mechanism, Memoizing):
        return noise
    kept = Noise.of(*memo_channel(mechanism), reports, size)
    return noise + kept.weighted(np.full(size, math.sqrt(again - 1)))


def worth(mechanism: Memoizing[Any], p: float, q: float, again: float) -> float:
    """One report's worth, at most 1: in so many reports of other devices.

    p and q are those of a column. It is that of the share at which memory weighs most, so
    it is somewhat too little for others.
    """
    p1, q1 = (float(each) for each in memo_channel(mechanism))
    share = np.linspace(0, 1, _SHARES + 1)
    rate, memo = q + share * (p - q), q1 + share * (p1 - q1)
    part = memo * (1 - memo) / (p1 - q1) ** 2 / (rate * (1 - rate) / (p - q) ** 2)
    return 1 / (1 + (again - 1) * float(part.max()))
