"""The read API: what the pages show, for programs, under /api/v1 (docs/reference/http.md).

Here are its addresses; each file has the responses of some of them, and `description.py` describes
all of them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from flask import Blueprint, Response, request
from werkzeug.exceptions import NotFound

from deniable_estimator.dashboard.access.caller import reads_settled, require
from deniable_estimator.dashboard.access.roles import Role, grant
from deniable_estimator.dashboard.api.description import Endpoint, describe
from deniable_estimator.dashboard.api.designs import (
    metric_outsider,
    metric_privacy,
    outsider,
    plans,
    privacy,
)
from deniable_estimator.dashboard.api.estimates import (
    anomalies,
    comparison,
    estimate,
    finds,
    finds_trend,
    segments,
    segments_trend,
    trend,
)
from deniable_estimator.dashboard.api.metrics import metric, metrics, overview
from deniable_estimator.dashboard.api.parameters import read_parameters
from deniable_estimator.dashboard.api.records import list_annotations, list_releases, show_release
from deniable_estimator.dashboard.api.representations import form_of
from deniable_estimator.dashboard.calculations import to_json
from deniable_estimator.dashboard.source import current_source

__all__ = ["ENDPOINTS", "api"]

api = Blueprint("api", __name__, url_prefix="/api/v1")

_METRICS, _ESTIMATES, _RELEASES = "read:metrics", "read:estimates", "read:releases"
_NAMED = "/metrics/<name>"
_ANALYST = Role.ANALYST

ENDPOINTS = (
    Endpoint("/metrics", metrics, _METRICS, "List", csv=True),
    Endpoint("/overview", overview, _ESTIMATES, "Overview", csv=True),
    Endpoint(_NAMED, metric, _METRICS, "Metric"),
    Endpoint(f"{_NAMED}/estimate", estimate, _ESTIMATES, "Estimate", csv=True, sends=True),
    Endpoint(
        f"{_NAMED}/segments", segments, _ESTIMATES, "Segments", csv=True, sends=True, errors=(409,)
    ),
    Endpoint(
        *(f"{_NAMED}/segments/trend", segments_trend, _ESTIMATES, "SegmentTrends"),
        csv=True, errors=(409,),
    ),
    Endpoint(f"{_NAMED}/anomalies", anomalies, _ESTIMATES, "Anomalies"),
    Endpoint(f"{_NAMED}/trend", trend, _ESTIMATES, "Trend", csv=True, sends=True),
    Endpoint(
        *(f"{_NAMED}/comparison", comparison, _ESTIMATES, "Comparison"),
        role=_ANALYST, csv=True, sends=True,
    ),
    Endpoint(f"{_NAMED}/finds", finds, _ESTIMATES, "Finds", csv=True, errors=(409,)),
    Endpoint(f"{_NAMED}/finds/trend", finds_trend, _ESTIMATES, "Trend", csv=True, errors=(409,)),
    Endpoint("/annotations", list_annotations, _ESTIMATES, "Annotations", csv=True, errors=(404,)),
    Endpoint("/releases", list_releases, _RELEASES, "Releases", csv=True, errors=(404, 409)),
    Endpoint("/releases/<release>", show_release, _RELEASES, "Release", csv=True, errors=(409,)),
    Endpoint(f"{_NAMED}/privacy", metric_privacy, _METRICS, "Guarantee"),
    Endpoint("/privacy", privacy, _METRICS, "Together"),
    Endpoint(f"{_NAMED}/privacy/outsider", metric_outsider, _METRICS, "Outsider"),
    Endpoint("/privacy/outsider", outsider, _METRICS, "Outsider", errors=(404,)),
    *(Endpoint(path, plan, "plan", reply, role=_ANALYST) for path, plan, reply in plans()),
)  # fmt: skip


def _add(endpoint: Endpoint) -> None:
    parameters = endpoint.parameters

    def respond(**named: str) -> Response:
        require(endpoint.scope)
        asked = read_parameters(parameters, request.args)
        return endpoint.respond(asked, form_of(asked.format, asked.raw, *endpoint.forms), **named)

    grant(endpoint.role, f"GET api.{endpoint.name}")
    if endpoint.sends:
        # To POST is to send a list of strings.
        grant(_ANALYST, f"POST api.{endpoint.name}")
    methods = ["GET", "POST"] if endpoint.sends else ["GET"]
    api.add_url_rule(endpoint.path, endpoint.name, respond, methods=methods)


@lru_cache
def _description() -> str:
    return to_json(describe(ENDPOINTS))


@api.get("/openapi.json")
def openapi() -> Response:
    """The description of this API; nothing in it is secret."""
    return Response(_description(), mimetype="application/json")


for _each in ENDPOINTS:
    _add(_each)


@api.get("/<path:unknown>")
def nowhere(unknown: str) -> Response:
    """The response for unknown addresses."""
    raise NotFound("There is no such address. /api/v1/openapi.json lists all there are.")


@api.after_request
def _tell_settled(response: Response) -> Response:
    """Tell programs whose token sees settled windows alone the last day (UTC) of these: later
    windows still take reports, and are left out without another word."""
    if reads_settled():
        last = datetime.fromtimestamp(current_source().seen_until - 86_400, UTC).date()
        response.headers["Deniable-Settled"] = last.isoformat()
    return response
