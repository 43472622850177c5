"""The read API: what the pages show, for programs, under /api/v1 (docs/api.md, openapi.json).

Here are its addresses; each file has the responses of some of them.
"""

from __future__ import annotations

from pathlib import Path

from flask import Blueprint, Response
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from deniable_estimator.dashboard.api.annotations import list_annotations
from deniable_estimator.dashboard.api.declared import metric, metrics, overview
from deniable_estimator.dashboard.api.discovered import finds, finds_trend
from deniable_estimator.dashboard.api.estimates import anomalies, comparison, estimate, trend
from deniable_estimator.dashboard.api.plans import plan, plan_lifetime, plan_number, plan_pair
from deniable_estimator.dashboard.api.releases import list_releases, show_release
from deniable_estimator.dashboard.api.revealed import (
    metric_outsider,
    metric_privacy,
    outsider,
    privacy,
)
from deniable_estimator.dashboard.api.segmented import segments, segments_trend
from deniable_estimator.dashboard.api.settled import tell_settled

__all__ = ["api"]

api = Blueprint("api", __name__, url_prefix="/api/v1")


def openapi() -> ResponseReturnValue:
    """The description of this API; nothing in it is secret."""
    text = Path(__file__).with_name("openapi.json").read_text(encoding="utf-8")
    return Response(text, mimetype="application/json")


def nowhere(unknown: str) -> ResponseReturnValue:
    """The response for unknown addresses."""
    raise NotFound("There is no such address. /api/v1/openapi.json lists all there are.")


api.add_url_rule("/openapi.json", "openapi", openapi)
api.add_url_rule("/metrics", "metrics", metrics)
api.add_url_rule("/overview", "overview", overview)
api.add_url_rule("/metrics/<name>", "metric", metric)
api.add_url_rule("/metrics/<name>/estimate", "estimate", estimate, methods=["GET", "POST"])
api.add_url_rule("/metrics/<name>/segments", "segments", segments, methods=["GET", "POST"])
api.add_url_rule("/metrics/<name>/segments/trend", "segments_trend", segments_trend)
api.add_url_rule("/metrics/<name>/finds", "finds", finds)
api.add_url_rule("/metrics/<name>/finds/trend", "finds_trend", finds_trend)
api.add_url_rule("/metrics/<name>/anomalies", "anomalies", anomalies)
api.add_url_rule("/metrics/<name>/trend", "trend", trend, methods=["GET", "POST"])
api.add_url_rule("/metrics/<name>/comparison", "comparison", comparison, methods=["GET", "POST"])
api.add_url_rule("/annotations", "annotations", list_annotations)
api.add_url_rule("/releases", "releases", list_releases)
api.add_url_rule("/releases/<release>", "release", show_release)
api.add_url_rule("/metrics/<name>/privacy", "metric_privacy", metric_privacy)
api.add_url_rule("/privacy", "privacy", privacy)
api.add_url_rule("/metrics/<name>/privacy/outsider", "metric_outsider", metric_outsider)
api.add_url_rule("/privacy/outsider", "outsider", outsider)
api.add_url_rule("/plan", "plan", plan)
api.add_url_rule("/plan/number", "plan_number", plan_number)
api.add_url_rule("/plan/pair", "plan_pair", plan_pair)
api.add_url_rule("/plan/lifetime", "plan_lifetime", plan_lifetime)
api.add_url_rule("/<path:unknown>", "nowhere", nowhere)
api.after_request(tell_settled)
