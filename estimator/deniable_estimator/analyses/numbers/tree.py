"""The estimate of a hierarchical histogram: any sum of shares with its variance, in closed form.

`scores` beside this file has the formulas. The estimates are linear in the counters: unbiased, not
clipped, and their variance comes from the same counters. It is that of the share in the population
that the devices were drawn from.

"Below this edge" for all d + 1 edges at once takes m_l K_l multiplications a row: the scores of a
row are linear between the edges of its nodes, so three averages for each node are enough.

If the same devices reported `repeats` times (`deniable_estimator.statistics.participation`), what
they keep is W at their number, since rows are drawn anew. So (repeats - 1) / n times V1 is added,
V1 = the variance of W over devices. It is not known, and is taken at the upper end of two standard
errors, but never above the most that is possible: F (1 - F) at the F nearest to 1/2, or a quarter
of the square of what W spans.

Estimates under several schemes with the same cells are averaged with one weight each, for all
questions the same, so that shares still add up. A weight is the reports over the planned variance
of the curve, which does not depend on the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.numbers.scores import ARITY, Scores, scores
from deniable_estimator.statistics.intervals import FloatArray

__all__ = [
    "LEAST_ROW",
    "TreeEstimate",
    "TreePart",
    "combine_trees",
    "estimate_tree",
    "tree_weights",
]

LEAST_ROW = 30
"""A row with fewer reports is left out: its variance could not be estimated."""

_SAMPLING = 1 / 6
"""F (1 - F) on average over all F."""

_CAUTION = 2.0
"""Standard errors by which what devices keep may exceed its estimate."""


@dataclass(frozen=True, eq=False)
class TreePart:
    """The tally of one scheme, and what it counts for."""

    weight: float
    scores: Scores
    rates: tuple[FloatArray, ...]
    """Counters divided by the reports of their row, shape (K,) each."""
    row_reports: FloatArray

    def rows(self) -> Iterator[tuple[int, FloatArray, float]]:
        """(row, rates, reports) of the rows that are used."""
        for row, live in enumerate(self.scores.live):
            if live:
                yield row, self.rates[row], float(self.row_reports[row])


@dataclass(frozen=True, eq=False)
class TreeEstimate:
    """The share of numbers below each edge, and any other sum of shares of the d cells."""

    below: FloatArray
    """Shape (d + 1,), for the edges 0 to d; the first is 0 and the last is 1. Where the variance
    is infinite, the share is spread evenly over what the rows do tell apart."""
    variance: FloatArray
    """Shape (d + 1,); infinite for edges that no row with enough reports sees."""
    reports: int
    """All reports of the tally, also in rows that are not used."""
    shared: float
    """By what part of V1 the variance is larger because the same devices report again. All reports
    count: of those that one device sent, a part falls into each row."""
    parts: tuple[TreePart, ...]

    @property
    def cells(self) -> int:
        """d, with the one below `low` and the one from `high` on."""
        return len(self.below) - 1

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
        if self.shared:
            covariance += np.diag(self.kept(weights) * self.shared)
        return value, covariance

    def kept(self, weights: FloatArray) -> FloatArray:
        """Bounds of the variances over devices of W at a device's number, shape (f,)."""
        value, _ = self.fresh(weights)
        squares, noise = self.fresh(weights**2)
        reach = _CAUTION * np.sqrt(np.maximum(np.diag(noise), 0.0))
        return np.clip(squares + reach - value**2, 0.0, np.square(np.ptp(weights, axis=1)) / 4)

    def share(self, start: float, end: float) -> tuple[float, float]:
        """The share of numbers between two edges (0 to d), and its variance.

        Within a cell numbers count as evenly spread, so at edge 2.25 a quarter of cell 2 lies
        below.
        """
        value, variance = (end - start) / self.cells, 0.0
        for part in self.parts:
            for row, rate, reports in part.rows():
                each = part.scores.below(row, end) - part.scores.below(row, start)
                mean = float(each @ rate)
                value += part.weight * mean
                spread = max(0.0, float((each * each) @ rate) - mean**2)
                variance += part.weight**2 * spread / reports
        if start < end and not self._sees(start, end):
            return value, math.inf
        return value, float(variance + _kept(np.array(value), np.array(variance), self.shared))

    def fresh(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`linear` for reports of different devices."""
        value = weights.mean(axis=1)
        covariance = np.zeros((len(weights), len(weights)))
        blind = np.zeros(len(weights), np.bool_)
        for part in self.parts:
            found = part.scores.of(weights)
            for row, rate, reports in part.rows():
                mean = found[row] @ rate
                value += part.weight * mean
                square = (found[row] * rate) @ found[row].T - np.outer(mean, mean)
                covariance += part.weight**2 * square / reports
            seen = weights.reshape(len(weights), -1, part.scores.seen)
            blind |= np.ptp(seen, axis=2).max(axis=1) > 0
        places = np.flatnonzero(blind)
        covariance[places, :] = covariance[:, places] = 0.0
        covariance[places, places] = np.inf
        return value, covariance

    def _sees(self, *edges: float) -> bool:
        """Whether the rows tell these edges apart from others."""
        around = [side(edge) for edge in edges for side in (math.floor, math.ceil)]
        return all(edge % part.scores.seen == 0 for edge in around for part in self.parts)


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
    shared = (repeats - 1) / reports if reports else 0.0
    variance = variance + _kept(below, variance, shared)
    return TreeEstimate(below, variance, reports, shared, (TreePart(1.0, table, rates, counts),))


def combine_trees(estimates: Sequence[TreeEstimate], extra: float = 0.0) -> TreeEstimate:
    """The average of estimates of one crowd under several schemes with the same edges.

    Args:
        extra: what is added to `shared`, because the same devices used several schemes
            (`deniable_estimator.statistics.participation.together`).

    Raises:
        ValueError: there is no estimate, or they have different numbers of cells.
    """
    if len({each.cells for each in estimates}) != 1:
        raise ValueError("estimates are averaged over the same cells")
    weights = tree_weights(estimates)
    if not any(weights):
        return estimates[0]
    used = [(each, weight) for each, weight in zip(estimates, weights, strict=True) if weight]
    below = sum(weight * each.below for each, weight in used)
    shared = extra + sum(weight**2 * each.shared for each, weight in used)
    parts = tuple(
        replace(part, weight=weight * part.weight) for each, weight in used for part in each.parts
    )
    noise = sum(part.weight**2 * _part_noise(part) for part in parts)
    variance = noise + _kept(np.asarray(below), np.asarray(noise), shared)
    reports = sum(each.reports for each, _ in used)
    return TreeEstimate(np.asarray(below), np.asarray(variance), reports, shared, parts)


def tree_weights(estimates: Sequence[TreeEstimate]) -> list[float]:
    """The weights that `combine_trees` gives them: with a sum of 1, or all 0 if nothing is known.

    A scheme of which a row has too few reports gets none if others have enough in all.
    """
    depth = max((part.scores.depth for each in estimates for part in each.parts), default=0)
    told = []
    for each in estimates:
        worth = 0.0
        for part in each.parts:
            planned = part.scores.planned_edges()[1:-1]
            if part.scores.depth == depth and depth:
                known = planned[np.isfinite(planned)]
                worth += float(part.row_reports.sum()) / (float(known.mean()) + _SAMPLING)
        told.append(worth)
    total = sum(told)
    return [worth / total if total else 0.0 for worth in told]


def _part_noise(part: TreePart) -> FloatArray:
    return _edges(part.scores, part.rates, part.row_reports)[1]


def _kept(share: FloatArray, variance: FloatArray, shared: float) -> FloatArray:
    """`shared` times F (1 - F) at the F nearest to 1/2 that is possible."""
    reach = _CAUTION * np.sqrt(variance)
    nearest = np.clip(np.clip(0.5, share - reach, share + reach), 0.0, 1.0)
    return np.asarray(shared * nearest * (1 - nearest))


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
