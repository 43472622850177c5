"""`/plan` and what is below it: what a metric can detect, before it is declared."""

from __future__ import annotations

from collections.abc import Callable

from flask.typing import ResponseReturnValue

from deniable_estimator.dashboard.api.description import Endpoint
from deniable_estimator.dashboard.api.parameters import Common, parameters_of
from deniable_estimator.dashboard.api.representations import Form, etag, represent, unchanged
from deniable_estimator.dashboard.calculations import plan_text
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.planning.kinds import PLANS, PlanKind


def _responding(kind: PlanKind) -> Callable[..., ResponseReturnValue]:
    def plan(asked: Common, form: Form) -> ResponseReturnValue:
        tag = etag(form, asked)
        if same := unchanged(tag):
            return same
        given = {each.name: getattr(asked, each.name, each.default) for each in kind.inputs}
        text = current_source().written(
            kind.size(given), ("plan", tag), plan_text, kind.name, given
        )
        return represent(form, text, tag=tag)

    plan.__name__ = "plan" if kind.name == "values" else f"plan_{kind.name}"
    plan.__doc__ = str(kind.title)
    return plan


def plan_endpoints() -> tuple[Endpoint, ...]:
    """The addresses of all kinds of plans."""
    return tuple(
        Endpoint(
            "/plan" if kind.name == "values" else f"/plan/{kind.name}",
            _responding(kind),
            "plan",
            parameters_of(f"{kind.name.title()}PlanParameters", kind.inputs),
            "Plan" if kind.name == "values" else f"{kind.name.title()}Plan",
        )
        for kind in PLANS.values()
    )
