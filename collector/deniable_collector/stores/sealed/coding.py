"""Counters in few bytes: whole numbers near the entropy of their values, exactly as they were.

Numbers are written in one of two ways, whichever is smaller. Both take the smallest number off
first.

- *Split*: the low bits of each number as they are, because in a wide distribution they are as good
  as random, and the rest as planes of bytes, each under a Huffman code.
- *Gaps*, where most numbers are equal to the smallest: the distances between the others, and these
  others, each written in the same two ways.

The Huffman code is DEFLATE's without its search for repetitions (RFC 1951; zlib), which finds none
that help in random counts. It is in the standard library, and it can be read for ever.
"""

from __future__ import annotations

import zlib
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_SPLIT, _GAPS, _CONSTANT = range(3)
_STORED, _HUFFMAN = range(2)

_SAMPLE = 1 << 15
"""Numbers by which the number of low bits is chosen."""

_TABLE_BITS = 5
"""About how many bits a value that occurs costs in the table of a Huffman code."""

_SLICE = 1 << 14
"""Numbers that are put together at a time; eight of them share a byte."""

_DEEPEST = 4
"""How often gaps are written within gaps."""

_FEW = 0.6
"""Gaps are tried if at most this part of the numbers differ from the smallest."""


def encode(numbers: NDArray[np.int64]) -> bytes:
    """The bytes of numbers from 0 to 2**62, of shape (n,); `decode` needs n to read them."""
    return _encode(numbers, 0)


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
    reader = _CodedBytes(data)
    try:
        lowest, places, above = _decode(reader, len(total))
    except (IndexError, zlib.error, OverflowError, MemoryError) as error:
        raise ValueError("these bytes are no numbers") from error
    if reader.at != len(data):
        raise ValueError("there is more than the numbers")
    if lowest:
        total += lowest
    if isinstance(above, _SplitNumbers):
        above.add(total)
    elif places is not None and above is not None:
        total[places] += above


def _encode(numbers: NDArray[np.int64], depth: int) -> bytes:
    if not len(numbers):
        return bytes((_CONSTANT, 0))
    lowest = int(numbers.min())
    others = numbers != lowest
    some = int(np.count_nonzero(others))
    if not some:
        return bytes((_CONSTANT,)) + _varint(lowest)
    written = b""
    if some <= _FEW * len(numbers) and depth < _DEEPEST:
        places = np.flatnonzero(others)
        gaps = np.diff(places, prepend=-1) - 1
        written = (
            bytes((_GAPS,)) + _varint(lowest) + _varint(some)
            + _encode(gaps, depth + 1) + _encode(numbers[places] - (lowest + 1), depth + 1)
        )  # fmt: skip
        # A code of whole bits spends one at least on each number.
        if len(written) <= len(numbers) // 8:
            return written
    split = bytes((_SPLIT,)) + _varint(lowest) + _split(numbers, lowest)
    return written if written and len(written) < len(split) else split


