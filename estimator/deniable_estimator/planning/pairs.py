"""What a pair can tell, before it is declared: above all how strong a dependence it shows.

The test of independence has a noncentral chi-square distribution where the two lists depend on
each other. Its noncentrality is the test's own statistic, evaluated at the assumed table. That
table has equally frequent values in both lists, and is a mixture ::

    (1 - t) A B' + t C,   C: the table of these margins in which the two rise together

whose Cramer's V is t times that of C.
"""

from __future__ import annotations

import math

import numpy as np

from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.analyses.pairs.conditional import LEAST_ERRORS, conditionals
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.forecasting.detection import LEVEL, POWER
from deniable_estimator.planning.population import pair_shares
from deniable_estimator.statistics.tails import chi_square_quantile, noncentral_chi_square_tail

_MOST_DEVICES = 10**13


def power_of(effect: float, rows: int, columns: int, covariance: Covariance) -> float:
    """The probability that the test of independence finds a Cramer's V. The margins of the assumed
    table are even, so that the statistic is a quotient ::

        V**2 (min(rows, columns) - 1) / (d own + own_share + kept),   d = rows columns

    The contrasts of `analyses.pairs.dependence` have one variance here, own + own_share / d.
    """
    freedom = (rows - 1) * (columns - 1)
    variance = rows * columns * covariance.own + covariance.own_share + covariance.kept
    noncentrality = effect**2 * (min(rows, columns) - 1) / variance
    return noncentral_chi_square_tail(chi_square_quantile(LEVEL, freedom), freedom, noncentrality)


def devices_to_find(
    mechanism: SubsetSelection, rows: int, columns: int, effect: float, sample_rate: float
) -> int | None:
    """How many devices find a Cramer's V with power POWER; None if no number that there can be."""

    def found(reports: int) -> bool:
        return power_of(effect, rows, columns, Covariance.of(mechanism, reports)) >= POWER

    high = 1
    while not found(high):
        high *= 2
        if high > _MOST_DEVICES:
            return None
    low = high // 2
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return math.ceil(high / sample_rate)


def shown_from(cells: int, covariance: Covariance) -> float | None:
    """The smallest share of a value whose conditional shares are shown, if it goes together with
    `cells` values of the other list; None if not even 1 is enough."""
    noise = covariance.noise(cells, 1)

    def shown(share: float) -> bool:
        return share > LEAST_ERRORS * math.sqrt(float(noise.at(np.array([share]))[0]))

    low, high = 0.0, 1.0
    if not shown(high):
        return None
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


def conditional_half_width(share: float, cells: int, covariance: Covariance) -> float | None:
    """Half of the 95% interval of a conditional share, among the devices with a value that has
    this share, of one of `cells` equally frequent values; None if too few devices have it."""
    table = np.repeat([[share], [1 - share]], cells, axis=1) / cells
    found = conditionals(table, covariance, 0.95)
    return float(found.high[0, 0] - found.low[0, 0]) / 2 if found.known[0, 0] else None


def strongest_effect(rows: int, columns: int) -> float:
    """The largest Cramer's V of two lists of equally frequent values: those that rise together."""
    rising = pair_shares(np.full(rows, 1 / rows), np.full(columns, 1 / columns), 1.0)
    even = 1 / rising.size
    phi2 = float(((rising - even) ** 2).sum()) / even
    return math.sqrt(phi2 / (min(rows, columns) - 1))


def least_effect(rows: int, columns: int, covariance: Covariance) -> float | None:
    """The smallest Cramer's V that is found with power POWER."""
    low, high = 0.0, strongest_effect(rows, columns)
    if power_of(high, rows, columns, covariance) < POWER:
        return None
    for _ in range(20):
        middle = (low + high) / 2
        enough = power_of(middle, rows, columns, covariance) >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high
