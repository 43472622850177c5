"""How far fake devices could move a conditional share of a pair, and how few of them make the test
of independence reject.

A fake sends a set Z of k cells, which alone would show the table g: (1 - q)/(p - q) in the cells of
Z, -q/(p - q) elsewhere. With a fraction b of fakes the table F becomes (1 - b) F + b g. A
conditional share t = N/D, a cell divided by its row of c cells, moves to ::

    t + b (g_N - t g_D) / ((1 - b) D + b g_D),   g_D = (cells of Z in the row - c q) / (p - q)

Such a ratio is largest where all fakes send the same report, and g_N - t' g_D is linear in Z: so Z
has the cell or not, and as few others of its row as it can, or as many.

If the two lists are independent, the contrasts of `dependence` have mean b times those of g. So the
test has the noncentrality ::

    b**2 sum of (contrasts of g)**2 / M - ...   (the test's statistic of b g)

which is convex in g, hence largest where all fakes send the same Z. With equally frequent values
the best Z has as equally many cells in each row, and in each column, as possible. In general Z is
built cell by cell, each time the one that adds most, and the result is an attack that exists: a
cleverer one may take still fewer fakes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.analyses.pairs import Covariance
from deniable_estimator.analyses.pairs.dependence import kernel
from deniable_estimator.statistics.detection import LEVEL, POWER
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.tails import (
    chi_square_quantile,
    halved,
    noncentral_chi_square_tail,
)


@dataclass(frozen=True)
class Fake:
    """What one report can say of the cells, as a share that fakes alone would show."""

    inside: float
    """Of a cell in the report."""
    outside: float
    cells: int
    """How many cells a report has."""

    @classmethod
    def of(cls, mechanism: SubsetSelection) -> Fake:
        """Of one scheme."""
        rise = mechanism.p - mechanism.q
        return cls(float((1 - mechanism.q) / rise), float(-mechanism.q / rise), mechanism.k)

    def table(self, cells: FloatArray) -> FloatArray:
        """What fakes alone would show that all send these cells, a table of 0 and 1."""
        return self.outside + (self.inside - self.outside) * cells


def moved(table: FloatArray, fake: Fake, fakes: float) -> tuple[FloatArray, FloatArray]:
    """The least and the largest that at most such a fraction of fakes makes of the conditionals of
    the columns, given the rows; shape (k1, k2) each.

    Infinite where the fakes can bring the share of the row to 0 and keep the cell above or below
    it. NaN where the row is empty anyway.
    """
    given = np.repeat(table.sum(axis=1, keepdims=True), table.shape[1], axis=1)
    # Fakes may also do as honest devices do, so that the honest table is a corner too.
    corners = [(table, given)] + [
        ((1 - fakes) * table + fakes * cell, (1 - fakes) * given + fakes * row)
        for cell, row in _corners(fake, *table.shape)
    ]
    low, high = np.full_like(table, math.inf), np.full_like(table, -math.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for cell, row in corners:
            ratio = cell / row
            low = np.where(row > 0, np.minimum(low, ratio), low)
            high = np.where(row > 0, np.maximum(high, ratio), high)
        for (cell, row), (other, other_row) in permutations(corners, 2):
            crossing = (row > 0) & (other_row <= 0)
            left = (other * row - cell * other_row) / (row - other_row)  # the cell, at a row of 0
            high = np.where(crossing & (left > 0), math.inf, high)
            low = np.where(crossing & (left < 0), -math.inf, low)
    return np.where(given > 0, low, math.nan), np.where(given > 0, high, math.nan)


def _corners(fake: Fake, rows: int, columns: int) -> list[tuple[float, float]]:
    """What the extreme reports show of a cell and of its row: with the cell or without it, and with
    as few or as many others of the row as there can be."""
    outer, found = (rows - 1) * columns, []
    for inside in (0, 1):
        left = fake.cells - inside
        for others in {max(0, left - outer), min(left, columns - 1)}:
            if 0 <= left - others <= outer:
                held = inside + others
                row = held * fake.inside + (columns - held) * fake.outside
                found.append((fake.inside if inside else fake.outside, row))
    return found


def worst_cells(weights: FloatArray, fake: Fake) -> FloatArray:
    """The report that makes independent lists look most dependent, as 0 and 1 for each cell.
    `weights` is the `kernel` of their margins."""
    chosen = np.zeros(len(weights))
    reach = fake.outside * weights.sum(axis=0)  # of the table that the report shows so far
    step = fake.inside - fake.outside
    for _ in range(fake.cells):
        more = np.where(chosen > 0, -math.inf, 2 * reach + step * np.diag(weights))
        best = int(more.argmax())
        chosen[best] = 1
        reach += step * weights[best]
    return chosen


def fakes_to_reject(
    rows: FloatArray, columns: FloatArray, covariance: Covariance, fake: Fake, level: float = LEVEL
) -> float:
    """The fraction of fakes with which the test rejects the independence of independent lists with
    these margins with probability POWER."""
    weights = kernel(rows, columns, covariance)
    shown = fake.table(worst_cells(weights, fake))
    freedom = (len(rows) - 1) * (len(columns) - 1)
    needed = math.sqrt(_noncentrality(freedom, level) / float(shown @ weights @ shown))
    return min(1.0, needed)


def _noncentrality(freedom: int, level: float) -> float:
    """The one with which a chi-square test rejects with probability POWER."""
    critical = chi_square_quantile(level, freedom)

    def enough(noncentrality: float) -> bool:
        return noncentral_chi_square_tail(critical, freedom, noncentrality) >= POWER

    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
    return halved(enough, low, high, 50)
