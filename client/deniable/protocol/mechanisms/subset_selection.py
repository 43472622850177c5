"""Subset selection, and with it randomized response, over a closed domain of d values.

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
from deniable.protocol.mechanisms.base import (
    ONE,
    FrequencyOracle,
    Packing,
    Report,
    Row,
    total_variance,
)
from deniable.protocol.mechanisms.limits import MAX_CELLS, check_size, check_threshold
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
        check_size(self.name, size)
        if not 1 <= k < size:
            raise SchemeError(f"{self.name}: k must be from 1 to {size - 1}, not {k}")
        check_threshold(self.name, threshold, k, size)
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
        check_size(cls.name, size)
        odds = exp_below(epsilon)
        if k is not None:
            return cls._calibrated(size, k, odds)
        best = size / (odds + 1)
        candidates = {min(max(1, near), size - 1) for near in (math.floor(best), math.ceil(best))}
        return min(
            (cls._calibrated(size, near, odds) for near in sorted(candidates)),
            key=lambda mechanism: total_variance(mechanism.p, mechanism.q, size),
        )

    @classmethod
    def _calibrated(cls, size: int, k: int, odds: Fraction) -> Self:
        return cls(size, k, math.floor(ONE * odds * k / (odds * k + size - k)))

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
