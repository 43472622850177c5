"""The planner: what a metric can detect, before it is declared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, TypeAlias

import numpy as np
from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from deniable import DeniableError, Metric, Scheme
from deniable.mechanisms import MAX_EPSILON, Mechanism
from deniable.segments import Segment
from deniable.types import Category
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import Shares, estimate
from deniable_estimator.dashboard.charts import BarChart, bar_chart
from deniable_estimator.dashboard.charts.reach import ReachChart, reach_chart, share_text
from deniable_estimator.dashboard.decodes import StillDecoding, TooManyDecodes
from deniable_estimator.dashboard.pages import keep_form
from deniable_estimator.dashboard.privacy import PrivacyLabel, label_of
from deniable_estimator.dashboard.ranges import RangeError, check_names
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.dashboard.versions import digest
from deniable_estimator.dashboard.words import mechanism_words, number
from deniable_estimator.messages import message, sentence
from deniable_estimator.planning.plan import Lifetime, Plan, plan
from deniable_estimator.planning.population import zipf_shares
from deniable_estimator.planning.segment import PlannedSegment
from deniable_estimator.privacy.words import rounded_up

__all__ = [
    "FIELDS",
    "LIGHT_SIZE",
    "PLANNED",
    "SEGMENT",
    "Field",
    "FieldSpec",
    "cost_fact",
    "lifetime_facts",
    "marked",
    "planned_segment",
    "planner",
    "read_fields",
    "reports_fact",
    "segment_toml",
    "segment_words",
]

planner = Blueprint("planner", __name__)

_LARGEST_SIZE = 10_000
"""The planner's own limit: an example over longer lists would take seconds."""
LIGHT_SIZE = 100
"""Of longer lists the example is calculated in another process."""
_MOST_DEVICES = 10**10
_BARS = 12
_SHARE = 0.01
"""The default share of interest."""
_SEED = 1
"""The same numbers give the same example, so that a link shows the same page."""


@dataclass(frozen=True, slots=True)
class Field:
    """One number of the form."""

    name: str
    label: str
    help: str
    text: str
    whole: bool = False
    mistake: str | None = None


@dataclass(frozen=True)
class PlanResult:
    """The results for the numbers."""

    plan: Plan
    verdict: str
    facts: tuple[tuple[str, str, str], ...]
    """Name, figure, explanation."""
    reach: ReachChart
    example: BarChart | None
    """None if no simulated device reports."""
    estimate: Shares
    found: str
    toml: str
    label: PrivacyLabel
    segment: str | None
    """What the figures are of, if they are of a segment alone."""


FieldSpec: TypeAlias = tuple[str, str, str, str, float, float, bool]

FIELDS: tuple[FieldSpec, ...] = (
    # name, label, help, default, lowest (not itself, unless whole), highest, whole
    (
        *("size", message("Values"), message("How many values the metric lists")),
        *("10", 2, _LARGEST_SIZE, True),
    ),
    (
        *("epsilon", message("Epsilon per report")),
        *(message("The limit on what one report reveals"), "1", 0, MAX_EPSILON, False),
    ),
    (
        *("lifetime_epsilon", message("Lifetime epsilon")),
        *(message("The limit on what all reports of a device reveal together"),),
        *("8", 0, 10_000, False),
    ),
    (
        *("devices", message("Devices"), message("How many run the app")),
        *("100000", 10, _MOST_DEVICES, True),
    ),
    (
        *("sample_rate", message("Sample rate")),
        *(message("The probability that a device reports in a window"), "0.1", 0, 1, False),
    ),
)
"""Of every planner."""

SEGMENT: FieldSpec = (
    *("segment_share", message("Part of a segment")),
    *(message("Of the devices, the part with the smallest segment; 1 for all devices"),),
    *("1", 0, 1, False),
)

PLANNED = (Segment("my_segment", ("smallest", "other")),)
"""What stands for the segments of the metric, of which only one part is known."""


_WHOLE = sentence("Write a whole number from {lowest:,} up to {highest:,}.")
_NUMBER = sentence("Write a number above {lowest:g} up to {highest:,}.")


