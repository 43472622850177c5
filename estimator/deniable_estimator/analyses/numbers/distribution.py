"""The distribution of numbers: its curve with bands, quantiles, shares of ranges, a histogram, and
whether the declared range suits the numbers.

F_t is the share below edge t (1 to d - 1). Its estimate is unbiased and not monotone. The drawn
curve G is the monotone one that is nearest in variances (isotonic regression; Barlow, Bartholomew,
Bremner and Brunk, 1972), and its bands are the tightest monotone ones ::

    L_t = largest low end of G_s over s <= t,   U_t = smallest high end of G_s over s >= t

A quantile p lies between edge lo = number of t with U_t < p, and hi = first t with L_t >= p. If
lo is 0, it may lie below `low`; if there is no hi, it may lie above `high`, and nothing says how
far. That the bands keep their level is shown by simulation, not by proof (`benchmarks/numeric.py`).
Where the curve is level at p itself, as at p50 if half of the numbers are alike, many edges could
be the quantile's end by chance, and intervals of 95% hold it in 88 to 97% of the cases.

Shares of ranges are not taken from the curve: they and their variances are the unbiased ones.

**The declared range** may be too narrow, or too wide for its cells to tell much (`below`, `above`,
`crowded`). A bad range costs width, never validity.

**A change** of quantile p between two windows is one of the share below the quantile of both
together: t* is where the monotone curve of (F1 + F2) / 2 reaches p, and the shares below it are
compared as other shares are (`deniable_estimator.statistics.counts`). Windows are independent, as
each report has fresh noise. If the same devices with the same numbers report in both, the
difference varies less than assumed, so that the test is cautious.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms.number_range import NumberRange
from deniable_estimator.analyses.numbers.cell_sums import CellSums
from deniable_estimator.analyses.numbers.scores import ARITY
from deniable_estimator.statistics.counts import change_p_values, share_interval
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.normalization import on_simplex

_LEAST = 1e-18
"""Variances below it count as it: a curve needs weights that are finite."""

_FEW_CELLS = 8
"""If fewer neighbouring cells hold most of the numbers, a narrower range would tell more."""

_MOST = 0.5


class RangeShare(NamedTuple):
    """The share of numbers in a range: unbiased, so it may lie outside of 0 to 1."""

    share: float
    variance: float
    """Infinite if the rows cannot tell."""
    low: float
    high: float
    """The interval. If `interpolated`, its ends hold wherever the numbers of a cell lie."""
    interpolated: bool = False
    """An end of the range is inside of a cell, and numbers count as evenly spread there."""


class Quantile(NamedTuple):
    """Where a quantile lies, in positions (0 to 2**30)."""

    p: float
    point: float
    """If it is not in the range, the end of the range."""
    low: int | None
    """None if there is no lower limit: the quantile may lie below `low`."""
    high: int | None
    """The quantile is below this position; None if there is no upper limit."""

    def in_units(self, numbers: NumberRange) -> tuple[float, float, float]:
        """(point, low, high) as numbers, infinite without a limit. Of whole numbers, `high` is the
        largest one inside."""
        low = -math.inf if self.low is None else numbers.value(self.low)
        high = math.inf if self.high is None else numbers.value(self.high)
        if not numbers.integer:
            return numbers.value(self.point), low, high
        # An edge at a whole number is up to one position below it.
        step = float(numbers.span) / (1 << 29)
        point = float(math.floor(numbers.value(self.point) + step))
        if self.low is not None:
            low = float(math.ceil(low - step))
        if self.high is not None:
            # What lies below `low` is told as `low`, so the interval reaches to there.
            high = max(point, math.ceil(high - step) - 1.0)
        return point, low, high


@dataclass(frozen=True, eq=False)
class DistributionEstimate:
    """What a tally says about the distribution, with intervals of one level."""

    edges: NDArray[np.int64]
    """Positions of the edges 1 to d - 1, shape (d - 1,)."""
    sums: CellSums
    level: float

    @property
    def cells(self) -> int:
        """d, with the one below `low` (0) and the one from `high` on (d - 1)."""
        return self.sums.cells

    @property
    def cdf(self) -> FloatArray:
        """The unbiased share below each of `edges`, shape (d - 1,)."""
        return self.sums.below[1:-1]

    @property
    def variance(self) -> FloatArray:
        """Of `cdf`; infinite for edges that no row sees."""
        return self.sums.variance[1:-1]

    @cached_property
    def curve(self) -> FloatArray:
        """The monotone curve G, shape (d - 1,); as unclipped as the shares."""
        known = np.isfinite(self.variance)
        if not known.any():
            return self.cdf
        fitted = monotone(self.cdf[known], 1 / np.maximum(self.variance[known], _LEAST))
        # What no row sees lies evenly between its neighbours, as within a cell.
        places = [0, *(np.flatnonzero(known) + 1), self.cells]
        ends = min(0.0, fitted[0]), max(1.0, fitted[-1])
        curve: FloatArray = np.interp(np.arange(1, self.cells), places, [ends[0], *fitted, ends[1]])
        return curve

    @cached_property
    def bands(self) -> tuple[FloatArray, FloatArray]:
        """L and U, shape (d - 1,) each; each point of the curve has the level, not all at once."""
        low, high = share_interval(self.curve, self.noise, self.level)
        return np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]

    @cached_property
    def noise(self) -> Noise:
        """Of `cdf`, as a function of the true share."""
        return self.sums.edge_noise(self.histogram())

    def quantile(self, p: float) -> Quantile:
        """Where the share below reaches p, from 0 to 1."""
        lower, upper = self.bands
        lo = int((upper < p).sum())
        reached = lower >= p
        hi = int(reached.argmax()) + 1 if reached.any() else self.cells
        lo = min(lo, hi - 1)
        low = int(self.edges[lo - 1]) if lo else None
        high = int(self.edges[hi - 1]) if hi < self.cells else None
        return Quantile(p, self._point(p), low, high)

    def reach(self, p: float, gain: float, loss: float) -> tuple[float | None, float | None]:
        """Between which positions fakes could put quantile p; None for outside of the range. If F
        rises by at most `gain` at every edge and falls by at most `loss`, that is between where the
        curve reaches p - gain and where it reaches p + loss."""
        low = int((self.curve < p - gain).sum())
        high = int((self.curve < p + loss).sum())
        return (
            float(self.edges[low - 1]) if low else None,
            float(self.edges[high]) if high < len(self.edges) else None,
        )

    def share(self, start: int | None, end: int | None) -> RangeShare:
        """The share of numbers from position `start` up to, but not at, position `end`.

        None means without limit: `share(None, 0)` is what lies below `low`, and
        `share(2**30, None)` what lies at `high` and above.
        """
        first = 0.0 if start is None else self._edge(start)
        last = float(self.cells) if end is None else self._edge(end)
        share, variance = self.sums.share(first, last)
        interpolated = first % 1 > 0 or last % 1 > 0
        if not interpolated:
            return RangeShare(share, variance, *self._interval(int(first), int(last)))
        inside = math.ceil(first), math.floor(last)
        low = -math.inf if math.isinf(variance) else 0.0
        if inside[0] < inside[1]:
            low, _ = self._interval(*inside)
        _, high = self._interval(math.floor(first), math.ceil(last))
        return RangeShare(share, variance, low, high, interpolated)

    def _interval(self, first: int, last: int) -> tuple[float, float]:
        """That of the share between two edges, 0 to d."""
        if first == last or (first, last) == (0, self.cells):
            return (float(first < last),) * 2
        share, _ = self.sums.share(first, last)
        noise = self.sums.noise(first, last, self.histogram())
        low, high = share_interval(np.array([share]), noise, self.level)
        return float(low[0]), float(high[0])

    @cached_property
    def below(self) -> RangeShare:
        """The share below `low`."""
        return self.share(None, int(self.edges[0]))

    @cached_property
    def above(self) -> RangeShare:
        """The share at `high` and above."""
        return self.share(int(self.edges[-1]), None)

    def p_value_of_change(self, after: DistributionEstimate, p: float) -> float:
        """Two-sided, for the hypothesis that quantile p is the same in a later estimate of the same
        edges; 1 if nothing is known."""
        variance = self.variance + after.variance
        known = np.isfinite(variance)
        if not known.any():
            return 1.0
        middle = (self.cdf + after.cdf)[known] / 2
        pooled = monotone(middle, 1 / np.maximum(variance[known], _LEAST))
        at = np.flatnonzero(known)[[min(int((pooled < p).sum()), len(pooled) - 1)]]
        first, second = self.noise.taken(at), after.noise.taken(at)
        return float(change_p_values(self.cdf[at], first, after.cdf[at], second)[0])

    def histogram(self) -> FloatArray:
        """Possible shares of the d cells, shape (d,): none below 0, a sum of 1. Points only.

        From the root down, the children of each node get the nearest possible shares that sum to
        their parent's (Cormode, Kulkarni and Srivastava, VLDB 2019, have the tree).
        """
        shares = np.ones(1)
        while len(shares) < self.cells:
            nodes = len(shares) * ARITY
            found = np.diff(self.sums.below[:: self.cells // nodes])
            shares = on_simplex(found.reshape(-1, ARITY), shares).ravel()
        return shares

    @cached_property
    def crowded(self) -> tuple[int, float] | None:
        """The fewest neighbouring inner cells that are certain to hold more than half of the
        numbers, and the share that they hold at least; None if that takes `_FEW_CELLS` or more."""
        edges = np.arange(1, self.cells)
        # Cells that are left over at the end, where whole numbers have one each, have no width.
        edges = edges[: int(np.argmax(self.edges == self.edges[-1])) + 1]
        if len(edges) - 1 <= 2 * _FEW_CELLS:
            return None
        for cells in range(1, _FEW_CELLS):
            shares = self.sums.below[edges[cells:]] - self.sums.below[edges[:-cells]]
            start = int(edges[int(shares.argmax())])
            share = self.share(int(self.edges[start - 1]), int(self.edges[start + cells - 1]))
            if share.low > _MOST:
                return cells, share.low
        return None

    def _edge(self, position: int) -> float:
        """Where a position of the range lies among the edges 1 to d - 1, of which the first is its
        lowest; with a fraction inside of a cell."""
        after = int(np.searchsorted(self.edges, position, side="right"))
        start = int(self.edges[after - 1])
        if position == start or after == len(self.edges):
            return float(after)
        return after + (position - start) / (int(self.edges[after]) - start)

    def _point(self, p: float) -> float:
        at = int((self.curve < p).sum())
        if at in (0, self.cells - 1):
            return float(self.edges[-1 if at else 0])
        start, end = float(self.edges[at - 1]), float(self.edges[at])
        low, high = self.curve[at - 1], self.curve[at]
        return start + (end - start) * float((p - low) / (high - low))


def monotone(values: FloatArray, weights: FloatArray) -> FloatArray:
    """The nearest non-decreasing values, by weighted squares, shape (t,): neighbours in the wrong
    order are pooled until none is left."""
    level: list[float] = []
    mass: list[float] = []
    count: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        size = 1
        while level and level[-1] >= value:
            before = mass.pop()
            value = (level.pop() * before + value * weight) / (before + weight)
            weight += before
            size += count.pop()
        level.append(value)
        mass.append(weight)
        count.append(size)
    return np.repeat(level, count)
