"""Adds up many reports into few increments: how much to add to which cells of which rows.

Many bitmaps are added with carry-save adders (Harley and Seal): three bitmaps of one weight become
one of the same weight and one of double the weight, word by word, until so few are left that their
bits can be unpacked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms import Packing, Row
from deniable_collector.batches.reports import Columns, read_bitmaps
from deniable_collector.stores.commits import Increment, TallyRowKey

_BLOCK_BITS = 1 << 22
"""How many bits of bitmaps are laid side by side at once, so that hostile batches of wide rows
do not exhaust the memory."""

_FULL = 4
"""If more than 1 in so many columns of a row change, the whole row is written."""

_SMALL_BITS = 1 << 13
"""A row whose bitmaps have at most so many bits is summed together with other rows."""

_FEW_BYTES = 1 << 12
_FEW_ROWS = 4
"""At most so many bytes, or bitmaps, are unpacked instead of added. For fewer, the adder does not
pay; the bits of more do not fit into the processor's cache."""

_ADDED_BYTES = 1 << 22
"""Bytes of bitmaps that are added at once, so that intermediate results stay small."""


@dataclass(eq=False, frozen=True, slots=True)
class RowPlace:
    """Where reports are added up: a row of a tally, and its name."""

    key: TallyRowKey
    row: Row


Accepted: TypeAlias = tuple[RowPlace, Columns]
"""A valid report: its place, and its columns."""


def increments(reports: Iterable[Accepted]) -> dict[TallyRowKey, Increment]:
    """The sum of all reports, one increment for each row that they name."""
    places: defaultdict[RowPlace, list[Any]] = defaultdict(list)
    cells: defaultdict[RowPlace, dict[Any, int]] = defaultdict(dict)
    # Identical reports of many devices are counted by their number.
    for (place, columns), number in Counter(reports).items():
        if type(columns) is not bytes and place.row.packing is Packing.INDEX:
            cells[place][columns] = number
        elif number == 1:
            places[place].append(columns)
        else:
            places[place].extend([columns] * number)
    # Of one row there can be several places: they are made again when a cache is emptied.
    counted: dict[TallyRowKey, tuple[Row, Counter[int]]] = {}
    for place, numbers in cells.items():
        counted.setdefault(place.key, (place.row, Counter()))[1].update(numbers)
    groups: dict[TallyRowKey, tuple[Row, list[Any]]] = {}
    for place, every in places.items():
        group = groups.setdefault(place.key, (place.row, every))
        if group[1] is not every:
            group[1].extend(every)
    sums = {
        key: Increment(row.width, found.total(), tuple(found), tuple(found.values()))
        for key, (row, found) in counted.items()
    }
    small: defaultdict[tuple[int, bool], dict[TallyRowKey, list[Any]]] = defaultdict(dict)
    for key, (row, every) in groups.items():
        if len(every) * row.width <= _SMALL_BITS:
            small[row.width, row.packing is Packing.BITMAP][key] = every
        else:
            sums[key] = _stretch(row.width, len(every), _sum(row.width, every))
    for (width, _), together in small.items():
        sums.update(_sum_together(width, together))
    return sums


def _stretches(
    width: int, reports: Iterable[int], counts: NDArray[np.int64]
) -> Iterator[Increment]:
    """The increments of rows from the counts of all of their columns; shape (rows, width)."""
    whole = range(width)
    filled = np.count_nonzero(counts, axis=1).tolist()
    for number, each, columns in zip(reports, counts, filled, strict=True):
        if width <= _FULL * columns:
            yield Increment(width, number, whole, each)
        else:
            touched = np.flatnonzero(each)
            yield Increment(width, number, touched, each[touched])


def _stretch(width: int, reports: int, counts: NDArray[np.int64]) -> Increment:
    return next(_stretches(width, [reports], counts[None]))


def _sum_together(
    width: int, columns: Mapping[TallyRowKey, list[Any]]
) -> Iterator[tuple[TallyRowKey, Increment]]:
    """The sums of many rows of one width with few bitmaps each, such as cohorts."""
    keys = list(columns)
    at_once = max(1, _BLOCK_BITS // _SMALL_BITS)
    for place in range(0, len(keys), at_once):
        block = keys[place : place + at_once]
        numbers = [len(columns[key]) for key in block]
        bitmaps = _lay_out(width, [each for key in block for each in columns[key]])
        bits = np.unpackbits(bitmaps, axis=1, count=width, bitorder="little")
        starts = np.cumsum([0, *numbers[:-1]])
        # Bytes are added in half the time, and are wide enough for nearly all.
        wide = np.uint8 if max(numbers) <= 255 else np.int64
        counts = np.add.reduceat(bits, starts, axis=0, dtype=wide).astype(np.int64)
        yield from zip(block, _stretches(width, numbers, counts), strict=True)


def _sum(width: int, reports: list[Any]) -> NDArray[np.int64]:
    counts = np.zeros(width, np.int64)
    at_once = max(1, _BLOCK_BITS // width)
    for first in range(0, len(reports), at_once):
        counts += count_bitmaps(_lay_out(width, reports[first : first + at_once]), width)
    return counts


def _lay_out(width: int, reports: list[Any]) -> NDArray[np.uint8]:
    """The bitmaps as bytes, from texts or from lists as numbers; shape (n, bytes)."""
    size = (width + 7) // 8
    if isinstance(reports[0], bytes):
        return read_bitmaps(reports, size)
    packed = b"".join([columns.to_bytes(size, "little") for columns in reports])
    return np.frombuffer(packed, np.uint8).reshape(-1, size)


def count_bitmaps(bitmaps: NDArray[np.uint8], width: int) -> NDArray[np.int64]:
    """How many of the bitmaps set each of `width` columns; shape (width,).

    `bitmaps` has shape (n, bytes), column j at bit j % 8 of byte j // 8.
    """
    counts = np.zeros(width, np.int64)
    at_once = max(1, _ADDED_BYTES // bitmaps.shape[1])
    for first in range(0, len(bitmaps), at_once):
        counts += _count(bitmaps[first : first + at_once], width)
    return counts


def _count(bitmaps: NDArray[np.uint8], width: int) -> NDArray[np.int64]:
    few = max(_FEW_ROWS, _FEW_BYTES // bitmaps.shape[1])
    counts = np.zeros(width, np.int64)
    words: NDArray[np.uint8] | NDArray[np.uint64] = bitmaps
    if len(bitmaps) > few:
        if bitmaps.shape[1] % 8:
            padded = np.zeros((len(bitmaps), -(-bitmaps.shape[1] // 8) * 8), np.uint8)
            padded[:, : bitmaps.shape[1]] = bitmaps
            bitmaps = padded
        words = np.ascontiguousarray(bitmaps).view(np.uint64)
    weight = 0
    while len(words):
        carries = []
        while len(words) > few:
            third = len(words) // 3
            one, two, three = words[:third], words[third : 2 * third], words[2 * third : 3 * third]
            either, both = one ^ two, one & two
            both |= either & three
            either ^= three
            carries.append(both)
            words = np.concatenate((either, words[3 * third :]))
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=width, bitorder="little")
        for first in range(0, len(bits), 255):
            # These counts fit into a byte, and bytes are added many at a time.
            ones = np.add.reduce(bits[first : first + 255], axis=0, dtype=np.uint8)
            counts += ones.astype(np.int64) << weight
        weight += 1
        words = np.concatenate(carries) if carries else words[:0]
    return counts
