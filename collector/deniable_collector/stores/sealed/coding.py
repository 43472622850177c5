"""Counters in few bytes: whole numbers near the entropy of their values, exactly as they were.

A vector is written as its smallest number (u64), how many numbers are listed (u64), and then either

- all numbers, less the smallest; or
- where that is smaller, the numbers other than the smallest: the gaps between their places, and
  then they themselves, less the smallest and 1.

A list is written byte plane by byte plane: how many planes (u8), and of each the length (u32) and
the bytes, as they are or in DEFLATE's Huffman code (RFC 1951; zlib). DEFLATE's search for
repetitions is off, because random counts have none that help. All is little-endian.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_HEAD, _LENGTH = struct.Struct("<QQ"), struct.Struct("<I")

_SLICE = 1 << 14
"""Numbers that are taken apart or put together at a time: slices stay in the processor's cache, and
no second vector of all numbers is made, which would take 64 MB for a large tally."""


def encode(numbers: NDArray[np.int64]) -> bytes:
    """The bytes of numbers from 0 to 2**62, of shape (n,); `decode` needs n to read them."""
    lowest = int(numbers.min()) if len(numbers) else 0
    places = np.flatnonzero(numbers != lowest)
    listed = _planes(np.diff(places, prepend=-1), 1) + _planes(numbers[places], lowest + 1)
    every = _planes(numbers, lowest)
    if len(listed) < len(every):
        return _HEAD.pack(lowest, len(places)) + listed
    return _HEAD.pack(lowest, len(numbers)) + every


def decode(data: bytes, count: int) -> NDArray[np.int64]:
    """The `count` numbers that `encode` wrote, and nothing after them.

    Raises:
        ValueError: these are no bytes that `encode` writes for so many numbers.
    """
    numbers = np.zeros(count, np.int64)
    add(data, numbers)
    return numbers


def add(data: bytes, total: NDArray[np.int64]) -> None:
    """Add the numbers that `encode` wrote to those of `total`, of the same shape (n,).

    Few numbers among many zeros are added without a vector of all of them.

    Raises:
        ValueError: as `decode` does; nothing was added.
    """
    try:
        lowest, listed = _HEAD.unpack_from(data)
        if lowest > 1 << 62 or listed > len(total):
            raise ValueError("there are other numbers than these")
        every = listed == len(total)
        gaps, at = ([], _HEAD.size) if every else _read(data, _HEAD.size, listed)
        planes, at = _read(data, at, listed)
        places = np.zeros(0 if every else listed, np.int64)
        _put_together(gaps, places)
        places = np.cumsum(places + 1) - 1
        if at != len(data) or not (every or listed == 0 or 0 <= places[-1] < len(total)):
            raise ValueError("there are more or other numbers than these")
    except (struct.error, IndexError, zlib.error, OverflowError) as error:
        raise ValueError("these bytes are no numbers") from error
    if lowest:
        total += lowest
    if every:
        _put_together(planes, total)
    else:
        above = np.ones(listed, np.int64)
        _put_together(planes, above)
        total[places] += above


def _planes(numbers: NDArray[np.int64], lowest: int) -> bytes:
    """The numbers less the lowest, plane by plane."""
    if not len(numbers):
        return b"\0"
    width = -(-(int(numbers.max()) - lowest).bit_length() // 8)
    planes = np.empty((width, len(numbers)), np.uint8)
    for first in range(0, len(numbers), _SLICE):
        here = numbers[first : first + _SLICE] - lowest
        for place, plane in enumerate(planes):
            plane[first : first + _SLICE] = here >> 8 * place & 255
    parts = [bytes((width,))]
    for plane in planes:
        coder = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_HUFFMAN_ONLY)
        whole = plane.tobytes()
        packed = coder.compress(whole) + coder.flush()
        shorter = packed if len(packed) < len(whole) else whole
        parts += [_LENGTH.pack(len(shorter)), shorter]
    return b"".join(parts)


def _read(data: bytes, at: int, count: int) -> tuple[list[NDArray[np.uint8]], int]:
    """The planes of so many numbers that begin at this byte, and where they end."""
    width, planes = data[at], list[NDArray[np.uint8]]()
    at += 1
    for _ in range(width):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size + length
        plane = data[at - length : at]
        if length != count:
            # One byte more would show a plane that is too long, and costs no more memory.
            plane = zlib.decompressobj(-15).decompress(plane, count + 1)
        if len(plane) != count or at > len(data) or width > 8:
            raise ValueError("a plane has another length")
        planes.append(np.frombuffer(plane, np.uint8))
    return planes, at


def _put_together(planes: list[NDArray[np.uint8]], total: NDArray[np.int64]) -> None:
    """Add the numbers of these planes to a vector of as many."""
    for first in range(0, len(total), _SLICE):
        here = total[first : first + _SLICE]
        for place, plane in enumerate(planes):
            here += plane[first : first + _SLICE].astype(np.int64) << 8 * place
