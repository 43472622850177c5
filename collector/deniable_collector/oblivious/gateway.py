"""The gateway (RFC 9458): opens capsules, hands their batches to the collector, seals the
responses.

It serves one target, the collector that it is in, and one path of it. What is wrong with a capsule
is told in the clear, what is wrong with the request inside it under seal (RFC 9458, 5.2). Flask
answers who asks for its keys, and the event loop who sends a capsule.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

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
from deniable.protocol.oblivious.signed_keys import KEYS_TYPE, PATH, SIGNATURE
from deniable.protocol.oblivious.sizes import SMALLEST_RESPONSE, padded_size
from deniable_collector.batches.batch import Batch, Receipt
from deniable_collector.batches.bodies import is_compressed
from deniable_collector.batches.catalogue import MustWait
from deniable_collector.oblivious.key_file import KeyFile
from deniable_collector.operation.metrics import count_answer
from deniable_collector.refusals import IntakeError, too_large
from deniable_collector.serving.batch_reader import BatchReader
from deniable_collector.serving.http import media_type, token
from deniable_collector.serving.problems import problem_of
from deniable_collector.serving.rates import Peer
from deniable_collector.serving.responses import HttpResponse, accepted, head
from deniable_collector.settings import Settings

if TYPE_CHECKING:
    from flask import Flask, Response

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
        if media_type(content_type) != REQUEST_TYPE:
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


_KEPT = "public, max-age=60"
"""How long caches may keep the list of keys."""

_READ = (b"authorization", b"content-encoding", b"content-type", b"x-deniable-key")


def pace(
    gateway: Gateway,
    batch_reader: BatchReader,
    peer: Peer,
    headers: Mapping[bytes, bytes],
) -> None:
    """Count a request of a relay that shows no key: the rate holds for it as for any network.

    Raises:
        IntakeError: 429 if its network sends too much.
    """
    admission = batch_reader.admission
    if admission is None:
        return
    if not gateway.admits(headers.get(b"authorization", b"").decode("latin-1")):
        admission.pace(peer, headers)


def read_at_once(
    gateway: Gateway, batch_reader: BatchReader, capsule: bytes
) -> tuple[Batch, Callable[[Receipt | Exception], HttpResponse]] | None:
    """The batch in a capsule and what seals its response, if it can be read without waiting.

    None for everything else, also for what is refused: `answer` says why.
    """
    try:
        opened = gateway.open(REQUEST_TYPE, capsule)
        request = gateway.read(opened)
        if _encoding(batch_reader, request):
            return None
        batch = batch_reader.intake.read(request.content, wait=False)
    except (IntakeError, NoKey, MustWait):
        return None

    def seal(outcome: Receipt | Exception) -> HttpResponse:
        if isinstance(outcome, Exception):
            return gateway.seal(opened, problem_of(outcome))
        return gateway.seal(opened, accepted(outcome))

    return batch, seal


async def answer(
    gateway: Gateway,
    batch_reader: BatchReader,
    take: Callable[[str, bytes], Awaitable[Receipt]],
    content_type: str,
    capsule: bytes,
) -> HttpResponse:
    """The response to a capsule; `take` commits a batch of this encoding.

    Raises:
        IntakeError: it is no capsule.
    """
    try:
        opened = gateway.open(content_type, capsule)
    except NoKey as error:
        return key_refused(error)
    try:
        batch = gateway.read(opened)
        response = accepted(await take(_encoding(batch_reader, batch), batch.content))
    except Exception as error:
        response = problem_of(error)
    return gateway.seal(opened, response)


def add_gateway(app: Flask, gateway: Gateway) -> None:
    """Add the list of keys to the Flask app."""
    # Not for the relay, which needs a constant of this module, and no Flask.
    from flask import Response

    @app.get(PATH)
    def keys() -> Response:
        response = Response(gateway.keys, content_type=KEYS_TYPE)
        response.headers[SIGNATURE] = gateway.signature
        response.headers["Cache-Control"] = _KEPT
        return response


def _encoding(batch_reader: BatchReader, batch: InnerRequest) -> str:
    """The encoding of a batch that was in a capsule; "" if it is not compressed.

    Raises:
        IntakeError: it may not be sent: another type, too large, or without a key. It has no rate,
            which is the relay's.
    """
    headers = {name: batch.header(name) for name in _READ}
    if batch_reader.admission is not None:
        batch_reader.admission.check_key(headers)
    batch_reader.check_type(headers[b"content-type"].decode("latin-1"))
    encoding = token(headers[b"content-encoding"].decode("latin-1"))
    packed = is_compressed(encoding)
    limit = batch_reader.limit(encoding)
    if len(batch.content) > limit:
        raise too_large(limit, compressed=packed)
    return encoding if packed else ""
