"""Errors as RFC 9457 describes them: application/problem+json, for every status."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path

from flask import Flask, Response
from werkzeug.exceptions import HTTPException

from hearsay_collector.bodies import IntakeError
from hearsay_collector.stores.base import StoreError, StoreUnavailable

__all__ = ["handle_errors"]

_log = logging.getLogger("hearsay_collector")


def handle_errors(app: Flask) -> None:
    """Answer every error of the app with a problem document."""
    app.register_error_handler(IntakeError, _intake_error)
    app.register_error_handler(StoreError, _store_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unexpected)


def _problem(code: str, status: int, title: str, detail: str) -> Response:
    document = {
        "type": f"urn:hearsay:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    return Response(json.dumps(document), status, content_type="application/problem+json")


def _intake_error(error: IntakeError) -> Response:
    return _problem(error.code, error.status, error.title, str(error))


def _store_error(error: StoreError) -> Response:
    _log.error("store: %s", error)
    if isinstance(error, StoreUnavailable):
        response = _problem(
            "store-unavailable",
            503,
            "Store unavailable",
            "nothing of this batch is lost while you keep it: send it again later, unchanged",
        )
        response.headers["Retry-After"] = str(max(1, round(error.retry_after)))
        return response
    return _problem(
        "store-refused",
        500,
        "Store refused",
        "the operator finds the reason in the collector's log",
    )


def _http_error(error: HTTPException) -> Response:
    status = error.code or 500
    response = _problem(f"http-{status}", status, error.name, _DETAILS.get(status, error.name))
    for name, value in error.get_headers():
        if name in ("Allow", "Retry-After"):
            response.headers[name] = value
    return response


_DETAILS = {
    404: "there is nothing at this path",
    405: "this path does not take this method: see the Allow header",
    413: "the body is larger than the collector takes: send several batches",
    415: "send Content-Type: application/json",
}


def _unexpected(error: Exception) -> Response:
    # Neither the message nor the values of a traceback: both may hold what was sent.
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{Path(each.filename).name}:{each.lineno}" for each in frames[::-1])
    _log.error("unexpected %s at %s", type(error).__name__, places)
    return _problem(
        "internal", 500, "Internal error", "the collector has a bug; the batch may be sent again"
    )
