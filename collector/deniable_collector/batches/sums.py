"""How often each column is set by many bitmaps, counted without a loop over them.

They are added with carry-save adders (Harley and Seal): three bitmaps of one weight become one of
the same weight and one of double the weight, word by word, until so few are left that their bits
can be unpacked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FEW_BYTES = 1 << 12
_FEW_ROWS = 4
"""At most so many bytes, or bitmaps, are unpacked instead of added. For fewer, the adder does not
pay; the bits of more do not fit into the processor's cache."""

_BLOCK_BYTES = 1 << 22
"""Bytes of bitmaps that are added at once, so that intermediate results stay small."""


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
