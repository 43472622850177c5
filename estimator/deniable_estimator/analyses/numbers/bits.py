"""The estimate of dBitFlip: any sum of shares with its variance, from the counts of noisy bits.

The k cells are dealt to R rows of d bits. Each row has a crowd of its own, drawn whatever the
numbers are, so n reports of a row in which c_j set the bit of cell j estimate its share ::

    f_j = (c_j / n - s) / (1 - 2 s)                 s = the chance that a bit is flipped

What is asked for is W . f. All shares sum to 1, so with w, the average of W over all cells,
w + (W - w) . f is the same, and has the least noise, as all shares have equal errors. Given its
number, the bits of a report are independent, and a number sets one bit of its row or none. So for
the weights C = W - w of one row ::

    variance = [V |C|**2 + S] / n,   V = s (1-s) / (1 - 2 s)**2,   S = C**2 . f - (C . f)**2

S is the choice of devices, and V the noise. A device that reports again keeps its row, its number
and the memo, which has the same form with a in place of s (the chance that a bit of it is flipped),
and only the noise of the report is new. If devices reported `repeats` times
(`deniable_estimator.statistics.participation`), then ::

    variance = [V |C|**2 + S + (repeats - 1) (V1 |C|**2 + S)] / n,   V1 = a (1-a) / (1 - 2 a)**2

S is taken from the estimates of f, which noise can make too small: it is never below 0 in all. A
bit says nothing of the cells of other rows, so if one row has too few reports, nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.numbers.cell_sums import SchemeSums, quadratic
from deniable_estimator.statistics.intervals import FloatArray


@dataclass(frozen=True, eq=False)
class BitPart(SchemeSums):
    """The tally of dBitFlip."""

    shares: FloatArray
    """The share of each cell from its row alone, shape (k,); unbiased. 0 if nothing is known."""
    noise: FloatArray
    """V, with (repeats - 1) V1 and what a release has added, of each row; shape (R,)."""
    planned: float
    """n times the variance of the noise in the share of a cell."""
    repeats: float
    live: bool
    """Whether all rows have enough reports."""

    @property
    def cells(self) -> int:
        return len(self.shares)

    @property
    def seen(self) -> int:
        return 1 if self.live else self.cells

    def fresh(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        centred = weights - weights.mean(axis=1, keepdims=True)
        noise, each, told = self._terms(centred)
        covariance = (centred * each) @ centred.T - told @ told.T
        np.fill_diagonal(covariance, np.maximum(np.diag(covariance), np.square(centred) @ noise))
        return centred @ self.shares, covariance

    def edges(self) -> tuple[FloatArray, FloatArray]:
        weights = np.tri(self.cells + 1, self.cells, -1)
        centred = weights - weights.mean(axis=1, keepdims=True)
        noise, each, told = self._terms(centred)
        variance = np.square(centred) @ each - np.square(told).sum(axis=1)
        return centred @ self.shares, np.maximum(variance, np.square(centred) @ noise)

    def spread(
        self, inside: FloatArray | None, within: FloatArray, without: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        if inside is None:
            inside = np.tri(self.cells - 1, self.cells)
        # The number of a device scores its weight in its own row, and nothing in the others.
        centred = inside - inside.mean(axis=1, keepdims=True)
        count = len(self.row_reports)
        inner, outer = (
            np.array(
                [
                    (devices * centred**power).reshape(len(inside), -1, count).sum(axis=1).T
                    for power in (1, 2)
                ]
            )
            for devices in (within, without)
        )
        reports = (self.row_reports / self.repeats)[:, None]
        a, b, c = quadratic(inner, outer, reports)
        noise = np.broadcast_to(self.noise / self.row_reports, (self.cells // count, count))
        return a + np.square(centred) @ noise.ravel(), b, c

    def planned_edges(self) -> FloatArray:
        below = np.arange(self.cells + 1)
        return np.asarray(self.planned * below * (self.cells - below) / self.cells)

    def _terms(self, centred: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """V / n and (V + f_j) / n for each cell, shape (k,), and (C . f) / sqrt(n) for each row,
        shape (f, R); all with what devices keep."""
        count = len(self.row_reports)
        grid = self.shares.reshape(-1, count)
        noise = np.broadcast_to(self.noise / self.row_reports, grid.shape)
        each = noise + self.repeats * grid / self.row_reports
        told = (centred.reshape(len(centred), -1, count) * grid).sum(axis=1)
        return noise.ravel(), each.ravel(), told * np.sqrt(self.repeats / self.row_reports)


def cell_shares(mechanism: DBitFlip, rows: Sequence[TallyRow]) -> FloatArray:
    """The unbiased share of each cell, shape (k,); 0 in rows without reports."""
    s = float(mechanism.flipped)
    told = [(row.cells / max(1, row.reports) - s) / (1 - 2 * s) for row in rows]
    shares = np.where([row.reports > 0 for row in rows], np.array(told).T, 0.0)
    # Cell j is bit j // rows of row j mod rows.
    return np.asarray(shares.ravel())


def bit_noise(flipped: float) -> float:
    """The variance of a share from one bit that is flipped so often."""
    return flipped * (1 - flipped) / (1 - 2 * flipped) ** 2
