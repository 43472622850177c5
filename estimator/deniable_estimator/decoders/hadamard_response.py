"""Hadamard response: the support of every value by one fast Walsh-Hadamard transform, and
tallies drawn from their exact distribution.

A report supports x if the row of x has +1 in its column. So with n reports and the transform of
the counts T = H C, the support of x is (n + T[row of x]) / 2, in integers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms import HadamardResponse
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.decoders.planes import Planes, sample_points
from deniable_estimator.decoders.support import Items, Support

__all__ = ["decode", "matrix_support", "sample_rows"]

_Counts = NDArray[np.int64]


def decode(tally: Tally, mechanism: HadamardResponse, items: Items) -> Support:
    """How many reports support each of the items, which are indices of values."""
    (row,) = tally.rows
    return Support(matrix_support(row.cells, mechanism)[items], tally.reports)


def matrix_support(cells: _Counts, mechanism: HadamardResponse) -> _Counts:
    """The support of each value, shape (size,), from the counts of all columns, shape (K,)."""
    transformed = cells.copy()
    half = 1
    while half < len(cells):
        pairs = transformed.reshape(-1, 2, half)
        even, odd = pairs[:, 0].copy(), pairs[:, 1].copy()
        np.add(even, odd, out=pairs[:, 0])
        np.subtract(even, odd, out=pairs[:, 1])
        half *= 2
    support: _Counts = (transformed[0] + transformed[::-1][: mechanism.size]) // 2
    return support


class _Rows(Planes):
    """Rows of the Hadamard matrix, each with the columns in which it has +1."""

    def __init__(self, mechanism: HadamardResponse) -> None:
        self.points, self.size, self.p = mechanism.order, mechanism.order // 2, mechanism.p

    def plane(self, item: int) -> _Counts:
        columns = np.arange(self.points)
        return columns[~_odd(columns & (self.points - 1 - item))]

    def draw(self, items: _Counts, counts: _Counts, rng: np.random.Generator) -> _Counts:
        rows = np.repeat(self.points - 1 - items, counts)
        columns = rng.integers(self.points, size=len(rows))
        # Toggling a bit of the row pairs the columns of either sign one to one.
        return np.where(_odd(columns & rows), columns ^ (rows & -rows), columns)


def _odd(numbers: _Counts) -> NDArray[np.bool_]:
    """Whether the numbers, below 2**32, have an odd number of ones in binary."""
    folded = numbers.copy()
    for shift in (16, 8, 4, 2, 1):
        folded ^= folded >> shift
    return (folded & 1).astype(bool)


def sample_rows(
    mechanism: HadamardResponse, items: Items, counts: _Counts, rng: np.random.Generator
) -> tuple[TallyRow, ...]:
    """The tally of a crowd in which `counts[x]` devices have value x, shape (size,).

    `items` is every value, in order, and is ignored.
    """
    return (sample_points(_Rows(mechanism), counts, rng),)
