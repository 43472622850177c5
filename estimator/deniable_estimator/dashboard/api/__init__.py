"""The read API: what the pages show, for programs, under /api/v1 (docs/reference/http.md).

Here are its addresses; each file has the responses of some of them, and `description.py` describes
all of them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from flask import Blueprint, Response, request
from werkzeug.exceptions import NotFound

from deniable_estimator.dashboard.access.caller import require, require_role, token_shown
from deniable_estimator.dashboard.api import designs, estimates, metrics, records
from deniable_estimator.dashboard.api.description import ENDPOINTS, Endpoint, describe
from deniable_estimator.dashboard.api.parameters import asked_reading
from deniable_estimator.dashboard.api.representations import form_of
from deniable_estimator.dashboard.calculations import json_text
from deniable_estimator.dashboard.source import current_source, declared_metric
from deniable_estimator.inputs import read_inputs

__all__ = ["ENDPOINTS", "api", "designs", "estimates", "metrics", "records"]

api = Blueprint("api", __name__, url_prefix="/api/v1")


def _add(endpoint: Endpoint) -> None:
    def respond(**named: str) -> Response:
        require_role(endpoint.role)
        require(endpoint.scope)
        asked = read_inputs(endpoint.takes, request.args, blank=False)
        form = form_of(asked["format"], asked["raw"], *endpoint.forms)
        if "name" not in named:
            return endpoint.respond(asked, form, **named)
        metric = declared_metric(named["name"])
        require(endpoint.scope, metric)
        return endpoint.respond(asked, form, asked_reading(metric, asked))

    # To POST is to send a list of strings.
    methods = ["GET", "POST"] if endpoint.sends else ["GET"]
    api.add_url_rule(endpoint.path, endpoint.name, respond, methods=methods)


@lru_cache
def _description() -> str:
    return json_text(describe())


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
    if token_shown().settled:
        last = datetime.fromtimestamp(current_source().seen_until - 86_400, UTC).date()
        response.headers["Deniable-Settled"] = last.isoformat()
    return response
