"""The mean of numbers, from a sliding window's row, the cells of a distribution, or both.

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

From cells, the mean is that of their middles, where every number of a cell counts as
its middle, and what is clamped counts as `low` or `high`; `rounding` says by how much that can
move the mean, and intervals allow for it. On a logarithmic scale all this is the mean of
logarithms: in units it is the geometric mean.

**Before any report** the variances of numbers are known exactly. They are n Var, with n all reports
of the metric. That of the mean is the noise of the number that is hidden best, plus the variance of
the numbers; for a sliding window between the levels x_i < x_(i+1), where a number x is rounded at
random ::

    noise(x) = [(x_(i+1) - x) E_i + (x - x_i) E_(i+1)] / (x_(i+1) - x_i) - x**2

with E_i = E[a**2] at level i; `forecasting.number_forecast` has the largest. For the share F below
an edge it is the V of `deniable_estimator.analyses.numbers.scores` plus F (1 - F).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import TOP, Histogram
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.numbers.cell_sums import CAUTION, CellSums
from deniable_estimator.analyses.numbers.scores import MEAN_SHARE, scores
from deniable_estimator.forecasting.detection import deviations
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.tails import halved

EVEN_SPREAD = 1 / 3
"""The variance of numbers that are spread evenly over -1 to 1; at most it can be 1."""


@dataclass(frozen=True)
class MeanEstimate:
    """A mean between -1 (`low`) and 1 (`high`); unbiased, so it may lie outside."""

    mean: float
    noise: float
    """Its variance if all reports are of different devices, but with what memos keep. Infinite if
    nothing is known; the mean is then 0."""
    reports: int
    shared: float = 0.0
    """The part of `kept` by which the variance is larger, as the same devices reported again."""
    kept: float = 0.0
    """A bound of the variance of the numbers."""
    rounding: float = 0.0
    """By how much the middles of cells can move the mean at most."""

    @property
    def variance(self) -> float:
        """Of the mean, with what devices keep."""
        return self.noise + self.shared * self.kept

    @property
    def std_error(self) -> float:
        """The square root of the variance."""
        return math.sqrt(self.variance)

    def interval(self, level: float) -> tuple[float, float]:
        """The ends, between -1 and 1 like the mean, of an interval of this level, wherever in the
        cells the numbers are (Armstrong and Kolesár, Econometrica 2018)."""
        if math.isinf(self.variance):
            return -math.inf, math.inf
        error = self.std_error
        half = self.rounding if error == 0 else _reach(self.rounding / error, level) * error
        return self.mean - half, self.mean + half


def window_channel(window: SlidingWindow) -> tuple[float, float]:
    """(inside, outside): the probabilities of a column in the level's window, and of another."""
    truth = window.threshold / ONE
    return truth / window.width, (1 - truth) / (window.columns - window.width)


def level_noise(window: SlidingWindow) -> tuple[FloatArray, FloatArray]:
    """The levels between -1 and 1, and E[a**2] at each of them; shape (D - w + 1,) each."""
    inside, outside = window_channel(window)
    squares = np.square(window.scores())
    sums = np.concatenate([[0.0], np.cumsum(squares)])
    owned = sums[window.width :] - sums[: -window.width]
    levels = np.array(window.levels, np.float64) / TOP * 2 - 1
    return levels, outside * sums[-1] + (inside - outside) * owned


def window_mean(window: SlidingWindow, row: TallyRow, repeats: float = 1.0) -> MeanEstimate:
    """What the row of a sliding window says.

    Args:
        repeats: how often the same devices reported (`Participation.repeats`).
    """
    n = row.reports
    if n == 0:
        return MeanEstimate(0.0, math.inf, 0)
    score = np.array(window.scores())
    rate = row.cells / n
    mean, square = float(score @ rate), float(score**2 @ rate)
    levels, squares = level_noise(window)
    least = float((squares - levels**2).min())
    # What a release has added to each column; then the square may even be negative.
    added = row.noise * float(score @ score) / n
    each = max(square - mean**2, least) + added
    error = math.sqrt(max(0.0, float(score**4 @ rate) - square**2) / n)
    error = math.hypot(error, math.sqrt(row.noise * float((score**4).sum())) / n)
    spread = max(0.0, square - mean**2 - least) + CAUTION * error
    kept = min(spread, _most_spread(mean, math.sqrt(each / n)))
    return MeanEstimate(mean, each / n, n, (repeats - 1) / n, kept)


def cell_points(mechanism: Histogram) -> tuple[FloatArray, float]:
    """Where the numbers of each cell count as being, between -1 and 1, shape (d,), and the
    largest distance of a number from there.

    Inner cells have their middle, for whole numbers the mean of those in the cell; the outer cells
    count as `low` and `high`.
    """
    edges = np.array(mechanism.edges, np.float64)
    starts, ends = edges[:-1], edges[1:]
    middle = (starts + ends) / 2
    distance = (ends - starts) / 2
    if mechanism.range.integer:
        # Positions are rounded by less than one, so an edge at a whole number is just below it.
        unit = TOP / float(mechanism.range.span)
        first = np.ceil((starts - 1) / unit)
        last = np.ceil((ends - 1) / unit) - 1
        whole = last >= first
        middle = np.where(whole, (first + last) / 2 * unit, middle)
        distance = np.where(whole, (last - first) / 2 * unit, 0.0)
    points = np.concatenate([[0.0], middle, [TOP]]) / TOP * 2 - 1
    return points, float(distance.max()) / TOP * 2


def cells_mean(mechanism: Histogram, sums: CellSums) -> MeanEstimate:
    """The mean of the middles of the cells."""
    points, rounding = cell_points(mechanism)
    value, covariance = sums.fresh(points[None])
    noise = float(covariance[0, 0])
    if math.isinf(noise):
        return MeanEstimate(0.0, math.inf, sums.reports, sums.shared, 1.0, rounding)
    mean = float(value[0])
    kept = min(float(sums.kept(points[None])[0]), _most_spread(mean, math.sqrt(noise)))
    return MeanEstimate(mean, noise, sums.reports, sums.shared, kept, rounding)


def tree_share_of_both(mechanism: HierarchicalHistogram) -> float:
    """The weight of the tree's mean beside that of the mean's row, by their planned variances.

    It depends on neither the numbers nor on who reported, so that fakes cannot move it.
    """
    assert mechanism.mean is not None
    points, _ = cell_points(mechanism)
    levels, squares = level_noise(mechanism.mean)
    tree = float(scores(mechanism).planned(points[None])[0]) + EVEN_SPREAD
    window = float((squares - levels**2).max()) + EVEN_SPREAD
    told = (1 - MEAN_SHARE) / tree
    return told / (told + MEAN_SHARE / window)


def _reach(bias: float, level: float) -> float:
    """How far a normal number of variance 1 and mean `bias` lies from 0 at this level."""
    normal = NormalDist()
    if bias == 0:
        return deviations(level)

    def held(reach: float) -> bool:
        return normal.cdf(reach - bias) - normal.cdf(-reach - bias) >= level

    return halved(held, bias, bias + deviations(level), 40)


def _most_spread(mean: float, error: float) -> float:
    """The largest variance of numbers with this mean, give or take two standard errors."""
    nearest = max(0.0, abs(mean) - CAUTION * error)
    return max(0.0, 1 - nearest**2)
