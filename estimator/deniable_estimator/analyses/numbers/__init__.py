"""What every analysis of numbers says: their mean, of a distribution its curve, and whether the
reports look honest.

Numbers are positions here, from 0 (`low`) to 2**30 (`high`), or the same stretch as -1 to 1 where
a mean is estimated; a mechanism's `range.value(position)` turns them into units. On a logarithmic
scale the mean is that of logarithms: in units it is the geometric mean.

From cells, the mean is that of their middles, where every number of a cell counts as its middle,
and what is clamped counts as `low` or `high`; `rounding` says by how much that can move the mean,
and intervals allow for it.

**Before any report** the variances of numbers are known exactly. They are n Var, with n all reports
of the metric. That of the mean is the noise of the number that is hidden best, plus the variance of
the numbers. For the share F below an edge it is the V of
`deniable_estimator.analyses.numbers.scores` plus F (1 - F).

**Fakes.** A fake does not randomize: it sends the well-formed report that moves the estimate most,
in the row where it counts most. Let a fraction b of all reports be fake.

**Distribution**: for a question W, a report of column y in row l scores Z_l(y)
(see `scores` beside this file). Let n_l of the n reports of honest devices be in row l, with
mean score M_l. Then k_l fakes, who all send the column of the largest score, move the estimate by
exactly ::

    sum over l of k_l / (n_l + k_l) * g_l,    g_l = max Z_l - M_l

which is concave in each k_l, so the best k fakes are spread like water: with lambda such that
the k_l sum to k,  k_l = max(0, sqrt(g_l n_l / lambda) - n_l). Few fakes are all in the row of the
largest g_l / n_l, the last one to the first: rows are not drawn for them. They could change the
weights of rows only by making a row too small, and nobody can take reports away.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple, TypeVar

import numpy as np

from deniable.protocol.mechanisms.number_range import TOP, Histogram, Numeric
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.base import Analysis, Counts, Items
from deniable_estimator.analyses.numbers.cell_sums import CAUTION, CellSums
from deniable_estimator.analyses.numbers.distribution import DistributionEstimate
from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.tails import halved

EVEN_SPREAD = 1 / 3
"""The variance of numbers that are spread evenly over -1 to 1; at most it can be 1."""

AnyNumber = TypeVar("AnyNumber", bound=Numeric)


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


class Attack(NamedTuple):
    """The most that fakes add to an estimate, and the most that they take away; both positive."""

    gain: float
    loss: float


class NumberAnalysis(Analysis[AnyNumber]):
    """What a tally of numbers says. Items are positions in the range: -1 below `low`, 2**30 for
    `high` and above. `repeats` is how often the same devices reported (`Participation.repeats`)."""

    @property
    def rounding(self) -> float:
        """By how much cells leave the mean open, with any number of devices."""
        return 0.0

    def mean(self, rows: Sequence[TallyRow], repeats: float = 1.0) -> MeanEstimate:
        """The mean between -1 (`low`) and 1 (`high`), on the range's scale."""
        raise NotImplementedError

    def attack(self, mean: float, fakes: float) -> Attack:
        """How far so many fakes move that mean."""
        raise NotImplementedError

    def planned_mean(self) -> float:
        """n times the variance of the noise in that mean, before any report."""
        raise NotImplementedError


AnyHistogram = TypeVar("AnyHistogram", bound=Histogram)


