"""What many sums reveal together: composition by privacy loss distributions, and by formulas.

The bound of a blanket is a convex function of e**epsilon, and so the privacy profile of a pair of
distributions. This pair dominates what one window publishes, hence the product of such pairs
dominates all windows and metrics together (Zhu, Dong and Wang, AISTATS 2022, theorem 10). The loss
ln(P/Q) of the product is the sum of the losses, which `deniable_estimator.statistics.lattice` adds
up. Between the points at which a profile is evaluated, and between the cells of the common lattice,
it is replaced by its chord, which lies above it (Doroshenko et al., PETS 2022, "connect the dots").

Basic, advanced (Kairouz, Oh and Viswanath, ICML 2015, theorem 3.5) and Renyi composition (Mironov,
CSF 2017; converted by Canonne, Kamath and Steinke, NeurIPS 2020, proposition 12) are for those who
must compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from deniable_estimator.privacy.blanket import Blanket, crowd_epsilon
from deniable_estimator.statistics import lattice

_POINTS = 24
"""At so many points above 0 a profile is evaluated."""

_CELLS = 1 << 13
_MORE_CELLS = 1 << 14
_MANY = 500
"""From so many windows on the lattice is finer: the error of each adds up."""

_ORDERS = tuple(1 + 2 ** (each / 2) for each in range(-4, 24))
"""The orders of Renyi divergences that are tried: from 1.25 to 2,900."""


@dataclass(frozen=True, eq=False)
class Loss:
    """The privacy loss of a pair of distributions P and Q.

    Attributes:
        losses: the values of ln(P/Q), rising, symmetric around 0.
        masses: their probabilities under P.
        beyond: the probability under P of an infinite loss.
    """

    losses: lattice.Floats
    masses: lattice.Floats
    beyond: float

    def delta(self, epsilon: float) -> float:
        """The profile of the pair at `epsilon`."""
        gained = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - self.losses)))
        return min(1.0, float(self.masses @ gained) + self.beyond)

    def renyi(self, order: float) -> float:
        """The Renyi divergence of an order above 1, without what is beyond."""
        exponents = (order - 1) * self.losses
        top = float(exponents.max())
        return (top + math.log(float(self.masses @ np.exp(exponents - top)))) / (order - 1)


@dataclass(frozen=True, slots=True)
class Repeated:
    """So many publications of the same pair."""

    loss: Loss
    count: int


@lru_cache(maxsize=4096)
def loss_of(blanket: Blanket, reports: int, beyond: float) -> Loss:
    """The privacy loss of one sum of `reports` reports, with at most `beyond` beyond its losses."""
    top = crowd_epsilon(blanket, reports, beyond)
    if top >= blanket.epsilon:
        # The pair of randomized response dominates every mechanism of this epsilon.
        high = 1 / (1 + math.exp(-blanket.epsilon))
        ends = np.array([-blanket.epsilon, blanket.epsilon])
        return Loss(ends, np.array([1 - high, high]), 0.0)
    points = np.linspace(0.0, top, _POINTS + 1)
    alphas = np.exp(points)
    deltas = np.array([blanket.delta(float(each), reports) for each in points])
    # Rounding up differs from point to point: made convex again, by raising.
    slope = 0.0
    slopes = np.zeros(_POINTS + 1)
    for i in range(_POINTS - 1, -1, -1):
        width = alphas[i + 1] - alphas[i]
        slope = min(slope, (deltas[i + 1] - deltas[i]) / width)
        deltas[i] = deltas[i + 1] - slope * width
        slopes[i] = slope
    # A kink of the profile at alpha is a mass of Q with the ratio alpha. The neighbours can be
    # exchanged, so P has it at the opposite loss.
    lower = np.diff(slopes)
    upper = lower * alphas[1:]
    none = max(0.0, 1 - float(deltas[-1]) - float(lower.sum() + upper.sum()))
    return Loss(
        np.concatenate([-points[:0:-1], points]),
        np.concatenate([lower[::-1], [none], upper]),
        float(deltas[-1]),
    )


def composed_delta(parts: Sequence[Repeated], epsilon: float) -> float:
    """An upper bound of the profile of all publications together at `epsilon`."""
    beyond = -math.expm1(sum(each.count * math.log1p(-each.loss.beyond) for each in parts))
    count = sum(each.count for each in parts)
    if count == 1:
        return parts[0].loss.delta(epsilon)
    largest = max(float(each.loss.losses[-1]) for each in parts)
    if epsilon >= sum(each.count * float(each.loss.losses[-1]) for each in parts):
        return beyond
    variance = sum(each.count * float(each.loss.masses @ each.loss.losses**2) for each in parts)
    cells = _CELLS if count < _MANY else _MORE_CELLS
    step = (20 * math.sqrt(variance) + 8 * largest) / cells
    summands = [_on_lattice(each, step) for each in parts]
    target = epsilon / step
    scale = 1 / math.sqrt(lattice.mean_and_variance(summands, 0.0)[1])
    tilt = lattice.tilt_to(summands, target, scale)

    def gained(places: lattice.Floats) -> lattice.Floats:
        return np.maximum(0.0, -np.expm1(np.minimum(0.0, (target - places) * step)))

    def above(place: float, rate: float) -> float:
        return -rate * place

    return min(1.0, lattice.upper_expectation(summands, tilt, cells, gained, above) + beyond)


def _on_lattice(part: Repeated, step: float) -> lattice.Summand:
    """Each mass split between two cells so that both P and Q keep theirs."""
    loss = part.loss
    lower = np.floor(loss.losses / step)
    rest = np.maximum(0.0, loss.losses - lower * step)
    up = np.minimum(1.0, np.expm1(-rest) / math.expm1(-step))
    weights = np.concatenate([loss.masses * (1 - up), loss.masses * up])
    return lattice.Summand.of(np.concatenate([lower, lower + 1]), weights, part.count)


def least_epsilon(profile: Callable[[float], float], delta: float, most: float) -> float:
    """Where a falling profile reaches `delta`, rounded up by at most 0.1%; at most `most`."""
    high, low = most, 0.0
    at_high = at_low = None
    step = 0.8
    while high - low > 1e-3 * high and high > 1e-9:
        middle = math.sqrt(low * high) if low > 0 else high * step
        # `most` may be near, or far away.
        step = max(step**2, 1e-3)
        if at_high is not None and at_low is not None:
            # The logarithm falls about as the square.
            part = (at_low - math.log(delta)) / (at_low - at_high)
            middle = math.sqrt(low**2 + min(0.98, max(0.02, part)) * (high**2 - low**2))
            middle = min(middle * (1 + 4e-4), high * (1 - 1e-4))
        found = profile(middle)
        if found <= delta:
            high, at_high = middle, math.log(max(found, 1e-300))
        else:
            low, at_low = middle, math.log(found)
    return high


def advanced(parts: Sequence[tuple[float, int]], delta: float) -> float:
    """Advanced composition of (epsilon, count) at the slack `delta`; never above the plain sum."""
    plain = sum(epsilon * count for epsilon, count in parts)
    drift = sum(epsilon * math.tanh(epsilon / 2) * count for epsilon, count in parts)
    squares = sum(epsilon**2 * count for epsilon, count in parts)
    return min(plain, drift + math.sqrt(2 * squares * math.log(1 / delta)))


def renyi(parts: Sequence[Repeated], delta: float) -> float:
    """Renyi composition at `delta`, over a list of orders."""
    beyond = sum(each.count * each.loss.beyond for each in parts)
    found = math.inf
    if beyond >= delta:
        return found
    for order in _ORDERS:
        total = sum(each.count * each.loss.renyi(order) for each in parts)
        rest = math.log((order - 1) / order) - (math.log(delta - beyond) + math.log(order)) / (
            order - 1
        )
        found = max(0.0, min(found, total + rest))
    return found
