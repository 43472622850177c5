"""Errors as RFC 9457 describes them: application/problem+json, for every status."""

from __future__ import annotations

import json
from collections.abc import Callable

from deniable_collector.batches.batch import Receipt
from deniable_collector.operation.events import tell, tell_unexpected
from deniable_collector.refusals import IntakeError
from deniable_collector.serving.responses import HttpResponse, accepted
from deniable_collector.stores.errors import StoreError, StoreUnavailable

counting: list[Callable[[int, str], object]] = []
"""What counts problems, by status and code: `operation.metrics`, in servers that have metrics."""


def problem_of(error: Exception) -> HttpResponse:
    """The response for an exception, about to be sent, which is also counted; what the operator
    must know is logged."""
    if not isinstance(error, IntakeError):
        error = _refusal(error)
    for count in counting:
        count(error.status, error.code)
    document = {
        "type": f"urn:deniable:problem:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": str(error),
    }
    body = json.dumps(document).encode()
    return HttpResponse(error.status, body, "application/problem+json", error.retry_after)


def _refusal(error: Exception) -> IntakeError:
    """What a sender is told of an exception that is no refusal."""
    if isinstance(error, StoreUnavailable):
        told = "nothing of this batch is lost while you keep it: send it again later, unchanged"
        return IntakeError("store-unavailable", told, error.retry_after)
    if isinstance(error, StoreError):
        tell("error", "store-refused", str(error))
        told = "the operator finds the reason in the collector's log"
        return IntakeError("store-refused", told)
    tell_unexpected(error)
    told = "the server has a bug, and its log says where; what you sent may be sent again"
    return IntakeError("internal", told)


def answered(outcome: Receipt | Exception) -> HttpResponse:
    """The response to a batch that was committed, or to why it was not."""
    return accepted(outcome) if isinstance(outcome, Receipt) else problem_of(outcome)
