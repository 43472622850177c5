"""The collector's responses, and their bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from http.client import responses
from typing import NamedTuple, TypeAlias

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

    @property
    def length(self) -> int | None:
        """Of its body, as the header has it; 204 has none."""
        return None if self.status == 204 else len(self.body)

    def start(self, keep_alive: bool, given: tuple[tuple[bytes, bytes], ...] = ()) -> bytes:
        """The header up to its length; `given` are lines of this response alone."""
        return _start(self.status, self.content_type, self.retry_after, keep_alive, given)


@lru_cache(maxsize=64)
def _start(
    status: int,
    content_type: str,
    retry_after: float | None,
    keep_alive: bool,
    given: tuple[tuple[bytes, bytes], ...],
) -> bytes:
    lines = [b"HTTP/1.1 %d %b" % (status, responses.get(status, "").encode())]
    lines += [b"%b: %b" % each for each in (*head(content_type, retry_after, status), *given)]
    if not keep_alive:
        lines.append(b"connection: close")
    return b"\r\n".join([*lines, b""])


_PLAIN = b'{"batch": "%s", "accepted": %d, "duplicate": %d, "rejected": [], "refused": {}}'


@lru_cache(maxsize=64)
def head(
    content_type: str, retry_after: float | None, status: int = 0
) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of a response, except for its length; names in lower case."""
    headers = [(b"content-type", content_type.encode())]
    headers += lines_of(SECURITY_HEADERS)
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


def lines_of(headers: Mapping[str, str]) -> tuple[tuple[bytes, bytes], ...]:
    """Headers as they are written, with names in lower case."""
    return tuple((name.lower().encode(), text.encode("latin-1")) for name, text in headers.items())


class WsgiResponse(NamedTuple):
    """What an app answered: the header up to its length, and the body with its length."""

    head: bytes
    body: bytes
    length: int | None

    def start(self, keep_alive: bool, given: tuple[tuple[bytes, bytes], ...]) -> bytes:
        """The header up to its length."""
        return self.head if keep_alive else self.head + b"connection: close\r\n"


Response: TypeAlias = HttpResponse | WsgiResponse
