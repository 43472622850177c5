"""The joint table of a pair, which was reported by subset selection: the covariance of all its
cells, and conditional shares. `dependence` tests it, and `poisoning` says what fakes do to it.

A report holds k of d cells. For true cell x and other cells y, z, with p and q as in
`deniable.protocol.mechanisms.subset_selection` ::

    a = P(y and z in the report | x is y or z) = p (k-1) / (d-1)
    b = P(y and z in the report | x is neither) = [p (k-1)(k-2) + (1-p) k (k-1)] / ((d-1)(d-2))

so that, with r = q + f (p-q) and u = b/2 + (a-b) f ::

    Cov(f^) = [diag(r - 2u) + u1' + 1u' - rr'] / (n (p-q)**2)

Written by powers of f this is a diagonal and three matrices of rank one, and so is any sum of such
covariances. So the covariance of two weighted sums of cells takes O(d), and that of several schemes
has the same five numbers.

**Conditional shares**: of the devices with value i of the first list, how many have value j of the
second.

P(j | i) = N / D with N a cell and D the sum of its row of k cells. The interval holds all t in
[0, 1] with (Fieller, J. R. Stat. Soc. B 1954) ::

    (N - t D)**2 <= z**2 Var(N - t D)

where the variance is that for N = t D (Wilson, JASA 1927), in the numbers of `Covariance` ::

    own (1 - 2t + k t**2) + all (1 - k t)**2 + (own_share + kept) D t (1 - t)

The standard error is the root of the same at the estimated t, where N = t D, by D. In an interval
that variance would be about 0 where N is, so that with few reports and little
noise intervals would be far too short. The interval covers also where D is uncertain, and is all of
[0, 1] where D may be 0. The ratio itself means something only where D stands out.

Noise can bring an estimate below 0 or above 1. Its interval then reaches out to it: no true share
lies there, so the interval holds the truth exactly as often as without that.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.intervals import FloatArray, Noise, fieller_ends


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
        return (
            np.diag(self.own * sizes + (self.own_share + self.kept) * table)
            + self.all * np.outer(sizes, sizes)
            + self.all_share * (cross + cross.T)
            - (self.square + self.kept) * np.outer(table, table)
        )


LEAST_ERRORS = 3.0
"""A conditional is shown where its condition is this many standard errors above zero."""


class Conditionals(NamedTuple):
    """P(column j | row i), each of shape (k1, k2)."""

    share: FloatArray
    """Not clipped; NaN where the condition was never seen."""
    std_error: FloatArray
    """By the delta method, for tables; the interval does not use it."""
    low: FloatArray
    high: FloatArray
    """The ends of the interval, which holds the share where it is known."""
    known: NDArray[np.bool_]
    """Where the condition stands out; elsewhere there are too few devices to say anything."""


def conditionals(table: FloatArray, covariance: Covariance, level: float) -> Conditionals:
    """All conditionals of the columns, given the rows, at this level; `table` has shape (k1, k2).

    For those of the rows, given the columns, transpose the table, and the result.
    """
    c = covariance
    size = table.shape[1]
    given = table.sum(axis=1, keepdims=True)
    z2 = deviations(level) ** 2
    # What the variance for N = t D has without t, with -2t and with t**2.
    each = c.own_share + c.kept
    split = each * np.clip(given, 0.0, 1.0)
    plain, cross = c.own + c.all, c.own + c.all * size - split / 2
    square_of_t = c.own * size + c.all * size**2 - split
    leading = given**2 - z2 * square_of_t + np.zeros_like(table)
    ends = fieller_ends(leading, table * given - z2 * cross, table**2 - z2 * plain)
    # Of two rays outside of [0, 1] nothing is known.
    nothing = (leading < 0) & (ends[0] > ends[1])
    low, high = (
        np.clip(np.where(nothing, side, end), 0.0, 1.0)
        for side, end in zip((0.0, 1.0), ends, strict=True)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(given == 0, np.nan, table / given)
        variance = plain - 2 * share * cross + share**2 * square_of_t
        variance += (each * given - split) * share * (1 - share)
        variance = np.maximum(variance, 0.0) / given**2
    error = np.sqrt(c.noise(size, 1).at(given))
    known = np.broadcast_to(given > LEAST_ERRORS * error, table.shape)
    low = np.where(known, np.minimum(low, share), low)
    high = np.where(known, np.maximum(high, share), high)
    return Conditionals(share, np.sqrt(variance), low, high, known)
