"""The planner's pages: what a metric can detect, before it is declared; one for each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from deniable import DeniableError, Scheme
from deniable.protocol.mechanisms import Mechanism
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import Shares, estimate
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes, digest
from deniable_estimator.dashboard.kinds.shares import bar_chart
from deniable_estimator.dashboard.pages import keep_form
from deniable_estimator.dashboard.plan_charts import division_chart, reach_chart
from deniable_estimator.dashboard.privacy_label import PrivacyLabel, label_of
from deniable_estimator.dashboard.ranges import RangeError, check_names
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.document.document import Document
from deniable_estimator.document.plot.marks import Bars, LineChart
from deniable_estimator.inputs import Asked, Field, InputError, read_form
from deniable_estimator.messages import message
from deniable_estimator.planning.kinds import PLANS, PlanKind, Planned, make
from deniable_estimator.planning.population import zipf_shares

planner = Blueprint("planner", __name__)

LIGHT_SIZE = 100
"""Of longer lists the plan is calculated in another process."""

_LONGEST_EXAMPLE = 10_000
"""An example over a longer list would take seconds."""
_BARS = 12
_SEED = 1
"""The same numbers give the same example, so that a link shows the same page."""


@dataclass(frozen=True)
class Example:
    """One window's reports of simulated devices."""

    estimate: Shares
    chart: Bars | None
    """None if no simulated device reports."""
    found: str


@dataclass(frozen=True)
class PlanPage:
    """What a page of the planner shows."""

    document: Document
    label: PrivacyLabel | None
    reach: LineChart | None = None
    division: LineChart | None = None
    example: Example | None = None


def _page(kind: PlanKind) -> Callable[[], ResponseReturnValue]:
    def planner_page() -> ResponseReturnValue:
        """The form and, if it is filled in as it can be, the results."""
        if kind.name == "values" and "number" in request.args:
            rest: dict[str, Any] = {**request.args.to_dict(), "number": None}
            return redirect(url_for("planner.number", **rest))
        fields, asked = read_form(kind.inputs, request.args)
        outcome, mistake = None, None
        try:
            check_names(request.args, [each.input.name for each in fields])
        except RangeError as error:
            asked, mistake = None, str(keep_form(error))
        if asked is not None:
            try:
                outcome = _calculated(kind, asked)
            except (StillDecoding, TooManyDecodes):
                raise
            except DeniableError as error:
                # What is refused without the name of an input is about the memory of the devices.
                name = error.name if isinstance(error, InputError) else "lifetime_epsilon"
                fields = _marked(fields, name, str(error))
        page = render_template(
            "plan.html",
            kind=kind,
            kinds=PLANS.values(),
            fields=fields,
            outcome=outcome,
            mistake=mistake,
        )
        return page, 200 if outcome is not None else 400

    return planner_page


for _each in PLANS.values():
    planner.add_url_rule(
        "/plan" if _each.name == "values" else f"/plan/{_each.name}", _each.name, _page(_each)
    )


def _marked(fields: list[Field], name: str, mistake: str) -> list[Field]:
    return [replace(each, mistake=mistake) if each.input.name == name else each for each in fields]


def _calculated(kind: PlanKind, asked: Asked) -> PlanPage:
    if kind.size(asked) <= LIGHT_SIZE:
        return _outcome(kind.name, asked)
    key = digest("planner", kind.name, *sorted(asked.items(), key=str))
    return current_source().calculate(key, _outcome, kind.name, asked)


def _outcome(kind: str, asked: Asked) -> PlanPage:
    planned = make(kind, asked)
    about = planned.document.about
    page = PlanPage(planned.document, None if planned.metric is None else label_of(planned.metric))
    if kind == "lifetime":
        return replace(page, division=division_chart(about["choices"], about["best"]))
    return _pictured(page, planned) if kind == "values" and planned.metric else page


def _pictured(page: PlanPage, planned: Planned) -> PlanPage:
    """The page with the reach of a list of values, and an example."""
    assert planned.metric is not None
    size, devices, rate = (
        planned.document.about[name] for name in ("size", "devices", "sample_rate")
    )
    mechanism = planned.metric.scheme.oracle
    return replace(
        page,
        reach=reach_chart(mechanism, size, rate, devices),
        example=_example(mechanism, size, devices, rate) if size <= _LONGEST_EXAMPLE else None,
    )


def _example(mechanism: Mechanism[Any], size: int, devices: int, rate: float) -> Example:
    """One window's reports of simulated devices, whose shares are proportional to 1 / rank."""
    rng = np.random.default_rng(_SEED)
    values = tuple(message("value {rank}", rank=rank) for rank in range(1, size + 1))
    scheme = Scheme("category", mechanism, values)
    counts = rng.multinomial(devices, zipf_shares(size, 1.0))
    answered = estimate(sample_tally(scheme, rng.binomial(counts, rate), rng), scheme)
    if not answered.n:
        return Example(answered, None, message("In this window no device reports at all."))
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
    return Example(answered, replace(chart, title=message("simulated: estimated shares")), found)
