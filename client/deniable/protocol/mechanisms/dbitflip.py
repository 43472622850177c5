"""dBitFlip: noisy bits of a histogram, with memos, for a number that is reported again and again.

The range is cut into k cells, of which the first holds what is below `low` and the last what is at
or above `high`. The cells are dealt to k / d rows: cell j is bit j // rows of row j mod rows, so
that neighbours, between which a number moves most often, are in different rows. A device draws its
row for ever. The bit of its own cell is 1, if its row has that cell, and all others are 0. All d
bits have noise (Ding, Kulkarni and Yekhanin, "Collecting Telemetry Data Privately", NeurIPS 2017,
with the output perturbation of that paper)::

    memo:        each bit is flipped with probability a = A / 2**53, once for ever
    report:      each bit of the memo is flipped with probability g = G / 2**53
    one report:  P(1 | bit 0) = s = a (1-g) + g (1-a),  P(1 | bit 1) = 1 - s

Two cells of a row differ in two bits, a cell and one of another row in one bit, and two memos
in all d. With c = 2, or c = 1 if rows have one bit::

    e**epsilon  = [(1-s) / s]**c        one report
    e**lifetime = [(1-a) / a]**c        one memo
    e**fresh    = [(1-g) / g]**d        one report, given the memos

Without the flips of a report, it would show exactly when the memo changes, and no finite number
would bound that; so there are always some.

Two things differ from the paper. There each device draws any d cells; here cells are grouped once
for all devices, so that a tally has k counters. And all cells of other rows share one entry, whose
bits are 0, and so one memo, where the paper draws a memo for each. So a device has fewer memos, and
a move among these cells is not seen at all.

The shares of all cells sum to 1. With this, the noise of an estimate from n reports of W . f, the
sum of the shares times weights whose average over all cells is w, is ::

    n Var = (k / d) V * sum of (W_j - w)**2,    V = s (1-s) / (1 - 2 s)**2

More bits in a row mean less noise, and a larger `fresh`: each bit may show that a value changed.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from typing import ClassVar, Self

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms.base import ONE, Memoizing, Packing, Report, Row
from deniable.protocol.mechanisms.limits import check_memo_epsilon
from deniable.protocol.mechanisms.number_range import Histogram, NumberRange
from deniable.protocol.randomness import PRECISION, Bits, flips, system_bits

DBITFLIP_CELLS = (4, 16, 64, 256)
"""How many cells there may be. At epsilon 1 the shares below the edges of 1,024 would have over a
thousand times the variance of a hierarchical histogram."""

CELLS = 16
"""The cells of a design that does not say another number: as fine as small crowds can tell."""

BIT_CHOICES = (1, 2, 4, 8, 16)
"""The bits of a report that `design` chooses from; 16 are 2 bytes. What a report reveals about a
change grows with them."""


class DBitFlip(Histogram, Memoizing[int]):
    """`cells` cells in rows of `bits` bits, with thresholds A (`memo`) and G (`fresh`) of 2**53.

    Attributes:
        flipped: s, the chance that a bit of one report is flipped.
        memo_flipped: a, the same for a memo.

    Raises:
        SchemeError: the number of cells or bits is none of these, or a threshold is not above 0 and
            below one half.
    """

    name: ClassVar[str] = "dbitflip"
    bounds: ClassVar = {
        "range": NumberRange,
        "cells": (1, DBITFLIP_CELLS[-1]),
        "bits": (1, DBITFLIP_CELLS[-1]),
        "memo": (1, ONE - 1),
        "fresh": (1, ONE - 1),
    }

    def __init__(self, range: NumberRange, cells: int, bits: int, memo: int, fresh: int) -> None:
        if cells not in DBITFLIP_CELLS:
            choices = ", ".join(map(str, DBITFLIP_CELLS))
            raise SchemeError(f"{self.name}: cells must be one of {choices}, not {cells}")
        if not 0 < bits <= cells or cells % bits:
            raise SchemeError(f"{self.name}: bits must divide the {cells} cells, not {bits}")
        for name, threshold in (("memo", memo), ("fresh", fresh)):
            if not 0 < threshold < ONE // 2:
                raise SchemeError(
                    f"{self.name}: {name} = {threshold} of 2**{PRECISION} must be above 0 and "
                    "below one half: other flips reveal everything, or nothing"
                )
        self.range, self.cells, self.bits = range, cells, bits
        self.memo, self.fresh = memo, fresh
        self.edges = range.edges(cells)
        self.rows = (Row(bits, Packing.BITMAP, None),) * (cells // bits)
        self.memo_flipped, again = Fraction(memo, ONE), Fraction(fresh, ONE)
        self.flipped = self.memo_flipped * (1 - again) + again * (1 - self.memo_flipped)
        apart = 1 if bits == 1 else 2
        self.odds = (1 / self.flipped - 1) ** apart
        self.lifetime_odds = (1 / self.memo_flipped - 1) ** apart
        self.fresh_odds = (1 / again - 1) ** bits

    @classmethod
    def design(
        cls, range: NumberRange, epsilon: float, lifetime_epsilon: float, cells: int = CELLS
    ) -> Self:
        """The least variance within both epsilons, over BIT_CHOICES.

        The memo has all of `lifetime_epsilon`, which leaves the most fresh noise, and so the least
        to be seen of changes. Of equal variances the fewer bits are taken. Whole numbers take
        fewer cells, if these are enough for one each.

        Raises:
            SchemeError: there is no design over so many cells, or the lifetime is not above
                `epsilon`.
        """
        check_memo_epsilon(epsilon, lifetime_epsilon)
        cells = range.enough(cells, DBITFLIP_CELLS)
        designs = [
            cls(range, cells, each, *_thresholds(each, epsilon, lifetime_epsilon))
            for each in BIT_CHOICES
            if each == 1 or each <= cells
        ]
        return min(designs, key=lambda each: each.share_variance)

    @property
    def share_variance(self) -> Fraction:
        """n times the variance of the noise in the share of a cell, from its row alone."""
        return len(self.rows) * self.flipped * (1 - self.flipped) / (1 - 2 * self.flipped) ** 2

    def place(self, position: int) -> tuple[int, int]:
        """The row and the bit of the cell that a position falls into."""
        bit, row = divmod(bisect_right(self.edges, position), len(self.rows))
        return row, bit

    def cell(self, row: int, item: int) -> int:
        own, bit = self.place(item)
        return bit if own == row else self.bits

    def memoize(self, cell: int, bits: Bits = system_bits) -> int:
        true = 1 << cell if cell < self.bits else 0
        return true ^ flips(0, self.bits, self.memo, self.memo, bits)

    def report(self, row: int, memo: int, bits: Bits = system_bits) -> Report:
        return Report(row, memo ^ flips(0, self.bits, self.fresh, self.fresh, bits))

    def likelihood(self, report: Report, item: int) -> Fraction:
        entry = self.cell(report.row, item)
        true = 1 << entry if entry < self.bits else 0
        wrong = (report.columns ^ true).bit_count()
        return self.flipped**wrong * (1 - self.flipped) ** (self.bits - wrong) / len(self.rows)

    @property
    def edge_variance(self) -> float:
        # Below edge t of k it is t (k - t) / k times that of a cell.
        return float(self.share_variance * (self.cells + 1) / 6)


def _thresholds(bits: int, epsilon: float, lifetime_epsilon: float) -> tuple[int, int]:
    """A and G, rounded up: with more noise than the epsilons need."""
    apart = 1 if bits == 1 else 2
    memo = math.ceil(ONE / (exp_below(lifetime_epsilon / apart) + 1))
    kept = Fraction(memo, ONE)
    wanted = 1 / (exp_below(epsilon / apart) + 1)
    return memo, max(1, math.ceil(ONE * (wanted - kept) / (1 - 2 * kept)))
