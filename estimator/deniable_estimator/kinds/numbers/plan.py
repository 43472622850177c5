"""What a crowd will see of a number, and what that costs, before the metric is declared.

The mean's half width is for the number that is hidden worst, and numbers spread evenly over the
range. From a distribution it also has what the widths of the cells leave open, which more devices
do not reduce. Quantiles are planned by the average noise over all edges, and in quantiles of the
truth, since nothing is known of the numbers: the interval of p95 may reach from p90 to p99.

The interval of quantile p ends about where the true shares below are p - D and p + D, with
D = z sqrt(V / n). It has an upper limit only if D is less than 1 - p, and is useful if D is half of
that. So a quantile needs ::

    n(p) = 4 z**2 [V + p (1 - p)] / min(p, 1 - p)**2            V the average over edges
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from deniable import SchemeError
from deniable.protocol.mechanisms import AUTO
from deniable.protocol.mechanisms.number_range import NumberRange, number_text
from deniable.protocol.types.number import QUESTIONS, Number
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.numbers import (
    EVEN_SPREAD,
    HistogramAnalysis,
    MeanEstimate,
    NumberAnalysis,
)
from deniable_estimator.document.document import Column, Document, Fact, Frame, Note, WordedValue
from deniable_estimator.document.units import SHARES, NumberUnit, Unit
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.kinds.numbers.mean import axis_of
from deniable_estimator.messages import message
from deniable_estimator.planning import words
from deniable_estimator.planning.inputs import Planned
from deniable_estimator.statistics.detection import first
from deniable_estimator.statistics.expected import QUANTILES, Z

LEVEL = 0.95
"""The level of every interval of a plan."""

_CELLS = 256
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


class QuantilePlan(NamedTuple):
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


def planned(asked: Asked) -> Planned:
    """The plan of a number between `low` and `high`.

    The desired half width of the mean is in the unit, or on a logarithmic scale a part of the mean.
    If not given, it is a hundredth of the range, or 5%.

    Raises:
        InputError, SchemeError: it cannot be planned.
    """
    check_range(asked)
    crowd, epsilon = words.PlannedCrowd(asked), asked["epsilon"]
    try:
        kind = number_type(asked)
        chosen = kind.design(asked["mechanism"], words.SALT, epsilon)
    except SchemeError as error:
        raise InputError("low", str(error)) from error
    analysis = analysis_of(chosen)
    assert isinstance(analysis, NumberAnalysis)
    quantiles: tuple[QuantilePlan, ...] = ()
    below_limit: tuple[Fact, ...] = ()
    usable = Z * math.sqrt(analysis.planned_mean() / crowd.reports) < 1
    if isinstance(analysis, HistogramAnalysis):
        quantiles = tuple(_quantiles(analysis.mechanism.edge_variance, crowd))
        usable = quantiles[0].low is not None
        below_limit = tuple(_limit_facts(analysis, crowd))
    mean = _mean(analysis, crowd)
    unit = SHARES if asked["scale"] == "log" else NumberUnit(asked["unit"])
    reason = "named by you"
    if asked["mechanism"] == AUTO:
        reason = kind.explain(words.SALT, epsilon, None)
    document = Document(
        "number",
        crowd.subtitle(_range(asked)),
        _verdict(quantiles, unit.full(mean.half_width, mean.half_width), usable=usable),
        (
            *crowd.report_facts(chosen.epsilon),
            *_mean_facts(mean, unit),
            *below_limit[:1],
            *crowd.lifetime_facts(chosen.epsilon),
            Fact(
                "fakes_gain",
                crowd.fakes_name,
                mean.fakes_gain,
                unit.full(mean.fakes_gain, mean.fakes_gain),
                message(
                    "that they could add to a mean in the middle of the range: the smaller "
                    "epsilon, the more"
                ),
            ),
            *below_limit[1:],
            *words.cost_facts(chosen, reason),
        ),
        (_frame(quantiles),) if quantiles else (),
        notes=crowd.notes,
        snippet=crowd.snippet("my_metric", *_lines(asked)),
        about={
            **{name: asked[name] for name in ("low", "high", "scale", "integer", "unit", "ask")},
            **crowd.about,
            "reason": reason,
            "tally_cells": words.tally_cells(chosen),
            "quantiles": quantiles,
            "share_half_width": None,
            "usable": usable,
            "fakes": crowd.fakes,
            "fakes_share": None,
            "lifetime": None,
        },
    )
    return Planned(document, crowd.metric("my_metric", kind))


def number_type(asked: Asked) -> Number:
    """The type of a metric that asks this of a number between `low` and `high`.

    Raises:
        SchemeError: there is no such range.
    """
    ask, low, high = (asked[name] for name in ("ask", "low", "high"))
    numbers = NumberRange(
        number_text(float(low)),
        number_text(float(high)),
        asked["scale"],
        asked.get("integer", False),
    )
    questions = QUESTIONS if ask == "both" else tuple(each for each in QUESTIONS if each == ask)
    return Number(numbers, questions, asked.get("unit"), _CELLS)


def check_range(asked: Asked) -> None:
    """Refuse a range that is none.

    Raises:
        InputError: it is none.
    """
    if asked["high"] <= asked["low"]:
        raise InputError("high", message("Let high be above low."))
    if asked["scale"] == "log" and asked["low"] <= 0:
        raise InputError("low", message("A logarithmic scale begins above 0."))


def _range(asked: Asked) -> str:
    low, high = (number_text(float(asked[name])) for name in ("low", "high"))
    whole = message(", whole numbers") if asked["integer"] else ""
    ends = f"{low} – {high} {asked['unit'] or ''}".rstrip()
    if asked["scale"] == "log":
        return message("{ends} on a logarithmic scale{whole}", ends=ends, whole=whole)
    return message("{ends}{whole}", ends=ends, whole=whole)


def in_units(numbers: NumberRange, width: float) -> float:
    """A width between -1 and 1 in the unit; on a logarithmic scale as a part of the mean."""
    width *= axis_of(numbers)[1]
    return math.expm1(min(width, 700)) if numbers.scale == "log" else width


def _mean(analysis: NumberAnalysis[Any], crowd: words.PlannedCrowd) -> MeanPlan:
    """Between -1 and 1 first, then in the unit, or as a part of a geometric mean."""
    noise, rounding = analysis.planned_mean(), analysis.rounding
    numbers, desired = analysis.mechanism.range, crowd.asked["half_width"]
    log, half = numbers.scale == "log", axis_of(numbers)[1]
    if desired is None:
        desired = _GOOD_FACTOR if log else 2 * half / _GOOD
    needed = _reports(noise, rounding, (math.log1p(desired) if log else desired) / half)
    return MeanPlan(
        std_error=in_units(numbers, math.sqrt((noise + EVEN_SPREAD) / crowd.reports)),
        half_width=in_units(numbers, _half_width(noise, rounding, crowd.reports)),
        rounding=in_units(numbers, rounding),
        desired=desired,
        devices=None if needed is None else math.ceil(needed / crowd.rate),
        fakes_gain=in_units(numbers, analysis.attack(0.0, crowd.fakes).gain),
    )


def _half_width(noise: float, rounding: float, reports: float) -> float:
    """That of the interval of a mean, between -1 and 1."""
    variance = (noise + EVEN_SPREAD) / reports
    return MeanEstimate(0.0, variance, 1, rounding=rounding).interval(LEVEL)[1]


def _reports(noise: float, rounding: float, half_width: float) -> int | None:
    """With how many reports the interval is this narrow; None if never."""
    if half_width <= rounding:
        return None
    return first(lambda reports: _half_width(noise, rounding, reports) <= half_width)


def _quantiles(edge: float, crowd: words.PlannedCrowd) -> Iterator[QuantilePlan]:
    """From the variance of the share below an edge that one report leaves, on average."""
    for p in QUANTILES:
        variance = edge + p * (1 - p)
        reach = Z * math.sqrt(variance / crowd.reports)
        low, high = p - reach, p + reach
        needed = math.ceil(4 * Z**2 * variance / min(p, 1 - p) ** 2)
        yield QuantilePlan(
            p,
            low if low > 0 else None,
            high if high < 1 else None,
            math.ceil(needed / 4 / crowd.rate),
            math.ceil(needed / crowd.rate),
            crowd.reports >= needed,
        )


def _verdict(quantiles: Sequence[QuantilePlan], width: str, *, usable: bool) -> Note:
    if not usable:
        told = message(
            "No usable signal: with so few reports noise hides even the middle of the range. Ask "
            "more devices, or declare a larger epsilon."
        )
        return Note(told, "alarm")
    kept = [f"p{100 * each.p:g}" for each in quantiles if each.promised]
    if kept:
        return Note(message("Useful intervals for {names}.", names=", ".join(kept)), "good")
    if quantiles:
        told = message("No quantile has a useful interval: they need more devices.")
        return Note(told, "warn")
    return Note(message("The mean is known to ±{width}.", width=width), "good")


def _mean_facts(mean: MeanPlan, unit: Unit) -> Iterator[Fact]:
    error, half_width, rounding, desired = (
        unit.full(width, width)
        for width in (mean.std_error, mean.half_width, mean.rounding, mean.desired)
    )
    yield Fact(
        "mean",
        message("Geometric mean") if unit is SHARES else message("Mean"),
        mean,
        f"±{half_width}",
        message(
            "half of its 95% interval, if numbers lie evenly in the range; its standard error is "
            "{error}",
            error=error,
        ),
    )
    yield words.devices_fact(
        *("devices_for_half_width", message("For ±{width}", width=desired), mean.devices),
        message("the width of the cells alone leaves ±{width}", width=rounding)
        if mean.devices is None
        else message("in the 95% interval of the mean"),
    )


def _limit_facts(analysis: HistogramAnalysis[Any], crowd: words.PlannedCrowd) -> Iterator[Fact]:
    """How well the share below a limit is known, and what fakes could add to it."""
    width = Z * math.sqrt((analysis.mechanism.edge_variance + 0.25) / crowd.reports)
    yield words.width_fact(
        *("share_half_width", message("Share below a limit"), width),
        message("half of its 95% interval, on average over the range"),
    )
    yield crowd.fakes_fact(
        analysis.curve_attack(crowd.fakes).gain,
        message("that they could add to the share below a limit"),
        "fakes_share",
    )


def _frame(quantiles: Sequence[QuantilePlan]) -> Frame:
    return Frame(
        "quantiles",
        message("Quantiles"),
        (
            Column("p", message("Quantile"), "number"),
            Column("reach", message("95% interval, in quantiles of the truth")),
            Column("low", "", data_only=True),
            Column("high", "", data_only=True),
            Column("devices_for_limits", message("Devices for both limits"), "count"),
            Column("devices_to_promise", message("Devices for a useful interval"), "count"),
            Column("promised", "", data_only=True),
        ),
        tuple(
            (WordedValue(each.p, f"p{100 * each.p:g}"), _reach(each), *each[1:])
            for each in quantiles
        ),
    )


def _reach(each: QuantilePlan) -> str:
    low, high = (None if end is None else f"p{100 * end:.3g}" for end in (each.low, each.high))
    if low and high:
        return message("{low} to {high}", low=low, high=high)
    if low:
        return message("from {low} on, no upper limit", low=low)
    return message("up to {high}, no lower limit", high=high) if high else message("no limit")


def _lines(asked: Asked) -> Iterator[str]:
    unit = asked["unit"] and asked["unit"].replace("\\", "\\\\").replace('"', '\\"')
    yield 'type = "number"'
    yield f"low = {number_text(float(asked['low']))}"
    yield f"high = {number_text(float(asked['high']))}"
    if unit:
        yield f'unit = "{unit}"'
    if asked["scale"] == "log":
        yield 'scale = "log"'
    if asked["integer"]:
        yield "integer = true"
    yield f"ask = {json.dumps(QUESTIONS if asked['ask'] == 'both' else asked['ask'])}"
