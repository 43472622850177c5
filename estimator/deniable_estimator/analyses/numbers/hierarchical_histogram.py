"""The estimate of a hierarchical histogram: any sum of shares with its variance, in closed form.

`scores` beside this file has the formulas.

"Below this edge" for all d + 1 edges at once takes m_l K_l multiplications a row: the scores of a
row are linear between the edges of its nodes, so three averages for each node are enough.

**Honest reports.** Each p-value is valid for *every* crowd of honest devices, whatever their
numbers, and however often the same devices reported: the bounds hold for each report, given the
number behind it.

* *lowest*: the node of any row whose reports are too few for any share of 0 or more: the lower tail
  of a binomial with probability q, times the number of nodes.
* *low*: in the finest row, how many nodes are more than a standard error below zero, where nodes
  that move together count as fewer (as in `deniable_estimator.analyses.anomalies`).
* *rows*: chi-square of the reports in each row beside the shares that devices draw.
* *agreement*: chi-square of how much the rows differ about the shares of the four nodes of depth 1.
  Devices draw their row whatever their number, so that all rows tell of the same crowd.
* *repeated*: the most frequent column of a row, compared with the most that devices with the same
  number would send it.

A tally is drawn exactly: the devices of a cell go to rows by a multinomial, and those of a node to
columns likewise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from deniable.protocol.mechanisms.hierarchical_histogram import (
    HierarchicalHistogram,
    Level,
    space_of,
)
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses import anomalies
from deniable_estimator.analyses.base import Counts, Items, OneRowAnalysis
from deniable_estimator.analyses.numbers import (
    EVEN_SPREAD,
    Attack,
    HistogramAnalysis,
    MeanEstimate,
    row_pulls,
    worst,
)
from deniable_estimator.analyses.numbers.cell_sums import LEAST_ROW, CellSums, SchemeSums, quadratic
from deniable_estimator.analyses.numbers.scores import ARITY, MEAN_SHARE, Scores, ownership, scores
from deniable_estimator.analyses.numbers.sliding_window import SlidingWindowAnalysis
from deniable_estimator.analyses.own_columns import SubsetSelectionAnalysis
from deniable_estimator.analyses.projective_geometry import ProjectiveGeometryAnalysis
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.tails import binomial_tail, chi_square_tail

_MANY = 300
"""So many reports of a row tell how much its scores vary. Fewer may by chance hold none of the rare
ones that make up most of it."""

_VARIED = 50.0
"""Reports that noise must have changed in a row: their variance is estimated from the counters."""


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

    def least_noise(self, weights: FloatArray) -> FloatArray:
        counts = [reports for *_, reports in self.rows()]
        if not counts or min(counts) >= _MANY:
            return np.zeros(len(weights))
        planned = self.scores.planned(weights) / self.reports
        return np.where(np.isfinite(planned), planned, 0.0)

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

    def rows(self) -> Iterator[tuple[int, FloatArray, FloatArray, float]]:
        """(row, rates, spreads, reports) of the rows that are used: their counters, and the
        variance of each, divided by the reports. It has what noise a release has added, and no part
        that two counters share."""
        for place, (row, live) in enumerate(zip(self.counted, self.scores.live, strict=True)):
            if live:
                rate = row.cells / row.reports
                yield place, rate, rate + row.noise / row.reports, float(row.reports)


class HierarchicalHistogramAnalysis(HistogramAnalysis[HierarchicalHistogram]):
    """A distribution, and the mean, from the tree and from the mean's own row if there is one."""

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        tree, table = self.mechanism, scores(self.mechanism)
        drawn, cells = rng.multinomial(counts, np.array(tree.shares, np.float64)), self.cells(items)
        rows: list[TallyRow] = []
        for row, (level, chances) in enumerate(zip(tree.levels, table.chances, strict=True)):
            nodes = cells // (tree.cells // level.size)
            crowd = np.bincount(nodes, weights=drawn[:, row], minlength=level.size)
            each, sent = crowd.astype(np.int64), np.zeros(level.rows[0].width, np.int64)
            some = np.flatnonzero(each)
            for batch in np.array_split(some, max(1, len(some) // 64)):
                sent += rng.multinomial(each[batch], chances[batch]).sum(axis=0)
            rows.append(TallyRow(int(each.sum()), sent))
        if self.window is not None:
            rows += self.window.sample_rows(items, drawn[:, -1], rng)
        return tuple(rows)

    def sums(self, rows: Sequence[TallyRow], repeats: float) -> CellSums:
        """Of the tree's rows; the mean's row, if there is one, is not used."""
        reports, rows = sum(row.reports for row in rows), rows[: self.mechanism.height]
        table = scores(self.mechanism, tuple(row.reports >= LEAST_ROW for row in rows))
        counts = np.array([row.reports for row in rows], np.float64)
        shared = (repeats - 1) / reports if reports else 0.0
        return CellSums.of([TreePart(1.0, counts, table, rows)], reports, shared)

    @property
    def window(self) -> SlidingWindowAnalysis | None:
        """That of the mean's row, if there is one."""
        mean = self.mechanism.mean
        return None if mean is None else SlidingWindowAnalysis(mean)

    @property
    def tree_part(self) -> float:
        """The weight of the tree's mean beside that of the mean's row, by their planned variances.

        It depends on neither the numbers nor on who reported, so that fakes cannot move it.
        """
        window = self.window
        if window is None:
            return 1.0
        levels, squares = window.level_noise()
        tree = float(scores(self.mechanism).planned(self.points)[0]) + EVEN_SPREAD
        row = float((squares - levels**2).max()) + EVEN_SPREAD
        told = (1 - MEAN_SHARE) / tree
        return told / (told + MEAN_SHARE / row)

    @property
    def rounding(self) -> float:
        return self.tree_part * self.farthest

    def mean(self, rows: Sequence[TallyRow], repeats: float = 1.0) -> MeanEstimate:
        """That of all rows: those of the tree, and the mean's row if there is one."""
        window, below = self.window, super().mean(rows, repeats)
        if window is None or rows[-1].reports < LEAST_ROW:
            return below
        above = window.mean(rows[-1:], repeats)
        if math.isinf(below.noise):
            return above
        part = self.tree_part
        # What devices keep is the number itself in either row, so the bounds are for the same.
        return MeanEstimate(
            part * below.mean + (1 - part) * above.mean,
            part**2 * below.noise + (1 - part) ** 2 * above.noise,
            below.reports,
            below.shared,
            min(below.kept, above.kept),
            part * below.rounding,
        )

    def planned_mean(self) -> float:
        """With the rows' declared shares of devices."""
        mean = float(scores(self.mechanism).planned(self.points)[0])
        window, part = self.window, self.tree_part
        if window is None:
            return mean
        own = window.planned_mean() / MEAN_SHARE
        return part**2 * (mean / (1 - MEAN_SHARE)) + (1 - part) ** 2 * own

    def curve_attack(self, fakes: float) -> Attack:
        """That of a crowd spread evenly over all cells, exactly at the edge that moves most."""
        sizes = tuple(map(float, self.mechanism.shares[: self.mechanism.height]))
        return _curve_attack(scores(self.mechanism), sizes, fakes)

    def attack(self, mean: float, fakes: float) -> Attack:
        """That of a crowd spread evenly over the range, whatever the mean is: in the tree's rows as
        for any W . f, in the mean's row as in any sliding window, each times the weight of that
        mean."""
        part, pulls = self.tree_part, row_pulls(scores(self.mechanism).of(self.points))
        up, down = (part * side for side in pulls)
        if self.window is not None:
            last = [[(1 - part) * self.window.top_score]]
            up, down = (np.hstack([side, last]) for side in (up, down))
        return worst((up, down), np.array(self.mechanism.shares, np.float64), fakes)

    def tests(self, rows: Sequence[TallyRow], repeats: float = 1.0) -> Iterator[anomalies.Found]:
        """Those of the mean's row included. Where several rows have a figure, the least likely one
        is told, times the number of rows."""
        mechanism = self.mechanism
        tree = [
            (level, row)
            for level, row in zip(mechanism.levels, rows, strict=False)
            if row.reports >= anomalies.LEAST_REPORTS
        ]
        yield from anomalies.row_figures(rows, shares=np.array(mechanism.shares, np.float64))
        if tree:
            supports = [_nodes(level).places(row.cells)[: level.size] for level, row in tree]
            yield _lowest(tree, supports)
            if tree[-1][0].size > ARITY:
                yield _low(*tree[-1], supports[-1])
            most = [_nodes(level).commonest() or float(level.p) for level, _ in tree]
            yield anomalies.message_figure([row for _, row in tree], most)
        spread = [
            (level, row) for level, row in tree if row.reports * (1 - float(level.p)) >= _VARIED
        ]
        if len(spread) > 1:
            yield _agreement(spread)
        if self.window is not None and rows[-1].reports >= anomalies.LEAST_REPORTS:
            yield from self.window.tests(rows[-1:])


@lru_cache(maxsize=16)
def _curve_attack(table: Scores, sizes: tuple[float, ...], fakes: float) -> Attack:
    """How far fakes move the share below an edge at most, where devices are spread over rows like
    this, and send all columns of a row alike.

    It depends on the mechanism alone, and takes longer than all else that a window is asked for.
    """
    found = row_pulls(table.at_edges(row) for row in range(table.height))
    return worst(found, np.array(sizes), fakes)


_Rows: TypeAlias = Sequence[tuple[Level, TallyRow]]


def _nodes(level: Level) -> OneRowAnalysis[Any]:
    """What a row says of the nodes of its level."""
    if isinstance(level, ProjectiveGeometry):
        return ProjectiveGeometryAnalysis(level)
    return SubsetSelectionAnalysis(level)


def _lowest(tree: _Rows, supports: Sequence[Counts]) -> anomalies.Found:
    nodes, best = 0, ("lowest", 0.0, 0.0, 1.0)
    for (level, row), support in zip(tree, supports, strict=True):
        nodes += level.size
        p, q = float(level.p), float(level.q)
        least = int(support.min())
        tail = binomial_tail(row.reports - least, row.reports, 1 - q)
        if tail <= best[3]:
            best = ("lowest", (least / row.reports - q) / (p - q), 0.0, tail)
    return *best[:3], min(1.0, nodes * best[3])


def _low(level: Level, row: TallyRow, support: Counts) -> anomalies.Found:
    n, q = row.reports, float(level.q)
    # Without the half, supports of few reports would be below their expectation too often.
    scores = (support + 0.5 - n * q) / math.sqrt(n * q * (1 - q))
    return anomalies.low_figure(int((scores < -1).sum()), level.size, _nodes(level).together())


def _agreement(tree: _Rows) -> anomalies.Found:
    """The rows' own shares of three of the four nodes, beside their common mean."""
    shares, precisions = [], []
    for level, row in tree:
        own = ownership(*space_of(level), level.rows[0].width, level.size)
        p, q = float(level.p), float(level.q)
        scores = own.reshape(ARITY, -1, own.shape[1]).sum(axis=1) / (p - q)
        # In every report the four sum to about the same; centred, exactly.
        scores = (scores - scores.mean(axis=0))[:-1]
        rate = row.cells / row.reports
        mean = scores @ rate
        spread = (scores * rate) @ scores.T - np.outer(mean, mean)
        shares.append(mean)
        precisions.append(np.linalg.pinv(spread / row.reports))
    common = np.linalg.pinv(np.sum(precisions, axis=0)) @ sum(
        precision @ share for precision, share in zip(precisions, shares, strict=True)
    )
    statistic = float(
        sum(
            (share - common) @ precision @ (share - common)
            for precision, share in zip(precisions, shares, strict=True)
        )
    )
    freedom = (ARITY - 1) * (len(tree) - 1)
    return "agreement", statistic, float(freedom), chi_square_tail(statistic, freedom)
