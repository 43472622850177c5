"""A sliding window: the mean of a number (see `deniable_estimator.analyses.numbers`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from deniable.protocol.mechanisms import Numeric, SlidingWindow
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.anomalies import Figure
from deniable_estimator.analyses.base import Analysis, Counts, Items
from deniable_estimator.analyses.numbers.honesty import Found, window_figures
from deniable_estimator.analyses.numbers.mean import MeanEstimate, window_mean
from deniable_estimator.analyses.numbers.poisoning import Attack, window_attack
from deniable_estimator.analyses.numbers.sampling import sample_window
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
        return tuple(
            Figure(name, tally.scheme, observed, expected, p_value)
            for name, observed, expected, p_value in self._found(tally, repeats)
        )

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
        return window_attack(self.mechanism, fakes, mean)

    def _found(self, tally: Tally, repeats: float) -> Iterator[Found]:
        return window_figures(self.mechanism, tally.rows[0])
