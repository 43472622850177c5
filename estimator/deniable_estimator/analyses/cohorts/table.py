"""A cohort table as regression data: debiased cells, their weights and their residuals; and the
design of the regression, which says which cells each candidate sets.

The table has m rows (cohorts) of k columns. A candidate string sets up to h columns in every row,
chosen by public hash functions, so it is a line of m*h cell numbers. Everything that touches all
candidates is a gather over those lines.

A cell (cohort i, column j) that is set in t of N reports estimates y, the share of the cohort's
devices whose true filter sets it::

    y = (t/N - p01) / (p11 - p01),   Var y = r (1-r) / (N (p11-p01)**2),   r = E[t/N]

where p01 and p11 are the probabilities that a report sets a cell which the true filter
leaves, or sets.

If a report sets exactly one column (local hashing), the cells of a cohort are multinomial:
N Cov(t/N) = D - r r' with D = diag(r). Because r sums to 1, (D - r r') D**-1 (D - r r') =
D - r r': the inverse of D is a generalized inverse, and residuals sum to 0 in each cohort. So
least squares may treat these cells as independent with variance r / (N (p11-p01)**2), and each
cohort has one degree of freedom less. With r (1-r) intervals would be too short, by
sqrt(1 - 1/k).

Strings outside the fit increase the variance of the cells. This is a second component of
variance, `spread`, estimated so that the residuals have the size that they should have (Paule
and Mandel, J. Res. NBS 1982). Because one common string raises few cells by much, residuals are
winsorized (Huber, Robust Statistics, 1981, chapter 7): cut off at a limit in standard deviations.
With `slope` = E[psi'] and `square` = E[psi**2] of a cut standard normal psi, a cut residual over
`slope` moves with the fit as the residual did, and has `loss` times its variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.statistics.intervals import FloatArray

_BLOCK = 1 << 15
"""How many cells are made or gathered at a time, so that they fit into the processor's cache."""


