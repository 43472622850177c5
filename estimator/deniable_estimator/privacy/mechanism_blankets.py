"""The blanket of each mechanism: what all its reports have in common.

`blanket_of` is for one report. A mechanism that is not registered here gets the bound that holds
for every mechanism of its epsilon (`hidden`), which is somewhat larger.

A row that is drawn whatever the value is, is a part of the message, and changes nothing where all
rows have the same channel. Where two values collide in a row, its reports tell them apart less.

With memos, reports of one device depend on each other. `fresh_round` has what is needed for all
reports together: the second round, from memo to report, and how far memos of two values differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import singledispatch
from itertools import combinations_with_replacement
from typing import Any

from deniable.protocol.mechanisms import (
    BasicRappor,
    DBitFlip,
    HadamardResponse,
    Hashed,
    HierarchicalHistogram,
    Mechanism,
    MemoizedLocalHashing,
    MemoizedRetention,
    MemoizedSubsetSelection,
    Memoizing,
    OneTimeRappor,
    PrefixTree,
    ProjectiveGeometry,
    Rappor,
    Rounds,
    SlidingWindow,
    SubsetSelection,
    UnaryEncoding,
)
from deniable.protocol.mechanisms.projective_geometry import points
from deniable.protocol.randomness import PRECISION
from deniable_estimator.privacy.blanket import Blanket, bits, hidden, within

_MOST_BITS = 8
"""Filters of more hashes would have too many classes; they get the bound for any mechanism."""


@singledispatch
def blanket_of(mechanism: Mechanism[Any]) -> Blanket:
    """The blanket of one report, for the two values that are easiest to tell apart."""
    return hidden(mechanism.epsilon)


@blanket_of.register
def _(mechanism: SubsetSelection) -> Blanket:
    return _subsets(mechanism.size, mechanism.k, float(mechanism.odds), mechanism.epsilon)


@blanket_of.register
def _(mechanism: MemoizedSubsetSelection) -> Blanket:
    return _subsets(mechanism.size, mechanism.k, float(mechanism.odds), mechanism.epsilon)


def _subsets(size: int, k: int, odds: float, epsilon: float) -> Blanket:
    return within(k / size, odds, epsilon, k * (k - 1) / (size * (size - 1)))


@blanket_of.register
def _(mechanism: ProjectiveGeometry) -> Blanket:
    order, dimension = mechanism.order, mechanism.dimension
    share = points(order, dimension - 1) / mechanism.messages
    both = points(order, dimension - 2) / mechanism.messages
    return within(share, float(mechanism.odds), mechanism.epsilon, both)


@blanket_of.register
def _(mechanism: HadamardResponse) -> Blanket:
    return within(1 / 2, float(mechanism.odds), mechanism.epsilon, 1 / 4)


@blanket_of.register
def _(mechanism: UnaryEncoding) -> Blanket:
    return bits(float(mechanism.p), float(mechanism.q), 1, mechanism.epsilon)


@blanket_of.register
def _(mechanism: BasicRappor) -> Blanket:
    return bits(float(mechanism.p), float(mechanism.q), 1, mechanism.epsilon)


@blanket_of.register
def _(mechanism: Rappor) -> Blanket:
    rounds = mechanism.rounds
    return _filters(float(rounds.p11), float(rounds.p01), mechanism.bloom.h, mechanism.epsilon)


@blanket_of.register
def _(mechanism: OneTimeRappor) -> Blanket:
    one = float(mechanism.p)
    zero = mechanism.f / 2 ** (PRECISION + 1)
    return _filters(one, zero, mechanism.bloom.h, mechanism.epsilon)


def _filters(one: float, zero: float, hashes: int, epsilon: float) -> Blanket:
    if hashes > _MOST_BITS:
        return hidden(epsilon)
    return bits(one, zero, hashes, epsilon)


@blanket_of.register
def _(mechanism: Hashed) -> Blanket:
    return blanket_of(mechanism.channel)


@blanket_of.register
def _(mechanism: PrefixTree) -> Blanket:
    return blanket_of(mechanism.channel)


@blanket_of.register
def _(mechanism: SlidingWindow) -> Blanket:
    # A position between two levels reports like a mixture of them, which tells less than one of
    # them. The windows of the lowest and the highest level share as little as any.
    share = mechanism.width / mechanism.columns
    return within(share, float(mechanism.odds), mechanism.epsilon)


@blanket_of.register
def _(mechanism: HierarchicalHistogram) -> Blanket:
    rows = [blanket_of(level.oracle) for level in mechanism.levels]
    if mechanism.mean is not None:
        rows.append(blanket_of(mechanism.mean))
    chances = [float(share) for share in mechanism.shares]
    return _one_of(chances, rows, mechanism.epsilon)


@blanket_of.register
def _(mechanism: MemoizedRetention) -> Blanket:
    rows = [blanket_of(channel) for channel in mechanism.channels]
    return _one_of([1 / len(rows)] * len(rows), rows, mechanism.epsilon)


def _one_of(chances: list[float], rows: list[Blanket], epsilon: float) -> Blanket:
    """A report of one of several rows, which is told with it. omega takes rows in proportion to
    what is common in each; ratios to it are those of the row, over its part of omega."""
    gamma = math.fsum(p * row.gamma for p, row in zip(chances, rows, strict=True))
    classes = []
    for chance, row in zip(chances, rows, strict=True):
        part = chance * row.gamma / gamma
        ratio = chance / part
        classes += [(part * p, ratio * a, ratio * b) for p, a, b in row.classes]
    return Blanket(gamma, tuple(classes), epsilon)


@blanket_of.register
def _(mechanism: DBitFlip) -> Blanket:
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


@singledispatch
def fresh_round(mechanism: Memoizing[Any]) -> FreshRound | None:
    """What all reports from memos reveal together; None if no bound is known but the device's."""
    return None


