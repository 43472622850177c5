"""The way to the collector: POST {endpoint}/v1/reports, and what its reply means.

A transport carries bytes and brings back a reply; `read_reply` says whether the batch
is counted (202), refused for good (4xx) or to be tried again (all else).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from deniable.errors import TransportError

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.request import OpenerDirector, Request

__all__ = ["HttpTransport", "Reply", "Transport", "read_reply", "retry_seconds"]

_LARGEST_REPLY = 1 << 18
_RETRIABLE = (401, 407, 408, 429)
"""The 4xx that may pass; 407 comes from a proxy on the way, not from the collector, and a key
that the collector does not know yet (401) is the operator's to put right."""

_KEY = r"[A-Za-z0-9._~+/-]{16,256}=*"


class Reply(NamedTuple):
    """A collector's reply: HTTP status, body, and the Retry-After header where there is one."""

    status: int
    body: bytes = b""
    retry_after: str | None = None


class Transport(Protocol):
    """Carries one batch to the collector."""

    def send(self, body: bytes) -> Reply:
        """Deliver a batch and bring back the reply, whatever its status.

        Raises:
            TransportError: there was no reply.
        """


class HttpTransport:
    """HTTP by the standard library: proxies from the environment, redirects not followed.

    `timeout` (seconds) bounds each step on the network and the reading of the reply.
    `ingest_key` is sent along, for a collector that asks for one.

    Raises:
        ValueError: the endpoint is no http or https address, or the key is none.
    """

    def __init__(
        self, endpoint: str, timeout: float = 10.0, *, ingest_key: str | None = None
    ) -> None:
        if not endpoint.startswith(("https://", "http://")):
            raise ValueError(
                f"the endpoint must begin with https:// (or http:// on a network of "
                f"your own), not {endpoint!r}"
            )
        self.url = f"{endpoint.rstrip('/')}/v1/reports"
        self.timeout = timeout
        if ingest_key is not None and not re.fullmatch(_KEY, ingest_key):
            raise ValueError(
                "an ingest key has 16 to 256 letters, digits and - . _ ~ + /: copy it from "
                "the collector's DENIABLE_INGEST_KEYS"
            )
        self._ingest_key = ingest_key
        self._opener: OpenerDirector | None = None

    def send(self, body: bytes) -> Reply:
        # Imported here: an app that records and never sends does not pay for HTTP.
        import http.client
        import urllib.request

        from deniable import __version__

        if self._opener is None:
            self._opener = _make_opener()
        headers = {"Content-Type": "application/json", "User-Agent": f"deniable/{__version__}"}
        if self._ingest_key is not None:
            headers["Authorization"] = f"Bearer {self._ingest_key}"
        request = urllib.request.Request(self.url, body, headers)  # noqa: S310  (checked above)
        try:
            with self._opener.open(request, timeout=self.timeout) as response:
                return self._read(response)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise TransportError(f"the collector cannot be reached: {reason}") from None

    def _read(self, response: HTTPResponse) -> Reply:
        deadline = time.monotonic() + self.timeout
        body = b""
        while chunk := response.read1(1 << 14):
            body += chunk
            if len(body) > _LARGEST_REPLY or time.monotonic() > deadline:
                raise TransportError("the collector's reply is too long or too slow")
        return Reply(response.status, body, response.headers.get("Retry-After"))


def read_reply(reply: Reply, batch_id: str, now: Callable[[], float]) -> dict[int, str]:
    """The reports that a 202 left out: index in the batch -> reason.

    Raises:
        TransportError: the batch is not counted; `final` where it never will be.
    """
    if reply.status == 202:
        try:
            document = json.loads(reply.body)
            if document["batch"] == batch_id:
                return {
                    int(each["index"]): str(each["reason"])[:64] for each in document["rejected"]
                }
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        # Something between here and the collector answers in its place.
        raise TransportError("the reply is not the collector's: check the endpoint")
    final = 400 <= reply.status < 500 and reply.status not in _RETRIABLE
    raise TransportError(
        f"the collector answered with status {reply.status}",
        retry_after=None if final else retry_seconds(reply.retry_after, now()),
        final=final,
    )


def retry_seconds(header: str | None, now: float) -> float | None:
    """The wait in seconds that a Retry-After asks for (RFC 9110, 10.2.3); None if it asks none."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _make_opener() -> OpenerDirector:
    import urllib.request

    class Replies(urllib.request.HTTPErrorProcessor):
        """Every status is a reply. So redirects are not followed: one could lead reports
        to a place that nobody configured."""

        def http_response(self, request: Request, response: HTTPResponse) -> HTTPResponse:
            return response

        https_response = http_response

    return urllib.request.build_opener(Replies)
