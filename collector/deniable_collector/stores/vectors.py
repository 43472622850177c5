"""A tally as one vector of counters: first the reports of each row, then the cells row by row.

Stores add such vectors, so that a commit to many small rows costs little more than one to
a single row, and the reports of a row are written together with its cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable_collector.stores.commits import MAX_CELL, Addition, TallyKey
from deniable_collector.stores.errors import StoreError
from deniable_collector.tally import TallyRow


@dataclass(frozen=True, eq=False)
class Shape:
    """Where the rows of a tally are in its vector: row i at `starts[i]`, `widths[i]` long.

    `size` is the length of the vector. The rows are in `groups` of equal size, one for each
    combination of segments.
    """

    widths: tuple[int, ...]
    starts: tuple[int, ...]
    size: int
    groups: int = 1


def shape_of(scheme: Scheme) -> Shape:
    """The shape of the scheme's tallies."""
    widths = tuple(row.width for row in scheme.rows)
    ends = np.cumsum((len(widths), *widths)).tolist()
    return Shape(widths, tuple(ends[:-1]), ends[-1], len(scheme.combinations))


def vector_of(shape: Shape, rows: Mapping[int, TallyRow]) -> NDArray[np.int64]:
    """The vector that has these rows, by their numbers, and zeros in all others."""
    vector = np.zeros(shape.size, np.int64)
    for number, row in rows.items():
        vector[number] = row.reports
        vector[shape.starts[number] :][: shape.widths[number]] = row.cells
    return vector


def addition_of(shape: Shape, rows: Mapping[int, TallyRow]) -> Addition:
    """What adds these rows, by their numbers, to a tally."""
    vector = vector_of(shape, rows)
    (places,) = vector.nonzero()
    return Addition(places, vector[places], sum(row.reports for row in rows.values()))


def rows_of(shape: Shape, vector: NDArray[np.int64]) -> Iterator[TallyRow]:
    """The rows of a whole vector of shape (size,); the cells are views of it."""
    for row, (start, width) in enumerate(zip(shape.starts, shape.widths, strict=True)):
        yield TallyRow(int(vector[row]), vector[start : start + width])


def full(tally: TallyKey) -> StoreError:
    """The error for a counter that would exceed its maximum."""
    return StoreError(
        f"a counter of metric {tally.metric}, window {tally.window} is at its maximum "
        f"({MAX_CELL}): nothing was added"
    )
