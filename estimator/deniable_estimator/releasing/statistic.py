"""What receives noise in a release, how far one report moves it, and the answer that follows.

A *statistic* is a list of integers, each a sum over reports. Its size does not depend on the
reports, and the number of reports is published as it is. Neighbours differ in what one report says:
its row and its segment, which do not depend on the value, count as known.

Means and distributions are here, shares in `share_statistics.py`, and `preparing.py` takes the one
for a metric.

* Shares: how many reports support each value. Of all values published, a report supports between
  `fewest` and `most`, so two reports differ in at most min(2 most, 2 (count - fewest), count) of
  them, by one each.
* Shares of a long list, whose reports are one message that supports many values: how often each
  message was sent. Two reports differ in two messages, by one each. Of the two, the one is taken
  whose noise moves shares less.
* A distribution of numbers: the counters of all rows. Two reports differ in two columns of one row,
  or, of bitmaps, in all of them.
* A mean: the sum of the scores of all reports, in units of 2**-20; two reports differ by the
  difference of the largest and the smallest score at most. The variance of the devices' own noise
  is not published, so the largest that is possible at such a mean is taken.

The published number is (statistic + noise) debiased as always, so its variance is that of the
devices' noise, plus the variance of the noise here times the square of the debiasing's factor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable_collector.tally import TallyRow
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.anomalies import Verdict
from deniable_estimator.analyses.numbers import HistogramAnalysis, SlidingWindowAnalysis
from deniable_estimator.analyses.numbers.mean import MeanEstimate, level_noise
from deniable_estimator.answers import answer_of
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.basis import Basis
from deniable_estimator.answers.mean import mean_answer
from deniable_estimator.asking.reading import Part
from deniable_estimator.releasing.noise import Sensitivity

_UNIT = 1 << 20
"""A score of a mean is a multiple of one over this."""


class Statistic(ABC):
    """What of one scheme's tally receives noise."""

    def __init__(self, part: Part, level: float, unit: str | None) -> None:
        self.part, self.level, self.name = part, level, unit
        self.tally, self.scheme = part.tally, part.scheme

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """How far one report moves it."""

    @abstractmethod
    def exact(self) -> Sequence[int]:
        """Its integers, without noise: they must not be published."""

    @abstractmethod
    def answer(self, noisy: Sequence[int], variance: float) -> Answer:
        """What people read, from integers with noise of this variance each."""

    @abstractmethod
    def variances(self, variance: float) -> tuple[float, float]:
        """The variance of a published number because of the devices' own noise (of a value that
        nobody has), and what noise of `variance` on each integer adds; in the square of its unit,
        of a mean in that of half its range."""

    @property
    def basis(self) -> Basis:
        """What the answer rests on; all of it is public."""
        return Basis.of(self.tally, self.scheme, self.part.participation)


class ScoreSum(Statistic):
    """The sum of the scores of a mean."""

    def __init__(self, part: Part, level: float, unit: str | None) -> None:
        super().__init__(part, level, unit)
        analysis = analysis_of(part.scheme.mechanism)
        assert isinstance(analysis, SlidingWindowAnalysis)
        self._analysis = analysis
        self._scores = [round(each * _UNIT) for each in analysis.mechanism.scores()]

    @property
    def sensitivity(self) -> Sensitivity:
        apart = max(self._scores) - min(self._scores)
        return Sensitivity(apart, apart * apart)

    def exact(self) -> Sequence[int]:
        (row,) = self.tally.rows
        return [sum(s * int(c) for s, c in zip(self._scores, row.cells.tolist(), strict=True))]

    def variances(self, variance: float) -> tuple[float, float]:
        n = self.tally.reports
        _, squares = level_noise(self._analysis.mechanism)
        # No crowd's mean square is above that of the level where it is largest.
        return float(squares.max()) / n, variance / (_UNIT * n) ** 2

    def answer(self, noisy: Sequence[int], variance: float) -> Answer:
        n, basis = self.tally.reports, self.basis
        own, added = self.variances(variance)
        # The square of the mean is not taken off: what is known of it is noisy.
        shared = (basis.participation.repeats - 1) / n
        found = MeanEstimate(noisy[0] / (_UNIT * n), own + added, n, shared, 1.0)
        return mean_answer(self._analysis, basis, self.level, self.name, found, ())


class CellCounts(Statistic):
    """The counters of a distribution's rows. A report is in one of them, and sets columns there."""

    def __init__(self, part: Part, level: float, unit: str | None) -> None:
        super().__init__(part, level, unit)
        analysis = analysis_of(part.scheme.mechanism)
        assert isinstance(analysis, HistogramAnalysis)
        self._analysis = analysis

    @property
    def sensitivity(self) -> Sensitivity:
        rows = self.scheme.mechanism.rows
        moved = max(
            row.width if row.columns is None else 2 * min(row.columns, row.width - row.columns)
            for row in rows
        )
        return Sensitivity(moved, moved)

    def exact(self) -> Sequence[int]:
        return [int(each) for row in self.tally.rows for each in row.cells]

    def variances(self, variance: float) -> tuple[float, float]:
        """Of the share below the middle, for numbers that are spread evenly."""
        own, both = (self._middle(noise) for noise in (0.0, variance))
        return own, both - own

    def answer(self, noisy: Sequence[int], variance: float) -> Answer:
        left, rows = list(noisy), []
        for row in self.tally.rows:
            cells, left = left[: len(row.cells)], left[len(row.cells) :]
            rows.append(TallyRow(row.reports, np.array(cells, np.int64), variance))
        found = answer_of(
            replace(self.tally, rows=tuple(rows)),
            self.scheme,
            level=self.level,
            participation=self.part.participation,
            unit=self.name,
        )
        # Whether such counters look honest cannot be said.
        return replace(found, verdict=Verdict.of(()))

    def _middle(self, noise: float) -> float:
        rows = []
        for row, declared in zip(self.tally.rows, self.scheme.mechanism.rows, strict=True):
            part = (declared.columns or declared.width / 2) / declared.width
            cells = np.full(declared.width, round(row.reports * part), np.int64)
            rows.append(TallyRow(row.reports, cells, noise))
        even = replace(self.tally, rows=tuple(rows))
        sums = self._analysis.distribution(even, self.level, 1.0).sums
        known = sums.variance[np.isfinite(sums.variance)]
        return float(known[len(known) // 2])
