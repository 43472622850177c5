"""What follows from how metrics are declared, without any report: what reports reveal of a device
and what published sums do, and what a metric can detect before it is declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flask import Response
from werkzeug.exceptions import NotFound

from deniable import Metric
from deniable_estimator.asking.results import digest
from deniable_estimator.dashboard.access.caller import require_all
from deniable_estimator.dashboard.api.arguments import asked_metric
from deniable_estimator.dashboard.api.parameters import (
    Common,
    OutsiderParameters,
    PrivacyParameters,
    parameters_of,
)
from deniable_estimator.dashboard.api.representations import Form, respond
from deniable_estimator.dashboard.calculations import outsider_text, plan_text, to_json
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.planning.kinds import PLANS, PlanKind
from deniable_estimator.privacy import guarantee_in, together


def metric_privacy(asked: PrivacyParameters, form: Form, name: str) -> Response:
    """What the reports of one metric can reveal about a device."""
    source, metric = asked_metric(name, "read:metrics")
    registry = source.registry
    in_place = registry.unasked.get(metric.name)
    about = registry.about(in_place or metric)
    parts = (metric, registry.lifetime_epsilon, asked.household, about, in_place)
    return respond(
        form, parts, lambda: to_json(guarantee_in(registry, metric, asked.household).to_dict())
    )


def privacy(asked: PrivacyParameters, form: Form) -> Response:
    """What the reports of all metrics together can reveal about a device."""
    registry = current_source().registry
    require_all("read:metrics")
    parts = (list(registry), registry.lifetime_epsilon, asked.household)
    return respond(form, parts, lambda: to_json(together(registry, asked.household).to_dict()))


def metric_outsider(asked: OutsiderParameters, form: Form, name: str) -> Response:
    """What published sums of one metric reveal of a device to a reader who sees nothing else."""
    _, metric = asked_metric(name, "read:metrics")
    return _outsider([metric], metric.name, asked, form)


def outsider(asked: OutsiderParameters, form: Form) -> Response:
    """What published sums of all metrics together reveal of a device."""
    metrics = list(current_source().registry)
    require_all("read:metrics")
    if not metrics:
        raise NotFound("The registry declares no metric, so there is nothing to publish.")
    return _outsider(metrics, None, asked, form)


def _outsider(
    metrics: list[Metric], name: str | None, asked: OutsiderParameters, form: Form
) -> Response:
    """The response with what published sums reveal. It takes up to some seconds, so another
    process finds it."""
    source = current_source()
    registry = source.registry
    in_place = [registry.unasked.get(each.name) for each in metrics]
    parts = (metrics, in_place, registry.lifetime_epsilon, name, asked)
    wanted = (outsider_text, registry, name, asked.reports, asked.delta)
    return respond(form, parts, lambda: source.calculate(digest("outsider", parts), *wanted))


def plans() -> Iterator[tuple[str, Callable[..., Response], str]]:
    """The address of each kind of plan, what responds there, and the schema of that."""
    for kind in PLANS.values():
        values = kind.name == "values"
        reply = "Plan" if values else f"{kind.name.title()}Plan"
        yield "/plan" if values else f"/plan/{kind.name}", _responding(kind), reply


def _responding(kind: PlanKind) -> Callable[..., Response]:
    def plan(asked: Common, form: Form) -> Response:
        given = {each.name: getattr(asked, each.name, each.default) for each in kind.inputs}
        wanted = (kind.size(given), ("plan", kind.name, asked), plan_text, kind.name, given)
        return respond(form, asked, lambda: current_source().written(*wanted))

    plan.__name__ = "plan" if kind.name == "values" else f"plan_{kind.name}"
    plan.__doc__ = str(kind.title)
    plan.__annotations__["asked"] = parameters_of(kind)
    return plan
