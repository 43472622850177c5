"""The planner's pages: what a metric can detect, before it is declared, one for each kind.

The axes of their charts are all logarithmic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from deniable import DeniableError, Scheme
from deniable.protocol.mechanisms import FrequencyOracle, Mechanism
from deniable_estimator.analyses import sample_tally
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes, key_of
from deniable_estimator.dashboard.pages import keep_form
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.document.document import Frame, Picture
from deniable_estimator.document.plot.lines import path
from deniable_estimator.document.plot.marks import DrawnLine, LineChart, RuleLine, Spot
from deniable_estimator.document.plot.scales import Tick, log_levels
from deniable_estimator.errors import EstimateError
from deniable_estimator.inputs import Asked, InputError, read_form, unknown_names
from deniable_estimator.kinds import PLANS, make_plan
from deniable_estimator.kinds.formats import share_text
from deniable_estimator.kinds.kind import Shown
from deniable_estimator.kinds.lifetime.crowd import LifetimeChoice
from deniable_estimator.kinds.registry import answer_of
from deniable_estimator.kinds.shares.charts import bar_chart
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import counted, message, spaced
from deniable_estimator.planning.inputs import PlanKind
from deniable_estimator.planning.population import zipf_shares
from deniable_estimator.privacy.computing import guarantee
from deniable_estimator.statistics.detection import detectable_share

planner = Blueprint("planner", __name__)

LIGHT_SIZE = 100
"""Of longer lists the plan is calculated in another process."""

_LONGEST_EXAMPLE = 10_000
"""An example over a longer list would take seconds."""
_BARS = 12
_SEED = 1
"""The same numbers give the same example, so that a link shows the same page."""


def planner_page(kind: str) -> ResponseReturnValue:
    """The form and, if it is filled in as it can be, the results."""
    plan = PLANS[kind]
    fields, asked = read_form(plan.inputs, request.args)
    outcome = None
    unknown = spaced(unknown_names(request.args, [each.input.name for each in fields]))
    mistake = str(keep_form(EstimateError(unknown))) if unknown else None
    try:
        outcome = None if unknown or not asked else _calculated(plan, asked)
    except (StillDecoding, TooManyDecodes):
        raise
    except DeniableError as error:
        # What is refused without the name of an input is about the memory of the devices.
        name = error.name if isinstance(error, InputError) else "lifetime_epsilon"
        fields = [
            replace(each, mistake=str(error)) if each.input.name == name else each
            for each in fields
        ]
    page = render_template(
        "plan.html",
        kind=plan,
        kinds=PLANS.values(),
        fields=fields,
        outcome=outcome,
        mistake=mistake,
    )
    return page, 200 if outcome else 400


for _kind in PLANS:
    _path = "/plan" if _kind == "values" else f"/plan/{_kind}"
    planner.add_url_rule(_path, _kind, partial(planner_page, _kind))


def _calculated(kind: PlanKind, asked: Asked) -> dict[str, Any]:
    if kind.size(asked) <= LIGHT_SIZE:
        return _outcome(kind.name, asked)
    key = key_of("planner", kind.name, *sorted(asked.items(), key=str))
    return current_source().calculate(key, _outcome, kind.name, asked)


def _outcome(kind: str, asked: Asked) -> dict[str, Any]:
    """What the page of a plan shows: its document with more frames before those that it has, its
    label, and examples."""
    planned = make_plan(kind, asked)
    document, metric = planned.document, planned.metric
    about, drawn, examples = document.about, [], []
    if kind == "lifetime":
        told = message(
            "Compared with the best choice. Both axes are logarithmic. Dashed: one report has more "
            "than epsilon {epsilon}, so it hides little.",
            epsilon=f"{about['most_epsilon']:g}",
        )
        drawn = [_charted(division_chart(about["choices"], about["best"]), told)]
    elif kind == "values" and metric is not None:
        size, devices, rate = (about[name] for name in ("size", "devices", "sample_rate"))
        told = message(
            "Detected with power 0.8 among all {size} values at once, in one window. Both axes are "
            "logarithmic.",
            size=f"{size:,}",
        )
        drawn = [_charted(reach_chart(metric.scheme.oracle, size, rate, devices), told)]
        if size <= _LONGEST_EXAMPLE:
            examples = [_example(metric.scheme.oracle, size, devices, rate)]
    return {
        "document": replace(document, frames=(*drawn, *document.frames)),
        "label": None if metric is None else guarantee(metric),
        "mechanism": None if metric is None else metric.scheme.mechanism,
        "examples": examples,
    }


def _charted(chart: LineChart, told: str) -> Frame:
    """A chart with a sentence about how it is to be read."""
    return Frame(chart.name, chart.title, pictures=(Picture(chart, notes=(told,)),))


def _example(mechanism: Mechanism[Any], size: int, devices: int, rate: float) -> Frame:
    """One window's reports of simulated devices, whose shares are proportional to 1 / rank."""
    rng = np.random.default_rng(_SEED)
    values = tuple(message("value {rank}", rank=rank) for rank in range(1, size + 1))
    scheme = Scheme("category", mechanism, values)
    counts = rng.multinomial(devices, zipf_shares(size, 1.0))
    answered = answer_of(sample_tally(scheme, rng.binomial(counts, rate), rng), scheme)
    assert isinstance(answered, Shares)
    frame = Frame("example", message("One window of simulated devices"))
    falling = message(
        "{n} devices report. The true shares fall as 1, 1/2, 1/3 and so on.", n=f"{answered.n:,}"
    )
    if not answered.n:
        found = message("In this window no device reports at all.")
        return replace(frame, subtitle=found, notes=(falling,))
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
    chart = bar_chart(answered, Shown(rows=0, truth=truth), limit=_BARS)
    chart = replace(chart, title=message("simulated: estimated shares"))
    shown = message("The {shown} largest estimates are shown.", shown=len(chart.rows))
    legend = (
        ("bar", message("estimate")),
        ("truth", message("true share")),
        ("bar noise", message("cannot be told from noise")),
    )
    told = spaced((falling, shown)) if chart.more else falling
    picture = Picture(chart, legend=legend, notes=(told,))
    return replace(frame, subtitle=found, pictures=(picture,))


