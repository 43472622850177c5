"""The blanket of each mechanism: what all its reports have in common.

`blanket_of` is for one report. A mechanism that is not named here gets the bound that holds
for every mechanism of its epsilon (`hidden`), which is somewhat larger.

A row that is drawn whatever the value is, is a part of the message, and changes nothing where all
rows have the same channel. Where two values collide in a row, its reports tell them apart less.

With memos, reports of one device depend on each other. `fresh_round` has what is needed for all
reports together: the second round, from memo to report, and how far memos of two values differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

from deniable.protocol.mechanisms import Mechanism, Memoizing
from deniable.protocol.mechanisms.compatible import HadamardResponse, UnaryEncoding
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hashed import Hashed, MemoizedLocalHashing
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry, points
from deniable.protocol.mechanisms.rappor import BasicRappor, OneTimeRappor, Rappor
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection, SubsetSelection
from deniable.protocol.randomness import PRECISION
from deniable_estimator.privacy.blanket import Blanket, bits, favouring, hidden

_MOST_BITS = 8
"""Filters of more hashes would have too many classes; they get the bound for any mechanism."""


def parts_of(mechanism: Mechanism[Any]) -> list[tuple[Mechanism[Any], float]]:
    """The mechanisms that make a report, with the chance of each; none if it is made by itself."""
    match mechanism:
        case Hashed() | PrefixTree():
            return [(mechanism.channel, 1.0)]
        case MemoizedRetention(channels=channels):
            return [(each, 1 / len(channels)) for each in channels]
        case HierarchicalHistogram():
            parts: list[Mechanism[Any]] = [*mechanism.levels]
            if mechanism.mean is not None:
                parts.append(mechanism.mean)
            return list(zip(parts, map(float, mechanism.shares), strict=True))
    return []


def blanket_of(mechanism: Mechanism[Any]) -> Blanket:
    """The blanket of one report, for the two values that are easiest to tell apart."""
    if parts := parts_of(mechanism):
        return _one_of([(blanket_of(part), chance) for part, chance in parts], mechanism.epsilon)
    odds, epsilon = float(mechanism.odds), mechanism.epsilon
    match mechanism:
        case SubsetSelection(size=d, k=k) | MemoizedSubsetSelection(size=d, k=k):
            return favouring(k / d, odds, epsilon, k * (k - 1) / (d * (d - 1)))
        case ProjectiveGeometry(order=order, dimension=dimension, messages=messages):
            share = points(order, dimension - 1) / messages
            return favouring(share, odds, epsilon, points(order, dimension - 2) / messages)
        case HadamardResponse():
            return favouring(1 / 2, odds, epsilon, 1 / 4)
        case UnaryEncoding() | BasicRappor():
            return bits(float(mechanism.p), float(mechanism.q), 1, epsilon)
        case Rappor() | OneTimeRappor() if mechanism.bloom.h <= _MOST_BITS:
            return bits(float(mechanism.p), float(mechanism.p01), mechanism.bloom.h, epsilon)
        case SlidingWindow(width=width, columns=columns):
            # A position between two levels reports like a mixture of them, which tells less than
            # one of them. The windows of the lowest and the highest level share as little as any.
            return favouring(width / columns, odds, epsilon)
        case DBitFlip():
            return _two_cells(mechanism)
    return hidden(epsilon)


def _one_of(rows: Sequence[tuple[Blanket, float]], epsilon: float) -> Blanket:
    """A report of one of several rows, each with its chance, which is told with it. omega takes
    rows in proportion to what is common in each; ratios to it are those of the row, over its part
    of omega."""
    gamma = math.fsum(chance * row.gamma for row, chance in rows)
    classes = []
    for row, chance in rows:
        part = chance * row.gamma / gamma
        ratio = chance / part
        classes += [(part * p, ratio * a, ratio * b) for p, a, b in row.classes]
    return Blanket(gamma, tuple(classes), epsilon)


def _two_cells(mechanism: DBitFlip) -> Blanket:
    # Only the rows of the two values tell them apart: one bit in each of two rows, or, where rows
    # have several bits, two bits of one row.
    flip, rows = float(mechanism.flipped), len(mechanism.rows)
    two_bits = bits(1 - flip, flip, 1, mechanism.epsilon)
    if rows == 1:
        return two_bits
    bit = ((flip, (1 - flip) / flip), (1 - flip, flip / (1 - flip)))
    classes = [(p / rows, a, 1.0) for p, a in bit] + [(p / rows, 1.0, a) for p, a in bit]
    if rows > 2:
        classes.append((1 - 2 / rows, 1.0, 1.0))
    two_rows = Blanket(two_bits.gamma, tuple(classes), mechanism.epsilon)
    if mechanism.bits == 1:
        return two_rows
    classes = [(p / rows, a, b) for p, a, b in two_bits.classes] + [(1 - 1 / rows, 1.0, 1.0)]
    return replace(two_rows, also=replace(two_bits, classes=tuple(classes)))


@dataclass(frozen=True, slots=True)
class FreshRound:
    """The second round of a mechanism with memos.

    Attributes:
        report: the blanket of one report, given the memos. The worst case of any two memos if
            `any_history`, otherwise of the memos of two values of which each stays.
        any_history: whether it covers histories in which values change.
        apart: the most by which the distributions of the memos of two values differ, in total
            variation.
        rows: a device keeps its row for ever, and only those that share it hide it. Of n reports
            about one in `rows` shares it.
    """

    report: Blanket
    any_history: bool
    apart: float
    rows: int


def fresh_round(mechanism: Memoizing[Any]) -> FreshRound | None:
    """What all reports from memos reveal together; None if no bound is known but the device's."""
    match mechanism:
        case MemoizedSubsetSelection():
            return _values(mechanism, 1)
        case MemoizedLocalHashing():
            return _values(mechanism.channel, len(mechanism.rows))
        case MemoizedRetention(channels=(channel,)):
            return _values(channel, 1)
        case MemoizedRetention(channels=channels):
            # Of two questions the bound for any mechanism holds for both.
            apart = max(float(each.permanent.p - each.permanent.q) for each in channels)
            return FreshRound(hidden(mechanism.fresh_epsilon), True, apart, len(channels))
        case BasicRappor() | Rappor():
            rounds, hashes, rows = mechanism.rounds, 1, 1
            if isinstance(mechanism, Rappor):
                hashes, rows = mechanism.bloom.h, mechanism.bloom.cohorts
            one, zero = rounds.q / 2**PRECISION, rounds.p / 2**PRECISION
            return _bitmaps(one, zero, rounds.f / 2 ** (PRECISION + 1), 2 * hashes, rows)
        case DBitFlip():
            again = mechanism.fresh / 2**PRECISION
            differing = 1 if mechanism.bits == 1 else 2
            turned = float(mechanism.memo_flipped)
            return _bitmaps(1 - again, again, turned, differing, len(mechanism.rows))
    return None


