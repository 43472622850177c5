"""The estimate of a hierarchical histogram: any sum of shares with its variance, in closed form.

`scores` beside this file has the formulas. The estimates are linear in the counters: unbiased, not
clipped, and their variance comes from the same counters. It is that of the share in the population
that the devices were drawn from.

"Below this edge" for all d + 1 edges at once takes m_l K_l multiplications a row: the scores of a
row are linear between the edges of its nodes, so three averages for each node are enough.

If the same devices reported `repeats` times (`Participation.repeats`), what they keep is W at their
number, since rows are drawn anew. So (repeats - 1) V1 / n is added, V1 = the variance of W over
devices. It is not known, and is taken at the upper end of two standard errors, but never above the
most that is possible: F (1 - F) at the F nearest to 1/2, or a quarter of the square of what W
spans.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.numbers.scores import ARITY, Scores, scores
from deniable_estimator.statistics.intervals import FloatArray

__all__ = ["LEAST_ROW", "TreeEstimate", "estimate_tree"]

LEAST_ROW = 30
"""A row with fewer reports is left out: its variance could not be estimated."""

_CAUTION = 2.0
"""Standard errors by which what devices keep may exceed its estimate."""


@dataclass(frozen=True, eq=False)
class TreeEstimate:
    """The share of numbers below each edge, and any other sum of shares of the d cells."""

    below: FloatArray
    """Shape (d + 1,), for the edges 0 to d; the first is 0 and the last is 1. Where the variance
    is infinite, the share is spread evenly over what the rows do tell apart."""
    variance: FloatArray
    """Shape (d + 1,); infinite for edges that no row with enough reports sees."""
    reports: int
    """All reports of the tally, also in rows that are not used: of those that one device sent,
    a part falls into each row, so that what it keeps counts for as much."""
    repeats: float
    scores: Scores
    _rates: tuple[FloatArray, ...]
    """Counters divided by the reports of their row, shape (K,) each."""
    _row_reports: FloatArray

    @property
    def cells(self) -> int:
        """d, with the one below `low` and the one from `high` on."""
        return self.scores.cells

    def linear(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums W . f over the cells, for f questions: their values, shape (f,), and covariances,
        shape (f, f).

        Args:
            weights: W, shape (f, d).

        A question that the rows cannot answer has an infinite variance and covariances of 0. What
        devices keep is in the variances alone.
        """
        weights = np.asarray(weights, np.float64)
        value, covariance = self.fresh(weights)
        if self.repeats > 1 and self.reports:
            covariance += np.diag(self.kept(weights) * (self.repeats - 1) / self.reports)
        return value, covariance

    def kept(self, weights: FloatArray) -> FloatArray:
        """Bounds of the variances over devices of W at a device's number, shape (f,)."""
        value, _ = self.fresh(weights)
        squares, noise = self.fresh(weights**2)
        reach = _CAUTION * np.sqrt(np.diag(noise))
        return np.clip(squares + reach - value**2, 0.0, np.square(np.ptp(weights, axis=1)) / 4)

    def share(self, start: float, end: float) -> tuple[float, float]:
        """The share of numbers between two edges (0 to d), and its variance.

        Within a cell numbers count as evenly spread, so at edge 2.25 a quarter of cell 2 lies
        below.
        """
        value, variance = (end - start) / self.cells, 0.0
        for row, (rate, reports) in enumerate(zip(self._rates, self._row_reports, strict=True)):
            if self.scores.live[row]:
                each = self.scores.below(row, end) - self.scores.below(row, start)
                mean = float(each @ rate)
                value += mean
                variance += max(0.0, float((each * each) @ rate) - mean**2) / reports
        if start < end and not self._sees(start, end):
            return value, math.inf
        kept = self._kept(np.array(value), np.array(variance))
        return value, float(variance + kept)

    def _sees(self, *edges: float) -> bool:
        """Whether the rows tell these edges apart from others."""
        around = [side(edge) for edge in edges for side in (math.floor, math.ceil)]
        return all(edge % self.scores.seen == 0 for edge in around)

    def _kept(self, share: FloatArray, variance: FloatArray) -> FloatArray:
        """What devices that keep their numbers add to the variance of shares."""
        return _kept(share, variance, self.repeats, self.reports)

    def fresh(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`linear` for reports of different devices."""
        value = weights.mean(axis=1)
        covariance = np.zeros((len(weights), len(weights)))
        found = self.scores.of(weights)
        for row, (each, rate) in enumerate(zip(found, self._rates, strict=True)):
            if self.scores.live[row]:
                mean = each @ rate
                value += mean
                square = (each * rate) @ each.T - np.outer(mean, mean)
                covariance += square / self._row_reports[row]
        seen = weights.reshape(len(weights), -1, self.scores.seen)
        blind = np.flatnonzero(np.ptp(seen, axis=2).max(axis=1) > 0)
        covariance[blind, :] = covariance[:, blind] = 0.0
        covariance[blind, blind] = np.inf
        return value, covariance


def estimate_tree(
    mechanism: HierarchicalHistogram,
    rows: Sequence[TallyRow],
    repeats: float = 1.0,
    least: int = LEAST_ROW,
) -> TreeEstimate:
    """What the rows of a tally say; the mean's row, if there is one, is not used.

    Args:
        rows: of the tally, in the order of the mechanism's.
        repeats: how often the same devices reported (`Participation.repeats`).
        least: rows with fewer reports are left out.
    """
    reports = sum(row.reports for row in rows)
    rows = rows[: mechanism.height]
    live = tuple(row.reports >= max(1, least) for row in rows)
    table = scores(mechanism, live)
    rates = tuple(row.cells / max(1, row.reports) for row in rows)
    counts = np.array([row.reports for row in rows], np.float64)
    below, variance = _edges(table, rates, counts)
    variance = variance + _kept(below, variance, repeats, reports)
    return TreeEstimate(below, variance, reports, repeats, table, rates, counts)


def _kept(share: FloatArray, variance: FloatArray, repeats: float, reports: int) -> FloatArray:
    """(repeats - 1) F (1 - F) / n at the F nearest to 1/2 that is possible."""
    if repeats <= 1 or not reports:
        return np.zeros_like(share)
    reach = _CAUTION * np.sqrt(variance)
    nearest = np.clip(np.clip(0.5, share - reach, share + reach), 0.0, 1.0)
    return np.asarray((repeats - 1) * nearest * (1 - nearest) / reports)


def _edges(
    table: Scores, rates: tuple[FloatArray, ...], reports: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The shares below all edges and their variances."""
    cells = table.cells
    below = np.arange(cells + 1) / cells
    variance = np.zeros(cells + 1)
    for row, (edges, rate) in enumerate(zip(table.edges, rates, strict=True)):
        if not table.live[row]:
            continue
        mean = edges @ rate
        square = np.einsum("ek,ek,k->e", edges, edges, rate)
        each = cells // ARITY ** (row + 1)
        if each == 1:
            below += mean
            variance += (square - mean**2) / reports[row]
            continue
        both = np.einsum("ek,ek,k->e", edges[:-1], edges[1:], rate)
        part = np.arange(each) / each
        own, cross, after = (1 - part) ** 2, 2 * part * (1 - part), part**2
        squares = np.outer(square[:-1], own) + np.outer(both, cross) + np.outer(square[1:], after)
        means = np.outer(mean[:-1], 1 - part) + np.outer(mean[1:], part)
        below[:-1] += means.ravel()
        variance[:-1] += (squares - means**2).ravel() / reports[row]
    blind = np.arange(cells + 1) % table.seen > 0
    variance = np.where(blind, np.inf, np.maximum(variance, 0.0))
    return below, variance
