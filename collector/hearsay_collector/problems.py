"""Errors as RFC 9457 describes them: application/problem+json, for every status."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path

from hearsay_collector.answers import Answer
from hearsay_collector.bodies import IntakeError
from hearsay_collector.stores.base import StoreError, StoreUnavailable

__all__ = ["problem", "problem_of"]

_log = logging.getLogger("hearsay_collector")


def problem(
    code: str, status: int, title: str, detail: str, retry_after: float | None = None
) -> Answer:
    """A problem document."""
    document = {
        "type": f"urn:hearsay:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    body = json.dumps(document).encode()
    return Answer(status, body, "application/problem+json", retry_after)


def problem_of(error: Exception) -> Answer:
    """What to answer when this was raised; what the operator must know of it is logged."""
    if isinstance(error, IntakeError):
        return problem(error.code, error.status, error.title, str(error), error.retry_after)
    if isinstance(error, StoreError):
        _log.error("store: %s", error)
        if isinstance(error, StoreUnavailable):
            return problem(
                "store-unavailable",
                503,
                "Store unavailable",
                "nothing of this batch is lost while you keep it: send it again later, unchanged",
                error.retry_after,
            )
        return problem(
            "store-refused",
            500,
            "Store refused",
            "the operator finds the reason in the collector's log",
        )
    # Neither the message nor the values of a traceback: both may hold what was sent.
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{Path(each.filename).name}:{each.lineno}" for each in frames[::-1])
    _log.error("unexpected %s at %s", type(error).__name__, places)
    return problem(
        "internal", 500, "Internal error", "the collector has a bug; the batch may be sent again"
    )
