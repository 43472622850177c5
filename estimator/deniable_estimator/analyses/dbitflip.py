"""dBitFlip: how numbers are distributed, from reports with memos (see
`deniable_estimator.analyses.numbers`)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from deniable.mechanisms import DBitFlip, Rounds
from deniable.mechanisms.base import ONE
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.base import MemoryAnalysis
from deniable_estimator.analyses.histogram import HistogramAnalysis
from deniable_estimator.analyses.memoized import alternating_bits
from deniable_estimator.analyses.numbers.bits import estimate_bits
from deniable_estimator.analyses.numbers.distribution import DistributionEstimate
from deniable_estimator.analyses.numbers.honesty import Found, bit_figures
from deniable_estimator.analyses.numbers.mean import MeanEstimate, cell_points, cells_mean
from deniable_estimator.analyses.numbers.planning import HistogramVariances, bits_variances
from deniable_estimator.analyses.numbers.poisoning import Attack, bits_attack, bits_curve_attack
from deniable_estimator.analyses.numbers.sampling import sample_bits
from deniable_estimator.analyses.support import Counts, Items

__all__ = ["DBitFlipAnalysis"]


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
