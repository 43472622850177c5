"""Hadamard response: the support of every value by one fast Walsh-Hadamard transform, and
tallies drawn from their exact distribution.

A report supports x if the row of x has +1 in its column. So with n reports and the transform of
the counts T = H C, the support of x is (n + T[row of x]) / 2, in integers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms import HadamardResponse
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.base import Counts, Items, OneRowAnalysis
from deniable_estimator.analyses.planes import Planes, sample_points


class HadamardResponseAnalysis(OneRowAnalysis[HadamardResponse]):
    """A report is one column, which supports half of the values."""

    def places(self, cells: Counts) -> Counts:
        return matrix_support(cells, self.mechanism)

    def supported(self, targets: int) -> tuple[int, int]:
        # Column 0 supports every value. Any other one has -1 in half of the rows, and one has
        # it in all rows from order / 2 on, which all belong to values.
        return max(0, targets - self.mechanism.order // 2), targets

    def together(self) -> float:
        """Any two rows of a Hadamard matrix have a third that two values have in common."""
        return 2 * float(self.mechanism.p)

    def commonest(self) -> float:
        return 2 * float(self.mechanism.p) / self.mechanism.order

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        """`items` is every value, in order, and is ignored."""
        return (sample_points(_Rows(self.mechanism), counts, rng),)


def matrix_support(cells: Counts, mechanism: HadamardResponse) -> Counts:
    """The support of each value, shape (size,), from the counts of all columns, shape (K,)."""
    transformed = cells.copy()
    half = 1
    while half < len(cells):
        pairs = transformed.reshape(-1, 2, half)
        even, odd = pairs[:, 0].copy(), pairs[:, 1].copy()
        np.add(even, odd, out=pairs[:, 0])
        np.subtract(even, odd, out=pairs[:, 1])
        half *= 2
    support: Counts = (transformed[0] + transformed[::-1][: mechanism.size]) // 2
    return support


class _Rows(Planes):
    """Rows of the Hadamard matrix, each with the columns in which it has +1."""

    def __init__(self, mechanism: HadamardResponse) -> None:
        self.points, self.size, self.p = mechanism.order, mechanism.order // 2, mechanism.p

    def plane(self, item: int) -> Counts:
        columns = np.arange(self.points)
        return columns[~_odd(columns & (self.points - 1 - item))]

    def draw(self, items: Counts, counts: Counts, rng: np.random.Generator) -> Counts:
        rows = np.repeat(self.points - 1 - items, counts)
        columns = rng.integers(self.points, size=len(rows))
        # Toggling a bit of the row pairs the columns of either sign one to one.
        return np.where(_odd(columns & rows), columns ^ (rows & -rows), columns)


def _odd(numbers: Counts) -> NDArray[np.bool_]:
    """Whether the numbers, below 2**32, have an odd number of ones in binary."""
    folded = numbers.copy()
    for shift in (16, 8, 4, 2, 1):
        folded ^= folded >> shift
    return (folded & 1).astype(bool)
