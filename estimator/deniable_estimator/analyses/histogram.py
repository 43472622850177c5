"""How numbers are distributed over cells: by a tree of reports, or by bits with memos (see
`deniable_estimator.analyses.numbers`)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeVar

import numpy as np

from deniable.protocol.mechanisms import DBitFlip, HierarchicalHistogram, Histogram, Rounds
from deniable.protocol.mechanisms.base import ONE
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.base import Counts, Items, MemoryAnalysis
from deniable_estimator.analyses.memoized import alternating_bits
from deniable_estimator.analyses.numbers.bits import estimate_bits
from deniable_estimator.analyses.numbers.distribution import DistributionEstimate, distribution
from deniable_estimator.analyses.numbers.honesty import Found, bit_figures, tree_figures
from deniable_estimator.analyses.numbers.mean import (
    MeanEstimate,
    both_mean,
    cell_points,
    cells_mean,
)
from deniable_estimator.analyses.numbers.planning import (
    HistogramVariances,
    bits_variances,
    tree_variances,
)
from deniable_estimator.analyses.numbers.poisoning import (
    Attack,
    bits_attack,
    bits_curve_attack,
    both_attack,
    cdf_attack,
)
from deniable_estimator.analyses.numbers.sampling import sample_bits, sample_rows
from deniable_estimator.analyses.sliding_window import NumberAnalysis

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

    def variances(self) -> HistogramVariances:
        """n times the variances of the noise, before any report."""
        raise NotImplementedError

    def curve_attack(self, fakes: float) -> Attack:
        """How far so many fakes move the share below an edge at most, whichever edge it is."""
        raise NotImplementedError

    def planned_mean(self) -> float:
        return self.variances().mean


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

    def variances(self) -> HistogramVariances:
        return bits_variances(self.mechanism)

    def curve_attack(self, fakes: float) -> Attack:
        """That of a crowd spread evenly over all cells."""
        return bits_curve_attack(self.mechanism, fakes)

    def attack(self, mean: float, fakes: float) -> Attack:
        """That of a crowd spread evenly over all cells, whatever the mean is."""
        return bits_attack(self.mechanism, cell_points(self.mechanism)[0], fakes)

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

    def variances(self) -> HistogramVariances:
        return tree_variances(self.mechanism)

    def curve_attack(self, fakes: float) -> Attack:
        """That of a crowd spread evenly over all cells."""
        return cdf_attack(self.mechanism, fakes)

    def attack(self, mean: float, fakes: float) -> Attack:
        """That of a crowd spread evenly over the range, whatever the mean is."""
        return both_attack(self.mechanism, fakes)

    def _found(self, tally: Tally, repeats: float) -> Iterator[Found]:
        return tree_figures(self.mechanism, tally.rows)
