"""The variance of what devices keep from one report to the next: values, and memos if any.

A mechanism with memos has two rounds. The noise of the fresh one averages out over windows; the
noise of the permanent one does not, and neither does the choice of devices. With the `repeats` of
`deniable_estimator.statistics.participation`, the variance of the average is largest if every
device keeps its value, and then ::

    Var = [V + (repeats - 1) V1] / n,   V = r (1-r) / (p-q)**2,  V1 = m (1-m) / (p1-q1)**2

where V is the variance of one report and V1 the variance of what is kept (m = q1 + f (p1-q1) is
how often a memo supports a value of share f): the law of total variance, device by device.
Without memos the value itself is kept: p1 = 1, q1 = 0, V1 = f (1-f).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from deniable.protocol.mechanisms.rappor import Rounds
from deniable.protocol.randomness import PRECISION

_SHARES = 1000
"""Steps of the grid of shares over which `report_weight` takes the minimum."""

_ONE = 1 << PRECISION


def report_weight(
    memo_channel: tuple[Fraction, Fraction], p: float, q: float, repeats: float
) -> float:
    """The weight of one report, at most 1, in reports of different devices.

    p and q are those of a column. The weight is for the share at which memos matter most, so it
    is somewhat too small for others.
    """
    p1, q1 = (float(each) for each in memo_channel)
    share = np.linspace(0, 1, _SHARES + 1)
    rate, memo = q + share * (p - q), q1 + share * (p1 - q1)
    part = memo * (1 - memo) / (p1 - q1) ** 2 / (rate * (1 - rate) / (p - q) ** 2)
    return 1 / (1 + (repeats - 1) * float(part.max()))


def flipped(rounds: Rounds) -> tuple[Fraction, Fraction]:
    """How often the permanent round of RAPPOR leaves a bit that is 1, and one that is 0, as a
    1."""
    turned = Fraction(rounds.f, 2 * _ONE)
    return 1 - turned, turned


def alternating_bits(rounds: Rounds, size: int, lost: int, gained: int, half: int) -> float:
    """Each bit is 1 in all odd reports and 0 in all even ones, or the other way round.

    Of the bits, so many are lost and gained by going from one value to the other; the others are 0
    under both. They have independent noise, so their losses add up.
    """
    flipped = rounds.f / (2 * _ONE)
    one = {0: math.log(rounds.p / _ONE), 1: math.log(rounds.q / _ONE)}
    zero = {0: math.log1p(-rounds.p / _ONE), 1: math.log1p(-rounds.q / _ONE)}

    def said(bit: int, *outcomes: dict[int, float]) -> float:
        """ln of the chance that `half` reports of one memo of a bit say each of the outcomes."""
        return log_sum(
            *(
                (
                    1 - flipped if memo == bit else flipped,
                    half * sum(each[memo] for each in outcomes),
                )
                for memo in (0, 1)
            )
        )

    def loss(first: int, second: int) -> float:
        stays = said(first, one, zero)
        return max(
            said(first, one) + said(second, zero) - stays,
            said(first, zero) + said(second, one) - stays,
        )

    return lost * loss(1, 0) + gained * loss(0, 1) + (size - lost - gained) * loss(0, 0)


def log_sum(*terms: tuple[float, float]) -> float:
    """ln of the sum of weight * e**exponent; a weight of 0 adds nothing."""
    live: Sequence[tuple[float, float]] = [each for each in terms if each[0] > 0]
    top = max(exponent for _, exponent in live)
    return top + math.log(sum(weight * math.exp(exponent - top) for weight, exponent in live))
