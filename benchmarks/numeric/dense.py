"""The recommended estimate in its plainest form: one dense matrix for each row, no structure used.

The curve of least squares is written as an average of scores of columns, edge by edge; the
monotone fit is scipy's. The intervals of quantiles must be as wide as those of the package.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable_collector.tally import TallyRow

Floats = NDArray[np.float64]


class DenseHistogram:
    """Scores of every column for the share below every edge."""

    def __init__(self, mechanism: HierarchicalHistogram) -> None:
        cells = mechanism.cells
        curves = np.tril(np.ones((cells, cells)))[:-1]
        nodes = [level.nodes for level in mechanism.levels]
        averages = [curves.reshape(cells - 1, each, -1).mean(axis=2) for each in nodes]
        self.start = curves.mean(axis=1)
        details, parent = [], self.start[:, None]
        for average in averages:
            details.append(average - np.repeat(parent, 4, axis=1))
            parent = average
        worth = []
        for level, weight in zip(mechanism.levels, mechanism.weights, strict=True):
            p, q, m = float(level.oracle.p), float(level.oracle.q), level.nodes
            noise = (p * (1 - p) + (m - 1) * q * (1 - q)) / ((p - q) ** 2 * (m - 1))
            worth.append(weight / 16 / noise * cells / m)
        self.scores = []
        for row, level in enumerate(mechanism.levels):
            own = np.zeros((level.nodes, level.columns))
            for node in range(level.nodes):
                own[node, [cell.column for cell in level.oracle.support(node)]] = 1
            weights = sum(
                worth[row] / sum(worth[depth:]) * np.repeat(details[depth], level.nodes // m, 1)
                for depth, m in enumerate(nodes[: row + 1])
            )
            self.scores.append(weights @ own / float(level.oracle.p - level.oracle.q))

    def bands(self, rows: tuple[TallyRow, ...], z: float) -> tuple[Floats, Floats]:
        """The tightest monotone bands about the monotone curve, shape (cells - 1,) each."""
        below, variance = self.start.copy(), np.zeros(len(self.start))
        for scores, row in zip(self.scores, rows, strict=False):
            mean = scores @ row.cells / row.reports
            below += mean
            variance += (scores**2 @ row.cells / row.reports - mean**2) / row.reports
        curve = isotonic_regression(below, weights=1 / variance).x
        half = z * np.sqrt(variance)
        low = np.maximum.accumulate(curve - half)
        return low, np.minimum.accumulate((curve + half)[::-1])[::-1]

    def cells(self, rows: tuple[TallyRow, ...], p: float, z: float) -> tuple[int, int]:
        """Between which edges quantile p lies; 0 and the number of cells are no limit."""
        low, high = self.bands(rows, z)
        above = np.flatnonzero(low >= p)
        last = int(above[0]) + 1 if len(above) else len(low) + 1
        return min(int((high < p).sum()), last - 1), last
