"""Which cells of a cohort table each candidate sets: the design of the regression.

A cohort table has m rows (cohorts) of k columns. A candidate string sets up to h
columns in every row, chosen by public hash functions, so it is a line of m*h cell
numbers. Everything that touches all candidates is a gather over those lines.
"""

from __future__ import annotations

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
