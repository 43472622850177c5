"""The gateway's resource: keys by GET, capsules by POST; for the event loop and for Flask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO

from flask import Flask, Response, request

from deniable.oblivious.binary_http import InnerRequest
from deniable.oblivious.capsules import NoKey
from deniable.oblivious.signed_keys import KEYS_TYPE, PATH, SIGNATURE
from deniable.oblivious.transport import REQUEST_TYPE
from deniable_collector.batches.batch import Batch, Receipt
from deniable_collector.batches.bodies import IntakeError, is_compressed, read_body, too_large
from deniable_collector.oblivious.gateway import Gateway, key_refused
from deniable_collector.serving import framing
from deniable_collector.serving.admission import Peer
from deniable_collector.serving.batch_reader import BatchReader
from deniable_collector.serving.problems import problem_of
from deniable_collector.serving.responses import HttpResponse, accepted, head

__all__ = ["add_gateway", "answer", "pace", "read_at_once"]

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
        admission.pace_peer(peer, headers)


def read_at_once(
    gateway: Gateway, batch_reader: BatchReader, capsule: bytes
) -> tuple[Batch, Callable[[Receipt | Exception], HttpResponse]] | None:
    """The batch in a capsule and what seals its response, if it can be read without waiting.

    None for everything else, also for what is refused: `answer` says why.
    """
    try:
        opened = gateway.open(REQUEST_TYPE, capsule)
        request = gateway.read(opened)
        batch = batch_reader.read_fast(*_described(batch_reader, request), request.content)
    except (IntakeError, NoKey):
        return None
    if batch is None:
        return None

    def seal(outcome: Receipt | Exception) -> HttpResponse:
        if isinstance(outcome, Exception):
            return gateway.seal(opened, problem_of(outcome))
        return gateway.seal(opened, accepted(outcome))

    return batch, seal


async def answer(
    gateway: Gateway,
    batch_reader: BatchReader,
    take: Callable[[str, str, bytes], Awaitable[Receipt]],
    content_type: str,
    capsule: bytes,
) -> HttpResponse:
    """The response to a capsule; `take` commits a batch of this media type and encoding.

    Raises:
        IntakeError: it is no capsule.
    """
    try:
        opened = gateway.open(content_type, capsule)
    except NoKey as error:
        return key_refused(error)
    try:
        batch = gateway.read(opened)
        response = accepted(await take(*_described(batch_reader, batch), batch.content))
    except Exception as error:
        response = problem_of(error)
    return gateway.seal(opened, response)


def add_gateway(
    app: Flask, gateway: Gateway, batch_reader: BatchReader, read: Callable[[int], bytes]
) -> None:
    """Add the resource to the Flask app; `read` reads a request's body up to so many bytes."""

    @app.get(PATH)
    def keys() -> Response:
        response = Response(gateway.keys, content_type=KEYS_TYPE)
        response.headers[SIGNATURE] = gateway.signature
        response.headers["Cache-Control"] = _KEPT
        return response

    @app.post(PATH)
    def capsules() -> Response:
        authorization = request.headers.get("Authorization", "")
        if batch_reader.admission is not None and not gateway.admits(authorization):
            forwarded = request.headers.get("X-Forwarded-For", "")
            batch_reader.admission.pace(request.remote_addr or "", forwarded)
        capsule = read(gateway.max_capsule)
        try:
            opened = gateway.open(request.headers.get("Content-Type", ""), capsule)
        except NoKey as error:
            return _flask(key_refused(error))
        try:
            response = accepted(_take(batch_reader, gateway.read(opened)))
        except Exception as error:
            response = problem_of(error)
        return _flask(gateway.seal(opened, response))


def _take(batch_reader: BatchReader, batch: InnerRequest) -> Receipt:
    media_type, encoding = _described(batch_reader, batch)
    limits = batch_reader.limit(media_type, encoding), batch_reader.compressed_limit
    body = read_body(BytesIO(batch.content), encoding, *limits)
    (receipt,) = batch_reader.intake.take([batch_reader.read(media_type, body)])
    return receipt


def _described(batch_reader: BatchReader, batch: InnerRequest) -> tuple[str, str]:
    """The media type and encoding of a batch that was in a capsule.

    Raises:
        IntakeError: it may not be sent: another type, too large, or without a key. It has no rate,
            which is the relay's.
    """
    authorization, packing, media_type, key = (
        batch.header(name).decode("latin-1") for name in _READ
    )
    if batch_reader.admission is not None:
        batch_reader.admission.admit("", authorization, key)
    media_type = batch_reader.media_type(media_type, "", "")
    encoding = framing.token(packing)
    packed = is_compressed(encoding)
    limit = batch_reader.limit(media_type)
    if packed:
        limit = batch_reader.compressed_limit
    if len(batch.content) > limit:
        raise too_large(limit, compressed=packed)
    return media_type, encoding


def _flask(response: HttpResponse) -> Response:
    named = head(response.content_type, response.retry_after, response.status)
    fields = [(name.decode(), text.decode()) for name, text in named]
    return Response(response.body, response.status, fields)
