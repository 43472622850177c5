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
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from deniable.randomness import Bits
from deniable_estimator.releasing.sampling import discrete_gaussian, discrete_laplace

__all__ = ["AddedNoise", "Method", "Sensitivity", "gaussian", "laplace", "of_rho"]

Method: TypeAlias = Literal["laplace", "gaussian"]

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
    """Discrete noise on each counter.

    Attributes:
        scale: b of Laplace noise, or the variance parameter of Gaussian noise; exact.
    """

    method: Method
    scale: Fraction

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

    def epsilon(self, each: Sensitivity) -> Fraction | None:
        """The exact epsilon of counters that move so far; None for Gaussian noise."""
        return each.l1 / self.scale if self.method == "laplace" else None

    def rho(self, each: Sensitivity) -> Fraction:
        """The exact rho of counters that move so far."""
        if self.method == "gaussian":
            return each.l2_squared / (2 * self.scale)
        # Every mechanism of pure epsilon satisfies epsilon**2 / 2 (Bun and Steinke, TCC 2016).
        return Fraction(each.l1 / self.scale) ** 2 / 2


def laplace(epsilon: Fraction, each: Sensitivity) -> AddedNoise:
    """The Laplace noise that meets exactly `epsilon`."""
    return AddedNoise("laplace", each.l1 / epsilon)


def gaussian(epsilon: Fraction, delta: float, each: Sensitivity) -> AddedNoise:
    """The least Gaussian noise that meets (epsilon, delta), up to a ten-thousandth."""
    low, high = 0.0, float(epsilon)
    while of_rho(high, delta) < epsilon:
        high *= 2
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        if of_rho(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return AddedNoise("gaussian", Fraction(math.ceil(each.l2_squared / (2 * low) * _GRID), _GRID))


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
