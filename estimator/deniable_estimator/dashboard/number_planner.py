"""The planner's page for numbers: what can be seen of one, before it is declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from deniable import DeniableError, Metric
from deniable.mechanisms import NumberRange
from deniable.mechanisms.number_range import Scale, number_text
from deniable.types.number import Number
from deniable.types.number_keys import QUESTIONS
from deniable_estimator.answers.units import SHARES, NumberUnit
from deniable_estimator.dashboard.pages import keep_form
from deniable_estimator.dashboard.planner_facts import cost_fact, lifetime_facts, reports_fact
from deniable_estimator.dashboard.planner_form import (
    FIELDS,
    PLANNED,
    SEGMENT,
    FieldSpec,
    marked,
    planned_segment,
    read_fields,
    segment_toml,
    segment_words,
)
from deniable_estimator.dashboard.privacy_label import PrivacyLabel, label_of
from deniable_estimator.dashboard.ranges import RangeError, check_names
from deniable_estimator.dashboard.words import number
from deniable_estimator.messages import counted, message
from deniable_estimator.planning.numbers import (
    ASKS,
    NumberPlan,
    QuantilePlan,
    plan_number,
)
from deniable_estimator.planning.plan import PlannedSegment

number_planner = Blueprint("number_planner", __name__)

_SCALES: tuple[Scale, ...] = ("linear", "log")
_LONGEST_UNIT = 20
_FARTHEST = 10**15

_RANGE: tuple[FieldSpec, ...] = (
    (
        *("low", message("Low"), message("The smallest number to tell apart")),
        *("0", -_FARTHEST, _FARTHEST, False),
    ),
    (
        *("high", message("High"), message("The largest number to tell apart")),
        *("100", -_FARTHEST, _FARTHEST, False),
    ),
)


@dataclass(frozen=True, slots=True)
class NumberPlanResult:
    """The results for the numbers of the form."""

    plan: NumberPlan
    verdict: str
    facts: tuple[tuple[str, str, str], ...]
    """Name, figure, explanation."""
    quantiles: tuple[tuple[str, str, str, str], ...]
    """Name, how far its interval reaches, devices for both limits and for a useful interval."""
    toml: str
    label: PrivacyLabel
    segment: str | None
    """What the figures are of, if they are of a segment alone."""


@dataclass(frozen=True, slots=True)
class _AskedNumber:
    """What is chosen in the form beside its numbers."""

    ask: str
    scale: Scale
    unit: str | None


@number_planner.get("/plan/number")
def number_planner_page() -> ResponseReturnValue:
    """The form and, if it is filled in as it can be, the results."""
    specs = (*_RANGE, *FIELDS[1:], SEGMENT)
    fields, numbers = read_fields(request.args, specs)
    outcome, mistake, question = None, None, _AskedNumber("distribution", "linear", None)
    try:
        check_names(request.args, (*(field.name for field in fields), "ask", "scale", "unit"))
        question = _question(request.args)
    except RangeError as error:
        numbers, mistake = None, str(keep_form(error))
    if numbers is not None and numbers["high"] <= numbers["low"]:
        fields = marked(fields, "high", message("Let high be above low."))
    elif numbers is not None and question.scale == "log" and numbers["low"] <= 0:
        fields = marked(fields, "low", message("A logarithmic scale begins above 0."))
    elif numbers is not None:
        try:
            outcome = _outcome(numbers, question)
        except DeniableError as error:
            fields = marked(fields, "low", str(error))
    page = render_template(
        "plan_number.html",
        fields=fields,
        asks=ASKS,
        scales=_SCALES,
        question=question,
        outcome=outcome,
        mistake=mistake,
    )
    return page, 200 if outcome is not None else 400


def _question(arguments: Mapping[str, str]) -> _AskedNumber:
    """What is chosen.

    Raises:
        RangeError: there is no such choice, or the unit is too long.
    """
    ask, scale = arguments.get("ask", "distribution"), arguments.get("scale", "linear")
    unit = arguments.get("unit", "").strip()
    if ask not in ASKS:
        raise RangeError(message("Choose what is asked of the number."), "ask")
    if scale not in _SCALES:
        raise RangeError(message("Choose a scale."), "scale")
    if len(unit) > _LONGEST_UNIT or not unit.isprintable():
        raise RangeError(message("Let the unit be short."), "unit")
    return _AskedNumber(ask, "log" if scale == "log" else "linear", unit or None)


def _outcome(numbers: Mapping[str, float], question: _AskedNumber) -> NumberPlanResult:
    segment = planned_segment(numbers)
    made = plan_number(
        numbers["low"],
        numbers["high"],
        question.ask,
        numbers["epsilon"],
        segment.devices,
        scale=question.scale,
        unit=question.unit,
        sample_rate=numbers["sample_rate"],
        lifetime_epsilon=numbers["lifetime_epsilon"],
    )
    return NumberPlanResult(
        plan=made,
        verdict=_verdict(made),
        facts=tuple(_facts(made)),
        quantiles=tuple(
            (
                f"p{100 * each.p:g}",
                _reach(each),
                number(each.devices_for_limits),
                number(each.devices_to_promise),
            )
            for each in made.quantiles
        ),
        toml=_toml(made, segment),
        label=label_of(_metric(made, numbers)),
        segment=segment_words(segment),
    )


def _verdict(made: NumberPlan) -> str:
    if not made.usable:
        return message(
            "No usable signal: with so few reports noise hides even the middle of the range."
        )
    kept = [f"p{100 * each.p:g}" for each in made.quantiles if each.promised]
    if kept:
        return message("Useful intervals for {names}.", names=", ".join(kept))
    if made.quantiles:
        return message("No quantile has a useful interval: they need more devices.")
    return message("The mean is known to ±{width}.", width=_width(made, made.mean.half_width))


def _facts(made: NumberPlan) -> Iterator[tuple[str, str, str]]:
    mean = made.mean
    name = message("Geometric mean") if made.scale == "log" else message("Mean")
    yield reports_fact(made.reports, made.devices)
    yield (
        name,
        f"±{_width(made, mean.half_width)}",
        message("half of its 95% interval, if numbers lie evenly in the range"),
    )
    yield (
        message("For ±{width}", width=_width(made, mean.desired)),
        message("no number of devices")
        if mean.devices is None
        else counted("{count:,} device", "{count:,} devices", mean.devices),
        message("in the 95% interval of the mean"),
    )
    if made.share_half_width is not None:
        yield (
            message("Share below a limit"),
            message("±{error:.2g} points", error=100 * made.share_half_width),
            message("half of its 95% interval, on average over the range"),
        )
    yield from lifetime_facts(made.lifetime)
    yield (
        message("{fakes:.3g}% fake devices", fakes=100 * made.fakes),
        _width(made, mean.fakes_gain),
        message("that they could add to the mean: the smaller epsilon, the more"),
    )
    yield cost_fact(made.report_bytes, made.tally_cells)


def _width(made: NumberPlan, width: float) -> str:
    """A width in the unit, or as a part of a geometric mean."""
    unit = SHARES if made.scale == "log" else NumberUnit(made.unit)
    return unit.full(width, width)


def _reach(each: QuantilePlan) -> str:
    low, high = (None if end is None else f"p{100 * end:.3g}" for end in (each.low, each.high))
    if low and high:
        return message("{low} to {high}", low=low, high=high)
    if low:
        return message("from {low} on, no upper limit", low=low)
    return message("up to {high}, no lower limit", high=high) if high else message("no limit")


def _metric(made: NumberPlan, numbers: Mapping[str, float]) -> Metric:
    """The metric that the form would declare."""
    low, high = number_text(float(made.low)), number_text(float(made.high))
    asked = QUESTIONS if made.ask == "both" else tuple(e for e in QUESTIONS if e == made.ask)
    return Metric(
        name="my_metric",
        type=Number(NumberRange(low, high, made.scale, made.integer), asked, made.unit),
        description="",
        owner="",
        expires=date.max,
        epsilon=made.declared_epsilon,
        lifetime_epsilon=float(numbers["lifetime_epsilon"]),
        sample_rate=made.sample_rate,
        segments=PLANNED if numbers[SEGMENT[0]] < 1 else (),
    )


def _toml(made: NumberPlan, segment: PlannedSegment) -> str:
    """The metric as a registry declares it."""
    assert made.lifetime is not None
    ask = '["mean", "distribution"]' if made.ask == "both" else f'"{made.ask}"'
    unit = made.unit and made.unit.replace("\\", "\\\\").replace('"', '\\"')
    above, within = segment_toml(segment)
    return "\n".join(
        (
            *above,
            "[metrics.my_metric]",
            'type = "number"',
            f"low = {number_text(float(made.low))}",
            f"high = {number_text(float(made.high))}",
            *([f'unit = "{unit}"'] if unit else []),
            *(['scale = "log"'] if made.scale == "log" else []),
            f"ask = {ask}",
            f"epsilon = {made.declared_epsilon!r}",
            f"lifetime_epsilon = {made.lifetime.lifetime_epsilon!r}",
            f"sample_rate = {made.sample_rate!r}",
            f"devices = {segment.all_devices}",
            *within,
        )
    )
