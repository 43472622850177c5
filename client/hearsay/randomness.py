"""Exact uniform integers, coins and subsets from the operating system's CSPRNG.

A `Bits` source is any callable that returns a uniform integer of so many bits.
`system_bits` is the only one that hearsay ships; tests pass their own, and no
seeded generator exists in the package that production code could reach.

No float is ever compared with a random number: floating-point noise leaks the
value in its low bits (Mironov, "On significance of the least significant bits
for differential privacy", CCS 2012).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import TypeAlias

__all__ = ["PRECISION", "Bits", "below", "coin", "subset", "system_bits"]

Bits: TypeAlias = Callable[[int], int]

PRECISION = 53
"""Thresholds are integers out of 2**PRECISION. At 32 bits the rounding of a rare
output would move its likelihood ratio by parts in a thousand."""


def system_bits(count: int) -> int:
    """A uniform integer in [0, 2**count), from the operating system."""
    size = (count + 7) >> 3
    return int.from_bytes(os.urandom(size), "little") >> (8 * size - count)


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


_PLANES = 8


def subset(size: int, count: int, bits: Bits = system_bits) -> int:
    """A uniformly random set of `count` out of `size` positions, as a bitmap (bit j: j is in).

    Every step treats all positions alike, so each of the C(size, count) sets is
    equally likely, exactly. Large sets cost about sqrt(size) single draws: a coin is
    tossed for all positions at once, bit-sliced over big integers, and the set is
    then completed or thinned at random to the size asked for.

    Raises:
        ValueError: `count` is negative or larger than `size`.
    """
    if not 0 <= count <= size:
        raise ValueError(f"cannot choose {count} of {size}")
    if 2 * count > size:
        return ((1 << size) - 1) ^ subset(size, size - count, bits)
    chosen = _scatter(size, count, bits) if count > 16 else 0
    excess = chosen.bit_count() - count
    while excess:
        position = 1 << below(size, bits)
        if (chosen & position != 0) == (excess > 0):
            chosen ^= position
            excess += 1 if excess < 0 else -1
    return chosen


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
