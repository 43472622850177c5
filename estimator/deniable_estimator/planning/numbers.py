"""What a crowd will see of a number, and what that costs, before the metric is declared.

The mean's half width is for the number that is hidden worst, and numbers spread evenly over the
range. From a distribution it also has what the widths of the cells leave open, which more devices
do not reduce. Quantiles are planned by the average noise over all edges, and in quantiles of the
truth, since nothing is known of the numbers: the interval of p95 may reach from p90 to p99
(`deniable_estimator.analyses.numbers.mean` has the formulas).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from deniable import SchemeError
from deniable.protocol.mechanisms import AUTO, HierarchicalHistogram, SlidingWindow
from deniable.protocol.mechanisms.number_range import NumberRange, Scale, number_text
from deniable.protocol.types.number import Number
from deniable.protocol.types.number_keys import CELL_CHOICES, QUESTIONS
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.analyses.numbers import HierarchicalHistogramAnalysis, NumberAnalysis
from deniable_estimator.analyses.numbers.mean import (
    EVEN_SPREAD,
    HistogramVariances,
    MeanEstimate,
    cell_points,
    mean_half_width,
    quantile_reach,
    reports_for_mean,
    reports_for_quantile,
    tree_share_of_both,
)
from deniable_estimator.analyses.numbers.poisoning import cdf_attack
from deniable_estimator.forecasting.number_forecast import QUANTILES, mean_variance
from deniable_estimator.planning.plan import Lifetime

ASKS = ("mean", "distribution", "both")
"""What a planned number may be asked for."""

LEVEL = 0.95
"""The level of every interval of a plan."""

_SALT = "plan"
_GOOD = 100
_GOOD_FACTOR = 0.05


@dataclass(frozen=True)
class MeanPlan:
    """What will be seen of the mean; on a logarithmic scale of the geometric mean, and then
    widths are parts of it: 0.05 is 5%."""

    std_error: float
    half_width: float
    """Of the 95% interval."""
    rounding: float
    """The part of it that the cells of a distribution leave open, with any number of devices."""
    desired: float
    """The half width that was asked for."""
    devices: int | None
    """How many devices it takes; None if it is not above `rounding`."""
    fakes_gain: float
    """The most that the fakes add to a mean in the middle of the range."""


@dataclass(frozen=True)
class QuantilePlan:
    """What will be seen of a quantile."""

    p: float
    low: float | None
    """Down to which quantile of the truth its 95% interval will reach, about; None if it will have
    no lower limit."""
    high: float | None
    """The same upwards."""
    devices_for_limits: int
    """Below so many devices the interval is open on a side."""
    devices_to_promise: int
    """From so many on, its half width is at most half of 1 - p (or of p, if that is less)."""
    promised: bool
    """Whether there are so many."""


@dataclass(frozen=True)
class NumberPlan:
    """What can be seen of a number in one window."""

    low: float
    high: float
    scale: Scale
    integer: bool
    unit: str | None
    ask: str
    declared_epsilon: float
    devices: int
    sample_rate: float
    reports: float
    """Devices that report in one window, on average."""
    mechanism: str
    epsilon: float
    """Exact, from the probabilities in force, rounded up."""
    reason: str
    report_bytes: int
    tally_cells: int
    mean: MeanPlan
    quantiles: tuple[QuantilePlan, ...]
    """Empty if only the mean is asked for."""
    share_half_width: float | None
    """That of the share below a limit, on average over the range; None for a mean."""
    usable: bool
    """Whether the mean is known better than the range, or the median has both limits."""
    fakes: float
    """The fraction of all reports that is assumed to be fake."""
    fakes_share: float | None
    """The most that they add to the share below a limit; None for a mean."""
    lifetime: Lifetime | None


def plan_number(
    low: float,
    high: float,
    ask: str,
    epsilon: float,
    devices: int,
    *,
    scale: Scale = "linear",
    integer: bool = False,
    unit: str | None = None,
    mechanism: str = AUTO,
    half_width: float | None = None,
    sample_rate: float = 1.0,
    lifetime_epsilon: float | None = None,
    cells: int = 256,
    fakes: float = FAKES,
) -> NumberPlan:
    """Plan a number between `low` and `high`.

    Args:
        half_width: the desired one of the mean, in the unit, or on a logarithmic scale as a part of
            the mean. If not given, a hundredth of the range, or 5%.

    Raises:
        SchemeError: there is no such range or mechanism.
    """
    kind = number_type(low, high, ask, scale, integer, unit, cells)
    chosen = kind.design(mechanism, _SALT, epsilon)
    assert isinstance(chosen, (SlidingWindow, HierarchicalHistogram))
    reports = devices * sample_rate
    if isinstance(chosen, HierarchicalHistogram):
        variances = HierarchicalHistogramAnalysis(chosen).variances()
        noise, fakes_share = variances.mean, cdf_attack(chosen, fakes).gain
        rounding = cell_points(chosen)[1]
        if chosen.mean is not None:
            rounding *= tree_share_of_both(chosen)
    else:
        variances, noise, fakes_share, rounding = None, mean_variance(chosen), None, 0.0
    quantiles = _quantiles(variances, reports, sample_rate) if variances else ()
    lifetime = Lifetime.of(lifetime_epsilon, chosen.epsilon, sample_rate)
    return NumberPlan(
        low=low,
        high=high,
        scale=scale,
        integer=integer,
        unit=unit,
        ask=ask,
        declared_epsilon=epsilon,
        devices=devices,
        sample_rate=sample_rate,
        reports=reports,
        mechanism=chosen.name,
        epsilon=chosen.epsilon,
        reason="named by you" if mechanism != AUTO else kind.explain(_SALT, epsilon, None),
        report_bytes=max(row.report_bytes for row in chosen.rows),
        tally_cells=sum(row.width for row in chosen.rows),
        mean=_mean(chosen, noise, rounding, reports, sample_rate, half_width, fakes),
        quantiles=quantiles,
        share_half_width=None
        if variances is None
        else mean_half_width(variances.cdf, reports, LEVEL, spread=0.25),
        usable=quantiles[0].low is not None
        if quantiles
        else mean_half_width(noise, reports, LEVEL, spread=0.0) < 1,
        fakes=fakes,
        fakes_share=fakes_share,
        lifetime=lifetime,
    )


def number_type(
    low: float,
    high: float,
    ask: str,
    scale: Scale = "linear",
    integer: bool = False,
    unit: str | None = None,
    cells: int = 256,
) -> Number:
    """The type of a metric that asks this of a number between `low` and `high`.

    Raises:
        SchemeError: there is no such range or question.
    """
    if ask not in ASKS:
        raise SchemeError(f"ask must be one of {', '.join(ASKS)}, not {ask!r}")
    if cells not in CELL_CHOICES:
        raise SchemeError(f"cells must be one of {', '.join(map(str, CELL_CHOICES))}, not {cells}")
    numbers = NumberRange(number_text(float(low)), number_text(float(high)), scale, integer)
    asked = QUESTIONS if ask == "both" else tuple(each for each in QUESTIONS if each == ask)
    return Number(numbers, asked, unit, cells)


def _mean(
    chosen: SlidingWindow | HierarchicalHistogram,
    noise: float,
    rounding: float,
    reports: float,
    sample_rate: float,
    desired: float | None,
    fakes: float,
) -> MeanPlan:
    """Between -1 and 1 first, then in the unit, or as a part of a geometric mean."""
    numbers = chosen.range
    log = numbers.scale == "log"
    extent = math.log(numbers.end / numbers.start) if log else float(numbers.span)
    half = extent / 2

    def in_unit(width: float) -> float:
        return math.expm1(min(half * width, 700)) if log else half * width

    if desired is None:
        desired = _GOOD_FACTOR if log else extent / _GOOD
    needed = _reports(noise, rounding, (math.log1p(desired) if log else desired) / half)
    analysis = analysis_of(chosen)
    assert isinstance(analysis, NumberAnalysis)
    return MeanPlan(
        std_error=in_unit(math.sqrt((noise + EVEN_SPREAD) / reports)),
        half_width=in_unit(_half_width(noise, rounding, reports)),
        rounding=in_unit(rounding),
        desired=desired,
        devices=None if needed is None else math.ceil(needed / sample_rate),
        fakes_gain=in_unit(analysis.attack(0.0, fakes).gain),
    )


def _half_width(noise: float, rounding: float, reports: float) -> float:
    """That of the interval of a mean, between -1 and 1."""
    variance = (noise + EVEN_SPREAD) / reports
    return MeanEstimate(0.0, variance, 1, rounding=rounding).interval(LEVEL)[1]


def _reports(noise: float, rounding: float, half_width: float) -> int | None:
    """With how many reports the interval is this narrow; None if never."""
    if half_width <= rounding:
        return None
    low = high = reports_for_mean(noise, half_width, LEVEL)
    while _half_width(noise, rounding, high) > half_width:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _half_width(noise, rounding, middle) > half_width:
            low = middle
        else:
            high = middle
    return high


def _quantiles(
    variances: HistogramVariances, reports: float, sample_rate: float
) -> tuple[QuantilePlan, ...]:
    found = []
    for p in QUANTILES:
        reach = quantile_reach(variances, p, reports, LEVEL)
        needed = reports_for_quantile(variances, p, LEVEL)
        found.append(
            QuantilePlan(
                p,
                reach.low,
                reach.high,
                math.ceil(needed / 4 / sample_rate),
                math.ceil(needed / sample_rate),
                reports >= needed,
            )
        )
    return tuple(found)
