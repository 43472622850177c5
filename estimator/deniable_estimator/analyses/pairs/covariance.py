"""The covariance of all cells of a joint table that was reported by subset selection.

A report holds k of d cells. For true cell x and other cells y, z, with p and q as in
`deniable.protocol.mechanisms.subset_selection` ::

    a = P(y and z in the report | x is y or z) = p (k-1) / (d-1)
    b = P(y and z in the report | x is neither) = [p (k-1)(k-2) + (1-p) k (k-1)] / ((d-1)(d-2))

so that, with r = q + f (p-q) and u = b/2 + (a-b) f ::

    Cov(f^) = [diag(r - 2u) + u1' + 1u' - rr'] / (n (p-q)**2)

Written by powers of f this is a diagonal and three matrices of rank one, and so is any sum of such
covariances. So the covariance of two weighted sums of cells takes O(d), and that of several schemes
has the same five numbers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.statistics.intervals import FloatArray, Noise


@dataclass(frozen=True)
class Covariance:
    """Cov(f^) = own I + own_share diag(f) + all 11' + all_share (1f' + f1') - square ff',
    and kept (diag(f) - ff') in addition."""

    own: float
    own_share: float
    all: float
    all_share: float
    square: float
    step: float
    """How far one report moves the estimate of a cell."""
    kept: float = 0.0
    """What repeated reports of the same devices add (see `Participation`)."""

    @classmethod
    def of(cls, mechanism: SubsetSelection, n: int, repeats: float = 1.0) -> Self:
        """That of n reports of one scheme, n > 0."""
        p, q, k, d = mechanism.p, mechanism.q, mechanism.k, mechanism.size
        a = p * Fraction(k - 1, d - 1)
        b = Fraction(k - 1) * (p * (k - 2) + (1 - p) * k) / ((d - 1) * (d - 2))
        rise = p - q
        scale = n * rise**2
        return cls(
            own=float((q - b) / scale),
            own_share=float((rise - 2 * (a - b)) / scale),
            all=float((b - q**2) / scale),
            all_share=float((a - b - q * rise) / scale),
            square=1 / n,
            step=float(1 / (n * rise)),
            kept=(repeats - 1) / n,
        )

    def weighted(self, weight: float) -> Covariance:
        """That of the estimates times `weight`."""
        parts = {name: weight**2 * each for name, each in asdict(self).items()}
        return Covariance(**{**parts, "step": weight * self.step})

    def __add__(self, other: Covariance) -> Covariance:
        """That of the sum of two independent estimates."""
        others = asdict(other)
        sums = {name: each + others[name] for name, each in asdict(self).items()}
        return Covariance(**{**sums, "step": max(self.step, other.step)})

    def noise(self, cells: int, size: int) -> Noise:
        """The noise of `size` sums, each of so many different cells, by their true share."""
        full = np.ones(size)
        zero = np.zeros(size)
        kept = Noise(zero, self.kept * full, self.kept * full, zero) if self.kept else None
        return Noise(
            (self.own * cells + self.all * cells**2) * full,
            (self.own_share + 2 * self.all_share * cells) * full,
            self.square * full,
            self.step * full,
            kept,
        )

    def matrix(self, table: FloatArray, sizes: FloatArray) -> FloatArray:
        """The covariance of a table of sums of cells, shape (d', d'); `sizes` says how many cells
        each sum has, both of shape (d',)."""
        cross = np.outer(sizes, table)
        found: FloatArray = (
            np.diag(self.own * sizes + (self.own_share + self.kept) * table)
            + self.all * np.outer(sizes, sizes)
            + self.all_share * (cross + cross.T)
            - (self.square + self.kept) * np.outer(table, table)
        )
        return found
