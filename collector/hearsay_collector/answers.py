"""What the collector answers, apart from the server that sends it."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

from hearsay_collector.intake import Receipt

__all__ = ["AUTHENTICATE", "SECURITY_HEADERS", "Answer", "accepted", "head"]

SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""What every answer carries, unless it says otherwise."""

AUTHENTICATE = 'Bearer realm="hearsay"'
"""What WWW-Authenticate says beside a 401 (RFC 9110, 11.6.1)."""


class Answer(NamedTuple):
    """One HTTP response; `retry_after` is in seconds."""

    status: int
    body: bytes
    content_type: str = "application/json"
    retry_after: float | None = None


_PLAIN = b'{"batch": "%s", "accepted": %d, "duplicate": %d, "rejected": []}'


@lru_cache(maxsize=64)
def head(
    content_type: str, retry_after: float | None, status: int = 0
) -> tuple[tuple[bytes, bytes], ...]:
    """What stands in the header of an answer, but for its length; names in lower case."""
    headers = [(b"content-type", content_type.encode())]
    headers += [(name.lower().encode(), text.encode()) for name, text in SECURITY_HEADERS.items()]
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(1, round(retry_after))))
    if status == 401:
        headers.append((b"www-authenticate", AUTHENTICATE.encode()))
    return tuple(headers)


def accepted(receipt: Receipt) -> Answer:
    """202: the batch is folded, and this is what was counted of it."""
    if not receipt.rejected and receipt.refused is None:
        # Nearly every batch: its id is hexadecimal, so nothing is left to be escaped.
        numbers = receipt.accepted, receipt.duplicate
        return Answer(202, _PLAIN % (receipt.batch.encode(), *numbers))
    document: dict[str, object] = {
        "batch": receipt.batch,
        "accepted": receipt.accepted,
        "duplicate": receipt.duplicate,
        "rejected": [vars(rejection) for rejection in receipt.rejected],
    }
    if receipt.refused is not None:
        document["refused"] = dict(receipt.refused)
    return Answer(202, json.dumps(document).encode())