@fresh_round.register
def _(mechanism: MemoizedSubsetSelection) -> FreshRound:
    return _values(mechanism, 1)


@fresh_round.register
def _(mechanism: MemoizedLocalHashing) -> FreshRound:
    return _values(mechanism.channel, len(mechanism.rows))


@fresh_round.register
def _(mechanism: MemoizedRetention) -> FreshRound:
    if len(mechanism.channels) == 1:
        return _values(mechanism.channels[0], 1)
    # Of two questions the bound for any mechanism holds for both.
    apart = max(float(each.permanent.p - each.permanent.q) for each in mechanism.channels)
    return FreshRound(hidden(mechanism.fresh_epsilon), True, apart, len(mechanism.channels))


def _values(channel: MemoizedSubsetSelection, rows: int) -> FreshRound:
    memo = channel.permanent
    apart = float(memo.p - memo.q)
    return FreshRound(blanket_of(channel.fresh), True, apart, rows)


@fresh_round.register
def _(mechanism: BasicRappor) -> FreshRound | None:
    return _rappor(mechanism.rounds, 2, 1)


@fresh_round.register
def _(mechanism: Rappor) -> FreshRound | None:
    differing = 2 * mechanism.bloom.h
    return _rappor(mechanism.rounds, differing, mechanism.bloom.cohorts)


def _rappor(rounds: Rounds, differing: int, rows: int) -> FreshRound | None:
    one, zero = rounds.q / 2**PRECISION, rounds.p / 2**PRECISION
    return _bitmaps(one, zero, rounds.f / 2 ** (PRECISION + 1), differing, rows)


@fresh_round.register
def _(mechanism: DBitFlip) -> FreshRound | None:
    again = mechanism.fresh / 2**PRECISION
    differing = 1 if mechanism.bits == 1 else 2
    turned = float(mechanism.memo_flipped)
    return _bitmaps(1 - again, again, turned, differing, len(mechanism.rows))


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
    bit = within((1 / gamma - 1) / (odds - 1), odds, epsilon)
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
