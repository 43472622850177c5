"""Sealed blocks: a tally that accepts no more reports, compressed, with a digest.

A block is a digest and the counters: u32 rows, u32 length, then the reports of the rows and all
cells, each as `encode` writes them, little-endian. The digest is BLAKE2b of the tally's name and of
what follows it, so that neither a damaged block nor that of another tally is taken for this one.

`encode` writes whole numbers in few bytes, near the entropy of their values: the smallest number
(u64), how many numbers are listed (u64), and then either

- all numbers, less the smallest; or
- where that is smaller, the numbers other than the smallest: the gaps between their places, and
  then they themselves, less the smallest and 1.

A list is written byte plane by byte plane: how many planes (u8), and of each the length (u32) and
the bytes, as they are or in DEFLATE's Huffman code (RFC 1951; zlib). DEFLATE's search for
repetitions is off, because random counts have none that help.
"""

from __future__ import annotations

import hashlib
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.errors import StoreError

_DIGEST_BYTES = 16
_HEAD = struct.Struct("<II")


class DamagedBlock(StoreError):
    """A block is not what was sealed; other windows can still be read. `tally` names its window."""

    def __init__(self, message: str, tally: TallyKey) -> None:
        self.tally = tally
        super().__init__(message)


def block_of(
    tally: TallyKey, rows: int, counters: NDArray[np.int64], *, coded: bool = True
) -> bytes:
    """The block of a tally's vector, of which the first `rows` counters are reports.

    One that is `coded` is small, and is read again before it is returned; others are made often.

    Raises:
        StoreError: it did not read back as the same counters.
    """
    reports = encode(counters[:rows], coded=coded)
    body = _HEAD.pack(rows, len(reports)) + reports + encode(counters[rows:], coded=coded)
    block = _digest(tally, body) + body
    if not coded:
        return block
    read = np.zeros_like(counters)
    add_counters(tally, read, block)
    if not np.array_equal(read, counters):
        raise StoreError(
            f"metric {tally.metric}, window {tally.window} was not sealed: its block does not read "
            "back as the same counts. Its counts are whole; please report this"
        )
    return block


def add_counters(tally: TallyKey, total: NDArray[np.int64], block: bytes) -> None:
    """Add the counters in a block to a vector of the tally's size.

    Raises:
        DamagedBlock: it is damaged, or of another tally.
    """
    rows, reports, cells = _parts(tally, block)
    try:
        if rows > len(total):
            raise ValueError("more rows than counters")
        add(reports, total[:rows])
        add(cells, total[rows:])
    except ValueError:
        raise damaged(tally) from None


def reports_in(tally: TallyKey, block: bytes) -> NDArray[np.int64]:
    """The reports of each row in a block, without reading its cells.

    Raises:
        DamagedBlock: as `add_counters` does.
    """
    rows, reports, _ = _parts(tally, block)
    found = np.zeros(rows, np.int64)
    try:
        add(reports, found)
    except ValueError:
        raise damaged(tally) from None
    return found


def _parts(tally: TallyKey, block: bytes) -> tuple[int, bytes, bytes]:
    digest, body = block[:_DIGEST_BYTES], block[_DIGEST_BYTES:]
    if len(body) < _HEAD.size or digest != _digest(tally, body):
        raise damaged(tally)
    rows, length = _HEAD.unpack_from(body)
    return rows, body[_HEAD.size : _HEAD.size + length], body[_HEAD.size + length :]


def _digest(tally: TallyKey, body: bytes) -> bytes:
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in (*(each.encode() for each in tally), body):
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


def damaged(tally: TallyKey) -> DamagedBlock:
    """The error for a block that is not what was sealed."""
    return DamagedBlock(
        f"the sealed block of metric {tally.metric}, window {tally.window} is damaged: restore it "
        "from a backup or leave this window out; all others can be read",
        tally,
    )


_NUMBERS, _LENGTH = struct.Struct("<QQ"), struct.Struct("<I")

_SLICE = 1 << 14
"""Numbers that are taken apart or put together at a time: slices stay in the processor's cache, and
no second vector of all numbers is made, which would take 64 MB for a large tally."""


def encode(numbers: NDArray[np.int64], *, coded: bool = True) -> bytes:
    """The bytes of numbers from 0 to 2**62, of shape (n,); `add` needs n to read them. Without
    `coded` all planes are as they are, which takes a tenth of the time."""
    lowest = int(numbers.min()) if len(numbers) else 0
    every = _planes(numbers, lowest, coded)
    # Each number that is listed has a byte at least, and mostly two.
    if coded or 2 * np.count_nonzero(numbers != lowest) < len(every):
        places = np.flatnonzero(numbers != lowest)
        gaps, above = np.diff(places, prepend=-1), numbers[places]
        listed = _planes(gaps, 1, coded) + _planes(above, lowest + 1, coded)
        if len(listed) < len(every):
            return _NUMBERS.pack(lowest, len(places)) + listed
    return _NUMBERS.pack(lowest, len(numbers)) + every


def add(data: bytes, total: NDArray[np.int64]) -> None:
    """Add the numbers that `encode` wrote, and nothing after them, to those of `total`, of the same
    shape (n,).

    Few numbers among many zeros are added without a vector of all of them.

    Raises:
        ValueError: these are no bytes that `encode` writes for so many numbers; nothing was added.
    """
    try:
        lowest, listed = _NUMBERS.unpack_from(data)
        if lowest > 1 << 62 or listed > len(total):
            raise ValueError("there are other numbers than these")
        every = listed == len(total)
        gaps, at = ([], _NUMBERS.size) if every else _read(data, _NUMBERS.size, listed)
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


def _planes(numbers: NDArray[np.int64], lowest: int, coded: bool) -> bytes:
    """The numbers less the lowest, plane by plane."""
    if not len(numbers):
        return b"\0"
    width = -(-(int(numbers.max()) - lowest).bit_length() // 8)
    planes = np.empty((width, len(numbers)), np.uint8)
    for first in range(0, len(numbers), _SLICE):
        here = (numbers[first : first + _SLICE] - lowest).astype("<i8")
        planes[:, first : first + _SLICE] = here.view(np.uint8).reshape(-1, 8).T[:width]
    parts = [bytes((width,))]
    for plane in planes:
        shorter = whole = plane.tobytes()
        if coded:
            coder = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_HUFFMAN_ONLY)
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
        numbers = np.zeros((len(here), 8), np.uint8)
        for place, plane in enumerate(planes):
            numbers[:, place] = plane[first : first + _SLICE]
        here += numbers.view("<i8")[:, 0]
