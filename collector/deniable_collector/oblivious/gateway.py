"""The gateway (RFC 9458): opens capsules, hands their batches to the collector, seals the
responses.

It serves one target, the collector that it is in, and one path of it. What is wrong with a capsule
is told in the clear, what is wrong with the request inside it under seal (RFC 9458, 5.2).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from functools import lru_cache

from deniable.protocol.errors import WireError
from deniable.protocol.oblivious.binary_http import Fields, InnerRequest, InnerResponse, padded
from deniable.protocol.oblivious.capsules import (
    KEY_PROBLEM,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    NoKey,
    Opened,
    open_request,
)
from deniable.protocol.oblivious.sizes import SMALLEST_RESPONSE, padded_size
from deniable_collector.oblivious.key_file import KeyFile
from deniable_collector.operation.metrics import count_answer
from deniable_collector.refusals import IntakeError
from deniable_collector.serving import framing
from deniable_collector.serving.responses import HttpResponse, head
from deniable_collector.settings import Settings

_TARGET = b"/v1/reports"

OVERHEAD = 1 << 10
"""Bytes of a capsule that are neither batch nor padding: its key, its tag, and the request's
header."""


class Gateway:
    """Opens and seals; safe to call from several threads."""

    def __init__(self, settings: Settings, held: KeyFile) -> None:
        self._keys = {each.id: each for each in held.keys}
        self.keys = held.document
        self.signature = held.signature
        self.max_capsule = 2 * settings.max_body + OVERHEAD
        """The most bytes of a capsule. Padding may double a batch."""
        self._relay_keys = settings.relay_keys

    def admits(self, authorization: str) -> bool:
        """Whether a relay has one of the keys of DENIABLE_RELAY_KEYS, and so no rate of its own."""
        scheme, _, token = authorization.partition(" ")
        if not self._relay_keys or scheme.lower() != "bearer":
            return False
        digest = hashlib.sha256(token.strip().encode("latin-1", "replace")).digest()
        return sum(hmac.compare_digest(digest, each) for each in self._relay_keys) > 0

    def open(self, content_type: str, capsule: bytes) -> Opened:
        """Open a capsule.

        Raises:
            IntakeError: it is none, or too large.
            NoKey: there is no key for it, or it is damaged.
        """
        if framing.media_type(content_type) != REQUEST_TYPE:
            raise IntakeError("http-415", f"send Content-Type: {REQUEST_TYPE}")
        try:
            return open_request(self._keys, capsule)
        except NoKey:
            raise
        except WireError as error:
            raise IntakeError("bad-capsule", str(error)) from None

    def read(self, opened: Opened) -> InnerRequest:
        """The request in a capsule, which is one for the collector's reports.

        Raises:
            IntakeError: it is no such request. The response is sealed.
        """
        try:
            request = InnerRequest.decode(opened.message)
        except WireError as error:
            raise IntakeError("bad-capsule", str(error)) from None
        if request.header(b"expect"):
            raise IntakeError("http-417", "a capsule expects nothing")
        if not request.path.endswith(_TARGET) or b"?" in request.path:
            raise IntakeError("http-404", "there is nothing at this path")
        if request.method != b"POST":
            raise IntakeError("http-405", "only POST goes through the gateway")
        return request

    def seal(self, opened: Opened, response: HttpResponse) -> HttpResponse:
        """The capsule of a response, padded so that its size does not tell what it says."""
        told = _told(response.content_type, response.retry_after)
        message = InnerResponse(response.status, told, response.body).encode()
        message = padded(message, padded_size(len(message), SMALLEST_RESPONSE))
        return HttpResponse(200, opened.seal_response(message), RESPONSE_TYPE)


@lru_cache(maxsize=64)
def _told(content_type: str, retry_after: float | None) -> Fields:
    """The headers of a response that a device needs."""
    fields = head(content_type, retry_after)
    return tuple(each for each in fields if each[0] in (b"content-type", b"retry-after"))


def key_refused(error: NoKey) -> HttpResponse:
    """The problem of RFC 9458, 5.3: the client reads the keys again, and seals anew."""
    count_answer(400, "ohttp-key")
    document: Mapping[str, object] = {"type": KEY_PROBLEM, "title": str(error), "status": 400}
    return HttpResponse(400, json.dumps(document).encode(), "application/problem+json")
