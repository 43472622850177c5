"""Conditional shares: of the devices with value i of the first list, how many have value j of the
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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.intervals import FloatArray, fieller_ends

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

    def turned(self) -> Conditionals:
        """Those of a table whose rows and columns change places."""
        return Conditionals(self.share.T, self.std_error.T, self.low.T, self.high.T, self.known.T)


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
