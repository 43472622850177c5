"""Closed lists in which each value has a column of its own: subset selection and unary encoding,
with memos and without. Their tallies are drawn from their exact joint distribution, for any crowd.

**Subset selection.** A device with value x reports a uniform k-set that contains x with probability
p, else one that does not. Equivalently: with probability a = (1-p) d / (d-k) it reports a uniform
k-set of all d columns, whatever its value, and otherwise x with a uniform (k-1)-set of the other
columns. For k = 1 this gives one multinomial and the values themselves.

For k > 1 the columns are processed one after another. The state is how many devices still have
r columns to place, for each r. Each of them places one in the current column with probability
r / (columns left for it), independently. So a tally costs d vectors of at most k binomials,
however many devices report. The own column of a device does not count among its columns left
until it is reached; at column x, the devices with value x change their group. Before that, all
devices had the same distribution, whatever their value. So given the states, the devices with
value x are a uniform sample: multivariate hypergeometric. Only probabilities are rounded, to
float64.

**Unary encoding**, and basic RAPPOR, which is unary encoding with memos. Every bit of every report
is randomized independently, so each column of a tally is the sum of two binomials, independent of
all other columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.compatible import UnaryEncoding
from deniable.protocol.mechanisms.rappor import BasicRappor, Rounds
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection, SubsetSelection
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.anomalies import Ones
from deniable_estimator.analyses.base import Counts, Items, OneRowAnalysis

AnySubsets = TypeVar("AnySubsets", SubsetSelection, MemoizedSubsetSelection)

_CROWD = 500_000_000
"""numpy can draw hypergeometric numbers only for fewer than 10**9 devices at a time."""


class SubsetSelectionAnalysis(OneRowAnalysis[AnySubsets]):
    """Each value is supported by its own column of the only row."""

    def supported(self, targets: int) -> tuple[int, int]:
        k, size = self.mechanism.k, self.mechanism.size
        return max(0, targets - (size - k)), min(targets, k)

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        """`items` is every value, in order, and is ignored. One report from a memo has the same
        distribution as one without."""
        size, k = self.mechanism.size, self.mechanism.k
        blind = (1 - self.mechanism.p) * size / (size - k)
        owned = rng.binomial(counts, float(1 - blind))
        devices = int(counts.sum())
        others = devices - int(owned.sum())
        if k == 1:
            return (TallyRow(devices, owned + rng.multinomial(others, np.full(size, 1 / size))),)
        cells, crowds = owned.copy(), devices // _CROWD + 1
        for crowd in range(crowds):
            # A uniform set is one of all but an own column that comes after all others.
            nobody = np.append(np.zeros(size, np.int64), (others + crowd) // crowds)
            cells += _others(k, nobody, rng)[:-1]
            cells += _others(k - 1, (owned + crowd) // crowds, rng)
        return (TallyRow(devices, cells),)


class MemoizedSubsetSelectionAnalysis(SubsetSelectionAnalysis[MemoizedSubsetSelection]):
    """The same with memos, each of which is one value."""

    def memo_channel(self) -> tuple[Fraction, Fraction]:
        permanent = self.mechanism.permanent
        return permanent.p, permanent.q

    def alternation_loss(self, reports: int) -> float:
        """Odd reports are all one set with the first value, even ones all one set with the
        second."""
        half, mechanism = reports // 2, self.mechanism
        size, k = mechanism.size, mechanism.k
        p1, q1 = (float(each) for each in self.memo_channel())
        shared = max(0, 2 * k - size)
        # In units of the probability of a set that lacks the memo.
        held = half * math.log(mechanism.fresh_odds)
        one = log_sum((p1 + (k - 1) * q1, held), ((size - k) * q1, 0.0))
        both = log_sum(
            (p1 + q1 + 2 * (k - 1 - shared) * q1, held),
            (shared * q1, 2 * held),
            ((size - 2 * k + shared) * q1, 0.0),
        )
        return 2 * one - both


def _others(k: int, counts: Counts, rng: np.random.Generator) -> Counts:
    """How often each column is in a uniform k-set of all but the device's own column."""
    size = len(counts)
    cells = np.zeros(size, np.int64)
    ahead, passed = np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64)
    ahead[k] = counts.sum()
    for column in range(size):
        owners = rng.multivariate_hypergeometric(ahead, counts[column], method="marginals")
        ahead -= owners
        placed = _place(passed, size - column, rng)
        if column + 1 < size:
            placed += _place(ahead, size - column - 1, rng)
        passed += owners
        cells[column] = placed
    return cells


def _place(open_sets: Counts, left: int, rng: np.random.Generator) -> int:
    """Let each set take this column or not, with `left` columns left. Returns how many do.

    `open_sets[r]` sets have r columns still to place; it is updated in place.
    """
    states = np.flatnonzero(open_sets[1:]) + 1
    taken: Any = rng.binomial(open_sets[states], states / left)
    open_sets[states] -= taken
    open_sets[states - 1] += taken
    return int(taken.sum())


AnyBits = TypeVar("AnyBits", UnaryEncoding, BasicRappor)


class UnaryEncodingAnalysis(OneRowAnalysis[AnyBits]):
    """Each value is supported by its own bit of the only row."""

    def ones(self) -> Ones:
        mechanism = self.mechanism
        return Ones(mechanism.size, float(mechanism.p), float(mechanism.q))

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        """`items` is every value, in order, and is ignored."""
        devices = int(counts.sum())
        cells = rng.binomial(counts, float(self.mechanism.p))
        cells += rng.binomial(devices - counts, float(self.mechanism.q))
        return (TallyRow(devices, cells),)


class BasicRapporAnalysis(UnaryEncodingAnalysis[BasicRappor]):
    """The same with memos, each of which is a bitmap."""

    def memo_channel(self) -> tuple[Fraction, Fraction]:
        return flipped(self.mechanism.rounds)

    def alternation_loss(self, reports: int) -> float:
        return alternating_bits(self.mechanism.rounds, self.mechanism.size, 1, 1, reports // 2)


def flipped(rounds: Rounds) -> tuple[Fraction, Fraction]:
    """How often the permanent round of RAPPOR leaves a bit that is 1, and one that is 0, as a
    1."""
    turned = Fraction(rounds.f, 2 * ONE)
    return 1 - turned, turned


def alternating_bits(rounds: Rounds, size: int, lost: int, gained: int, half: int) -> float:
    """Each bit is 1 in all odd reports and 0 in all even ones, or the other way round.

    Of the bits, so many are lost and gained by going from one value to the other; the others are 0
    under both. They have independent noise, so their losses add up.
    """
    flipped = rounds.f / (2 * ONE)
    one = {0: math.log(rounds.p / ONE), 1: math.log(rounds.q / ONE)}
    zero = {0: math.log1p(-rounds.p / ONE), 1: math.log1p(-rounds.q / ONE)}

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