def _split(numbers: NDArray[np.int64], lowest: int) -> bytes:
    """The numbers less the lowest, in planes, which are filled a slice at a time: no vector of all
    numbers is made, of which a large tally would take 64 MB each."""
    most = int(numbers.max()) - lowest
    low = _low_bits(numbers, lowest, most)
    bits = [np.empty(-(-len(numbers) // 8), np.uint8) for _ in range(low)]
    high = [np.empty(len(numbers), np.uint8) for _ in range(_planes_of(most >> low))]
    for first in range(0, len(numbers), _SLICE):
        here = numbers[first : first + _SLICE] - lowest
        for bit, plane in enumerate(bits):
            packed = np.packbits((here >> bit & 1).astype(np.bool_))
            plane[first // 8 : first // 8 + len(packed)] = packed
        here >>= low
        for place, plane in enumerate(high):
            plane[first : first + _SLICE] = here >> 8 * place & 255
    parts = [bytes((low, len(high))), *(plane.tobytes() for plane in bits)]
    return b"".join([*parts, *(_compressed(plane.tobytes()) for plane in high)])


def _low_bits(numbers: NDArray[np.int64], lowest: int, most: int) -> int:
    """How many bits of each number less the lowest, at most `most`, are best written as they
    are."""
    sample = numbers[:: -(-len(numbers) // _SAMPLE)] - lowest
    return min(
        range(max(1, most.bit_length())),
        key=lambda low: len(numbers) * (low + _entropy(sample >> low)) + _table(sample >> low),
    )


def _planes_of(most: int) -> int:
    """Of how many bytes numbers up to this one are."""
    return max(1, -(-most.bit_length() // 8))


def _entropy(numbers: NDArray[np.int64]) -> float:
    """Bits that a number's bytes take, plane by plane (the entropy of order 0)."""
    total = 0.0
    for plane in _planes(numbers):
        counts = plane[plane > 0]
        shares = counts / counts.sum()
        total -= float(shares @ np.log2(shares))
    return total


def _table(numbers: NDArray[np.int64]) -> float:
    return float(sum(_TABLE_BITS * np.count_nonzero(plane) for plane in _planes(numbers)))


def _planes(numbers: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """How often each byte occurs, in each plane."""
    planes = range(_planes_of(int(numbers.max())))
    return [np.bincount(numbers >> 8 * plane & 255, minlength=256) for plane in planes]


def _compressed(plane: bytes) -> bytes:
    coder = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_HUFFMAN_ONLY)
    packed = coder.compress(plane) + coder.flush()
    if len(packed) < len(plane):
        return bytes((_HUFFMAN,)) + _varint(len(packed)) + packed
    return bytes((_STORED,)) + plane


class _CodedBytes:
    """Reads bytes from the front."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def take(self, length: int) -> bytes:
        if self.at + length > len(self.data):
            raise ValueError("these bytes end too early")
        self.at += length
        return self.data[self.at - length : self.at]

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
            if shift > 63:
                raise ValueError("a number has too many bytes")


_Decoded: TypeAlias = (
    "tuple[int, NDArray[np.int64] | None, NDArray[np.int64] | _SplitNumbers | None]"
)
"""The smallest number, the places of those above it, and by how much they are; where all may be, as
a `_SplitNumbers`, and where none is, None."""


def _decode(reader: _CodedBytes, count: int) -> _Decoded:
    kind, lowest = reader.byte(), reader.varint()
    if lowest >> 63:
        raise ValueError("a number is too large")
    if kind == _CONSTANT:
        return lowest, None, None
    if kind == _GAPS:
        some = reader.varint()
        if some > count:
            raise ValueError("there are more gaps than numbers")
        places = np.cumsum(_whole(reader, some) + 1) - 1
        above = _whole(reader, some) + 1
        if some and not 0 <= places[-1] < count:
            raise ValueError("a gap leads beyond the numbers")
        return lowest, places, above
    if kind != _SPLIT:
        raise ValueError("these numbers are written in no way that is known")
    return lowest, None, _SplitNumbers.read(reader, count)


def _whole(reader: _CodedBytes, count: int) -> NDArray[np.int64]:
    lowest, places, above = _decode(reader, count)
    numbers = np.full(count, lowest, np.int64)
    if isinstance(above, _SplitNumbers):
        above.add(numbers)
    elif places is not None and above is not None:
        numbers[places] += above
    return numbers


class _SplitNumbers:
    """Numbers as planes of bits and bytes, which are put together a slice at a time: slices stay in
    the processor's cache, and no vector of all numbers is made."""

    def __init__(self, low: list[bytes], high: list[NDArray[np.uint8]]) -> None:
        self._low, self._high = low, high

    @classmethod
    def read(cls, reader: _CodedBytes, count: int) -> _SplitNumbers:
        low, planes = reader.byte(), reader.byte()
        if low + 8 * planes > 72 or not planes:
            raise ValueError("these numbers have too many bits")
        bits = [reader.take(-(-count // 8)) for _ in range(low)]
        return cls(bits, [_plane(reader, count) for _ in range(planes)])

    def add(self, total: NDArray[np.int64]) -> None:
        """Add the numbers to those of `total`, of the same shape (n,)."""
        low = len(self._low)
        for first in range(0, len(total), _SLICE):
            here = total[first : first + _SLICE]
            for bit, packed in enumerate(self._low):
                part = np.frombuffer(packed, np.uint8)[first // 8 : (first + len(here) + 7) // 8]
                here += np.unpackbits(part, count=len(here)).astype(np.int64) << bit
            for place, plane in enumerate(self._high):
                here += plane[first : first + _SLICE].astype(np.int64) << low + 8 * place


def _plane(reader: _CodedBytes, count: int) -> NDArray[np.uint8]:
    if reader.byte() == _STORED:
        return np.frombuffer(reader.take(count), np.uint8)
    packed = reader.take(reader.varint())
    # One byte more would show a plane that is too long, and costs no more memory than that.
    plane = zlib.decompressobj(-15).decompress(packed, count + 1)
    if len(plane) != count:
        raise ValueError("a plane has another length")
    return np.frombuffer(plane, np.uint8)


def _varint(number: int) -> bytes:
    """Seven bits in a byte, the lowest first; all but the last have the highest bit set."""
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)