@planner.get("/plan")
def planner_page() -> ResponseReturnValue:
    """The form and, if its numbers are valid, the results; `number` leads to that of numbers."""
    if "number" in request.args:
        rest: dict[str, Any] = {**request.args.to_dict(), "number": None}
        return redirect(url_for("number_planner.number_planner_page", **rest))
    fields, numbers = read_fields(request.args, (*FIELDS, SEGMENT))
    memoize = "memoize" in request.args
    outcome, mistake = None, None
    try:
        check_names(request.args, (*(field.name for field in fields), "memoize"))
    except RangeError as error:
        numbers, mistake = None, str(keep_form(error))
    if numbers is not None:
        try:
            outcome = _calculated(numbers, memoize)
        except (StillDecoding, TooManyDecodes):
            raise
        except DeniableError as error:
            # Only the memory of the devices can be impossible here, and its bound is at fault.
            fields = marked(fields, "lifetime_epsilon", str(error))
    page = render_template(
        "plan.html", fields=fields, memoize=memoize, outcome=outcome, mistake=mistake
    )
    return page, 200 if outcome is not None else 400


def read_fields(
    arguments: Mapping[str, str], specs: Sequence[FieldSpec]
) -> tuple[list[Field], dict[str, float] | None]:
    """The form as it was filled in, with its mistakes; and its numbers if there are none."""
    fields, numbers = [], {}
    for name, label, explained, default, lowest, highest, whole in specs:
        text = arguments.get(name, default).strip()
        mistake = None
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            value = math.nan
        if (lowest <= value if whole else lowest < value) and value <= highest:
            numbers[name] = value
        else:
            mistake = message(_WHOLE if whole else _NUMBER, lowest=lowest, highest=highest)
        fields.append(Field(name, label, explained, text, whole, mistake))
    if len(numbers) < len(fields):
        return fields, None
    if numbers["lifetime_epsilon"] < numbers["epsilon"]:
        mistake = message(
            "All reports of a lifetime reveal at least what one report does: let the "
            "lifetime's epsilon be the larger one."
        )
        return marked(fields, "lifetime_epsilon", mistake), None
    return fields, numbers


def marked(fields: Sequence[Field], name: str, mistake: str) -> list[Field]:
    """The same fields, one of them with its mistake."""
    return [replace(each, mistake=mistake) if each.name == name else each for each in fields]


def _calculated(numbers: Mapping[str, float], memoize: bool) -> PlanResult:
    if numbers["size"] <= LIGHT_SIZE:
        return _outcome(numbers, memoize)
    key = digest("planner", *sorted(numbers.items()), memoize)
    return current_source().calculate(key, _outcome, numbers, memoize)


def _outcome(numbers: Mapping[str, float], memoize: bool) -> PlanResult:
    segment = planned_segment(numbers)
    size, devices = int(numbers["size"]), segment.devices
    epsilon, rate = numbers["epsilon"], numbers["sample_rate"]
    made = plan(
        size,
        epsilon,
        devices,
        share=_SHARE,
        sample_rate=rate,
        lifetime_epsilon=numbers["lifetime_epsilon"],
        memoize=memoize,
    )
    metric = _metric(numbers, size, memoize)
    mechanism = metric.scheme.oracle
    answered, example, found = _example(mechanism, size, devices, rate)
    return PlanResult(
        plan=made,
        verdict=_verdict(made),
        facts=_facts(made),
        reach=reach_chart(mechanism, size, rate, devices),
        example=example,
        estimate=answered,
        found=found,
        toml=_toml(numbers, size, memoize),
        label=label_of(metric),
        segment=segment_words(segment),
    )


def planned_segment(numbers: Mapping[str, float]) -> PlannedSegment:
    """The segment that the form asks about, which may be all devices."""
    return PlannedSegment(numbers[SEGMENT[0]], int(numbers["devices"]))


def segment_words(segment: PlannedSegment) -> str | None:
    """What the figures are of; None if it is all devices."""
    return segment.words if segment.share < 1 else None


def segment_toml(segment: PlannedSegment) -> tuple[list[str], list[str]]:
    """How segments are declared: the lines before the metric, and those in it."""
    if segment.share >= 1:
        return [], []
    name = PLANNED[0].name
    told = f"# the smallest: {segment.share:.4g} of the devices"
    return [f"[segments.{name}]", told, "values = [...]", ""], [f'segments = ["{name}"]']


def _verdict(made: Plan) -> str:
    if made.detectable_share is None or not made.usable:
        return message("No usable signal: with so few reports noise hides even large shares.")
    return message(
        "Shares of {share} or more are detectable.",
        share=share_text(made.detectable_share),
    )


