"""The gateway's resource: keys by GET, from Flask, and capsules by POST, on the event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from flask import Flask, Response

from deniable.protocol.oblivious.binary_http import InnerRequest
from deniable.protocol.oblivious.capsules import REQUEST_TYPE, NoKey
from deniable.protocol.oblivious.signed_keys import KEYS_TYPE, PATH, SIGNATURE
from deniable_collector.batches.batch import Batch, Receipt
from deniable_collector.batches.bodies import is_compressed
from deniable_collector.batches.catalogue import MustWait
from deniable_collector.oblivious.gateway import Gateway, key_refused
from deniable_collector.refusals import IntakeError, too_large
from deniable_collector.serving import framing
from deniable_collector.serving.batch_reader import BatchReader
from deniable_collector.serving.problems import problem_of
from deniable_collector.serving.rates import Peer
from deniable_collector.serving.responses import HttpResponse, accepted

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
    encoding = framing.token(headers[b"content-encoding"].decode("latin-1"))
    packed = is_compressed(encoding)
    limit = batch_reader.limit(encoding)
    if len(batch.content) > limit:
        raise too_large(limit, compressed=packed)
    return encoding if packed else ""
