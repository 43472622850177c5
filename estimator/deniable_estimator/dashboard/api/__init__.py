"""The read API: what the pages show, for programs, under /api/v1 (docs/reference/http.md).

Here are its addresses; each file has the responses of some of them, and `description.py` describes
all of them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from deniable_estimator.dashboard.access import reads_settled, require
from deniable_estimator.dashboard.api import parameters as takes
from deniable_estimator.dashboard.api.annotations import list_annotations
from deniable_estimator.dashboard.api.declared import metric, metrics, overview
from deniable_estimator.dashboard.api.description import Endpoint, describe
from deniable_estimator.dashboard.api.discovered import finds, finds_trend
from deniable_estimator.dashboard.api.estimates import anomalies, comparison, estimate, trend
from deniable_estimator.dashboard.api.plans import plan_endpoints
from deniable_estimator.dashboard.api.releases import list_releases, show_release
from deniable_estimator.dashboard.api.representations import Form, form_of
from deniable_estimator.dashboard.api.revealed import (
    metric_outsider,
    metric_privacy,
    outsider,
    privacy,
)
from deniable_estimator.dashboard.api.segmented import segments, segments_trend
from deniable_estimator.dashboard.calculations import to_json
from deniable_estimator.dashboard.source import current_source

__all__ = ["ENDPOINTS", "api"]

api = Blueprint("api", __name__, url_prefix="/api/v1")

_METRICS, _ESTIMATES, _RELEASES = "read:metrics", "read:estimates", "read:releases"
_BOTH: tuple[Form, ...] = ("json", "csv")
_NAMED = "/metrics/<name>"

ENDPOINTS = (
    Endpoint("/metrics", metrics, _METRICS, takes.ListParameters, "List", _BOTH),
    Endpoint("/overview", overview, _ESTIMATES, takes.OverviewParameters, "Overview", _BOTH),
    Endpoint(_NAMED, metric, _METRICS, takes.DeclaredParameters, "Metric"),
    Endpoint(
        *(f"{_NAMED}/estimate", estimate, _ESTIMATES, takes.EstimateParameters, "Estimate"),
        forms=_BOTH, sends=True,
    ),
    Endpoint(
        *(f"{_NAMED}/segments", segments, _ESTIMATES, takes.SegmentsParameters, "Segments"),
        forms=_BOTH, sends=True, errors=(409,),
    ),
    Endpoint(
        *(f"{_NAMED}/segments/trend", segments_trend, _ESTIMATES),
        *(takes.SegmentsTrendParameters, "SegmentTrends", _BOTH), errors=(409,),
    ),
    Endpoint(f"{_NAMED}/anomalies", anomalies, _ESTIMATES, takes.AnomaliesParameters, "Anomalies"),
    Endpoint(
        *(f"{_NAMED}/trend", trend, _ESTIMATES, takes.TrendParameters, "Trend"),
        forms=_BOTH, sends=True,
    ),
    Endpoint(
        *(f"{_NAMED}/comparison", comparison, _ESTIMATES, takes.ComparisonParameters),
        *("Comparison", _BOTH), sends=True,
    ),
    Endpoint(
        *(f"{_NAMED}/finds", finds, _ESTIMATES, takes.FindsParameters, "Finds", _BOTH),
        errors=(409,),
    ),
    Endpoint(
        *(f"{_NAMED}/finds/trend", finds_trend, _ESTIMATES, takes.FindTrendParameters),
        *("Trend", _BOTH), errors=(409,),
    ),
    Endpoint(
        *("/annotations", list_annotations, _ESTIMATES, takes.AnnotationParameters),
        *("Annotations", _BOTH), errors=(404,),
    ),
    Endpoint(
        *("/releases", list_releases, _RELEASES, takes.ReleasesParameters, "Releases", _BOTH),
        errors=(404, 409),
    ),
    Endpoint(
        *("/releases/<release>", show_release, _RELEASES, takes.ReleaseParameters, "Release"),
        forms=_BOTH, errors=(409,),
    ),
    Endpoint(
        *(f"{_NAMED}/privacy", metric_privacy, _METRICS, takes.PrivacyParameters, "Guarantee"),
    ),
    Endpoint("/privacy", privacy, _METRICS, takes.PrivacyParameters, "Together"),
    Endpoint(
        *(f"{_NAMED}/privacy/outsider", metric_outsider, _METRICS),
        *(takes.OutsiderParameters, "Outsider"),
    ),
    Endpoint(
        "/privacy/outsider", outsider, _METRICS, takes.OutsiderParameters, "Outsider", errors=(404,)
    ),
    *plan_endpoints(),
)  # fmt: skip


def _add(endpoint: Endpoint) -> None:
    def respond(**named: str) -> ResponseReturnValue:
        require(endpoint.scope)
        asked = takes.read_parameters(endpoint.parameters, request.args)
        return endpoint.respond(asked, form_of(asked.format, asked.raw, *endpoint.forms), **named)

    methods = ["GET", "POST"] if endpoint.sends else ["GET"]
    api.add_url_rule(endpoint.path, endpoint.name, respond, methods=methods)


@lru_cache
def _description() -> str:
    return to_json(describe(ENDPOINTS))


@api.get("/openapi.json")
def openapi() -> ResponseReturnValue:
    """The description of this API; nothing in it is secret."""
    return Response(_description(), mimetype="application/json")


for _each in ENDPOINTS:
    _add(_each)


@api.get("/<path:unknown>")
def nowhere(unknown: str) -> ResponseReturnValue:
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
