"""The variance of what devices keep from one report to the next: values, and memos if any.

A mechanism with memos has two rounds. The noise of the fresh one averages out over windows; the
noise of the permanent one does not, and neither does the choice of devices. With `repeats` from
`deniable_estimator.participation`, the variance of the average is largest if every device keeps
its value, and then ::

    Var = [V + (repeats - 1) V1] / n,   V = r (1-r) / (p-q)**2,  V1 = m (1-m) / (p1-q1)**2

where V is the variance of one report and V1 the variance of what is kept (m = q1 + f (p1-q1) is
how often a memo supports a value of share f): the law of total variance, device by device.
Without memos the value itself is kept: p1 = 1, q1 = 0, V1 = f (1-f).
"""

from __future__ import annotations

import math
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

__all__ = ["kept_noise", "memo_channel", "report_weight"]

_SHARES = 1000
"""Steps of the grid of shares over which `report_weight` takes the minimum."""


def memo_channel(mechanism: Memoizing[Any]) -> tuple[Fraction, Fraction]:
    """(p1, q1): how often a memo sets the column of its own value, and of a given other one.

    They correspond to p and q of a report; for strings, without hash collisions.
    """
    if isinstance(mechanism, MemoizedSubsetSelection):
        return mechanism.permanent.p, mechanism.permanent.q
    if isinstance(mechanism, MemoizedLocalHashing):
        return memo_channel(mechanism.channel)
    if isinstance(mechanism, (BasicRappor, Rappor)):
        flipped = Fraction(mechanism.rounds.f, 2 << 53)
        return 1 - flipped, flipped
    raise TypeError(f"the memos of {mechanism.name} are not known here: add them")


def kept_noise(mechanism: Mechanism[Any], reports: int, repeats: float) -> Noise | None:
    """What repeated reports of the same devices add to the noise of each value's share.

    None where nothing is added: no device reported twice.
    """
    if repeats == 1 or reports == 0:
        return None
    channel = Fraction(1), Fraction(0)
    if isinstance(mechanism, Memoizing):
        channel = memo_channel(mechanism)
    return Noise.of(*channel, reports, 1).weighted(np.full(1, math.sqrt(repeats - 1)))


def report_weight(mechanism: Memoizing[Any], p: float, q: float, repeats: float) -> float:
    """The weight of one report, at most 1, in reports of different devices.

    p and q are those of a column. The weight is for the share at which memos matter most, so it
    is somewhat too small for others.
    """
    p1, q1 = (float(each) for each in memo_channel(mechanism))
    share = np.linspace(0, 1, _SHARES + 1)
    rate, memo = q + share * (p - q), q1 + share * (p1 - q1)
    part = memo * (1 - memo) / (p1 - q1) ** 2 / (rate * (1 - rate) / (p - q) ** 2)
    return 1 / (1 + (repeats - 1) * float(part.max()))
