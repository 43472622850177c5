"""A hierarchical histogram: how numbers are distributed (see
`deniable_estimator.analyses.numbers`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deniable.mechanisms import HierarchicalHistogram
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.histogram import HistogramAnalysis
from deniable_estimator.analyses.numbers.distribution import DistributionEstimate, distribution
from deniable_estimator.analyses.numbers.honesty import Found, tree_figures
from deniable_estimator.analyses.numbers.mean import MeanEstimate, both_mean
from deniable_estimator.analyses.numbers.planning import HistogramVariances, tree_variances
from deniable_estimator.analyses.numbers.poisoning import Attack, both_attack, cdf_attack
from deniable_estimator.analyses.numbers.sampling import sample_rows
from deniable_estimator.analyses.support import Counts, Items

__all__ = ["HierarchicalHistogramAnalysis"]


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
