"""What tallies of numbers say: means, distributions, quantiles, and how far to trust them.

Numbers are positions here, from 0 (`low`) to 2**30 (`high`), or the same stretch as -1 to 1 where
a mean is estimated; a mechanism's `range.value(position)` turns them into units.

Tallies are drawn from their exact distribution, without simulating a device. In a sliding window
the devices between two levels go to either by a binomial, those of a level into their window or not
by another, and then columns are drawn evenly: a multinomial each. In a tree the devices of a cell
go to rows by a multinomial, and those of a node to columns likewise. In dBitFlip they go to rows by
a multinomial, and given those of each cell, the counter of a bit is the sum of two binomials,
independent of all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np

from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import TOP, Histogram, Numeric
from deniable.protocol.mechanisms.rappor import Rounds
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.anomalies import Figure, Found, of_scheme
from deniable_estimator.analyses.base import Analysis, Counts, Items
from deniable_estimator.analyses.memoized import alternating_bits
from deniable_estimator.analyses.numbers.bits import BitPart, bit_noise, cell_shares
from deniable_estimator.analyses.numbers.cell_sums import LEAST_ROW, CellSums
from deniable_estimator.analyses.numbers.distribution import DistributionEstimate
from deniable_estimator.analyses.numbers.hierarchical_histogram import TreePart
from deniable_estimator.analyses.numbers.honesty import (
    bit_figures,
    tree_figures,
    window_figures,
)
from deniable_estimator.analyses.numbers.mean import (
    MeanEstimate,
    cell_points,
    cells_mean,
    tree_share_of_both,
    window_channel,
    window_mean,
)
from deniable_estimator.analyses.numbers.poisoning import (
    Attack,
    bit_pulls,
    bits_curve_attack,
    even_attack,
    mean_pull,
    row_pulls,
    worst,
)
from deniable_estimator.analyses.numbers.scores import MEAN_SHARE, row_shares, scores
from deniable_estimator.forecasting.number_forecast import mean_variance

AnyNumber = TypeVar("AnyNumber", bound=Numeric)


class NumberAnalysis(Analysis[AnyNumber]):
    """What a tally of numbers says. Items are positions in the range: -1 below `low`, 2**30 for
    `high` and above."""

    def figures(self, tally: Tally, repeats: float = 1.0) -> tuple[Figure, ...]:
        """All tests of whether the tally can be the sum of honest reports.

        Args:
            repeats: how often the same devices reported (`Participation.repeats`).
        """
        return of_scheme(tally.scheme, self._found(tally, repeats))

    def _found(self, tally: Tally, repeats: float) -> Iterator[Found]:
        raise NotImplementedError

    def mean(self, rows: Sequence[TallyRow], repeats: float) -> MeanEstimate:
        """The mean between -1 (`low`) and 1 (`high`), on the range's scale. `repeats` is how often
        the same devices reported (`Participation.repeats`)."""
        raise NotImplementedError

    def attack(self, mean: float, fakes: float) -> Attack:
        """How far so many fakes move that mean."""
        raise NotImplementedError

    def planned_mean(self) -> float:
        """n times the variance of the noise in that mean, before any report."""
        raise NotImplementedError


class SlidingWindowAnalysis(NumberAnalysis[SlidingWindow]):
    """The mean alone."""

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        window, positions = self.mechanism, np.clip(np.asarray(items, np.int64), 0, TOP)
        levels = np.array(window.levels, np.int64)
        # The level at or below each position, and the chance of rounding up to the next.
        lower = np.minimum(np.searchsorted(levels, positions, side="right") - 1, len(levels) - 2)
        up = rng.binomial(counts, (positions - levels[lower]) / (levels[lower + 1] - levels[lower]))
        at = np.bincount(lower, weights=counts - up, minlength=len(levels))
        at += np.bincount(lower + 1, weights=up, minlength=len(levels))
        each = at.astype(np.int64)
        inside, outside = window_channel(window)
        away = np.arange(window.columns) - np.arange(len(levels))[:, None]
        channel = np.where((away >= 0) & (away < window.width), inside, outside)
        sent = rng.multinomial(each, channel).sum(axis=0)
        return (TallyRow(int(each.sum()), sent.astype(np.int64)),)

    def planned_mean(self) -> float:
        return mean_variance(self.mechanism)

    def mean(self, rows: Sequence[TallyRow], repeats: float) -> MeanEstimate:
        return window_mean(self.mechanism, rows[0], repeats)

    def attack(self, mean: float, fakes: float) -> Attack:
        most = mean_pull(self.mechanism)
        return Attack(fakes * (most - mean), fakes * (mean + most))

    def _found(self, tally: Tally, repeats: float) -> Iterator[Found]:
        return window_figures(self.mechanism, tally.rows[0])


AnyHistogram = TypeVar("AnyHistogram", bound=Histogram)


class HistogramAnalysis(NumberAnalysis[AnyHistogram]):
    """A distribution over cells, and the mean."""

    def sums(self, rows: Sequence[TallyRow], repeats: float) -> CellSums:
        """What the rows of a tally, in the order of the mechanism's, say of sums of shares of the
        cells. `repeats` is how often the same devices reported (`Participation.repeats`)."""
        raise NotImplementedError

    def distribution(
        self, rows: Sequence[TallyRow], level: float, repeats: float
    ) -> DistributionEstimate:
        """The shares below each edge of the cells, and what follows from them, with intervals of
        this level."""
        edges = np.array(self.mechanism.edges, np.int64)
        return DistributionEstimate(edges, self.sums(rows, repeats), level)

    def mean(self, rows: Sequence[TallyRow], repeats: float) -> MeanEstimate:
        return cells_mean(self.mechanism, self.sums(rows, repeats))

    def curve_attack(self, fakes: float) -> Attack:
        """How far so many fakes move the share below an edge at most, whichever edge it is."""
        raise NotImplementedError

    def cells(self, positions: Items) -> Counts:
        """The cell of each position."""
        return np.searchsorted(np.array(self.mechanism.edges), positions, side="right")


class DBitFlipAnalysis(HistogramAnalysis[DBitFlip]):
    """A distribution, and the mean of the middles of its cells."""

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        count, s = len(self.mechanism.rows), float(self.mechanism.flipped)
        drawn, cells = rng.multinomial(counts, np.full(count, 1 / count)), self.cells(items)
        rows = []
        for row in range(count):
            devices = int(drawn[:, row].sum())
            crowd = np.bincount(cells, weights=drawn[:, row], minlength=self.mechanism.cells)
            true = crowd.astype(np.int64)[row::count]
            sent = rng.binomial(true, 1 - s) + rng.binomial(devices - true, s)
            rows.append(TallyRow(devices, sent))
        return tuple(rows)

    def sums(self, rows: Sequence[TallyRow], repeats: float) -> CellSums:
        """Nothing if one of the rows has few reports."""
        bits, counts = self.mechanism, np.array([row.reports for row in rows], np.float64)
        flipped = float(bits.flipped)
        noise = bit_noise(flipped) + (repeats - 1) * bit_noise(float(bits.memo_flipped))
        released = np.array([row.noise for row in rows]) / (1 - 2 * flipped) ** 2
        live, least = bool(counts.min() >= LEAST_ROW), np.maximum(counts, 1)
        part = BitPart(
            1.0,
            least,
            cell_shares(bits, rows) * live,
            noise + released / least,
            float(bits.share_variance),
            repeats,
            live,
        )
        return CellSums.of([part], int(counts.sum()), 0.0)

    def planned_mean(self) -> float:
        """With W, its average w and the planned variance V of one cell's share, V times the sum of
        (W - w)**2."""
        points, _ = cell_points(self.mechanism)
        squares = float(np.square(points - points.mean()).sum())
        return float(self.mechanism.share_variance) * squares

    def curve_attack(self, fakes: float) -> Attack:
        """That of a crowd spread evenly over all cells."""
        bits = self.mechanism
        return bits_curve_attack(bits.cells, len(bits.rows), float(bits.flipped), fakes)

    def attack(self, mean: float, fakes: float) -> Attack:
        """That of a crowd spread evenly over all cells, whatever the mean is."""
        points, rows = cell_points(self.mechanism)[0][None], len(self.mechanism.rows)
        pulls = bit_pulls(points, rows, float(self.mechanism.flipped))
        return worst(pulls, np.full(rows, 1 / rows), fakes)

    def memo_channel(self) -> tuple[Fraction, Fraction]:
        return 1 - self.mechanism.memo_flipped, self.mechanism.memo_flipped

    def alternation_loss(self, reports: int) -> float:
        """Between two cells of a row; where rows have one bit, between its cell and another."""
        mechanism = self.mechanism
        rounds = Rounds(2 * mechanism.memo, mechanism.fresh, ONE - mechanism.fresh)
        return alternating_bits(rounds, mechanism.bits, 1, int(mechanism.bits > 1), reports // 2)

    def entries(self, values: int | None) -> int:
        """One for each cell of the row, and one for all cells of other rows."""
        return self.mechanism.bits + (len(self.mechanism.rows) > 1)

    def _found(self, tally: Tally, repeats: float) -> Iterator[Found]:
        return bit_figures(self.mechanism, tally, repeats)


class HierarchicalHistogramAnalysis(HistogramAnalysis[HierarchicalHistogram]):
    """A distribution, and the mean, from the tree and from the mean's own row if there is one."""

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        tree, table = self.mechanism, scores(self.mechanism)
        drawn, cells = rng.multinomial(counts, row_shares(tree)), self.cells(items)
        rows: list[TallyRow] = []
        for row, (level, chances) in enumerate(zip(tree.levels, table.chances, strict=True)):
            nodes = cells // (tree.cells // level.size)
            crowd = np.bincount(nodes, weights=drawn[:, row], minlength=level.size)
            each, sent = crowd.astype(np.int64), np.zeros(level.rows[0].width, np.int64)
            some = np.flatnonzero(each)
            for batch in np.array_split(some, max(1, len(some) // 64)):
                sent += rng.multinomial(each[batch], chances[batch]).sum(axis=0)
            rows.append(TallyRow(int(each.sum()), sent))
        if tree.mean is not None:
            rows += SlidingWindowAnalysis(tree.mean).sample_rows(items, drawn[:, -1], rng)
        return tuple(rows)

    def sums(self, rows: Sequence[TallyRow], repeats: float) -> CellSums:
        """Of the tree's rows; the mean's row, if there is one, is not used."""
        reports, rows = sum(row.reports for row in rows), rows[: self.mechanism.height]
        table = scores(self.mechanism, tuple(row.reports >= LEAST_ROW for row in rows))
        counts = np.array([row.reports for row in rows], np.float64)
        shared = (repeats - 1) / reports if reports else 0.0
        return CellSums.of([TreePart(1.0, counts, table, rows)], reports, shared)

    def mean(self, rows: Sequence[TallyRow], repeats: float) -> MeanEstimate:
        """That of all rows: those of the tree, and the mean's row if there is one."""
        window, below = self.mechanism.mean, super().mean(rows, repeats)
        if window is None or rows[-1].reports < LEAST_ROW:
            return below
        above = window_mean(window, rows[-1], repeats)
        if math.isinf(below.noise):
            return above
        part = tree_share_of_both(self.mechanism)
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
        window, (points, _) = self.mechanism.mean, cell_points(self.mechanism)
        part = 1.0 if window is None else 1 - MEAN_SHARE
        mean = float(scores(self.mechanism).planned(points[None])[0]) / part
        if window is None:
            return mean
        weight = tree_share_of_both(self.mechanism)
        return weight**2 * mean + (1 - weight) ** 2 * mean_variance(window) / MEAN_SHARE

    def curve_attack(self, fakes: float) -> Attack:
        """That of a crowd spread evenly over all cells, exactly at the edge that moves most."""
        sizes = tuple(row_shares(self.mechanism)[: self.mechanism.height].tolist())
        return even_attack(scores(self.mechanism), sizes, fakes)

    def attack(self, mean: float, fakes: float) -> Attack:
        """That of a crowd spread evenly over the range, whatever the mean is: in the tree's rows as
        for any W . f, in the mean's row as in any sliding window, each times the weight of that
        mean."""
        tree = self.mechanism
        up, down = row_pulls(scores(tree).of(cell_points(tree)[0][None]))
        if tree.mean is not None:
            part = tree_share_of_both(tree)
            last = [[(1 - part) * mean_pull(tree.mean)]]
            up, down = (np.hstack([part * pulls, last]) for pulls in (up, down))
        return worst((up, down), row_shares(tree), fakes)

    def _found(self, tally: Tally, repeats: float) -> Iterator[Found]:
        return tree_figures(self.mechanism, tally.rows)
