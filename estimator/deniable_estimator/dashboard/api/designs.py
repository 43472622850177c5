"""What follows from how metrics are declared, without any report: what reports reveal of a device
and what published sums do, and what a metric can detect before it is declared."""

from __future__ import annotations

from flask import Response
from werkzeug.exceptions import NotFound

from deniable import Metric
from deniable_estimator.asking.results import key_of
from deniable_estimator.dashboard.access.caller import require_all
from deniable_estimator.dashboard.access.people import Role
from deniable_estimator.dashboard.api import parameters as takes
from deniable_estimator.dashboard.api.description import METRICS, NAMED, endpoint
from deniable_estimator.dashboard.api.representations import Form, respond
from deniable_estimator.dashboard.calculations import json_text, outsider_text, plan_text
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.document.document import plain
from deniable_estimator.inputs import Asked
from deniable_estimator.kinds import PLANS
from deniable_estimator.planning.inputs import PlanKind
from deniable_estimator.privacy.computing import all_together, guarantee_in


@endpoint(f"{NAMED}/privacy", METRICS, "Guarantee", takes.PRIVACY)
def metric_privacy(asked: Asked, form: Form, reading: PageReading) -> Response:
    """What the reports of one metric can reveal about a device."""
    metric, registry = reading.metric, reading.source.registry
    in_place = registry.unasked.get(metric.name)
    about = registry.about(in_place or metric)
    parts = (metric, registry.lifetime_epsilon, asked["household"], about, in_place)
    return respond(
        form, parts, lambda: json_text(guarantee_in(registry, metric, asked["household"]).to_dict())
    )


@endpoint("/privacy", METRICS, "Together", takes.PRIVACY)
def privacy(asked: Asked, form: Form) -> Response:
    """What the reports of all metrics together can reveal about a device."""
    registry = current_source().registry
    require_all(METRICS)
    parts = (list(registry), registry.lifetime_epsilon, asked["household"])
    return respond(
        form, parts, lambda: json_text(plain(all_together(registry, asked["household"])))
    )


@endpoint(f"{NAMED}/privacy/outsider", METRICS, "Outsider", takes.OUTSIDER)
def metric_outsider(asked: Asked, form: Form, reading: PageReading) -> Response:
    """What published sums of one metric reveal of a device to a reader who sees nothing else."""
    return _outsider([reading.metric], reading.metric.name, asked, form)


@endpoint("/privacy/outsider", METRICS, "Outsider", takes.OUTSIDER, errors=(404,))
def outsider(asked: Asked, form: Form) -> Response:
    """What published sums of all metrics together reveal of a device."""
    metrics = list(current_source().registry)
    require_all(METRICS)
    if not metrics:
        raise NotFound("The registry declares no metric, so there is nothing to publish.")
    return _outsider(metrics, None, asked, form)


def _outsider(metrics: list[Metric], name: str | None, asked: Asked, form: Form) -> Response:
    """The response with what published sums reveal. It takes up to some seconds, so another
    process finds it."""
    source = current_source()
    registry = source.registry
    in_place = [registry.unasked.get(each.name) for each in metrics]
    parts = (metrics, in_place, registry.lifetime_epsilon, name, asked)
    wanted = (outsider_text, registry, name, asked["reports"], asked["delta"])
    return respond(form, parts, lambda: source.calculate(key_of("outsider", parts), *wanted))


def _offer(kind: PlanKind) -> None:
    """Offer the address of a kind of plan."""
    values = kind.name == "values"

    def plan(asked: Asked, form: Form) -> Response:
        given = {each.name: asked.get(each.name, each.default) for each in kind.inputs}
        wanted = (kind.size(given), ("plan", kind.name, asked), plan_text, kind.name, given)
        return respond(form, asked, lambda: current_source().written(*wanted))

    plan.__name__ = "plan" if values else f"plan_{kind.name}"
    plan.__doc__ = str(kind.title)
    path, reply = (
        ("/plan", "Plan") if values else (f"/plan/{kind.name}", kind.name.title() + "Plan")
    )
    endpoint(
        path,
        "plan",
        reply,
        [each for each in kind.inputs if "api" in each.places],
        role=Role.ANALYST,
    )(plan)


for _each in PLANS.values():
    _offer(_each)
