"""Responses and their bytes, and errors as RFC 9457 describes them: application/problem+json, for
every status."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from http.client import responses
from typing import NamedTuple, TypeAlias

import msgspec

from deniable_collector.batches.batch import Receipt
from deniable_collector.operation.events import tell, tell_unexpected
from deniable_collector.refusals import IntakeError
from deniable_collector.stores.errors import StoreError, StoreUnavailable

_SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every response."""

_AUTHENTICATE = 'Bearer realm="deniable"'
"""The WWW-Authenticate header of a 401 (RFC 9110, 11.6.1)."""

Fields: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Headers; names in lower case."""


class HttpResponse(msgspec.Struct, frozen=True, gc=False):
    """One HTTP response; `retry_after` is in seconds, `cache` is its Cache-Control."""

    status: int
    body: bytes
    content_type: str = "application/json"
    retry_after: float | None = None
    cache: str = "no-store"

    @property
    def length(self) -> int | None:
        """Of its body, as the header has it; 204 and 304 have none."""
        return None if self.status in (204, 304) else len(self.body)

    def start(self, keep_alive: bool, given: Fields = ()) -> bytes:
        """The header up to its length; `given` are lines of this response alone."""
        told = self.content_type, self.retry_after, self.status, self.cache
        return _start(*told, keep_alive, given)


@lru_cache(maxsize=64)
def _start(
    content_type: str,
    retry_after: float | None,
    status: int,
    cache: str,
    keep_alive: bool,
    given: Fields,
) -> bytes:
    lines = [b"HTTP/1.1 %d %b" % (status, responses.get(status, "").encode())]
    lines += [
        b"%b: %b" % each for each in (*head(content_type, retry_after, status, cache), *given)
    ]
    if not keep_alive:
        lines.append(b"connection: close")
    return b"\r\n".join([*lines, b""])


_PLAIN = b'{"batch": "%s", "accepted": %d, "duplicate": %d, "rejected": [], "refused": {}}'


@lru_cache(maxsize=64)
def head(
    content_type: str, retry_after: float | None, status: int = 0, cache: str = "no-store"
) -> Fields:
    """The headers of a response, except for its length; names in lower case."""
    headers = [(b"content-type", content_type.encode()), (b"cache-control", cache.encode())]
    headers += lines_of(_SECURITY_HEADERS)
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(1, round(retry_after))))
    if status == 401:
        headers.append((b"www-authenticate", _AUTHENTICATE.encode()))
    return tuple(headers)


def lines_of(headers: Mapping[str, str]) -> Fields:
    """Headers as they are written, with names in lower case."""
    return tuple((name.lower().encode(), text.encode("latin-1")) for name, text in headers.items())


class WsgiResponse(NamedTuple):
    """What an app answered: the header up to its length, and the body with its length."""

    head: bytes
    body: bytes
    length: int | None

    def start(self, keep_alive: bool, given: Fields) -> bytes:
        """The header up to its length."""
        return self.head if keep_alive else self.head + b"connection: close\r\n"


Response: TypeAlias = HttpResponse | WsgiResponse


counting: list[Callable[[int, str], object]] = []
"""What counts problems, by status and code: `operation.metrics`, in servers that have metrics."""


def problem_of(error: BaseException) -> HttpResponse:
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


def _refusal(error: BaseException) -> IntakeError:
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
    """The response to a batch: 202 with what was counted of it, or why it was not committed."""
    if isinstance(outcome, Exception):
        return problem_of(outcome)
    if not outcome.refused:
        # Nearly every batch: its id is hexadecimal, so nothing is left to be escaped.
        return HttpResponse(
            202, _PLAIN % (outcome.batch.encode(), outcome.accepted, outcome.duplicate)
        )
    document = {
        "batch": outcome.batch,
        "accepted": outcome.accepted,
        "duplicate": outcome.duplicate,
        "rejected": [vars(rejection) for rejection in outcome.rejected],
        "refused": dict(outcome.refused),
    }
    return HttpResponse(202, json.dumps(document).encode())
