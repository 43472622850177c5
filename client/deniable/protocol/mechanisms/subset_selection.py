"""Subset selection, and with it randomized response, over a closed domain of d values; with memory
as well.

A report is a set of k values. With probability P / 2**53 it is a uniform k-set that
contains the true value, otherwise a uniform k-set that does not::

    p = P / 2**53                                   (ideally e*k / (e*k + d - k), e = exp(epsilon))
    q = [p (k-1) + (1-p) k] / (d-1)
    e**epsilon = P (d-k) / [(2**53 - P) k]
    n * Var(share f) = r (1-r) / (p-q)**2,  r = q + f (p-q)

With the best k (d / (e+1), rounded by exact variance) no other mechanism estimates
frequencies with less total variance (Ye and Barg, IEEE Trans. Inf. Theory 2018; Wang
et al., arXiv:1607.08025). With k = 1 it *is* generalized randomized response, and
with d = 2 Warner's randomized response (J. Am. Stat. Assoc. 1965).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms.base import ONE, FrequencyOracle, Memoizing, Packing, Report, Row
from deniable.protocol.mechanisms.limits import MAX_CELLS, Parameters, check_memo_epsilon
from deniable.protocol.randomness import Bits, below, coin, subset, system_bits


class Subsets(FrequencyOracle[int]):
    """Reports of `k` out of `size` values, which hold the true one with probability `p`, and are
    otherwise uniform."""

    size: int

    def __init__(self, size: int, k: int, p: Fraction) -> None:
        self.size, self.k, self.p = size, k, p
        self.q = (p * (k - 1) + (1 - p) * k) / (size - 1)
        self.odds = p * (size - k) / ((1 - p) * k)

    def likelihood(self, report: Report, item: int) -> Fraction:
        supported, unsupported = self._each
        held = report.columns == item if self.k == 1 else report.columns >> item & 1
        return supported if held else unsupported

    @cached_property
    def _each(self) -> tuple[Fraction, Fraction]:
        """The probability of one set that holds the true value, and of one that does not."""
        return (
            self.p / math.comb(self.size - 1, self.k - 1),
            (1 - self.p) / math.comb(self.size - 1, self.k),
        )


class SubsetSelection(Subsets):
    """Subset selection of `k` out of `size` values, with truth threshold P out of 2**53.

    Raises:
        SchemeError: fewer than two values, no such k, or a threshold with which a
            report would not favour the truth or could not hide it.
    """

    name: ClassVar[str] = "subset_selection"
    bounds: ClassVar = {"size": (2, MAX_CELLS), "k": (1, MAX_CELLS), "threshold": (1, ONE - 1)}

    def __init__(self, size: int, k: int, threshold: int) -> None:
        self.check_size(size)
        if not 1 <= k < size:
            raise SchemeError(f"{self.name}: k must be from 1 to {size - 1}, not {k}")
        self.check_threshold(threshold, k, size)
        super().__init__(size, k, Fraction(threshold, ONE))
        self.threshold = threshold
        listed = k * max(1, (size - 1).bit_length()) < size
        packing = Packing.INDEX if k == 1 else Packing.LIST if listed else Packing.BITMAP
        self.rows = (Row(size, packing, k),)

    @classmethod
    def design(cls, size: int, epsilon: float, k: int | None = None) -> Self:
        """The mechanism of least total variance at `epsilon`; `k` fixes the subset size.

        The threshold is rounded down, so the exact epsilon never exceeds the declared one.
        """
        cls.check_size(size)
        odds = exp_below(epsilon)
        best = size / (odds + 1)
        near = {min(max(1, each), size - 1) for each in (math.floor(best), math.ceil(best))}
        designs = [
            cls(size, each, math.floor(ONE * odds * each / (odds * each + size - each)))
            for each in sorted(near if k is None else {k})
        ]
        return min(designs, key=lambda each: each.total_variance(size))

    def randomize(self, item: int, bits: Bits = system_bits) -> Report:
        self.require_item(item)
        truthful = coin(self.threshold, bits)
        if self.k == 1:
            if truthful:
                return Report(0, item)
            other = below(self.size - 1, bits)
            return Report(0, other + (other >= item))
        others = subset(self.size - 1, self.k - truthful, bits)
        # Open a gap at the true value's place: the others close around it.
        lower = others & ((1 << item) - 1)
        return Report(0, lower | (others ^ lower) << 1 | truthful << item)


class MemoizedSubsetSelection(Memoizing[int], Subsets):
    """Subset selection with memory: thresholds M (`memo`) of the permanent and F (`fresh`) of the
    fresh round, of 2**53.

    The memo of a value is its generalized randomized response, and each report a fresh
    subset selection of k out of d from the memo::

        P(memo = x | x)     = p1 = M / 2**53,  q1 = (1 - p1) / (d-1) for any other value
        P(report has memo)  = p2 = F / 2**53,  q2 = (k - p2) / (d-1) for any other value
        p = p1 p2 + (1 - p1) q2 = q1 k + p2 (p1 - q1)
        e**epsilon  = p (d-k) / [(1-p) k]       one report
        e**lifetime = p1 / q1                   one memo
        e**fresh    = p2 (d-k) / [(1-p2) k]     one report, given the memos

    By symmetry all sets that hold the value are equally likely, so one report has *exactly*
    the distribution of subset selection at p: its odds, its q and the least variance that
    any mechanism has at this epsilon, although there is a memo.

    The calibration is exact: p2 is solved from the p of subset selection at epsilon, and
    rounded down. (The published calibrations of such chains, as in Arcolezi et al., EDBT 2023,
    treat the two rounds as if there were only two values. For d > 2 they use less than the
    declared epsilon, which is safe but wasteful.) There is a solution while
    e**epsilon < (e**lifetime + k - 1) / k, so a large k needs a large lifetime.

    Attributes:
        permanent, fresh: the channels of the two rounds.

    Raises:
        SchemeError: as SubsetSelection, for either round.
    """

    name: ClassVar[str] = "memoized_subset_selection"
    bounds: ClassVar = {
        "size": (2, MAX_CELLS),
        "k": (1, MAX_CELLS),
        "memo": (1, ONE - 1),
        "fresh": (1, ONE - 1),
    }

    def __init__(self, size: int, k: int, memo: int, fresh: int) -> None:
        self.permanent = SubsetSelection(size, 1, memo)
        self.fresh = SubsetSelection(size, k, fresh)
        truthful = self.permanent.p
        super().__init__(size, k, truthful * self.fresh.p + (1 - truthful) * self.fresh.q)
        self.rows = self.fresh.rows
        self.lifetime_odds, self.fresh_odds = self.permanent.odds, self.fresh.odds

    @classmethod
    def design(
        cls, size: int, epsilon: float, lifetime_epsilon: float, k: int | None = None
    ) -> Self:
        """The mechanism of least total variance under both epsilons; `k` fixes the subset size.

        Raises:
            SchemeError: the lifetime is too short for `k`, or not above `epsilon`.
        """
        cls.check_size(size)
        check_memo_epsilon(epsilon, lifetime_epsilon)
        odds, lifetime = exp_below(epsilon), exp_below(lifetime_epsilon)
        if k is not None:
            choices = {k}
        else:
            # Variance falls up to the best k and rises after it, so of those that the
            # lifetime allows the nearest is the best.
            most = min(size - 1, max(1, math.ceil((lifetime - 1) / (odds - 1)) - 1))
            while most > 1 and _thresholds(size, most, odds, lifetime)[1] >= ONE:
                most -= 1
            best = size / (odds + 1)
            choices = {min(max(1, each), most) for each in (math.floor(best), math.ceil(best))}
        designs = []
        for each in sorted(choices):
            memo, fresh = _thresholds(size, each, odds, lifetime)
            if fresh >= ONE:
                longer = math.log(each * math.expm1(epsilon) + 1)
                raise SchemeError(
                    f"{cls.name}: sets of k = {each} at epsilon {epsilon} need a larger "
                    f"lifetime_epsilon: declare more than {longer:.4g}, or a smaller epsilon"
                )
            designs.append(cls(size, each, memo, fresh))
        return min(designs, key=lambda each: each.total_variance(size))

    def parameters(self) -> Parameters:
        rounds = {"memo": self.permanent.threshold, "fresh": self.fresh.threshold}
        return {"size": self.size, "k": self.k, **rounds}

    def cell(self, row: int, item: int) -> int:
        self.require_item(item)
        return item

    def memoize(self, cell: int, bits: Bits = system_bits) -> int:
        return self.permanent.randomize(cell, bits).columns

    def report(self, row: int, memo: int, bits: Bits = system_bits) -> Report:
        return self.fresh.randomize(memo, bits)


def _thresholds(size: int, k: int, odds: Fraction, lifetime: Fraction) -> tuple[int, int]:
    """M and F for these odds, rounded down; an F of 2**53 or more is impossible."""
    memo = math.floor(ONE * lifetime / (lifetime + size - 1))
    p1 = Fraction(memo, ONE)
    q1 = (1 - p1) / (size - 1)
    p = odds * k / (odds * k + size - k)
    return memo, math.floor(ONE * (p - q1 * k) / (p1 - q1))