@dataclass(frozen=True, eq=False)
class Design:
    """M candidates over a table of `cohorts` x `columns` cells.

    `cells` has shape (M, cohorts * h): the cells of each candidate, cohort by cohort,
    as cohort * columns + column. If two hashes of a candidate collide in one cell, the cell is
    listed once, and the other entry is cohorts * columns, a cell that does not exist.
    """

    cohorts: int
    columns: int
    cells: NDArray[np.int32]

    @classmethod
    def of(cls, positions: NDArray[np.integer[Any]], columns: int) -> Self:
        """From the columns that each candidate sets: shape (M, cohorts, h), from 0."""
        count, cohorts, hashes = positions.shape
        offset = np.arange(cohorts, dtype=np.int32)[:, None] * np.int32(columns)
        cells = np.empty(positions.shape, np.int32)
        step = max(1, _BLOCK // (cohorts * hashes))
        for start in range(0, count, step):
            some, into = positions[start : start + step], cells[start : start + step]
            np.add(some, offset, out=into, dtype=np.int32, casting="unsafe")
            for later in range(1, hashes):
                for earlier in range(later):
                    repeated = some[:, :, earlier] == some[:, :, later]
                    np.copyto(into[:, :, later], cohorts * columns, where=repeated)
        return cls(cohorts, columns, cells.reshape(count, cohorts * hashes))

    @property
    def size(self) -> int:
        """How many cells the table has."""
        return self.cohorts * self.columns

    def __len__(self) -> int:
        return len(self.cells)

    def take(self, candidates: NDArray[np.intp]) -> Self:
        """The design of some of the candidates, in that order."""
        return type(self)(self.cohorts, self.columns, self.cells[candidates])

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """The sum of `values` over each candidate's cells.

        `values` has shape (cells,), and the answer (M,); or (cells, s), and the answer (M, s).
        """
        table = np.concatenate([values, np.zeros_like(values[:1])])
        answer = np.empty((len(self), *values.shape[1:]), values.dtype)
        each = self.cells.shape[1] * (values.size // len(values))
        step = max(1, _BLOCK // each)
        for start in range(0, len(self), step):
            block = self.cells[start : start + step]
            answer[start : start + step] = table.take(block, axis=0, mode="clip").sum(axis=1)
        return answer

    def filters(self) -> FloatArray:
        """The dense design, shape (cells, M): 1 where the candidate sets the cell."""
        dense = np.zeros((self.size + 1, len(self)))
        dense[self.cells.T, np.arange(len(self))] = 1.0
        return dense[:-1]

    @cached_property
    def same_as(self) -> NDArray[np.intp]:
        """The first candidate with the same cells, shape (M,): its own index if there is none.

        The counts cannot distinguish candidates with the same hashes in every cohort.
        """
        # A sum of pseudo-random words does not depend on the order of the cells.
        cell = np.arange(1, self.size + 1, dtype=np.uint64)
        cell *= np.uint64(0x9E3779B97F4A7C15)
        cell ^= cell >> np.uint64(29)
        cell *= np.uint64(0xBF58476D1CE4E5B9)
        cell ^= cell >> np.uint64(32)
        _, first, group = np.unique(self.sums(cell), return_index=True, return_inverse=True)
        same = first[group]
        for candidate in np.flatnonzero(same != np.arange(len(self))):
            # Equal sums of different cells are practically impossible; they would merge strings.
            ours, theirs = self.cells[candidate], self.cells[same[candidate]]
            if not np.array_equal(np.sort(ours), np.sort(theirs)):
                same[candidate] = candidate
        return same


_ENOUGH = 4096
"""Cells tell how much strings outside the fit lift them."""
_NORMAL = ((-1.7320508, 1 / 6), (0.0, 2 / 3), (1.7320508, 1 / 6))
"""The standard normal distribution in three nodes with their weights (Gauss and Hermite)."""


@dataclass(frozen=True, eq=False)
class CohortTable:
    """The cells of a table, cohort by cohort; arrays have shape (m * k,).

    `y` is the debiased share of each cell, `reports` its N. `background` is the density of a
    random filter, which is the value of y if nothing is known. `limit` is that of residuals, and
    `tied` the number of cohorts whose cells always sum to 1: all or none.
    """

    y: FloatArray
    reports: FloatArray
    p01: float
    p11: float
    background: float
    limit: float
    tied: int = 0

    @classmethod
    def of(
        cls,
        counts: NDArray[Any],
        reports: NDArray[Any],
        p01: float,
        p11: float,
        background: float,
        limit: float,
        *,
        exclusive: bool = False,
    ) -> Self:
        """From counts of shape (m, k) and reports of shape (m,).

        `exclusive`: each report sets exactly one column.
        """
        each = np.repeat(reports.astype(np.float64), counts.shape[1])
        rate = np.divide(counts.ravel(), each, out=np.full(len(each), p01), where=each > 0)
        tied = int(np.count_nonzero(reports)) if exclusive else 0
        return cls((rate - p01) / (p11 - p01), each, p01, p11, background, limit, tied)

    @property
    def slope(self) -> float:
        return math.erf(self.limit / math.sqrt(2))

    @property
    def square(self) -> float:
        density = math.exp(-(self.limit**2) / 2) / math.sqrt(2 * math.pi)
        tail = (1 - self.slope) / 2
        return 1 - 2 * (self.limit * density + (1 - self.limit**2) * tail)

    @property
    def loss(self) -> float:
        return self.square / self.slope**2

    @property
    def live(self) -> int:
        """How many cells any report could have set."""
        return int(np.count_nonzero(self.reports))

    def variance(self, fit: FloatArray) -> FloatArray:
        """Variance of y where the model expects `fit`; infinite without reports.

        It never comes from the raw count, because a cell that is high by chance would then have
        less weight, which would bias the fit.
        """
        n = np.maximum(self.reports, 1.0)
        rate = self.p01 + (self.p11 - self.p01) * np.clip(fit, 0.0, 1.0)
        rate = np.clip(rate, 0.5 / n, 1 - 0.5 / n)
        noise = rate if self.tied else rate * (1 - rate)
        variance = noise / (n * (self.p11 - self.p01) ** 2)
        return np.where(self.reports > 0, variance, np.inf)

    @property
    def _left(self) -> float:
        """The fraction of a cell's variance that its residual has. If cells are tied, residuals sum
        to 0, so the fraction is that of the degrees of freedom."""
        return 1 - self.tied / max(self.live, 1)

    def weights(self, fit: FloatArray, parameters: int) -> FloatArray:
        """1 over the variance of each residual y - fit, of a fit with so many parameters."""
        variance = self.variance(fit)
        live = self.reports > 0
        square, floor = (self.y - fit)[live] ** 2 / self._left, variance[live]
        freedom = len(floor) - self.tied - parameters
        target = max(freedom, 1) / self._left * self.square
        limit = self.limit**2

        def excess(spread: float) -> float:
            return float(np.minimum(square / (floor + spread), limit).sum()) - target

        low, high = 0.0, 0.0
        if freedom > 0 and excess(0.0) > 0:
            high = float(square.sum()) / target
        while high - low > 1e-3 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return 1 / (variance + high)

    def residual(self, fit: FloatArray, weights: FloatArray) -> FloatArray:
        """y - fit, winsorized, and scaled so that it moves with the fit as y does.

        Its mean is the same in all cells, whatever strings outside the fit do to them.
        """
        live = weights > 0
        scale = np.sqrt(np.divide(self._left, weights, out=np.zeros(len(fit)), where=live))
        limit = self.limit * scale
        cut: FloatArray = np.clip(self.y - fit, -limit, limit)
        cut[live] -= self._lifted((self.y - fit)[live], scale[live])
        return cut / self.slope

    def _lifted(self, residual: FloatArray, scale: FloatArray) -> FloatArray:
        """The mean of the cut residual of cells that only strings outside the fit lift.

        Where a common string is, the noise is larger, and less is cut off: what other strings
        add there would be taken for more of it. How much they add is seen in the quieter half of
        the cells; to these, noise is added until they are as noisy as any other.
        """
        middle, widest = float(np.median(scale)), float(scale.max())
        if widest < 1.1 * middle:
            return np.zeros(len(scale))
        quiet = np.flatnonzero(scale <= middle)
        quiet = quiet[:: max(1, len(quiet) // _ENOUGH)]
        seen, own = residual[quiet], scale[quiet]
        steps = np.geomspace(middle, widest, 8)
        means = np.zeros(len(steps))
        for at, step in enumerate(steps):
            more = np.sqrt(np.maximum(step**2 - own**2, 0.0))
            limit = self.limit * step
            for node, weight in _NORMAL:
                means[at] += weight * np.clip(seen + more * node, -limit, limit).mean()
        return np.interp(scale, steps, means)
