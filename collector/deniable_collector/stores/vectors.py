"""A tally as one vector of counters: first the reports of each row, then the cells row by row.

Stores add such vectors, so that a commit to many small rows costs little more than one to
a single row, and the reports of a row are written together with its cells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable_collector.stores.commits import MAX_CELL, Increment, TallyKey, TallyRowKey
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


@dataclass(frozen=True, eq=False)
class Addition:
    """What a commit adds to a tally: `counts[i]` to the counter at `places[i]`.

    Places are distinct and ascend. Counts are positive, and none is above MAX_CELL; both have dtype
    int64.
    """

    places: NDArray[np.int64]
    counts: NDArray[np.int64]


def shape_of(scheme: Scheme) -> Shape:
    """The shape of the scheme's tallies."""
    widths = tuple(row.width for row in scheme.rows)
    ends = np.cumsum((len(widths), *widths)).tolist()
    return Shape(widths, tuple(ends[:-1]), ends[-1], len(scheme.combinations))


def gather(
    increments: Mapping[TallyRowKey, Increment], shape: Callable[[str, str], Shape]
) -> dict[TallyKey, Addition]:
    """The increments of rows as one addition for each tally, whose `shape` is asked for.

    Raises:
        StoreError: a row does not belong to its scheme, or a count is above the maximum.
    """
    tallies: defaultdict[TallyKey, list[tuple[int, Increment]]] = defaultdict(list)
    for (tally, row), increment in increments.items():
        tallies[tally].append((row, increment))
    return {
        tally: _gather(tally, shape(tally.metric, tally.scheme), rows)
        for tally, rows in tallies.items()
    }


def _gather(tally: TallyKey, shape: Shape, rows: list[tuple[int, Increment]]) -> Addition:
    for row, increment in rows:
        if not 0 <= row < len(shape.widths) or increment.width != shape.widths[row]:
            raise StoreError(
                f"metric {tally.metric} has no row {row} of {increment.width} columns "
                f"in its scheme {tally.scheme}"
            )
    places = [np.array([row for row, _ in rows], np.int64)]
    places += [np.asarray(each.columns, np.int64) + shape.starts[row] for row, each in rows]
    try:
        counts = [np.array([increment.reports for _, increment in rows], np.int64)]
        counts += [np.asarray(increment.counts, np.int64) for _, increment in rows]
    except OverflowError:
        raise full(tally) from None
    where, every = np.concatenate(places), np.concatenate(counts)
    if every.max() > MAX_CELL:
        raise full(tally)
    used = np.flatnonzero(every)
    where, every = where[used], every[used]
    # Rows and their columns mostly come in order.
    if np.any(where[1:] < where[:-1]):
        order = np.argsort(where)
        where, every = where[order], every[order]
    return Addition(where, every)


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
