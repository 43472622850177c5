"""Counting in bulk: how often each column is set by many reports, without a loop over them.

Indices are counted with bincount if the table is small or no larger than the batch, and by
sorting otherwise. Bitmaps are added with carry-save adders (Harley and Seal): three bitmaps
of one weight become one of the same weight and one of double the weight, word by word, until
so few are left that their bits can be unpacked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["count_bitmaps", "count_indices"]

_SMALL_TABLE = 1 << 11
"""A table of at most so many cells is counted densely, as is one with fewer cells than reports;
in others sorting is faster."""

_FEW_AGAIN = 16
"""So few repeated indices are taken out one by one."""

_FEW_BYTES = 1 << 12
_FEW_ROWS = 4
"""At most so many bytes, or bitmaps, are unpacked instead of added. For fewer, the adder does not
pay; the bits of more do not fit into the processor's cache."""

_BLOCK_BYTES = 1 << 22
"""Bytes of bitmaps that are added at once, so that intermediate results stay small."""


def count_indices(
    indices: NDArray[np.integer], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct indices, ascending, and how often each of them occurs.

    `indices` has shape (n,), each from 0 to `size` - 1.
    """
    if size <= max(_SMALL_TABLE, len(indices)):
        counts = np.bincount(indices, minlength=1).astype(np.int64, copy=False)
        touched = np.flatnonzero(counts).astype(np.int64, copy=False)
        return touched, counts[touched]
    # Numbers of 32 bits are sorted several times as fast as those of 64.
    ordered = indices.astype(np.uint32 if size <= 1 << 32 else indices.dtype)
    ordered.sort()
    if len(ordered) ** 2 <= 2 * _FEW_AGAIN * size:
        # Of numbers drawn at random, so many at most are expected to occur again.
        (again,) = (ordered[1:] == ordered[:-1]).nonzero()
        if len(again) <= 4 * _FEW_AGAIN:
            return _without(ordered, again.tolist())
    # Where each distinct number begins, and the end.
    bounds = np.ones(len(ordered) + 1, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=bounds[1:-1])
    (begins,) = bounds.nonzero()
    return ordered.take(begins[:-1]).astype(np.int64, copy=False), np.diff(begins)


def _without(
    ordered: NDArray[np.integer], again: list[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct numbers of an ascending list, and how often each of them occurs. `again` are the
    indices after which the same number follows: copying what lies between them is faster than
    looking at each number, as long as they are few."""
    begins = [0, *(each + 1 for each in again)]
    parts = [ordered[begin:end] for begin, end in zip(begins, [*again, len(ordered)], strict=True)]
    touched = np.concatenate(parts, dtype=np.int64)
    counts = np.empty(len(touched), np.int64)
    counts.fill(1)
    for left_out, each in enumerate(again):
        counts[each - left_out] += 1
    return touched, counts


def count_bitmaps(bitmaps: NDArray[np.uint8], width: int) -> NDArray[np.int64]:
    """How many of the bitmaps set each of `width` columns; shape (width,).

    `bitmaps` has shape (n, bytes), column j at bit j % 8 of byte j // 8.
    """
    counts = np.zeros(width, np.int64)
    at_once = max(1, _BLOCK_BYTES // bitmaps.shape[1])
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