class HistogramAnalysis(NumberAnalysis[AnyHistogram]):
    """A distribution over cells, and the mean."""

    def sums(self, rows: Sequence[TallyRow], repeats: float) -> CellSums:
        """What the rows of a tally, in the order of the mechanism's, say of sums of shares of the
        cells."""
        raise NotImplementedError

    def curve_attack(self, fakes: float) -> Attack:
        """How far so many fakes move the share below an edge at most, whichever edge it is."""
        raise NotImplementedError

    def distribution(
        self, rows: Sequence[TallyRow], level: float, repeats: float
    ) -> DistributionEstimate:
        """The shares below each edge of the cells, and what follows from them, with intervals of
        this level."""
        edges = np.array(self.mechanism.edges, np.int64)
        return DistributionEstimate(edges, self.sums(rows, repeats), level)

    def cells(self, positions: Items) -> Counts:
        """The cell of each position."""
        return np.searchsorted(np.array(self.mechanism.edges), positions, side="right")

    @property
    def points(self) -> FloatArray:
        """Where the numbers of each cell count as being, between -1 and 1, shape (1, d): in its
        middle, and for whole numbers at the mean of those in the cell. The outer cells count as
        `low` and `high`."""
        first, last = self._ends
        return np.concatenate([[0.0], (first + last) / 2, [TOP]])[None] / TOP * 2 - 1

    @property
    def farthest(self) -> float:
        """The largest distance of a number from where it counts as being."""
        first, last = self._ends
        return float((last - first).max()) / TOP

    @property
    def rounding(self) -> float:
        return self.farthest

    @property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Between which positions the numbers of each inner cell lie."""
        edges, numbers = np.array(self.mechanism.edges, np.float64), self.mechanism.range
        if not numbers.integer:
            return edges[:-1], edges[1:]
        # Positions are rounded by less than one, so an edge at a whole number is just below it.
        unit = TOP / float(numbers.span)
        whole = np.ceil((edges - 1) / unit)
        first, last = whole[:-1], whole[1:] - 1
        # A cell without a whole number has its middle.
        none, middle = last < first, (edges[:-1] + edges[1:]) / 2
        return np.where(none, middle, first * unit), np.where(none, middle, last * unit)

    def mean(self, rows: Sequence[TallyRow], repeats: float = 1.0) -> MeanEstimate:
        return self.mean_of(self.sums(rows, repeats))

    def mean_of(self, sums: CellSums) -> MeanEstimate:
        """The mean of the middles of the cells."""
        points, rounding = self.points, self.farthest
        value, covariance = sums.fresh(points)
        noise = float(covariance[0, 0])
        if math.isinf(noise):
            return MeanEstimate(0.0, math.inf, sums.reports, sums.shared, 1.0, rounding)
        least = sum(part.weight**2 * float(part.least_noise(points)[0]) for part in sums.parts)
        mean, noise = float(value[0]), max(noise, least)
        kept = min(float(sums.kept(points)[0]), most_spread(mean, math.sqrt(noise)))
        return MeanEstimate(mean, noise, sums.reports, sums.shared, kept, rounding)


def _reach(bias: float, level: float) -> float:
    """How far a normal number of variance 1 and mean `bias` lies from 0 at this level."""
    normal = NormalDist()
    if bias == 0:
        return deviations(level)

    def held(reach: float) -> bool:
        return normal.cdf(reach - bias) - normal.cdf(-reach - bias) >= level

    return halved(held, bias, bias + deviations(level), 40)


def most_spread(mean: float, error: float) -> float:
    """The largest variance of numbers with this mean, give or take two standard errors."""
    nearest = max(0.0, abs(mean) - CAUTION * error)
    return max(0.0, 1 - nearest**2)


def worst(pulls: tuple[FloatArray, FloatArray], shares: FloatArray, fakes: float) -> Attack:
    """That of the question that fakes move most, up and down, by its g_l, shape (f, h) each."""
    return Attack(*(max(flooded(each, shares, fakes) for each in side) for side in pulls))


def row_pulls(scored: Iterable[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """g_l up and down for f questions, shape (f, h) each, by their column scores in each row, shape
    (f, K). Honest devices that send all columns alike score 0: the details of W sum to 0."""
    ends = [(each.max(axis=1), -each.min(axis=1)) for each in scored]
    up, down = np.array(ends).transpose(1, 2, 0)
    return up, down


def flooded(pulls: FloatArray, shares: FloatArray, fakes: float) -> float:
    """The most that fakes add: `pulls` (g_l) and `shares` (n_l / n) of the honest reports."""
    if fakes <= 0:
        return 0.0
    count = fakes / (1 - fakes)
    order = np.argsort(-pulls / shares)
    best = 0.0
    # The rows that get fakes are the first ones in this order.
    for used in range(1, len(order) + 1):
        rows = order[:used]
        g, n = np.maximum(pulls[rows], 0.0), shares[rows]
        roots = np.sqrt(g * n)
        if roots.sum() == 0:
            break
        sent = roots / roots.sum() * (count + n.sum()) - n
        if (sent < 0).any():
            break
        best = max(best, float((sent / (n + sent) * g).sum()))
    return best