def _facts(made: Plan) -> tuple[tuple[str, str, str], ...]:
    return (
        reports_fact(made.reports, made.devices),
        (
            message("To detect 1%"),
            message("{devices:,} devices", devices=made.devices_to_detect),
            message("with power 0.8, among all {size:,} values at once", size=made.size),
        ),
        (
            message("For ±1 point"),
            message("{devices:,} devices", devices=made.devices_for_half_width),
            message("in the 95% interval of a share of 1%"),
        ),
        *_over_time(made),
        (
            message("{fakes:.3g}% fake devices", fakes=100 * made.fakes),
            message("{gain:.2f} points", gain=100 * made.fakes_gain),
            message("that they could add to any one value: the smaller epsilon, the more"),
        ),
        (
            message("Mechanism"),
            mechanism_words(made.mechanism),
            message(
                "{reason}; {loss:.2f} times the least possible variance",
                reason=made.reason,
                loss=made.loss,
            ),
        ),
        cost_fact(made.report_bytes, made.tally_cells),
    )


def reports_fact(reports: float, devices: int) -> tuple[str, str, str]:
    """How many reports a window has."""
    return (
        message("Reports in a window"),
        number(round(reports)),
        message("from {devices:,} devices, on average", devices=devices),
    )


def cost_fact(report_bytes: int, tally_cells: int) -> tuple[str, str, str]:
    """What a report and a tally take."""
    return (
        message("Cost"),
        message("{bytes:,} bytes", bytes=report_bytes),
        message("a report; {cells:,} counters a window", cells=tally_cells),
    )


def lifetime_facts(lifetime: Lifetime | None) -> Iterator[tuple[str, str, str]]:
    """How long the budget of a device lasts, if it does not report for ever."""
    if lifetime is not None:
        yield (
            message("Reports of a device"),
            number(lifetime.reports),
            message(
                "until its budget is spent, over about {windows:,} windows",
                windows=round(lifetime.windows),
            ),
        )


def _over_time(made: Plan) -> Iterator[tuple[str, str, str]]:
    yield from lifetime_facts(made.lifetime)
    if made.memory is not None:
        yield (
            message("Reports of a device"),
            message("any number"),
            message(
                "all of one value reveal at most ε {memo}; each further one, of whatever "
                "history, adds at most ε {fresh}",
                memo=rounded_up(made.memory.memo_epsilon, 2),
                fresh=rounded_up(made.memory.fresh_epsilon, 2),
            ),
        )
        yield (
            message("Over many windows"),
            message("±{error:.2g} points", error=100 * made.memory.lasting_std_error),
            message(
                "the standard error of a share of 1% stays above this, if the same devices report"
            ),
        )


def _example(
    mechanism: Mechanism[Any], size: int, devices: int, rate: float
) -> tuple[Shares, BarChart | None, str]:
    """One window's reports of simulated devices, whose shares are proportional to 1 / rank."""
    rng = np.random.default_rng(_SEED)
    values = tuple(message("value {rank}", rank=rank) for rank in range(1, size + 1))
    scheme = Scheme("category", mechanism, values)
    counts = rng.multinomial(devices, zipf_shares(size, 1.0))
    answered = estimate(sample_tally(scheme, rng.binomial(counts, rate), rng), scheme)
    if not answered.n:
        return answered, None, message("In this window no device reports at all.")
    truth = counts / devices
    seen = int((answered.detected & (truth > 0)).sum())
    held = int(((answered.low <= truth) & (truth <= answered.high)).sum())
    found = message(
        "Of {size:,} values {seen:,} stand out from the noise; {held:,} intervals hold the true "
        "share.",
        size=size,
        seen=seen,
        held=held,
    )
    chart = bar_chart(answered, limit=_BARS, truth=truth)
    return answered, replace(chart, title=message("simulated: estimated shares")), found


def _metric(numbers: Mapping[str, float], size: int, memoize: bool) -> Metric:
    """The metric that these numbers would declare."""
    return Metric(
        name="my_metric",
        type=Category(tuple(map(str, range(size)))),
        description="",
        owner="",
        expires=date.max,
        epsilon=float(numbers["epsilon"]),
        lifetime_epsilon=float(numbers["lifetime_epsilon"]),
        sample_rate=float(numbers["sample_rate"]),
        longitudinal="memoize" if memoize else "fresh",
        segments=PLANNED if numbers[SEGMENT[0]] < 1 else (),
    )


def _toml(numbers: Mapping[str, float], size: int, memoize: bool) -> str:
    """The numbers as a metric declares them."""
    above, within = segment_toml(planned_segment(numbers))
    return "\n".join(
        (
            *above,
            "[metrics.my_metric]",
            'type = "category"',
            f"values = [...]  # {number(size)} of them",
            f"epsilon = {float(numbers['epsilon'])!r}",
            f"lifetime_epsilon = {float(numbers['lifetime_epsilon'])!r}",
            f"sample_rate = {float(numbers['sample_rate'])!r}",
            f"devices = {int(numbers['devices'])}",
            *(['longitudinal = "memoize"'] if memoize else []),
            *within,
        )
    )