def _values(channel: MemoizedSubsetSelection, rows: int) -> FreshRound:
    memo = channel.permanent
    apart = float(memo.p - memo.q)
    return FreshRound(blanket_of(channel.fresh), True, apart, rows)


def _bitmaps(
    one: float, zero: float, turned: float, differing: int, rows: int
) -> FreshRound | None:
    """Two values that stay, whose bitmaps differ in so many bits. The memos of all other bits can
    be taken to be equal, and given the memos the sums of their columns say nothing of these."""
    if differing > _MOST_BITS:
        return None
    gamma = 1 - one + zero
    odds = max(one / zero, (1 - zero) / (1 - one))
    epsilon = differing * math.log(odds)
    # The two memos of a bit may lie either way; `within` covers both.
    bit = favouring((1 / gamma - 1) / (odds - 1), odds, epsilon)
    classes = []
    for chosen in combinations_with_replacement(range(len(bit.classes)), differing):
        ways = math.factorial(differing)
        for each in set(chosen):
            ways //= math.factorial(chosen.count(each))
        chances, a, b = zip(*(bit.classes[each] for each in chosen), strict=True)
        classes.append((ways * math.prod(chances), math.prod(a), math.prod(b)))
    apart = _apart(turned, differing)
    return FreshRound(Blanket(bit.gamma**differing, tuple(classes), epsilon), False, apart, rows)


def _apart(turned: float, differing: int) -> float:
    """Total variation between the memos of two values, in the bits in which these differ."""
    kept = 1 - turned
    return math.fsum(
        math.comb(differing, i)
        * max(0.0, kept ** (differing - i) * turned**i - kept**i * turned ** (differing - i))
        for i in range(differing + 1)
    )
