"""What a pair can tell, before it is declared: above all how strong a dependence it shows.

The test of independence has a noncentral chi-square distribution where the two lists depend on
each other. Its noncentrality is the test's own statistic, evaluated at the assumed table. That
table has equally frequent values in both lists, and is a mixture ::

    (1 - t) A B' + t C,   C: the table of these margins in which the two rise together

whose Cramer's V is t times that of C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from deniable.protocol.errors import SchemeError
from deniable.protocol.mechanisms import SubsetSelection
from deniable.protocol.mechanisms.limits import check_epsilon
from deniable.protocol.types import MAX_PAIR_CELLS
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.analyses.pairs.conditional import LEAST_ERRORS, conditionals
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.analyses.pairs.dependence import independence
from deniable_estimator.analyses.pairs.poisoning import (
    Fake,
    faked_effect,
    fakes_to_move,
    fakes_to_reject,
    moved,
)
from deniable_estimator.analyses.poisoning import gain
from deniable_estimator.forecasting.detection import LEVEL, POWER
from deniable_estimator.planning.inputs import EFFECT
from deniable_estimator.planning.plan import Lifetime
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.tails import chi_square_quantile, noncentral_chi_square_tail

_Z = NormalDist().inv_cdf(0.975)

_MOST_DEVICES = 10**13

MOVE = 0.1
"""By how much fakes are to move a conditional share: ten points."""


@dataclass(frozen=True)
class PairPlan:
    """What a pair of lists of so many values can tell in one window. Shares are fractions of 1."""

    rows: int
    columns: int
    declared_epsilon: float
    devices: int
    sample_rate: float
    reports: float
    """Devices that report in one window, on average. Only those that have both values do."""
    mechanism: str
    parameters: dict[str, int | str]
    epsilon: float
    """Exact, from the probabilities in force, rounded up."""
    report_bytes: int
    tally_cells: int
    effect: float
    """The Cramer's V that the power is for."""
    power: float
    """The probability that the test of independence at 5% finds it."""
    least_effect: float | None
    """The smallest one that is found with power 0.8; None if there is none."""
    devices_to_detect: int | None
    """How many devices find `effect` with power 0.8; None if no number that there can be."""
    cell_std_error: float
    margin_std_errors: tuple[float, float]
    """Of a value of the first list, and of the second."""
    conditional_half_widths: tuple[float, float]
    """Of the 95% interval of a share of the second list among the devices with a value of the
    first, and the reverse; 1/2 if the interval says nothing."""
    shown_from: tuple[float | None, float | None]
    """The smallest share of a value of the first list, and of the second, whose conditional shares
    are shown; None if not even 1 is enough."""
    fakes: float
    fakes_gain: float
    """The most that such fakes add to any one cell."""
    fakes_conditional: float
    """The most that they add to a conditional share of the second list, if all values are equally
    frequent; at most up to 1."""
    fakes_to_move: float | None
    """The fraction of fakes that adds MOVE to such a share; None if no fraction does."""
    fakes_effect: float
    """The Cramer's V that they bring to two lists that are independent."""
    fakes_to_reject: float
    """The fraction of fakes with which the test calls such lists dependent with power 0.8."""
    lifetime: Lifetime | None


def plan_pair(
    rows: int,
    columns: int,
    epsilon: float,
    devices: int,
    *,
    effect: float = EFFECT,
    sample_rate: float = 1.0,
    lifetime_epsilon: float | None = None,
    fakes: float = FAKES,
) -> PairPlan:
    """Plan a pair of lists of `rows` and `columns` values.

    Raises:
        SchemeError: a list has fewer than two values, there are too many cells, or `effect` is
            above what two such lists can have.
    """
    if min(rows, columns) < 2:
        raise SchemeError("each list of a pair needs at least two values")
    if rows * columns > MAX_PAIR_CELLS:
        raise SchemeError(
            f"{rows} x {columns} = {rows * columns:,} cells are above the limit of "
            f"{MAX_PAIR_CELLS}: merge rare values"
        )
    mechanism = SubsetSelection.design(rows * columns, check_epsilon(epsilon))
    _check_effect(rows, columns, effect)
    reports = devices * sample_rate
    covariance = Covariance.of(mechanism, max(1, round(reports)))
    lifetime = Lifetime.of(lifetime_epsilon, mechanism.epsilon, sample_rate)
    needed = _reports_to_detect(mechanism, rows, columns, effect)
    fake = Fake.of(mechanism)
    even = np.full((rows, columns), 1 / (rows * columns))
    widths = [conditionals(each, covariance, 0.95) for each in (even, even.T)]
    margins = [
        float(covariance.noise(cells, 1).at(np.array([1 / size]))[0]) ** 0.5
        for size, cells in ((rows, columns), (columns, rows))
    ]
    return PairPlan(
        rows=rows,
        columns=columns,
        declared_epsilon=epsilon,
        devices=devices,
        sample_rate=sample_rate,
        reports=reports,
        mechanism=mechanism.name,
        parameters=mechanism.parameters(),
        epsilon=mechanism.epsilon,
        report_bytes=mechanism.rows[0].report_bytes,
        tally_cells=rows * columns,
        effect=effect,
        power=power_of(effect, rows, columns, covariance),
        least_effect=_least_effect(rows, columns, covariance),
        devices_to_detect=None if needed is None else math.ceil(needed / sample_rate),
        cell_std_error=float(covariance.noise(1, 1).at(np.array([1 / even.size]))[0]) ** 0.5,
        margin_std_errors=(margins[0], margins[1]),
        conditional_half_widths=(
            float((widths[0].high - widths[0].low).mean() / 2),
            float((widths[1].high - widths[1].low).mean() / 2),
        ),
        shown_from=(_shown_from(columns, covariance), _shown_from(rows, covariance)),
        fakes=fakes,
        fakes_gain=gain(mechanism, fakes),
        fakes_conditional=min(1.0, float(moved(even, fake, fakes)[1][0, 0])) - 1 / columns,
        fakes_to_move=fakes_to_move(1 / columns, 1 / rows, MOVE, fake, (rows, columns)),
        fakes_effect=faked_effect(rows, columns, fake, fakes),
        fakes_to_reject=fakes_to_reject(
            even.sum(axis=1), even.sum(axis=0), covariance, fake, LEVEL
        ),
        lifetime=lifetime,
    )


