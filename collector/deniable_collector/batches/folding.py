"""Adds up many reports into few increments: how much to add to which cells of which rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms import Packing, Row
from deniable_collector.batches.bodies import Columns
from deniable_collector.stores.commits import Increment, TallyRowKey

_CACHED_BITS = 1 << 17
"""How many bits of a row are laid side by side at once: in bytes, they stay in the cache of a
processor. Of very wide rows it is `_FEW` reports."""

_FEW = 8

_SMALL_BITS = 1 << 13
"""A row whose bitmaps have at most so many bits is summed together with other rows."""

_ROWS_AT_ONCE = 512
"""So many of them, so that their bits do not exhaust the memory."""


@dataclass(eq=False, frozen=True, slots=True)
class RowPlace:
    """Where reports are added up: a row of a tally, and its name."""

    key: TallyRowKey
    row: Row


Accepted: TypeAlias = tuple[RowPlace, Columns]
"""A valid report: its place, and its columns."""


def increments(reports: Iterable[Accepted]) -> dict[TallyRowKey, Increment]:
    """The sum of all reports, one increment for each row that they name."""
    places: defaultdict[RowPlace, dict[Any, int]] = defaultdict(dict)
    # Identical reports of many devices are counted by their number.
    for (place, columns), number in Counter(reports).items():
        places[place][columns] = number
    # Of one row there can be several places: they are made again when a cache is emptied.
    rows: dict[TallyRowKey, tuple[Row, dict[Any, int]]] = {}
    for place, numbers in places.items():
        together = rows.setdefault(place.key, (place.row, numbers))[1]
        if together is not numbers:
            for columns, number in numbers.items():
                together[columns] = together.get(columns, 0) + number
    sums: dict[TallyRowKey, Increment] = {}
    small: defaultdict[int, dict[TallyRowKey, list[bytes]]] = defaultdict(dict)
    for key, (row, numbers) in rows.items():
        reported, width = sum(numbers.values()), row.width
        if row.packing is Packing.INDEX:
            sums[key] = Increment(width, reported, tuple(numbers), tuple(numbers.values()))
            continue
        bitmaps = [each for each, number in numbers.items() for _ in range(number)]
        if reported * width <= _SMALL_BITS:
            small[width][key] = bitmaps
        else:
            sums[key] = Increment.of(reported, count_bitmaps(bitmaps, width))
    for width, alike in small.items():
        sums.update(_sum_together(width, alike))
    return sums


def _sum_together(
    width: int, columns: Mapping[TallyRowKey, list[bytes]]
) -> Iterator[tuple[TallyRowKey, Increment]]:
    """The sums of many rows of one width with few bitmaps each, such as cohorts."""
    keys = list(columns)
    for place in range(0, len(keys), _ROWS_AT_ONCE):
        block = keys[place : place + _ROWS_AT_ONCE]
        numbers = [len(columns[key]) for key in block]
        bits = _bits(width, [each for key in block for each in columns[key]])
        starts = np.cumsum([0, *numbers[:-1]])
        # Bytes are added in half the time, and are wide enough for nearly all.
        wide = np.uint8 if max(numbers) <= 255 else np.int64
        counts = np.add.reduceat(bits, starts, axis=0, dtype=wide).astype(np.int64)
        yield from zip(block, map(Increment.of, numbers, counts), strict=True)


def count_bitmaps(bitmaps: Sequence[bytes], width: int) -> NDArray[np.int64]:
    """How many of the bitmaps set each of `width` columns; shape (width,)."""
    counts = np.zeros(width, np.int64)
    # The counts of up to 255 fit into a byte, and bytes are added many at a time.
    at_once = min(255, max(_FEW, _CACHED_BITS // width))
    for first in range(0, len(bitmaps), at_once):
        bits = _bits(width, bitmaps[first : first + at_once])
        counts += np.add.reduce(bits, axis=0, dtype=np.uint8)
    return counts


def _bits(width: int, bitmaps: Sequence[bytes]) -> NDArray[np.uint8]:
    """The columns of bitmaps, column j from bit j % 8 of byte j // 8; shape (n, width)."""
    packed = np.frombuffer(b"".join(bitmaps), np.uint8).reshape(len(bitmaps), -1)
    return np.unpackbits(packed, axis=1, count=width, bitorder="little")
