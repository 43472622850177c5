"""How a lifetime epsilon can be divided, and what a crowd tells with each division.

A device may send k reports, each with epsilon L / k, and reports with probability k / N in each of
the N windows of the planned years. `planning.lifetime_crowd` says how many devices
have reports left then; `forecasting.lifetime_split` has the variance of a report, what a window
tells (`information`), and what that assumes.

Newer devices have more of their reports left. So with few reports a device and a high turnover, the
devices that report are newer than the crowd.
"""

from __future__ import annotations

import math
from fractions import Fraction

from deniable import SchemeError
from deniable.protocol.mechanisms import AUTO, MAX_EPSILON
from deniable.protocol.types.number import Number
from deniable.protocol.windows import IN_A_YEAR, Kind
from deniable_estimator.forecasting.lifetime_split import (
    MOST_EPSILON,
    SMALL_SHARE,
    Split,
    declared,
    report_counts,
    smallest_lifetime,
)
from deniable_estimator.planning.inputs import MOST_TURNOVER, MOST_YEARS
from deniable_estimator.planning.lifetime_choices import LifetimeChoice, LifetimePlan
from deniable_estimator.planning.lifetime_crowd import LifetimeCrowd

SMALLEST_EPSILON = 0.25
"""Smaller reports are not listed, unless one in every window leaves no more."""


def plan_lifetime(
    domain: int | Number,
    lifetime_epsilon: float,
    years: float,
    devices: int,
    *,
    turnover: float = 0.0,
    window: Kind = "day",
    epsilon: float | None = None,
    share: float = SMALL_SHARE,
    mechanism: str = AUTO,
    most_epsilon: float = MOST_EPSILON,
) -> LifetimePlan:
    """List the ways to divide `lifetime_epsilon` over so many years.

    Args:
        domain: the number of values, or the number that is asked for.
        turnover: the part of the devices that is replaced in a year.
        epsilon: that of a report in the plan to compare with.
        share: the share of a value that widths are for.
        most_epsilon: the most that one report may have in what is called the best.

    Raises:
        SchemeError: a number is out of its bounds, or there is no such mechanism.
    """
    _check(lifetime_epsilon, years, devices, turnover, epsilon, share, most_epsilon)
    windows = max(1, round(years * IN_A_YEAR[window]))
    crowd = LifetimeCrowd(domain, share, mechanism, windows, window, years, turnover, devices)
    limit = min(most_epsilon, MAX_EPSILON)
    divisions = _divisions(lifetime_epsilon, windows, limit)
    splits = [crowd.split(each, count) for each, count in divisions]
    best = max(
        (each for each in splits if each.epsilon <= limit), key=lambda each: each.information
    )

    def choice_of(split: Split) -> LifetimeChoice:
        return crowd.choice(split, best.information, limit)

    stated, same = None, None
    if epsilon is not None:
        count = Fraction(lifetime_epsilon) // Fraction(crowd.design(epsilon).epsilon)
        mine = crowd.split(epsilon, min(count, windows))
        stated = choice_of(mine)
        least = smallest_lifetime(
            crowd.design,
            mine.information,
            crowd.sent,
            share=share,
            most_epsilon=limit,
            most_reports=mine.reports,
        )
        if least is not None and least.lifetime_epsilon < mine.lifetime_epsilon:
            same = choice_of(least)
    return LifetimePlan(
        question=crowd.question,
        size=None if isinstance(domain, Number) else domain,
        share=None if isinstance(domain, Number) else share,
        unit=domain.unit if isinstance(domain, Number) else None,
        log=isinstance(domain, Number) and domain.range.scale == "log",
        lifetime_epsilon=lifetime_epsilon,
        years=years,
        window=window,
        windows=windows,
        devices=devices,
        turnover=turnover,
        most_epsilon=limit,
        choices=tuple(choice_of(each) for each in splits),
        best=choice_of(best),
        once=choice_of(crowd.split(min(declared(Fraction(lifetime_epsilon)), limit), 1)),
        memory=crowd.remembered(lifetime_epsilon, limit),
        stated=stated,
        same_as_stated=same,
    )


def _check(
    lifetime_epsilon: float,
    years: float,
    devices: int,
    turnover: float,
    epsilon: float | None,
    share: float,
    most_epsilon: float,
) -> None:
    """Refuse what cannot be planned, by its name."""
    for name, value, low, high in (
        ("lifetime_epsilon", lifetime_epsilon, 0.001, 10_000),
        ("years", years, 0.003, MOST_YEARS),
        ("devices", devices, 1, 10**12),
        ("turnover", turnover, 0, MOST_TURNOVER),
        ("share", share, 1e-9, 1),
        ("most_epsilon", most_epsilon, 0.001, MAX_EPSILON),
        ("epsilon", lifetime_epsilon if epsilon is None else epsilon, 0.001, lifetime_epsilon),
    ):
        if not low <= value <= high:
            raise SchemeError(f"{name} must be from {low:.4g} to {high:,}, not {value:g}")


def _divisions(lifetime_epsilon: float, windows: int, limit: float) -> list[tuple[float, int]]:
    """Epsilon and number of the reports, by falling epsilon. If even one in every window would
    leave more than `limit` for each, then so many of that limit as well, which do not spend all."""
    whole = Fraction(lifetime_epsilon)
    fewest = math.ceil(whole / Fraction(MAX_EPSILON))
    within = math.ceil(whole / Fraction(limit))
    most = min(windows, max(within, math.floor(whole / Fraction(SMALLEST_EPSILON))))
    if fewest > windows:
        return [(MAX_EPSILON, windows)] * (limit < MAX_EPSILON) + [(limit, windows)]
    counts = {*report_counts(fewest, max(fewest, most)), min(within, windows)}
    found = [(declared(whole / count), count) for count in sorted(counts)]
    return found if within <= windows else [*found, (limit, windows)]
