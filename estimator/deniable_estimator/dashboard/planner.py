"""The planner: what a metric can detect, before it is declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from deniable import DeniableError, Metric, Scheme
from deniable.mechanisms import Mechanism
from deniable.types import Category
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import Shares, estimate
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes, digest
from deniable_estimator.dashboard.kinds.shares import bar_chart
from deniable_estimator.dashboard.pages import keep_form
from deniable_estimator.dashboard.plan_charts import reach_chart, share_text
from deniable_estimator.dashboard.planner_facts import plan_facts
from deniable_estimator.dashboard.planner_form import (
    FIELDS,
    LIGHT_SIZE,
    PLANNED,
    SEGMENT,
    marked,
    planned_segment,
    read_fields,
    segment_toml,
    segment_words,
)
from deniable_estimator.dashboard.privacy_label import PrivacyLabel, label_of
from deniable_estimator.dashboard.ranges import RangeError, check_names
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.dashboard.words import number
from deniable_estimator.document.plot.marks import Bars, Lines
from deniable_estimator.messages import message
from deniable_estimator.planning.plan import Plan, plan
from deniable_estimator.planning.population import zipf_shares

planner = Blueprint("planner", __name__)

_BARS = 12
_SHARE = 0.01
"""The default share of interest."""
_SEED = 1
"""The same numbers give the same example, so that a link shows the same page."""


@dataclass(frozen=True)
class PlanResult:
    """The results for the numbers."""

    plan: Plan
    verdict: str
    facts: tuple[tuple[str, str, str], ...]
    """Name, figure, explanation."""
    reach: Lines
    example: Bars | None
    """None if no simulated device reports."""
    estimate: Shares
    found: str
    toml: str
    label: PrivacyLabel
    segment: str | None
    """What the figures are of, if they are of a segment alone."""


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
        facts=plan_facts(made),
        reach=reach_chart(mechanism, size, rate, devices),
        example=example,
        estimate=answered,
        found=found,
        toml=_toml(numbers, size, memoize),
        label=label_of(metric),
        segment=segment_words(segment),
    )


def _verdict(made: Plan) -> str:
    if made.detectable_share is None or not made.usable:
        return message("No usable signal: with so few reports noise hides even large shares.")
    return message(
        "Shares of {share} or more are detectable.",
        share=share_text(made.detectable_share),
    )


def _example(
    mechanism: Mechanism[Any], size: int, devices: int, rate: float
) -> tuple[Shares, Bars | None, str]:
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
