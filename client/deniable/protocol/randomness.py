"""Exact uniform integers, coins, bit flips and subsets from the operating system's CSPRNG.

A `Bits` source is any callable that returns a uniform integer of so many bits.
`system_bits` is the only source of new randomness in deniable; tests pass their own, and the
package contains no seeded generator. `keyed_bits` expands one secret key, which is drawn from
the operating system's randomness, for what a device must be able to draw again: its permanent
randomized responses.

No float is ever compared with a random number: floating-point noise leaks the
value in its low bits (Mironov, "On significance of the least significant bits
for differential privacy", CCS 2012).
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import count as counting
from itertools import pairwise
from typing import TypeAlias

Bits: TypeAlias = Callable[[int], int]

PRECISION = 53
"""Thresholds are integers out of 2**PRECISION. At 32 bits the rounding of a rare
output would move its likelihood ratio by parts in a thousand."""


def system_bits(count: int) -> int:
    """A uniform integer in [0, 2**count), from the operating system."""
    size = (count + 7) >> 3
    return int.from_bytes(os.urandom(size), "little") >> (8 * size - count)


KEY_BYTES = 32


def keyed_bits(key: bytes, label: str) -> Bits:
    """A source that always gives the same bits for the same key and label.

    HMAC-SHA-512 in counter mode (NIST SP 800-108, 4.1): block i is HMAC(key, label, a zero
    byte, i as four bytes, big-endian), counted from 1. Each call takes whole blocks and drops
    what it does not need; its integer is read as `system_bits` reads the system's bytes.
    Without the key it cannot be distinguished from `system_bits`, if HMAC is a pseudorandom
    function.

    Args:
        key: KEY_BYTES bytes of `system_bits`, secret.
        label: ASCII, without a zero byte; sources under different labels are independent.
    """
    import hmac  # only for memos; it takes as long as ten of our modules

    counter = counting(1)
    prefix = label.encode("ascii") + b"\0"

    def draw(count: int) -> int:
        size = (count + 7) >> 3
        data = b""
        while len(data) < size:
            data += hmac.digest(key, prefix + next(counter).to_bytes(4, "big"), "sha512")
        return int.from_bytes(data[:size], "little") >> (8 * size - count)

    return draw


def below(bound: int, bits: Bits = system_bits) -> int:
    """A uniform integer in [0, bound), by rejection, which is exact.

    Raises:
        ValueError: `bound` is not positive.
    """
    if bound < 1:
        raise ValueError(f"bound must be at least 1, not {bound}")
    width = (bound - 1).bit_length()
    drawn = bits(width)
    while drawn >= bound:
        drawn = bits(width)
    return drawn


def coin(threshold: int, bits: Bits = system_bits) -> bool:
    """True with probability exactly threshold / 2**PRECISION."""
    return bits(PRECISION) < threshold


def flips(ones: int, size: int, if_one: int, if_zero: int, bits: Bits = system_bits) -> int:
    """Randomize each bit of a bitmap independently.

    Bit j of the result is 1 with probability if_one / 2**PRECISION where bit j of `ones`
    is set, and if_zero / 2**PRECISION where it is not, independently and exactly.

    A coin compares a uniform number with its threshold bit by bit, from the most
    significant one, and is decided at the first bit in which they differ. All coins are
    compared at once, one plane of random bits at a time, until none is left undecided:
    about log2(size) + 1 planes, whatever the precision, and none beyond the last bit that
    is set in a threshold. Planes are drawn in blocks, because system calls are slow.
    """
    undecided = (1 << size) - 1
    # The bits of all thresholds in a plane, by its kind.
    thresholds = (0, ones, undecided ^ ones, undecided)
    heads = 0
    for kinds in _planes(size, if_one, if_zero):
        block = bits(len(kinds) * size)
        for kind in kinds:
            decided = block & undecided
            if kind:
                threshold = thresholds[kind] & undecided
                decided ^= threshold
                # Below its threshold: the first differing bit is 0 in the number, 1 in the
                # threshold.
                heads |= decided & threshold
            undecided ^= decided
            if not undecided:
                return heads
            block >>= size
    # A number equal to its threshold is not below it, so what stays undecided stays 0.
    return heads


@lru_cache(maxsize=64)
def _planes(size: int, if_one: int, if_zero: int) -> tuple[tuple[int, ...], ...]:
    """The kind of each bit of two thresholds (1: it is set in the first, 2: in the second, 3: in
    both), from the most significant bit to the last that is 1, in blocks. The first block is
    nearly always enough; the others are for coins that are still undecided."""
    kinds = tuple(
        (if_one >> shift & 1) + 2 * (if_zero >> shift & 1) for shift in range(PRECISION - 1, -1, -1)
    )
    last = max((place for place, kind in enumerate(kinds, 1) if kind), default=0)
    first = min(last, size.bit_length() + 3)
    ends = [0, *range(first, last, 4), last]
    return tuple(kinds[start:end] for start, end in pairwise(ends))


_SPARSE = 32
"""Subsets up to about this many are drawn position by position."""

_PLANES = 8
"""Bits of the probability with which a dense subset is scattered before it is corrected."""


def subset(size: int, count: int, bits: Bits = system_bits) -> int:
    """A uniformly random set of `count` out of `size` positions, as a bitmap (bit j: j is in).

    Every step treats all positions alike, so each of the C(size, count) sets is
    equally likely, exactly. A sparse set is drawn position by position. A dense one
    costs about sqrt(size) draws: a coin is tossed for all positions at once, bit-sliced
    over big integers, and the set is then completed or thinned at random to the size
    asked for.

    Raises:
        ValueError: `count` is negative or larger than `size`.
    """
    if not 0 <= count <= size:
        raise ValueError(f"cannot choose {count} of {size}")
    if 2 * count > size:
        return ((1 << size) - 1) ^ subset(size, size - count, bits)
    if count <= _SPARSE + size // 256:
        return _sparse(size, count, bits)
    chosen = _scatter(size, count, bits)
    excess = chosen.bit_count() - count
    positions = _positions(size, abs(excess), bits)
    while excess:
        position = 1 << next(positions)
        if (chosen & position != 0) == (excess > 0):
            chosen ^= position
            excess += 1 if excess < 0 else -1
    return chosen


def _sparse(size: int, count: int, bits: Bits) -> int:
    chosen: set[int] = set()
    positions = _positions(size, count, bits)
    while len(chosen) < count:
        chosen.add(next(positions))
    bitmap = bytearray((size + 7) >> 3)
    for position in chosen:
        bitmap[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(bitmap, "little")


def _positions(size: int, expected: int, bits: Bits) -> Iterator[int]:
    """Uniform positions below `size`, without end, in blocks because system calls are slow."""
    mask = (1 << (size - 1).bit_length()) - 1
    # Masked words fall below `size` at least half of the time.
    words = expected * (mask + 1) // size + 8
    while True:
        block = bits(32 * words).to_bytes(4 * words, "little")
        for word in struct.unpack(f"<{words}I", block):
            position = word & mask
            if position < size:
                yield position


def _scatter(size: int, count: int, bits: Bits) -> int:
    """Each position independently, with a dyadic probability a little below count / size.

    The coin is the same for every position, so its value cannot bias the subset. It
    aims one standard deviation low, because adding a position takes fewer draws than
    finding one to remove.
    """
    share = count / size
    aim = share - math.sqrt(share * (1 - share) / size)
    numerator = max(0, int(aim * (1 << _PLANES)))
    mask = (1 << size) - 1
    random = bits(_PLANES * size)
    chosen = 0
    for plane in range(_PLANES):
        if numerator >> plane & 1:
            chosen |= random & mask
        else:
            chosen &= random
        random >>= size
    return chosen