HEIGHT = 240
_DECADES = 6
_STEPS = 20
"""Corners of the curve in each decade."""
_ROOM = 12.0
"""Percent of the plot that a number below the axis needs, on a phone."""


def reach_chart(
    mechanism: FrequencyOracle[Any], size: int, sample_rate: float, devices: int
) -> LineChart:
    """The smallest detectable share around so many devices, each of which reports at
    `sample_rate`."""
    middle = round(math.log10(devices))
    first = max(1, middle - _DECADES // 2)
    corners = []
    for step in range(_DECADES * _STEPS + 1):
        exponent = first + step / _STEPS
        share = detectable_share(mechanism, size, 10**exponent * sample_rate)
        if share is not None:
            corners.append((step / _STEPS / _DECADES, share))
    lowest = math.floor(math.log10(min((share for _, share in corners), default=0.01)))

    def down(share: float) -> float:
        return round(math.log10(share) / lowest * HEIGHT, 1)

    chosen = detectable_share(mechanism, size, devices * sample_rate)
    label = message("nothing") if chosen is None else share_text(chosen)
    at = round((math.log10(devices) - first) / _DECADES * 100, 2)
    top = 0.0 if chosen is None else down(chosen)
    curve = _curve([(x * 100, down(share)) for x, share in corners])
    return LineChart(
        form="reach",
        name="reach",
        title=message("Smallest detectable share, by number of devices"),
        description=counted(
            "With {count:,} device: {share}.",
            "With {count:,} devices: {share}.",
            devices,
            share=label,
        ),
        height=HEIGHT,
        lines=(DrawnLine(paths=(curve,)),) if corners else (),
        levels=tuple(
            Tick(down(10.0**exponent), share_text(10.0**exponent))
            for exponent in range(0, lowest - 1, -1)
        ),
        ticks=tuple(
            Tick(round(each / _DECADES * 100, 2), _devices_text(first + each))
            for each in range(_DECADES + 1)
        ),
        rules=(RuleLine((at, top), (at, HEIGHT)),),
        spots=() if chosen is None else (Spot(at, top, 5, label),),
    )


def division_chart(found: Sequence[LifetimeChoice], best: LifetimeChoice) -> LineChart:
    """What all windows tell, by number of reports, compared with the best choice. Dashed to the
    choices whose reports have more than the largest advised epsilon."""
    choices = sorted(found, key=lambda each: each.reports)
    first, last = math.log(choices[0].reports), math.log(choices[-1].reports)
    low = math.log(min(each.relative for each in choices) / 1.2)
    high = math.log(max(each.relative for each in choices) * 1.2)

    def across(reports: float) -> float:
        return round((math.log(reports) - first) / max(last - first, 1e-9) * 90 + 8, 2)

    def down(relative: float) -> float:
        return round((high - math.log(relative)) / (high - low) * HEIGHT, 1)

    beyond = [each for each in choices if not each.advised]
    within = [each for each in choices if each.advised]
    label = counted(
        "{count} report, ε {epsilon:g}",
        "{count} reports, ε {epsilon:g}",
        best.reports,
        epsilon=best.epsilon,
    )

    def line(some: Sequence[LifetimeChoice], *, dashed: bool) -> list[DrawnLine]:
        corners = [(across(each.reports), down(each.relative)) for each in some]
        return [DrawnLine(paths=(_curve(corners),), dashed=dashed)] if len(corners) > 1 else []

    return LineChart(
        form="reach",
        name="division",
        title=message("What all windows tell, by number of reports"),
        description=message("The best: {choice}.", choice=label),
        height=HEIGHT,
        lines=(*line([*beyond, *within[:1]], dashed=True), *line(within, dashed=False)),
        levels=tuple(
            Tick(down(part), f"{100 * part:g}%")
            for part, _ in log_levels(math.exp(low), math.exp(high))
        ),
        ticks=tuple(
            Tick(across(count), f"{count:,}")
            for count in _spread([each.reports for each in choices], across)
        ),
        spots=tuple(
            Spot(across(each.reports), down(each.relative), 6, label)
            if each == best
            else Spot(across(each.reports), down(each.relative), 3)
            for each in choices
        ),
    )


def _curve(corners: Sequence[tuple[float, float]]) -> str:
    return path([f"{10 * x:.1f}" for x, _ in corners], [y for _, y in corners])


def _devices_text(exponent: int) -> str:
    for power, unit in ((9, "B"), (6, "M"), (3, "k")):
        if exponent >= power:
            return f"{10 ** (exponent - power)}{unit}"
    return str(10**exponent)


def _spread(counts: Sequence[int], across: Callable[[float], float]) -> list[int]:
    """Those that have room below the axis; the first and the last are always among them."""
    shown = [counts[-1]]
    for count in reversed(counts[:-1]):
        if across(shown[0]) - across(count) >= _ROOM:
            shown.insert(0, count)
    return [counts[0], *shown[1:]] if len(shown) > 1 else list(dict.fromkeys((counts[0], *shown)))
