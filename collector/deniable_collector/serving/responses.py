"""The collector's responses, and their bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from deniable_collector.batches.batch import Receipt

__all__ = ["SECURITY_HEADERS", "HttpResponse", "accepted", "head", "wire"]

SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""The headers of every response, unless it overrides them."""

_AUTHENTICATE = 'Bearer realm="deniable"'
"""The WWW-Authenticate header of a 401 (RFC 9110, 11.6.1)."""


class HttpResponse(NamedTuple):
    """One HTTP response; `retry_after` is in seconds."""

    status: int
    body: bytes
    content_type: str = "application/json"
    retry_after: float | None = None


_PLAIN = b'{"batch": "%s", "accepted": %d, "duplicate": %d, "rejected": [], "refused": {}}'


@lru_cache(maxsize=64)
def head(
    content_type: str, retry_after: float | None, status: int = 0
) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of a response, except for its length; names in lower case."""
    headers = [(b"content-type", content_type.encode())]
    headers += [(name.lower().encode(), text.encode()) for name, text in SECURITY_HEADERS.items()]
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(1, round(retry_after))))
    if status == 401:
        headers.append((b"www-authenticate", _AUTHENTICATE.encode()))
    return tuple(headers)


def accepted(receipt: Receipt) -> HttpResponse:
    """202: the batch is folded, and this is what was counted of it."""
    if not receipt.refused:
        # Nearly every batch: its id is hexadecimal, so nothing is left to be escaped.
        return HttpResponse(
            202, _PLAIN % (receipt.batch.encode(), receipt.accepted, receipt.duplicate)
        )
    document: dict[str, object] = {
        "batch": receipt.batch,
        "accepted": receipt.accepted,
        "duplicate": receipt.duplicate,
        "rejected": [vars(rejection) for rejection in receipt.rejected],
        "refused": dict(receipt.refused),
    }
    return HttpResponse(202, json.dumps(document).encode())


def wire(
    response: HttpResponse, keep_alive: bool, given: Iterable[tuple[bytes, bytes]] = ()
) -> bytes:
    """A response in HTTP/1.1; `given` are the headers that the server adds to every one."""
    start = _start(response.status, response.content_type, response.retry_after, keep_alive, *given)
    return b"%s%d\r\n\r\n%s" % (start, len(response.body), response.body)


@lru_cache(maxsize=64)
def _start(
    status: int,
    content_type: str,
    retry_after: float | None,
    keep_alive: bool,
    *given: tuple[bytes, bytes],
) -> bytes:
    lines = [b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode())]
    lines += [b"%s: %s" % each for each in (*given, *head(content_type, retry_after, status))]
    if not keep_alive:
        lines.append(b"connection: close")
    return b"\r\n".join([*lines, b"content-length: "])
