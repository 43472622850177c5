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
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from deniable.protocol.mechanisms import AUTO, MAX_MEMO_EPSILON, Mechanism, Memoizing, design
from deniable.protocol.types.number import Number
from deniable.protocol.windows import IN_A_YEAR
from deniable_estimator.document.units import SHARES, NumberUnit
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.kinds.numbers.plan import check_range, in_units, number_type
from deniable_estimator.kinds.shares.plan import lasting_error
from deniable_estimator.messages import message
from deniable_estimator.planning.lifetime_split import MOST_EPSILON, Split, Splits, declared
from deniable_estimator.planning.words import SALT
from deniable_estimator.privacy.guarantees import Bound
from deniable_estimator.statistics.detection import std_error
from deniable_estimator.statistics.expected import Z
from deniable_estimator.statistics.intervals import FloatArray


@dataclass(frozen=True)
class LifetimeChoice(Split):
    """One division of the lifetime epsilon, and what the crowd tells with it."""

    sample_rate: float
    """With which the reports last for the planned years, on average."""
    advised: bool
    """Whether one report stays within the largest epsilon that is advised."""
    window_reports: float
    """Of an average window of these years."""
    window_variance: float
    half_width: float
    """Of the 95% interval in such a window: of the share (1 is all devices) or of the mean, in its
    unit or, on a logarithmic scale, as a part of it."""
    relative: float
    """Its information, divided by that of the best choice."""
    left_after_years: tuple[float, ...]
    """The share of the devices with reports left after 1, 2, ... years, and at the end."""
    left_at_last: float
    """What that share tends to."""
    one: Bound
    """After one report."""
    life: Bound
    """After all reports of a device."""
    staying_half_width: float
    """For a trait that stays, with all reports of as many devices: the 95% interval's."""


@dataclass(frozen=True)
class Remembered:
    """Memoized noise within the same lifetime epsilon, for a trait that stays. Every device
    reports in every window."""

    mechanism: str
    report: Bound
    """One report."""
    memo: Bound
    """All reports of one value, however many."""
    fresh: Bound
    """What each report adds at most, times of change included, whatever was reported before."""
    half_width: float
    """Of the 95% interval in a window."""
    staying_half_width: float
    """Over any number of windows."""


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


class LifetimeCrowd:
    """The devices of a plan, and what they are asked.

    Raises:
        InputError, SchemeError: they cannot be asked that.
    """

    def __init__(self, asked: Asked) -> None:
        self.asked, self.number = asked, _number(asked)
        # What the widths are about: one value's share, a mean, or the share below a limit.
        self.question: str = "distribution" if asked["ask"] == "both" else asked["ask"]
        self.share: float = asked["share"]
        self.devices: int = asked["devices"]
        in_a_year, years = IN_A_YEAR[asked["window"]], asked["years"]
        self.windows: int = max(1, round(years * in_a_year))
        self.marks = [round(each * in_a_year) for each in range(1, math.ceil(years))]
        self.marks.append(self.windows)
        self.turnover = -math.expm1(math.log1p(-asked["turnover"]) / in_a_year)
        self.left = cache(self._left)
        self.splits = Splits(cache(self._design), self.sent, self.share)

    def _design(self, epsilon: float) -> Mechanism[Any]:
        if self.number is None:
            return design(self.asked["mechanism"], self.asked["size"], epsilon, salt=SALT)
        return self.number.design(self.asked["mechanism"], SALT, epsilon)

    def rate(self, reports: int) -> float:
        return min(1.0, reports / self.windows)

    def _left(self, reports: int) -> FloatArray:
        return budget_left(reports, self.rate(reports), self.turnover, self.windows)

    def sent(self, reports: int) -> float:
        """How many reports come from one place in the crowd in all these windows."""
        return self.rate(reports) * float(self.left(reports)[:-1].sum())

    def choice(self, split: Split, best: float) -> LifetimeChoice:
        reports, left = split.reports, self.left(split.reports)
        window_reports = self.devices * self.sent(reports) / self.windows
        window_variance = split.variance / window_reports
        return LifetimeChoice(
            **vars(split),
            sample_rate=self.rate(reports),
            advised=split.epsilon <= MOST_EPSILON,
            window_reports=window_reports,
            window_variance=window_variance,
            half_width=self.width(window_variance),
            relative=split.information / best,
            left_after_years=tuple(float(left[each]) for each in self.marks),
            left_at_last=lasting_budget(reports, self.rate(reports), self.turnover),
            one=Bound.of(split.exact_epsilon),
            life=Bound.of(reports * Fraction(split.exact_epsilon)),
            staying_half_width=self.width((split.noise / reports + split.spread) / self.devices),
        )

    def remembered(self) -> Remembered | None:
        """Memos within the lifetime; a report has at most half of it, so fresh noise remains."""
        if self.number is not None:
            return None
        memo = min(self.asked["lifetime_epsilon"], MAX_MEMO_EPSILON)
        epsilon = declared(min(memo / 2, MOST_EPSILON))
        made = design(AUTO, self.asked["size"], epsilon, memo, salt=SALT)
        assert isinstance(made, Memoizing)
        return Remembered(
            made.name,
            Bound.of(made.epsilon),
            Bound.of(made.lifetime_epsilon),
            Bound.of(made.fresh_epsilon),
            Z * std_error(made, self.share, self.devices),
            Z * lasting_error(made, self.share, self.devices),
        )

    def width(self, variance: float) -> float:
        """Half of the 95% interval that a variance leaves; of a mean in its unit, or on a
        logarithmic scale as a part of it."""
        width = Z * math.sqrt(variance)
        if self.number is None or self.question != "mean":
            return width
        return in_units(self.number.range, width)

    def told(self, width: float) -> str:
        """A half width in points, in the unit, or as a part of a geometric mean."""
        if self.number is None or self.question != "mean":
            return message("{width} points", width=SHARES.text(width, width))
        unit = SHARES if self.number.range.scale == "log" else NumberUnit(self.number.unit)
        return unit.full(width, width)


def _number(asked: Asked) -> Number | None:
    """The number that is asked for; None for a share of one of `size` values."""
    ends = (asked["low"], asked["high"])
    if asked["ask"] == "share":
        if ends != (None, None):
            told = message("Low and high are for a number: say what is asked of it.")
            raise InputError("ask", told)
        return None
    if ends == (None, None):
        # The range of a number makes no difference, so widths are percents of it.
        return number_type({**asked, "low": 0, "high": 100, "scale": "linear", "unit": "%"})
    if None in ends:
        raise InputError("high", message("Say both low and high, or neither."))
    check_range(asked)
    return number_type(asked)
