"""What the analyses of distributions have in common: a mechanism with cells, one file each."""

from __future__ import annotations

from typing import TypeVar

from deniable.mechanisms import Histogram
from deniable_collector.tally import Tally
from deniable_estimator.analyses.numbers.distribution import DistributionEstimate
from deniable_estimator.analyses.numbers.planning import HistogramVariances
from deniable_estimator.analyses.numbers.poisoning import Attack
from deniable_estimator.analyses.sliding_window import NumberAnalysis

__all__ = ["HistogramAnalysis"]

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
