"""The collector's responses, and their bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import TypeAlias

import msgspec

from deniable_collector.batches.batch import Receipt

SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""The headers of every response, unless it overrides them."""

_AUTHENTICATE = 'Bearer realm="deniable"'
"""The WWW-Authenticate header of a 401 (RFC 9110, 11.6.1)."""


class HttpResponse(msgspec.Struct, frozen=True, gc=False):
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


_Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

_MOST_STARTS = 64


class _Starts(dict[tuple[object, ...], bytes]):
    """Responses up to their length, all with the same headers in common."""

    def __init__(self, common: _Headers) -> None:
        self.common = common


_starts = _Starts(())


def wire(
    response: HttpResponse,
    keep_alive: bool,
    common: _Headers = (),
    given: tuple[tuple[bytes, bytes], ...] = (),
) -> bytes:
    """A response in HTTP/1.1. `common` are the headers that the server adds to every one: the same
    object until one of them changes. `given` are those of this response."""
    global _starts
    starts = _starts
    if starts.common is not common or len(starts) > _MOST_STARTS:
        starts = _starts = _Starts(common)
    named = response.status, response.content_type, response.retry_after, keep_alive, given
    start = starts.get(named)
    if start is None:
        status = response.status
        lines = [b"HTTP/1.1 %d %s" % (status, HTTPStatus(status).phrase.encode())]
        every = (*common, *given, *head(response.content_type, response.retry_after, status))
        lines += [b"%s: %s" % each for each in every]
        if not keep_alive:
            lines.append(b"connection: close")
        start = starts[named] = b"\r\n".join([*lines, b"content-length: "])
    return b"%s%d\r\n\r\n%s" % (start, len(response.body), response.body)
