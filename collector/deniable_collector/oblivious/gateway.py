"""The gateway (RFC 9458): opens capsules, hands their batches to the collector, seals the
responses.

It serves one target, the collector that it is in, and one path of it. What is wrong with a capsule
is told in the clear, what is wrong with the request inside it under seal (RFC 9458, 5.2).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from deniable.protocol.errors import WireError
from deniable.protocol.oblivious.binary_http import InnerRequest, InnerResponse, padded, padded_size
from deniable.protocol.oblivious.capsules import (
    KEY_PROBLEM,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    NoKey,
    Opened,
    open_request,
)
from deniable.protocol.oblivious.signed_keys import KEYS_TYPE, SIGNATURE
from deniable_collector.batches.catalogue import MustWait
from deniable_collector.oblivious.key_file import KeyFile
from deniable_collector.operation.prometheus import count_answer
from deniable_collector.refusals import IntakeError, too_large
from deniable_collector.serving.admission import shows_key
from deniable_collector.serving.batch_reader import BatchReader, Expected, ReadBody
from deniable_collector.serving.http import Request, media_type
from deniable_collector.serving.responses import HttpResponse, answered, head, lines_of
from deniable_collector.settings import Settings

_TARGET = b"/v1/reports"

_READ = (b"authorization", b"content-encoding", b"content-type", b"x-deniable-key")
"""Headers of a request inside a capsule that are heeded."""


class Gateway:
    """Opens and seals; safe to call from several threads."""

    def __init__(self, settings: Settings, held: KeyFile, batch_reader: BatchReader) -> None:
        self._held = held
        self._keys = {each.id: each for each in held.keys}
        self._max_capsule = settings.max_capsule
        self._relay_keys = settings.relay_keys
        self._batch_reader = batch_reader

    async def tell_keys(self, request: Request) -> HttpResponse:
        """The list of its keys, and the signature."""
        request.given += lines_of({SIGNATURE: self._held.signature})
        return HttpResponse(200, self._held.document, KEYS_TYPE, cache="public, max-age=60")

    def admit(self, request: Request) -> Expected:
        """What is announced of a capsule. The rate holds for its sender as for any network, unless
        it is a relay that has one of the keys of DENIABLE_RELAY_KEYS.

        Raises:
            IntakeError: 429 if its network sends too much.
        """
        headers = request.headers
        if not shows_key(self._relay_keys, headers.get(b"authorization", b"").decode("latin-1")):
            self._batch_reader.admission.pace(request.connection.peer, headers)
        content_type = headers.get(b"content-type", b"").decode("latin-1")
        return Expected(self._max_capsule, partial(self.read, content_type))

    def read(self, content_type: str, capsule: bytes, wait: bool) -> ReadBody:
        """The batch in a capsule, whose response is sealed, also where it is no batch; without
        `wait`, if that needs no waiting.

        Raises:
            IntakeError: it is none, or too large.
            NoKey: there is no key for it, or it is damaged.
            MustWait: as `Expected.read` does.
        """
        if media_type(content_type) != REQUEST_TYPE:
            raise IntakeError("http-415", f"send Content-Type: {REQUEST_TYPE}")
        try:
            opened = open_request(self._keys, capsule)
        except NoKey:
            raise
        except WireError as error:
            raise IntakeError("bad-capsule", str(error)) from None
        try:
            reading = self._read(opened, wait)
        except MustWait:
            raise
        except Exception as error:
            reading = ReadBody(error)
        return replace(reading, answer=lambda outcome: seal(opened, answered(outcome)))

    def _read(self, opened: Opened, wait: bool) -> ReadBody:
        """The batch in a request for the collector's reports, which has no rate but the relay's.

        Raises:
            IntakeError: it is no such request, or its batch may not be sent.
            MustWait, StoreUnavailable: as `Expected.read` does.
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
        headers = {name: request.header(name) for name in _READ}
        self._batch_reader.admission.check_key(headers)
        expected = self._batch_reader.expect(headers)
        if len(request.content) > expected.limit:
            raise too_large(expected.limit, compressed=expected.compressed)
        return expected.read(request.content, wait)


def seal(opened: Opened, response: HttpResponse) -> HttpResponse:
    """The capsule of a response, padded so that its size does not tell what it says."""
    # The headers that a device needs.
    fields = head(response.content_type, response.retry_after)
    told = tuple(each for each in fields if each[0] in (b"content-type", b"retry-after"))
    message = InnerResponse(response.status, told, response.body).encode()
    message = padded(message, padded_size(len(message)))
    return HttpResponse(200, opened.seal_response(message), RESPONSE_TYPE)


def key_refused(error: NoKey) -> HttpResponse:
    """The problem of RFC 9458, 5.3: the client reads the keys again, and seals anew."""
    count_answer(400, "ohttp-key")
    document: Mapping[str, object] = {"type": KEY_PROBLEM, "title": str(error), "status": 400}
    return HttpResponse(400, json.dumps(document).encode(), "application/problem+json")
