"""Trees of several schemes with the same cells, averaged with weights that depend on no data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable_estimator.analyses.numbers.tree import TreeEstimate
from deniable_estimator.statistics.intervals import FloatArray

__all__ = ["PooledTree"]


@dataclass(frozen=True, eq=False)
class PooledTree:
    """What several trees say together; it answers what a `TreeEstimate` answers.

    A weight of its own for each tree keeps every sum of shares linear in the counters, so that the
    average is unbiased. That the same devices may have reported under several schemes adds
    `same` F (1 - F) to the variance of a share F.
    """

    parts: tuple[TreeEstimate, ...]
    weights: tuple[float, ...]
    """With a sum of 1."""
    same: float
    """`together` of `deniable_estimator.statistics.participation`."""

    @property
    def cells(self) -> int:
        """Those of every part."""
        return self.parts[0].cells

    @property
    def reports(self) -> int:
        """Of all parts."""
        return sum(part.reports for part in self.parts)

    @property
    def below(self) -> FloatArray:
        """The share below each edge, shape (d + 1,)."""
        return self._total([part.below for part in self.parts], 1)

    @property
    def variance(self) -> FloatArray:
        """Of `below`."""
        below = self.below
        found = self._total([part.variance for part in self.parts], 2)
        return np.asarray(found + self.same * _spread(below, found))

    def share(self, start: float, end: float) -> tuple[float, float]:
        """The share between two edges, and its variance."""
        found = [part.share(start, end) for part in self.parts]
        pairs = list(zip(self.weights, found, strict=True))
        share = sum(weight * each for weight, (each, _) in pairs)
        variance = sum(weight**2 * each for weight, (_, each) in pairs)
        if math.isinf(variance):
            return share, variance
        more = _spread(np.array(share), np.array(variance))
        return share, variance + self.same * float(more)

    def _total(self, columns: Sequence[FloatArray], power: int) -> FloatArray:
        weights = np.array(self.weights) ** power
        return np.asarray(weights @ np.array(columns))


def _spread(share: FloatArray, variance: FloatArray) -> FloatArray:
    """F (1 - F) at the F nearest to 1/2 that is within two standard errors."""
    reach = 2 * np.sqrt(variance)
    nearest = np.clip(np.clip(0.5, share - reach, share + reach), 0.0, 1.0)
    return np.asarray(nearest * (1 - nearest))
