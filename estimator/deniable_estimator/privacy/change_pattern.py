"""How clearly memoized reports reveal that a value changes: a computed example.

Compare two histories of T reports: one value all the time, and two values alternating. The first
uses one memo, the second two. Consider the event that all odd reports look like one value and
all even ones like the other. Its probability under each history is known exactly, and the
logarithm of their quotient is a lower bound for the epsilon between the histories. It grows with
T without end. So "the number of memos times the epsilon of one", which is often stated for such
systems, bounds what is revealed about values given the times of change, but not about the times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from deniable.mechanisms import (
    BasicRappor,
    MemoizedLocalHashing,
    MemoizedSubsetSelection,
    Memoizing,
    Rappor,
    Rounds,
)
from deniable.randomness import PRECISION

__all__ = ["alternation_loss", "reports_that_show"]

_MOST_REPORTS = 1 << 16
_ONE = 1 << PRECISION


def reports_that_show(mechanism: Memoizing[Any], epsilon: float) -> int | None:
    """The smallest even number of alternating reports that reveal more than `epsilon`.

    None if not even 65,536 do.
    """
    high = 1
    while alternation_loss(mechanism, 2 * high) <= epsilon:
        high *= 2
        if 2 * high > _MOST_REPORTS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if alternation_loss(mechanism, 2 * middle) > epsilon:
            high = middle
        else:
            low = middle
    return 2 * high


def alternation_loss(mechanism: Memoizing[Any], reports: int) -> float:
    """ln of how much likelier the event is if two values alternate than if one stays.

    `reports` is even. With hashing, the two values do not collide in the device's cohort.
    """
    if isinstance(mechanism, MemoizedLocalHashing):
        mechanism = mechanism.channel
    if isinstance(mechanism, MemoizedSubsetSelection):
        return _of_sets(mechanism, reports // 2)
    if isinstance(mechanism, BasicRappor):
        return _of_bits(mechanism.rounds, mechanism.size, 1, reports // 2)
    if isinstance(mechanism, Rappor):
        return _of_bits(mechanism.rounds, mechanism.bloom.k, mechanism.bloom.h, reports // 2)
    raise TypeError(f"the memos of {mechanism.name} are not known here: add them")


def _of_sets(mechanism: MemoizedSubsetSelection, half: int) -> float:
    """Odd reports are all one set with the first value, even ones all one set with the second."""
    size, k = mechanism.size, mechanism.k
    p1, q1 = float(mechanism.permanent.p), float(mechanism.permanent.q)
    shared = max(0, 2 * k - size)
    # In units of the probability of a set that lacks the memo.
    held = half * math.log(mechanism.fresh_odds)
    one = _log_sum((p1 + (k - 1) * q1, held), ((size - k) * q1, 0.0))
    both = _log_sum(
        (p1 + q1 + 2 * (k - 1 - shared) * q1, held),
        (shared * q1, 2 * held),
        ((size - 2 * k + shared) * q1, 0.0),
    )
    return 2 * one - both


def _of_bits(rounds: Rounds, size: int, hashes: int, half: int) -> float:
    """Each bit is 1 in all odd reports and 0 in all even ones, or the other way round.

    Bits have independent noise, so their losses add up.
    """
    flipped = rounds.f / (2 * _ONE)
    one = {0: math.log(rounds.p / _ONE), 1: math.log(rounds.q / _ONE)}
    zero = {0: math.log1p(-rounds.p / _ONE), 1: math.log1p(-rounds.q / _ONE)}

    def said(bit: int, *outcomes: dict[int, float]) -> float:
        """ln of the chance that `half` reports of one memo of a bit say each of the outcomes."""
        return _log_sum(
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

    return hashes * (loss(1, 0) + loss(0, 1)) + (size - 2 * hashes) * loss(0, 0)


def _log_sum(*terms: tuple[float, float]) -> float:
    """ln of the sum of weight * e**exponent; a weight of 0 adds nothing."""
    live: Sequence[tuple[float, float]] = [each for each in terms if each[0] > 0]
    top = max(exponent for _, exponent in live)
    return top + math.log(sum(weight * math.exp(exponent - top) for weight, exponent in live))
