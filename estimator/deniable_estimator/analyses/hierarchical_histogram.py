"""A hierarchical histogram: how numbers are distributed (see
`deniable_estimator.analyses.numbers`)."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.mechanisms import HierarchicalHistogram
from deniable_collector.tally import Tally
from deniable_estimator.analyses.numbers.distribution import DistributionEstimate, distribution
from deniable_estimator.analyses.numbers.honesty import Found, tree_figures
from deniable_estimator.analyses.numbers.mean import MeanEstimate, both_mean
from deniable_estimator.analyses.numbers.poisoning import Attack, both_attack
from deniable_estimator.analyses.sliding_window import NumberAnalysis

__all__ = ["HierarchicalHistogramAnalysis"]


class HierarchicalHistogramAnalysis(NumberAnalysis[HierarchicalHistogram]):
    """A distribution, and the mean, from the tree and from the mean's own row if there is one."""

    def distribution(self, tally: Tally, level: float, repeats: float) -> DistributionEstimate:
        """The shares below each edge of the cells, and what follows from them."""
        return distribution(self.mechanism, tally.rows, level, repeats)

    def mean(self, tally: Tally, repeats: float) -> MeanEstimate:
        return both_mean(self.mechanism, tally.rows, repeats)

    def attack(self, mean: float, fakes: float) -> Attack:
        """That of a crowd spread evenly over the range, whatever the mean is."""
        return both_attack(self.mechanism, fakes)

    def _found(self, tally: Tally) -> Iterator[Found]:
        return tree_figures(self.mechanism, tally.rows)
