"""The estimate of a hierarchical histogram: any sum of shares with its variance, in closed form.

`scores` beside this file has the formulas.

"Below this edge" for all d + 1 edges at once takes m_l K_l multiplications a row: the scores of a
row are linear between the edges of its nodes, so three averages for each node are enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.numbers.cell_sums import SchemeSums, quadratic
from deniable_estimator.analyses.numbers.scores import ARITY, Scores
from deniable_estimator.statistics.intervals import FloatArray


@dataclass(frozen=True, eq=False)
class TreePart(SchemeSums):
    """The tally of a hierarchical histogram."""

    scores: Scores
    counted: Sequence[TallyRow]
    """Those of the tree."""

    @property
    def cells(self) -> int:
        return self.scores.cells

    @property
    def seen(self) -> int:
        return self.scores.seen

    def fresh(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        value = np.zeros(len(weights))
        covariance = np.zeros((len(weights), len(weights)))
        found = self.scores.of(weights)
        for row, rate, spread, reports in self.rows():
            mean = found[row] @ rate
            value += mean
            covariance += ((found[row] * spread) @ found[row].T - np.outer(mean, mean)) / reports
        return value, covariance

    def edges(self) -> tuple[FloatArray, FloatArray]:
        table, cells = self.scores, self.scores.cells
        below, variance = np.zeros(cells + 1), np.zeros(cells + 1)
        for row, rate, spread, reports in self.rows():
            edges = table.edges[row]
            mean = edges @ rate
            square = np.einsum("ek,ek,k->e", edges, edges, spread)
            each = cells // ARITY ** (row + 1)
            if each == 1:
                below += mean
                variance += (square - mean**2) / reports
                continue
            both = np.einsum("ek,ek,k->e", edges[:-1], edges[1:], spread)
            part = np.arange(each) / each
            own, cross, after = (1 - part) ** 2, 2 * part * (1 - part), part**2
            squares = (
                np.outer(square[:-1], own) + np.outer(both, cross) + np.outer(square[1:], after)
            )
            means = np.outer(mean[:-1], 1 - part) + np.outer(mean[1:], part)
            below[:-1] += means.ravel()
            variance[:-1] += (squares - means**2).ravel() / reports
        return below, np.maximum(variance, 0.0)

    def spread(
        self, inside: FloatArray | None, within: FloatArray, without: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        asked = None if inside is None else self.scores.of(inside)
        added = np.zeros(len(within))
        sides: list[list[FloatArray]] = [[], []]
        for row, rate, spread, reports in self.rows():
            scored = None if asked is None else asked[row]
            mean, square = self.scores.moments(row, scored)
            nodes = mean.shape[1]
            for side, devices in zip(sides, (within, without), strict=True):
                told = devices.reshape(len(devices), nodes, -1).sum(axis=2)
                side.append(np.array([(mean * told).sum(axis=1), (square * told).sum(axis=1)]))
            if (noise := float((spread - rate).max())) > 0:
                score = self.scores.at_edges(row) if scored is None else scored
                added += noise * np.square(score).sum(axis=1) / reports
        if not sides[0]:
            return added, added, added
        reports_of = np.array([reports for *_, reports in self.rows()])[:, None]
        inner, outer = (np.array(side).swapaxes(0, 1) for side in sides)
        a, b, c = quadratic(inner, outer, reports_of)
        return a + added, b, c

    def planned_edges(self) -> FloatArray:
        return self.scores.planned_edges

    def rows(self) -> Iterator[tuple[int, FloatArray, FloatArray, float]]:
        """(row, rates, spreads, reports) of the rows that are used: their counters, and the
        variance of each, divided by the reports. It has what noise a release has added, and no part
        that two counters share."""
        for place, (row, live) in enumerate(zip(self.counted, self.scores.live, strict=True)):
            if live:
                rate = row.cells / row.reports
                yield place, rate, rate + row.noise / row.reports, float(row.reports)
