"""What the collector answers, apart from the server that sends it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hearsay_collector.intake import Receipt

__all__ = ["SECURITY_HEADERS", "Answer", "accepted"]

SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""What every answer carries, unless it says otherwise."""


@dataclass(frozen=True)
class Answer:
    """One HTTP response; `retry_after` is in seconds."""

    status: int
    body: bytes
    content_type: str = "application/json"
    retry_after: float | None = None


def accepted(receipt: Receipt) -> Answer:
    """202: the batch is folded, and this is what was counted of it."""
    document: dict[str, object] = {
        "batch": receipt.batch,
        "accepted": receipt.accepted,
        "duplicate": receipt.duplicate,
        "rejected": [vars(rejection) for rejection in receipt.rejected],
    }
    if receipt.refused is not None:
        document["refused"] = dict(receipt.refused)
    return Answer(202, json.dumps(document).encode())
