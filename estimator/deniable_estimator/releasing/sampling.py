"""Exact discrete noise from the operating system's randomness.

All samplers compare integers, so every probability is exactly the stated one: no float ever meets a
random number (Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
NeurIPS 2020, algorithms 1 to 3). They are ours and not a library's because randomness must come
from the operating system alone: OpenDP's package draws from a generator in the process (OpenSSL's
or a CTR-DRBG, by its version), and takes 275 MB.

`bits` is a source of `deniable.randomness`; tests pass their own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

from deniable.randomness import Bits, below, system_bits

__all__ = ["BufferedBits", "decays", "discrete_gaussian", "discrete_laplace", "happens", "leader"]

_BLOCK = 1 << 10
"""Bytes that are fetched at a time."""


class BufferedBits:
    """The operating system's bits, fetched in blocks: a system call for each draw is slow."""

    def __init__(self) -> None:
        self._pool = 0
        self._left = 0

    def __call__(self, count: int) -> int:
        if count > 8 * _BLOCK:
            return system_bits(count)
        if count > self._left:
            self._pool = int.from_bytes(os.urandom(_BLOCK), "little")
            self._left = 8 * _BLOCK
        drawn = self._pool & ((1 << count) - 1)
        self._pool >>= count
        self._left -= count
        return drawn


def happens(chance: Fraction, bits: Bits = system_bits) -> bool:
    """True with exactly this probability, which is from 0 to 1."""
    return below(chance.denominator, bits) < chance.numerator


def decays(exponent: Fraction, bits: Bits) -> bool:
    """True with probability exp(-exponent), for an exponent of at least 0 (algorithm 1)."""
    whole, rest = divmod(exponent, 1)
    for _ in range(int(whole)):
        if not _decays_below_one(Fraction(1), bits):
            return False
    return _decays_below_one(rest, bits)


def _decays_below_one(exponent: Fraction, bits: Bits) -> bool:
    count = 1
    while happens(exponent / count, bits):
        count += 1
    return count % 2 == 1


def discrete_laplace(scale: Fraction, bits: Bits = system_bits) -> int:
    """An integer z with probability (1 - a) / (1 + a) a**abs(z), a = exp(-1/scale) (algorithm 2).

    Raises:
        ValueError: the scale is not positive.
    """
    if scale <= 0:
        raise ValueError(f"a scale is positive, not {scale}")
    width, step = scale.numerator, scale.denominator
    while True:
        rest = below(width, bits)
        if not _decays_below_one(Fraction(rest, width), bits):
            continue
        times = 0
        while _decays_below_one(Fraction(1), bits):
            times += 1
        size = (rest + width * times) // step
        negative = bits(1)
        if negative and not size:
            continue  # else zero would be drawn twice as often
        return -size if negative else size


def discrete_gaussian(variance: Fraction, bits: Bits = system_bits) -> int:
    """An integer z with probability proportional to exp(-z**2 / (2 variance)) (algorithm 3).

    Raises:
        ValueError: the variance is not positive.
    """
    if variance <= 0:
        raise ValueError(f"a variance is positive, not {variance}")
    width = isqrt(variance.numerator // variance.denominator) + 1
    while True:
        drawn = discrete_laplace(Fraction(width), bits)
        apart = abs(drawn) - variance / width
        if decays(apart * apart / (2 * variance), bits):
            return drawn


def leader(counts: Sequence[int], rate: Fraction, bits: Bits = system_bits) -> int:
    """An index i with probability proportional to exp(rate counts[i]), by rejection: the
    exponential mechanism (McSherry and Talwar, FOCS 2007).

    Each round accepts at least with probability 1 / len(counts).

    Raises:
        ValueError: there is no count, or the rate is negative.
    """
    if not counts or rate < 0:
        raise ValueError("the leader is one of at least one count, at a rate of at least 0")
    most = max(counts)
    while True:
        index = below(len(counts), bits)
        if decays(rate * (most - counts[index]), bits):
            return index
