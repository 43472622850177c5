"""What tallies of numbers say: means, distributions, quantiles, and how far to trust them.

Numbers are positions here, from 0 (`low`) to 2**30 (`high`), or the same stretch as -1 to 1 where
a mean is estimated; a mechanism's `range.value(position)` turns them into units.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeVar

import numpy as np

from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import Histogram, Numeric
from deniable.protocol.mechanisms.rappor import Rounds
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.anomalies import Figure, Found, of_scheme
from deniable_estimator.analyses.base import Analysis, Counts, Items, MemoryAnalysis
from deniable_estimator.analyses.memoized import alternating_bits
from deniable_estimator.analyses.numbers.bits import estimate_bits
from deniable_estimator.analyses.numbers.distribution import DistributionEstimate, distribution
from deniable_estimator.analyses.numbers.honesty import (
    bit_figures,
    tree_figures,
    window_figures,
)
from deniable_estimator.analyses.numbers.mean import (
    MeanEstimate,
    both_mean,
    cell_points,
    cells_mean,
    tree_share_of_both,
    window_mean,
)
from deniable_estimator.analyses.numbers.poisoning import (
    Attack,
    bit_pulls,
    bits_curve_attack,
    both_attack,
    cdf_attack,
    flooded,
    mean_pull,
)
from deniable_estimator.analyses.numbers.sampling import sample_bits, sample_rows, sample_window
from deniable_estimator.analyses.numbers.scores import MEAN_SHARE, scores
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

    def mean(self, tally: Tally, repeats: float) -> MeanEstimate:
        """The mean between -1 (`low`) and 1 (`high`), on the range's scale."""
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
        return (sample_window(self.mechanism, np.asarray(items, np.int64), counts, rng),)

    def planned_mean(self) -> float:
        return mean_variance(self.mechanism)

    def mean(self, tally: Tally, repeats: float) -> MeanEstimate:
        return window_mean(self.mechanism, tally.rows[0], repeats)

    def attack(self, mean: float, fakes: float) -> Attack:
        most = mean_pull(self.mechanism)
        return Attack(fakes * (most - mean), fakes * (mean + most))

    def _found(self, tally: Tally, repeats: float) -> Iterator[Found]:
        return window_figures(self.mechanism, tally.rows[0])


AnyHistogram = TypeVar("AnyHistogram", bound=Histogram)


class HistogramAnalysis(NumberAnalysis[AnyHistogram]):
    """A distribution over cells, and the mean."""

    def distribution(self, tally: Tally, level: float, repeats: float) -> DistributionEstimate:
        """The shares below each edge of the cells, and what follows from them.

        Args:
            level: of every interval.
            repeats: how often the same devices reported (`Participation.repeats`).
        """
        raise NotImplementedError

    def curve_attack(self, fakes: float) -> Attack:
        """How far so many fakes move the share below an edge at most, whichever edge it is."""
        raise NotImplementedError


class DBitFlipAnalysis(HistogramAnalysis[DBitFlip], MemoryAnalysis):
    """A distribution, and the mean of the middles of its cells."""

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        return sample_bits(self.mechanism, np.asarray(items, np.int64), counts, rng)

    def distribution(self, tally: Tally, level: float, repeats: float) -> DistributionEstimate:
        sums = estimate_bits(self.mechanism, tally.rows, repeats)
        return DistributionEstimate(np.array(self.mechanism.edges, np.int64), sums, level)

    def mean(self, tally: Tally, repeats: float) -> MeanEstimate:
        return cells_mean(self.mechanism, estimate_bits(self.mechanism, tally.rows, repeats))

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
        return Attack(*(flooded(each[0], np.full(rows, 1 / rows), fakes) for each in pulls))

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
        return sample_rows(self.mechanism, np.asarray(items, np.int64), counts, rng)

    def distribution(self, tally: Tally, level: float, repeats: float) -> DistributionEstimate:
        return distribution(self.mechanism, tally.rows, level, repeats)

    def mean(self, tally: Tally, repeats: float) -> MeanEstimate:
        return both_mean(self.mechanism, tally.rows, repeats)

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
        """That of a crowd spread evenly over all cells."""
        return cdf_attack(self.mechanism, fakes)

    def attack(self, mean: float, fakes: float) -> Attack:
        """That of a crowd spread evenly over the range, whatever the mean is."""
        return both_attack(self.mechanism, fakes)

    def _found(self, tally: Tally, repeats: float) -> Iterator[Found]:
        return tree_figures(self.mechanism, tally.rows)
