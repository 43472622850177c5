"""Adds up many reports into one addition for each tally: how much to add to which counters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms import Packing, Row
from deniable_collector.batches.bodies import Columns
from deniable_collector.stores.commits import Addition, TallyKey

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
    """Where reports are added up: a row of a tally, by its number, whose cells begin at `start` of
    the tally's vector."""

    tally: TallyKey
    number: int
    start: int
    row: Row
    read: Callable[[Any], Columns]
    """Reads the columns of a report."""


Accepted: TypeAlias = tuple[RowPlace, Columns]
"""A valid report: its place, and its columns."""

Numbers: TypeAlias = Sequence[int] | NDArray[np.int64]

_Sum: TypeAlias = tuple[RowPlace, int, Numbers, Numbers]
"""Of one row how many reports were added up, the columns that they set, and how often."""


def additions(reports: Iterable[Accepted]) -> dict[TallyKey, Addition]:
    """The sum of all reports, for each tally that they name."""
    places: defaultdict[RowPlace, dict[Any, int]] = defaultdict(dict)
    # Identical reports of many devices are counted by their number.
    for (place, columns), number in Counter(reports).items():
        places[place][columns] = number
    # Of one row there can be several places: they are made again when a cache is emptied.
    rows: dict[tuple[TallyKey, int], tuple[RowPlace, dict[Any, int]]] = {}
    for place, numbers in places.items():
        together = rows.setdefault((place.tally, place.number), (place, numbers))[1]
        if together is not numbers:
            for columns, number in numbers.items():
                together[columns] = together.get(columns, 0) + number
    sums: defaultdict[TallyKey, list[_Sum]] = defaultdict(list)
    small: defaultdict[int, list[tuple[RowPlace, list[bytes]]]] = defaultdict(list)
    for place, numbers in rows.values():
        reported, width = sum(numbers.values()), place.row.width
        if place.row.packing is Packing.INDEX:
            sums[place.tally].append((place, reported, [*numbers], [*numbers.values()]))
            continue
        bitmaps = [each for each, number in numbers.items() for _ in range(number)]
        if reported * width <= _SMALL_BITS:
            small[width].append((place, bitmaps))
        else:
            sums[place.tally].append(_counted(place, reported, count_bitmaps(bitmaps, width)))
    for width, alike in small.items():
        for found in _sum_together(width, alike):
            sums[found[0].tally].append(found)
    return {tally: _addition(each) for tally, each in sums.items()}


def _addition(sums: Sequence[_Sum]) -> Addition:
    """The sums of some rows as one addition to their tally."""
    reports = [reported for _, reported, _, _ in sums]
    places = [np.array([place.number for place, *_ in sums], np.int64)]
    places += [np.asarray(columns, np.int64) + place.start for place, _, columns, _ in sums]
    where = np.concatenate(places)
    counts = np.concatenate([reports, *(each for *_, each in sums)], dtype=np.int64)
    # Rows and their columns mostly come in order.
    if np.any(where[1:] < where[:-1]):
        order = np.argsort(where)
        where, counts = where[order], counts[order]
    return Addition(where, counts, sum(reports))


def _counted(place: RowPlace, reports: int, cells: NDArray[np.int64]) -> _Sum:
    """From the counts of all columns of a row; shape (width,)."""
    (columns,) = cells.nonzero()
    return place, reports, columns, cells[columns]


def _sum_together(width: int, rows: Sequence[tuple[RowPlace, list[bytes]]]) -> Iterator[_Sum]:
    """The sums of many rows of one width with few bitmaps each, such as cohorts."""
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[first : first + _ROWS_AT_ONCE]
        numbers = [len(bitmaps) for _, bitmaps in block]
        bits = _bits(width, [each for _, bitmaps in block for each in bitmaps])
        starts = np.cumsum([0, *numbers[:-1]])
        # Bytes are added in half the time, and are wide enough for nearly all.
        wide = np.uint8 if max(numbers) <= 255 else np.int64
        counts = np.add.reduceat(bits, starts, axis=0, dtype=wide).astype(np.int64)
        yield from map(_counted, (place for place, _ in block), numbers, counts)


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
