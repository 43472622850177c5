"""What the sum of n reports reveals of one of them: the privacy blanket, evaluated exactly.

Compare two crowds of n devices that differ in the value of one device, whose values are x and x'.
Let every distribution of reports contain a common part: gamma * omega(u) <= R(u | value) for
all values and reports u. Then what is learned from all reports, unordered, is bounded by
(Balle, Bell, Gascón and Nissim, CRYPTO 2019, lemma 5.3), and sums of reports tell no more::

    delta(alpha) <= E[max(0, G_1 + ... + G_M)] / (gamma n)          M ~ Bin(n, gamma)
    G = (R(W | x) - alpha R(W | x')) / omega(W)                     W ~ omega, alpha = e**epsilon

A *blanket* is gamma with the possible values of the two ratios and their chances. Two facts make
few classes enough for all pairs of values:

* The bound is the mean of a convex function of the G's, so a pair of ratios that is larger in
  convex order stands for all that are smaller. Shared columns, collisions of hashes, and equal
  values on a level make the two ratios move together, which lowers it.
* Both ratios lie between gamma and gamma e**epsilon0 and have the mean 1. Two values that are
  never high together are the worst case of all such pairs (`within`).

G is split between two cells of a lattice so that its mean does not fall, which again can only
raise the bound. The lattice becomes finer as the square root of n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from deniable_estimator.statistics import lattice

MOST_REPORTS = 10**7
"""A larger crowd counts as one of this size, which is valid: its sum is that of some 10**7 of its
reports, the device's among them, plus reports that are independent of these, and to add what is
independent reveals nothing. The bound does not rise with n either. It is E[max(0, S_n / n)] / gamma
for the mean S_n / n of n independent variables of one distribution (a variable is B G, B the coin
of probability gamma), which is a reversed martingale, and max(0, x) is convex."""

_CELLS_PER_ROOT = 64
_LEAST_CELLS = 12
_MOST_CELLS = 17
_NUDGE = 2.0**-28
"""By this part of a cell every value is raised, which is more than its rounding errors."""

Classes = tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Blanket:
    """The common part of a mechanism's reports.

    Attributes:
        gamma: the weight of the common part, above 0 and at most 1.
        classes: (chance under omega, ratio for one value, ratio for the other value). Chances add
            up to one, and both ratios have the mean one.
        epsilon: what the mechanism's report itself reveals.
        also: the same for other pairs of values, where no pair is the worst at every epsilon.
    """

    gamma: float
    classes: Classes
    epsilon: float
    also: Blanket | None = None

    def swapped(self) -> Blanket:
        """The same with the two values exchanged."""
        classes = tuple(sorted((chance, b, a) for chance, a, b in self.classes))
        return Blanket(self.gamma, classes, self.epsilon)

    @property
    def symmetric(self) -> bool:
        """Whether exchanging the two values changes nothing."""
        return self.swapped().classes == tuple(sorted(self.classes))

    def delta(self, epsilon: float, reports: int) -> float:
        """For which delta the sums of `reports` reports satisfy (epsilon, delta); at most 1.

        Raises:
            ValueError: `reports` is not positive, or `epsilon` is negative.
        """
        if reports < 1:
            raise ValueError(f"a sum is of at least one report, not {reports}")
        if epsilon < 0:
            raise ValueError(f"epsilon is not negative, {epsilon} is")
        reports = min(reports, MOST_REPORTS)
        found = _delta(self, epsilon, reports)
        if not self.symmetric:
            found = max(found, _delta(self.swapped(), epsilon, reports))
        if self.also is not None:
            found = max(found, self.also.delta(epsilon, reports))
        return found


def favouring(share: float, odds: float, epsilon: float, both: float = 0.0) -> Blanket:
    """The blanket of reports that favour a `share` of all messages by `odds`.

    `both` is the share that two values both favour. Where twice the share is more than 1, at
    least the rest is.
    """
    gamma = 1 / (share * odds + 1 - share)
    both = max(both, 2 * share - 1)
    only, high, low = share - both, gamma * odds, gamma
    classes = (
        (only, high, low),
        (only, low, high),
        (both, high, high),
        (1 - 2 * only - both, low, low),
    )
    return Blanket(gamma, tuple(each for each in classes if each[0] > 0), epsilon)


def hidden(epsilon: float) -> Blanket:
    """The blanket of any mechanism, of which only epsilon is known.

    Every report is at least e**-epsilon times as likely under any other value, hence as under the
    average of the two values that are compared; ratios to this average lie between 2 / (e + 1)
    and 2 e / (e + 1), and their extremes are the worst case. (This is the bound of Feldman,
    McMillan and Talwar, FOCS 2021, section 3.)
    """
    high, low = 2 / (1 + math.exp(-epsilon)), 2 / (1 + math.exp(epsilon))
    return Blanket(math.exp(-epsilon), ((0.5, high, low), (0.5, low, high)), epsilon)


def bits(one: float, zero: float, count: int, epsilon: float) -> Blanket:
    """The blanket of independent bits: `one` and `zero` are the chances that a set bit and one
    that is not are reported as 1. Each value sets at most `count` bits."""
    up, down = one / zero, (1 - one) / (1 - zero)
    chances = [math.comb(count, i) * zero**i * (1 - zero) ** (count - i) for i in range(count + 1)]
    ratios = [up**i * down ** (count - i) for i in range(count + 1)]
    classes = tuple(
        (p * p2, a, b)
        for p, a in zip(chances, ratios, strict=True)
        for p2, b in zip(chances, ratios, strict=True)
    )
    return Blanket(down**count, classes, epsilon)


@lru_cache(maxsize=65536)
def _delta(blanket: Blanket, epsilon: float, reports: int) -> float:
    # A smaller alpha only raises delta, so its rounding errors do not matter.
    alpha = math.exp(epsilon) * (1 - 2**-50)
    gamma = blanket.gamma
    chances = np.array([chance for chance, _, _ in blanket.classes]) * gamma
    values = np.array([a - alpha * b for _, a, b in blanket.classes])
    if values.max() <= 0:
        return 0.0
    span = float(values.max() - values.min())
    roots = math.ceil(math.log2(_CELLS_PER_ROOT * math.sqrt(reports)))
    cells = 1 << min(_MOST_CELLS, max(_LEAST_CELLS, roots))
    # A coarse lattice is enough to find the tilt and the width.
    rough = _on_lattice(chances, values, span / 1024, 1 - gamma, reports)
    tilt = lattice.tilt_to([rough], 0.0, 1 / 1024)
    deviation = math.sqrt(lattice.mean_and_variance([rough], tilt)[1]) * span / 1024
    width = min(18 * deviation + 8 * span, 2 * (reports + 1) * span)
    step = width / (cells - 8)
    summand = _on_lattice(chances, values, step, 1 - gamma, reports)
    tilt = lattice.tilt_to([summand], 0.0, tilt * step / (span / 1024) or 1e-6)

    def positive(places: lattice.Floats) -> lattice.Floats:
        return np.maximum(places, 0.0) * step

    def beyond(place: float, rate: float) -> float:
        return math.log(place * step) - rate * place if rate * place >= 1 else math.inf

    found = lattice.upper_expectation([summand], tilt, cells, positive, beyond)
    return min(1.0, found / (gamma * reports) * (1 + 2**-40))


def _on_lattice(
    chances: lattice.Floats, values: lattice.Floats, step: float, nothing: float, count: int
) -> lattice.Summand:
    """The values split between cells of a lattice, without lowering any mean."""
    lower = np.floor(values / step)
    part = np.minimum(values / step - lower + _NUDGE, 1.0)
    places = np.concatenate([lower, lower + 1, [0.0]])
    weights = np.concatenate([chances * (1 - part), chances * part, [max(nothing, 0.0)]])
    return lattice.Summand.of(places, weights, count)


@lru_cache(maxsize=4096)
def crowd_epsilon(blanket: Blanket, reports: int, delta: float) -> float:
    """The least epsilon, rounded up by at most 0.1%, with which the sums of `reports` reports
    satisfy (epsilon, delta); never more than the report's own."""
    most = blanket.epsilon
    low, high = 0.0, most
    while high - low > 1e-3 * high and high > 1e-9:
        middle = math.sqrt(low * high) if low > 0 else high / 8
        if blanket.delta(middle, reports) <= delta:
            high = middle
        else:
            low = middle
    return high
