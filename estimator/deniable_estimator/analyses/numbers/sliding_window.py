"""The mean of numbers from a sliding window's row, and whether the row looks honest.

A sliding window has D columns; a device at level i reports each of the w columns from i on with
probability P / (2**53 w), and each other one with m = (1 - P / 2**53) / (D - w). Column j scores
a_j, so that the mean score of level i is the level itself, on -1 to 1. For n reports::

    mean = sum a_j c_j / n,   variance = V / n,   V = sum a_j**2 c_j / n - mean**2

The scores are made so that the noise alone has the same variance V0 = E[a**2] - x**2 at every level
x, and more between levels. So V is at least V0 however few the reports, and what is above V0
bounds the variance of the numbers themselves::

    Var(x) <= V - V0, Var(x) <= 1 - mean**2

If the same devices reported `repeats` times, (repeats - 1) Var(x) / n is added, at the smaller of
the two bounds, each two standard errors up (`deniable_estimator.statistics.participation`).

Before any report, between the levels x_i < x_(i+1), where a number x is rounded at random ::

    noise(x) = [(x_(i+1) - x) E_i + (x - x_i) E_(i+1)] / (x_(i+1) - x_i) - x**2

with E_i = E[a**2] at level i; `statistics.expected` has the largest.

**Fakes.** A report of column j counts as a_j, so fakes alone would show the largest score A, and
the mean rises by exactly b (A - mean). -A is a score too, for fakes that lower it.

**Honest reports.** Each p-value is valid for *every* crowd of honest devices, whatever their
numbers, and however often the same devices reported. A window of w columns has exactly one column
of each remainder modulo w. So whatever the number, a report falls on a column j = r modulo w with
probability ::

    K_r m + (P / (2**53 w) - m),    K_r = how many of the D columns have remainder r

* *groups*: chi-square of the w groups of columns, whose probabilities are known.
* *rarest*, *commonest*: the column that is sent too seldom for m, or too often for P / (2**53 w):
  binomial tails, times the number of columns.
* *outside*: a mean above `high` or below `low`.

A tally is drawn exactly: the devices between two levels go to either by a binomial, those of a
level into their window or not by another, and then columns are drawn evenly: a multinomial each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.number_range import TOP
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.anomalies import CROWDED, Found
from deniable_estimator.analyses.base import Counts, Items
from deniable_estimator.analyses.numbers import Attack, MeanEstimate, NumberAnalysis, most_spread
from deniable_estimator.analyses.numbers.cell_sums import CAUTION
from deniable_estimator.statistics.expected import mean_variance
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.tails import binomial_tail, chi_square_tail, normal_tails


class SlidingWindowAnalysis(NumberAnalysis[SlidingWindow]):
    """The mean alone."""

    @property
    def channel(self) -> tuple[float, float]:
        """The probabilities of a column in the level's window, and of another."""
        window = self.mechanism
        truth = window.threshold / ONE
        return truth / window.width, (1 - truth) / (window.columns - window.width)

    def level_noise(self) -> tuple[FloatArray, FloatArray]:
        """The levels between -1 and 1, and E[a**2] at each of them; shape (D - w + 1,) each."""
        window, (inside, outside) = self.mechanism, self.channel
        squares = np.square(window.scores())
        sums = np.concatenate([[0.0], np.cumsum(squares)])
        owned = sums[window.width :] - sums[: -window.width]
        levels = np.array(window.levels, np.float64) / TOP * 2 - 1
        return levels, outside * sums[-1] + (inside - outside) * owned

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
        inside, outside = self.channel
        away = np.arange(window.columns) - np.arange(len(levels))[:, None]
        channel = np.where((away >= 0) & (away < window.width), inside, outside)
        sent = rng.multinomial(each, channel).sum(axis=0)
        return (TallyRow(int(each.sum()), sent.astype(np.int64)),)

    def planned_mean(self) -> float:
        return mean_variance(self.mechanism)

    def mean(self, rows: Sequence[TallyRow], repeats: float = 1.0) -> MeanEstimate:
        (row,) = rows
        n = row.reports
        if n == 0:
            return MeanEstimate(0.0, math.inf, 0)
        score = np.array(self.mechanism.scores())
        rate = row.cells / n
        mean, square = float(score @ rate), float(score**2 @ rate)
        levels, squares = self.level_noise()
        least = float((squares - levels**2).min())
        # What a release has added to each column; then the square may even be negative.
        added = row.noise * float(score @ score) / n
        each = max(square - mean**2, least) + added
        error = math.sqrt(max(0.0, float(score**4 @ rate) - square**2) / n)
        error = math.hypot(error, math.sqrt(row.noise * float((score**4).sum())) / n)
        spread = max(0.0, square - mean**2 - least) + CAUTION * error
        kept = min(spread, most_spread(mean, math.sqrt(each / n)))
        return MeanEstimate(mean, each / n, n, (repeats - 1) / n, kept)

    @property
    def top_score(self) -> float:
        """The mean, between -1 and 1 for honest reports, that fakes alone would show at most."""
        return max(map(abs, self.mechanism.scores()))

    def attack(self, mean: float, fakes: float) -> Attack:
        return Attack(fakes * (self.top_score - mean), fakes * (mean + self.top_score))

    def tests(self, rows: Sequence[TallyRow], repeats: float = 1.0) -> Iterator[Found]:
        window, (row,) = self.mechanism, rows
        n = row.reports
        inside, outside = self.channel
        remainder = np.arange(window.columns) % window.width
        columns = np.bincount(remainder)
        expected = n * (columns * outside + inside - outside)
        if window.width > 1 and expected.min() >= CROWDED:
            seen = np.bincount(remainder, weights=row.cells)
            statistic = float((np.square(seen - expected) / expected).sum())
            freedom = window.width - 1
            yield "groups", statistic, float(freedom), chi_square_tail(statistic, freedom)
        least, most = int(row.cells.min()), int(row.cells.max())
        tail = binomial_tail(n - least, n, 1 - outside)
        yield "rarest", float(least), n * outside, min(1.0, window.columns * tail)
        tail = binomial_tail(most, n, inside)
        yield "commonest", float(most), n * inside, min(1.0, window.columns * tail)
        mean = self.mean(rows)
        nearest = min(max(mean.mean, -1.0), 1.0)
        tail = 1.0
        if mean.mean != nearest:
            # Either end could have been exceeded.
            tail = normal_tails((mean.mean - nearest) / mean.std_error)
        yield "outside", mean.mean, nearest, tail
