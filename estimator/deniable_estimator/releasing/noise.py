"""Which noise meets a wished epsilon, and what an amount of noise reveals.

Neighbours differ in the reports of one device. Their sums differ by at most `l1` in all counters
together, and by the square root of `l2_squared` in Euclidean distance, for each of its reports.

* Discrete Laplace noise of scale b on every counter satisfies epsilon = l1 / b, delta = 0 (Ghosh,
  Roughgarden and Sundararajan, STOC 2009).
* Discrete Gaussian noise of variance v satisfies rho = l2_squared / (2 v) of zero-concentrated
  differential privacy (Canonne, Kamath and Steinke, NeurIPS 2020, theorem 4 and its corollary for
  several counters), hence for every order a > 1 epsilon at delta (proposition 12)::

      epsilon = rho a + (ln(1/delta) + (a - 1) ln(1 - 1/a) - ln(a)) / (a - 1)

* The exponential mechanism at rate r, on counters that one report moves by at most 1, satisfies
  epsilon = 2 r for each report: it may move one counter up and another one down.

Exact discrete noise from the operating system's randomness.

All samplers compare integers, so every probability is exactly the stated one: no float ever meets a
random number (Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
NeurIPS 2020, algorithms 1 to 3). They are ours and not a library's because randomness must come
from the operating system alone: OpenDP's package draws from a generator in the process (OpenSSL's
or a CTR-DRBG, by its version), and takes 275 MB.

`bits` is a source of `deniable.protocol.randomness`; tests pass their own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Literal, TypeAlias

from deniable.protocol.randomness import Bits, below, system_bits

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


Method: TypeAlias = Literal["laplace", "gaussian", "exponential"]

_GRID = 1 << 20
"""A variance is a multiple of one over this."""

_ROUNDING = 1 + 1e-9
"""By this factor an epsilon that was computed in floats is raised."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far one report moves the counters at most, if it is replaced by another."""

    l1: int
    l2_squared: int


@dataclass(frozen=True, slots=True)
class AddedNoise:
    """Discrete noise on each counter, or the chance by which the exponential mechanism chooses one.

    Attributes:
        scale: b of Laplace noise, or the variance parameter of Gaussian noise; of the exponential
            mechanism 1 / (2 r), which reveals as much as Laplace noise of that scale. Exact.
        each: how far one report moves the counters.
    """

    method: Method
    scale: Fraction
    each: Sensitivity

    @property
    def rate(self) -> Fraction:
        """r of the exponential mechanism."""
        return 1 / (2 * self.scale)

    @property
    def variance(self) -> float:
        """Of the noise on one counter; of Gaussian noise an upper bound, which is exact from a
        standard deviation of 1 on but for 1e-7."""
        if self.method == "gaussian":
            return float(self.scale)
        rate = float(1 / self.scale)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    def draw(self, count: int, bits: Bits) -> Iterator[int]:
        """So many independent numbers."""
        sample = discrete_gaussian if self.method == "gaussian" else discrete_laplace
        return (sample(self.scale, bits) for _ in range(count))

    @property
    def epsilon(self) -> Fraction | None:
        """The exact epsilon of one report; None for Gaussian noise."""
        return None if self.method == "gaussian" else self.each.l1 / self.scale

    @property
    def rho(self) -> Fraction:
        """The exact rho of one report."""
        if self.epsilon is None:
            return self.each.l2_squared / (2 * self.scale)
        # Every mechanism of pure epsilon satisfies epsilon**2 / 2 (Bun and Steinke, TCC 2016).
        return self.epsilon**2 / 2


def noise_of(
    method: Method,
    epsilon: Fraction,
    delta: float,
    each: Sensitivity,
    reports: int = 1,
    squared: int = 1,
) -> AddedNoise:
    """The least noise of this kind that meets (epsilon, delta) for so many reports of a device:
    exactly with Laplace noise, whose delta is 0, and up to a ten-thousandth with Gaussian noise.
    `squared` is how often the rho of each of them counts."""
    if method != "gaussian":
        return AddedNoise(method, each.l1 * reports / epsilon, each)
    # Rho implies an epsilon above itself.
    low, high = 0.0, float(epsilon)
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        if of_rho(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    moved = each.l2_squared * reports * squared
    return AddedNoise(method, Fraction(math.ceil(moved / (2 * low) * _GRID), _GRID), each)


def of_rho(rho: float, delta: float) -> float:
    """The least epsilon that rho implies at delta, over a fine list of orders."""
    if rho <= 0:
        return 0.0
    found = math.inf
    # The best order is near 1 + sqrt(ln(1/delta) / rho); every order is valid.
    near = math.sqrt(math.log(1 / delta) / rho)
    for step in range(-40, 41):
        above = near * 1.05**step
        order = 1 + above
        spent = math.log(1 / delta) + above * math.log(above / order) - math.log(order)
        found = min(found, rho * order + spent / above)
    return max(0.0, found) * _ROUNDING
