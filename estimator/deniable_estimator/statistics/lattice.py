"""Upper bounds on the expectation of a function of a sum of many independent lattice variables.

The distribution of the sum is the inverse Fourier transform of a product of powers. Its small
probabilities would drown in rounding errors, so the variables are *tilted* first, which moves the
mean of the sum to where the function matters::

    E[f(S)] = M(t) E_t[f(S) exp(-t S)]        M(t) = E[exp(t S)]

All errors can only raise the result: values that wrap around are counted where they land, what
lies above the window of the transform is bounded by Markov's inequality for exp(r S), and the
rounding errors of the transform are bounded (Higham, Accuracy and Stability of Numerical
Algorithms, 2002, theorem 24.2) and added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

_UNIT = 2.0**-53
"""The rounding error of one operation on floats, relative."""

_FEW = 128
"""Up to so many places, the transform of a summand is added up place by place: its errors then do
not grow with the number of cells."""

_NEGLIGIBLE = -80.0
"""Below e to this power, a coefficient of the transform is counted as an error."""


@dataclass(frozen=True, slots=True)
class Summand:
    """`count` independent variables of one distribution: `weights` at whole-numbered `places`.

    The weights may add up to less than one, or by rounding to somewhat more.
    """

    places: NDArray[np.int64]
    weights: Floats
    count: int

    @classmethod
    def of(cls, places: Floats, weights: Floats, count: int) -> Summand:
        """The same of places of which some may be equal."""
        each, index = np.unique(places.astype(np.int64), return_inverse=True)
        return cls(each, np.bincount(index, weights).astype(float), count)

    def tilted(self, tilt: float) -> tuple[float, Floats]:
        """ln E[exp(tilt X)] of one variable, and its weights under a tilt, with a sum of 1."""
        exponents = tilt * self.places
        top = float(exponents.max())
        weights = self.weights * np.exp(exponents - top)
        total = float(weights.sum())
        return top + math.log(total), weights / total

    def transform(self, tilt: float, cells: int) -> tuple[NDArray[np.complex128], float]:
        """The characteristic function of the tilted variable at the frequencies of `cells` cells,
        and a bound on the error of each value."""
        _, weights = self.tilted(tilt)
        if len(self.places) > _FEW:
            wrapped = np.bincount(self.places % cells, weights, cells)
            error = 8 * _UNIT * math.log2(cells) * math.sqrt(cells * float((wrapped**2).sum()))
            return np.fft.rfft(wrapped), error + 16 * _UNIT
        roots = _roots(cells)
        frequencies = np.arange(cells // 2 + 1)
        total = np.zeros(cells // 2 + 1, complex)
        for place, weight in zip(self.places.tolist(), weights.tolist(), strict=True):
            total += weight * roots[(frequencies * place) & (cells - 1)]
        return total, (len(weights) + 16) * _UNIT


@lru_cache(maxsize=1)
def _roots(cells: int) -> NDArray[np.complex128]:
    """exp(-2 pi i j / cells) for all j, each from its exact argument."""
    roots: NDArray[np.complex128] = np.exp(-2j * np.pi / cells * np.arange(cells))
    return roots


def mean_and_variance(summands: Sequence[Summand], tilt: float) -> tuple[float, float]:
    """Mean and variance of the sum under a tilt."""
    mean = variance = 0.0
    for each in summands:
        _, weights = each.tilted(tilt)
        own = float(weights @ each.places)
        mean += each.count * own
        variance += each.count * float(weights @ (each.places - own) ** 2)
    return mean, variance


def tilt_to(summands: Sequence[Summand], target: float, scale: float) -> float:
    """The tilt, not negative, under which the sum has about the mean `target`. `scale` is a first
    guess of its size. Any tilt is valid; a good one makes the bound tight."""
    low, high = 0.0, scale
    if mean_and_variance(summands, 0.0)[0] >= target:
        return 0.0
    for _ in range(200):
        mean, _ = mean_and_variance(summands, high)
        if mean >= target:
            break
        low, high = high, 2 * high
    for _ in range(30):
        middle = (low + high) / 2
        mean, variance = mean_and_variance(summands, middle)
        if abs(mean - target) < 0.01 * math.sqrt(variance):
            return middle
        low, high = (middle, high) if mean < target else (low, middle)
    return high


def upper_expectation(
    summands: Sequence[Summand],
    tilt: float,
    cells: int,
    function: Callable[[Floats], Floats],
    beyond: Callable[[float, float], float],
) -> float:
    """An upper bound of E[function(S)], S the sum of all variables.

    Args:
        summands: the variables, all on one lattice.
        tilt: any tilt that is not negative.
        cells: the cells of the transform, a power of two.
        function: of places; not negative, not falling, and 0 far enough below.
        beyond: (place, rate) -> the logarithm of a bound of function(s) exp(-rate s) over all
            s from that place on; infinity where it does not know one.
    """
    count = sum(each.count for each in summands)
    mean, variance = mean_and_variance(summands, tilt)
    log_size = sum(each.count * each.tilted(tilt)[0] for each in summands)
    start = round(mean) - cells // 2
    # Under a tilt, what lies below the cells would count as less than it is worth. What lies above
    # them is bounded at the end.
    while tilt > 0 and function(np.array([start - 1.0]))[0] > 0:
        start -= cells // 2
    places = np.arange(start, start + cells)
    probabilities, error = _distribution(summands, tilt, cells)
    worth = function(places.astype(float))
    positive = worth > 0
    weights = np.zeros(cells)
    weights[positive] = worth[positive] * np.exp(-tilt * (places[positive] - mean))
    # A plain sum: for two vectors of this length, the threads of BLAS take longer than they save.
    inside = float((np.maximum(probabilities[places % cells], 0) * weights).sum())
    inside += error * math.sqrt(float((weights**2).sum()))
    rounding = 1 + (count + 1000) * 32 * _UNIT
    # More than one is no bound that anybody needs, and exp would overflow.
    logs = log_size - tilt * mean
    total = inside * math.exp(min(logs, 600.0)) * rounding
    last = float(start + cells)
    if sum(each.count * int(each.places.max()) for each in summands) < last:
        return total
    deviation = math.sqrt(variance) or 1.0
    tails = []
    for steps in (2, 4, 8, 12, 16):
        rate = tilt + steps / deviation
        moments = sum(each.count * each.tilted(rate)[0] for each in summands)
        tails.append(moments + beyond(last, rate))
    return total + math.exp(min(min(tails), 600.0)) * rounding


def _distribution(summands: Sequence[Summand], tilt: float, cells: int) -> tuple[Floats, float]:
    """The tilted distribution of the sum, modulo `cells`, and a bound on the 2-norm of its error.

    If a value z has the error e, z**n has at most n e (|z| + e)**(n-1).
    """
    sizes, relative = np.zeros(cells // 2 + 1), np.zeros(cells // 2 + 1)
    transforms = [each.transform(tilt, cells) for each in summands]
    for each, (values, error) in zip(summands, transforms, strict=True):
        size = np.abs(values) + error
        sizes += each.count * np.log(size)
        relative += each.count * error / size
    count = sum(each.count for each in summands)
    kept = sizes > _NEGLIGIBLE
    logs = np.zeros(int(kept.sum()), complex)
    for each, (values, error) in zip(summands, transforms, strict=True):
        logs += each.count * np.log(np.where(values[kept] == 0, error, values[kept]))
    product = np.zeros(cells // 2 + 1, complex)
    product[kept] = np.exp(logs)
    relative += 64 * _UNIT * count
    errors = np.where(kept, np.minimum(2.0, relative) * np.exp(sizes), np.exp(_NEGLIGIBLE))
    twice = np.full(cells // 2 + 1, 2.0)
    twice[0] = twice[-1] = 1.0
    norm = math.sqrt(float((twice * np.abs(product) ** 2).sum()))
    error = math.sqrt(float((twice * errors**2).sum())) + 8 * _UNIT * math.log2(cells) * norm
    return np.fft.irfft(product, cells), error / math.sqrt(cells)