def power(table: FloatArray, covariance: Covariance, level: float = LEVEL) -> float:
    """The probability that the test of independence finds the dependence of a table."""
    test = independence(table, covariance)
    critical = chi_square_quantile(level, test.freedom)
    return noncentral_chi_square_tail(critical, test.freedom, test.statistic)


def dependent_table(rows: int, columns: int, effect: float) -> FloatArray:
    """The assumed table with this Cramer's V, shape (rows, columns).

    Raises:
        SchemeError: two lists of these sizes cannot go together so strongly.
    """
    rising, strongest = _rising(rows, columns)
    _check_effect(rows, columns, effect)
    part = effect / strongest
    table: FloatArray = (1 - part) / (rows * columns) + part * rising
    return table


def power_of(effect: float, rows: int, columns: int, covariance: Covariance) -> float:
    """The same for `dependent_table`, whose margins are even, so that the statistic is a quotient::

        V**2 (min(rows, columns) - 1) / (d own + own_share + kept),   d = rows columns

    The contrasts of `analyses.pairs.dependence` have one variance here, own + own_share / d.
    """
    freedom = (rows - 1) * (columns - 1)
    variance = rows * columns * covariance.own + covariance.own_share + covariance.kept
    noncentrality = effect**2 * (min(rows, columns) - 1) / variance
    return noncentral_chi_square_tail(chi_square_quantile(LEVEL, freedom), freedom, noncentrality)


def devices_to_find(
    effect: float, rows: int, columns: int, epsilon: float, sample_rate: float
) -> int | None:
    """How many devices find a Cramer's V with power POWER; None if no number that there can be."""
    mechanism = SubsetSelection.design(rows * columns, check_epsilon(epsilon))
    needed = _reports_to_detect(mechanism, rows, columns, effect)
    return None if needed is None else math.ceil(needed / sample_rate)


def _shown_from(cells: int, covariance: Covariance) -> float | None:
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
    """The largest Cramer's V of two lists of equally frequent values."""
    return _rising(rows, columns)[1]


def _check_effect(rows: int, columns: int, effect: float) -> None:
    strongest = strongest_effect(rows, columns)
    if not 0 <= effect <= strongest:
        raise SchemeError(
            f"lists of {rows} and {columns} equally frequent values have a Cramér's V of at most "
            f"{strongest:.2f}, not {effect:g}: say a smaller effect"
        )


def _rising(rows: int, columns: int) -> tuple[FloatArray, float]:
    """The table of two lists that rise together, and its Cramer's V."""
    ends = [np.arange(1, size + 1) / size for size in (rows, columns)]
    below = np.minimum.outer(*ends)  # its distribution function
    rising: FloatArray = np.diff(np.diff(below, axis=0, prepend=0.0), axis=1, prepend=0.0)
    even = 1 / (rows * columns)
    phi2 = float(((rising - even) ** 2).sum()) / even
    return rising, math.sqrt(phi2 / (min(rows, columns) - 1))


def _reports_to_detect(
    mechanism: SubsetSelection, rows: int, columns: int, effect: float
) -> int | None:
    """How many reports find the dependence with power POWER."""

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
    return high


def _least_effect(rows: int, columns: int, covariance: Covariance) -> float | None:
    """The smallest Cramer's V that is found with power POWER."""
    low, high = 0.0, strongest_effect(rows, columns)
    if power_of(high, rows, columns, covariance) < POWER:
        return None
    for _ in range(20):
        middle = (low + high) / 2
        enough = power_of(middle, rows, columns, covariance) >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high
