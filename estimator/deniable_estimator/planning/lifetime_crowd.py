"""The crowd of a plan, what it is asked, and what it tells with one division of a lifetime.

How long the reports of a crowd last in which devices come and go.

* At first all devices are new. In each window every device that has reports left reports with the
  same probability (sample_rate), whatever its value is.
* After each window every device is replaced by a new one with the same probability, and whether it
  has reported does not matter for that.

Both functions are exact in this model. Devices that have reports left are newer than the others,
and so are those that report.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from deniable.protocol.mechanisms import (
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
from deniable.protocol.types.number import Number
from deniable.protocol.windows import IN_A_YEAR, Kind
from deniable_estimator.forecasting.detection import std_error
from deniable_estimator.forecasting.lifetime_split import (
    Design,
    Split,
    declared,
    report_variance,
    split_of,
)
from deniable_estimator.planning.lifetime_choices import LifetimeChoice, Question, Remembered
from deniable_estimator.planning.plan import lasting_error
from deniable_estimator.privacy import Bound
from deniable_estimator.statistics.intervals import FloatArray


def budget_left(reports: int, sample_rate: float, turnover: float, windows: int) -> FloatArray:
    """The share of the devices with reports left at each of so many windows, shape (windows + 1,).

    `turnover` is the chance that a device is replaced after a window. The state is how many reports
    a device has sent, up to `reports` - 1; those that have sent all leave it until they are
    replaced.
    """
    sent = np.zeros(reports)
    sent[0] = 1.0
    shares = np.empty(windows + 1)
    for window in range(windows + 1):
        shares[window] = sent.sum()
        step = (1 - turnover) * sample_rate * sent[:-1]
        sent *= (1 - turnover) * (1 - sample_rate)
        sent[1:] += step
        sent[0] += turnover
    return np.minimum(shares, 1.0)


def lasting_budget(reports: int, sample_rate: float, turnover: float) -> float:
    """What the share of the devices with reports left tends to.

    A device's next event is a report with probability rho, or its replacement. It has no reports
    left if `reports` reports come first ::

        1 - rho**reports,  rho = (1 - t) s / (t + (1 - t) s)

    with s the sample rate and t the chance of replacement after a window.
    """
    if turnover <= 0:
        return 0.0
    going = (1 - turnover) * sample_rate
    return -math.expm1(reports * math.log(going / (turnover + going)))


_SALT = "plan"

_Z = 1.959963984540054
"""Of a 95% interval."""

_STEPS = 100
"""Steps of epsilon from one whole number to the next, in searches."""


class LifetimeCrowd:
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
        whole = range(1, math.ceil(years))
        self.marks = [*(round(each * IN_A_YEAR[window]) for each in whole), windows]
        self.turnover = -math.expm1(math.log1p(-turnover) / IN_A_YEAR[window])
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

    def remembered(self, lifetime_epsilon: float, limit: float) -> Remembered | None:
        """Memos within the lifetime; a report has at most half of it, so fresh noise remains."""
        if isinstance(self.domain, Number):
            return None
        memo = min(lifetime_epsilon, MAX_MEMO_EPSILON)
        made = design_memoized(AUTO, _SALT, self.domain, declared(min(memo / 2, limit)), memo)
        return Remembered(
            made.name,
            Bound.of(made.epsilon),
            Bound.of(made.lifetime_epsilon),
            Bound.of(made.fresh_epsilon),
            _Z * std_error(made, self.share, self.devices),
            _Z * lasting_error(made, self.share, self.devices),
        )

    def width(self, variance: float) -> float:
        """Half of the 95% interval that a variance leaves."""
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
