"""How a lifetime epsilon can be divided, and what a crowd tells with each division.

A device may send k reports, each with epsilon L / k, and reports with probability k / N in each of
the N windows of the planned years. `deniable_estimator.planning.turnover` says how many devices
have reports left then; `deniable.lifetime_split` has the variance of a report, what a window tells
(`information`), and what that assumes.

Newer devices have more of their reports left. So with few reports a device and a high turnover, the
devices that report are newer than the crowd.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

from deniable import SchemeError
from deniable.forecast import std_error
from deniable.lifetime_split import (
    MOST_EPSILON,
    SMALL_SHARE,
    Design,
    Split,
    declared,
    report_counts,
    report_variance,
    smallest_lifetime,
    split_of,
)
from deniable.mechanisms import (
    AUTO,
    MAX_EPSILON,
    MAX_MEMO_EPSILON,
    STRING_DESIGNS,
    Mechanism,
    NumberRange,
    design,
    design_memoized,
    design_string,
)
from deniable.types.number import Number
from deniable.windows import Kind
from deniable_estimator.planning.lifetime_choices import (
    LifetimeChoice,
    LifetimePlan,
    Question,
    Remembered,
)
from deniable_estimator.planning.plan import lasting_error
from deniable_estimator.planning.turnover import budget_left, lasting_budget
from deniable_estimator.privacy import WINDOWS_A_YEAR, Bound
from deniable_estimator.statistics.intervals import FloatArray

__all__ = [
    "MOST_TURNOVER",
    "MOST_YEARS",
    "plan_lifetime",
]

MOST_YEARS = 20.0
"""Longer plans would take seconds, and no crowd stays as it is for so long."""

MOST_TURNOVER = 0.99
"""In a year. With 1 no device would live to its second window."""

SMALLEST_EPSILON = 0.25
"""Smaller reports are not listed, unless one in every window leaves no more."""

_SALT = "plan"
_Z = 1.959963984540054
"""Of a 95 % interval."""
_STEPS = 100
"""Steps of epsilon between whole numbers, in searches."""


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
    windows = max(1, round(years * WINDOWS_A_YEAR[window]))
    crowd = _Crowd(domain, share, mechanism, windows, window, years, turnover, devices)
    limit = min(most_epsilon, MAX_EPSILON)
    divisions = _divisions(lifetime_epsilon, windows, limit)
    splits = [crowd.split(each, count) for each, count in divisions]
    best = max(
        (each for each in splits if each.epsilon <= limit), key=lambda each: each.information
    )

    def told(split: Split) -> LifetimeChoice:
        return crowd.choice(split, best.information, limit)

    stated, same = None, None
    if epsilon is not None:
        count = Fraction(lifetime_epsilon) // Fraction(crowd.design(epsilon).epsilon)
        mine = crowd.split(epsilon, min(count, windows))
        stated = told(mine)
        least = smallest_lifetime(
            crowd.design,
            mine.information,
            crowd.sent,
            share=share,
            most_epsilon=limit,
            most_reports=mine.reports,
        )
        if least is not None and least.lifetime_epsilon < mine.lifetime_epsilon:
            same = told(least)
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
        choices=tuple(told(each) for each in splits),
        best=told(best),
        once=told(crowd.split(min(declared(Fraction(lifetime_epsilon)), limit), 1)),
        memory=_remembered(crowd, lifetime_epsilon, limit),
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
        ("years", years, 1 / 366, MOST_YEARS),
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


class _Crowd:
    """The devices of a plan, and what they are asked."""

    def __init__(
        self,
        domain: int | Number,
        share: float,
        mechanism: str,
        windows: int,
        window: Kind,
        years: float,
        turnover: float,
        devices: int,
    ) -> None:
        self.domain, self.share, self.windows, self.devices = domain, share, windows, devices
        self.marks = [
            min(windows, round(each * WINDOWS_A_YEAR[window]))
            for each in (*range(1, math.ceil(years)), years)
        ]
        self.turnover = -math.expm1(math.log1p(-turnover) / WINDOWS_A_YEAR[window])
        self.question: Question = "share"
        if isinstance(domain, Number):
            self.question = "distribution" if "distribution" in domain.ask else "mean"
        self.design: Design = cache(_designer(domain, mechanism))
        self.left = cache(self._left)

    def rate(self, reports: int) -> float:
        return min(1.0, reports / self.windows)

    def _left(self, reports: int) -> FloatArray:
        return budget_left(reports, self.rate(reports), self.turnover, self.windows)

    def sent(self, reports: int) -> float:
        """How many reports come from one place in the crowd in all these windows."""
        return self.rate(reports) * float(self.left(reports)[:-1].sum())

    def split(self, epsilon: float, reports: int) -> Split:
        return split_of(self.design, epsilon, reports, self.sent, share=self.share)

    def choice(self, split: Split, best: float, limit: float) -> LifetimeChoice:
        reports, variance = split.reports, split.variance
        left = self.left(reports)
        window_reports = self.devices * self.sent(reports) / self.windows
        return LifetimeChoice(
            reports=reports,
            epsilon=split.epsilon,
            exact_epsilon=split.exact_epsilon,
            mechanism=split.mechanism,
            sample_rate=self.rate(reports),
            advised=split.epsilon <= limit,
            noise=variance.noise,
            spread=variance.spread,
            window_reports=window_reports,
            window_variance=variance.total / window_reports,
            half_width=self.width(variance.total / window_reports),
            information=split.information,
            relative=split.information / best,
            left_after_years=tuple(float(left[each]) for each in self.marks),
            left_at_last=lasting_budget(reports, self.rate(reports), self.turnover),
            one=Bound.of(split.exact_epsilon),
            life=Bound.of(reports * Fraction(split.exact_epsilon)),
            staying_half_width=self.width(
                (variance.noise / reports + variance.spread) / self.devices
            ),
            like_one_epsilon=self._like_one(split),
        )

    def width(self, variance: float) -> float:
        """Half of the 95 % interval that a variance leaves."""
        width = _Z * math.sqrt(variance)
        if self.question != "mean":
            return width
        assert isinstance(self.domain, Number)
        return _in_units(width, self.domain.range)

    def _like_one(self, split: Split) -> float | None:
        wanted = split.variance.noise / split.reports
        low, high = math.floor(split.epsilon * _STEPS), round(MAX_EPSILON * _STEPS)

        def enough(steps: int) -> bool:
            return report_variance(self.design(steps / _STEPS), self.share).noise <= wanted

        if split.reports == 1:
            return split.epsilon
        if not enough(high):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high / _STEPS


def _designer(domain: int | Number, mechanism: str) -> Design:
    def made(epsilon: float) -> Mechanism[Any]:
        if isinstance(domain, Number):
            return domain.design(mechanism, _SALT, epsilon)
        if mechanism in STRING_DESIGNS:
            return design_string(mechanism, _SALT, epsilon)
        return design(mechanism, domain, epsilon)

    return made


def _in_units(width: float, numbers: NumberRange) -> float:
    """A half width between -1 and 1 in the unit; on a logarithmic scale as a part of the mean."""
    if numbers.scale == "log":
        return math.expm1(min(width * math.log(numbers.end / numbers.start) / 2, 700))
    return width * float(numbers.span) / 2


def _remembered(crowd: _Crowd, lifetime_epsilon: float, limit: float) -> Remembered | None:
    """Memos within the lifetime; a report has half of that at most, so that fresh noise remains."""
    if isinstance(crowd.domain, Number):
        return None
    memo = min(lifetime_epsilon, MAX_MEMO_EPSILON)
    made = design_memoized(AUTO, _SALT, crowd.domain, declared(min(memo / 2, limit)), memo)
    return Remembered(
        made.name,
        Bound.of(made.epsilon),
        Bound.of(made.lifetime_epsilon),
        Bound.of(made.fresh_epsilon),
        _Z * std_error(made, crowd.share, crowd.devices),
        _Z * lasting_error(made, crowd.share, crowd.devices),
    )
