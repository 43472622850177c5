"""The collector for an event loop: what `connection` needs to answer batches, and the Flask app.

The connection answers POST /v1/reports, with the same code for reading and the same responses as in
the app. Everything else goes to the app, in threads.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, cast

from a2wsgi import WSGIMiddleware
from flask import Flask

from deniable.oblivious.signed_keys import PATH
from deniable.oblivious.transport import REQUEST_TYPE
from deniable_collector.app import BATCH_READER, GATEWAY, JOURNAL, SEALER, create_app
from deniable_collector.batches.batch import Receipt
from deniable_collector.batches.bodies import is_compressed
from deniable_collector.inherited import inherited
from deniable_collector.oblivious.gateway import Gateway
from deniable_collector.oblivious.routes import answer, pace, read_at_once
from deniable_collector.operation.metrics import QUEUE
from deniable_collector.refusals import IntakeError
from deniable_collector.serving import framing
from deniable_collector.serving.batch_reader import JSON, BatchReader
from deniable_collector.serving.group import Done, GroupCommit
from deniable_collector.serving.guard import Guard
from deniable_collector.serving.heads import Expected, Heads, RequestHead
from deniable_collector.serving.incoming import Incoming, Message, Receive, Scope
from deniable_collector.serving.problems import problem_of
from deniable_collector.serving.rates import Peer
from deniable_collector.serving.responses import HttpResponse, accepted, head
from deniable_collector.settings import Settings
from deniable_collector.upkeep.journal import JournalKeeper
from deniable_collector.upkeep.sealing import Sealer

Send: TypeAlias = Callable[[Message], Awaitable[None]]

REPORTS = b"/v1/reports"
CAPSULES = PATH.encode()

_THREADS = 8
"""Threads of a process that read large bodies, and as many that answer what is no batch."""

_INLINE = 1 << 15
"""Largest body that is read on the event loop: about a millisecond of work. A larger one is read
in a thread, where it delays no other request."""

_JSON = JSON.encode()
_DESCRIBED = (b"content-type", b"origin", b"sec-fetch-site")
"""Headers that say what a body is, and which page sends it."""

_SAMPLE_SECONDS = 1.0
"""How often the bytes that wait are written down for the metrics."""


_CLOSE = (b"connection", b"close")


class Collector:
    """The ASGI app around a Flask app of `create_app`; `connection` handles batches and capsules by
    its methods, and leaves all other requests to the app.

    The lifespan protocol must be on: it creates the objects that belong to the event loop.
    """

    def __init__(self, flask: Flask, settings: Settings) -> None:
        self._batch_reader: BatchReader = flask.extensions[BATCH_READER]
        self._journal: JournalKeeper = flask.extensions[JOURNAL]
        self._gateway: Gateway | None = flask.extensions[GATEWAY]
        self._sealer: Sealer = flask.extensions[SEALER]
        self._settings = settings
        self._flask = WSGIMiddleware(cast(Any, flask), workers=_THREADS)
        self._readers = ThreadPoolExecutor(_THREADS, "read")
        self._group = GroupCommit(self._batch_reader.intake)
        self.guard = Guard(settings)
        self.heads = Heads()
        self._held = 0
        self._plain = Expected(self._batch_reader.limit(""))
        self.has_pages = self._batch_reader.cors is not None
        """Whether pages of some origin may send; then `page_headers` has what they need."""
        self.resources = frozenset((REPORTS,))
        """The paths of what is handled by a connection."""
        if self._gateway is not None:
            self.resources |= {CAPSULES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._elsewhere(scope, receive, send)
        else:
            # A WebSocket: there is none here.
            await send({"type": "websocket.close", "code": 1000})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        # The schemes are published before the first batch, if the store is there.
        loop = asyncio.get_running_loop()
        warm = loop.run_in_executor(self._readers, self._batch_reader.intake.prepare)
        await asyncio.wait([warm])
        warm.exception()
        self._journal.start()
        self._sealer.start()
        sampling = loop.create_task(self._sample()) if self._settings.metrics_bind else None
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if sampling is not None:
            sampling.cancel()
            await asyncio.wait([sampling])
        # By now every request has been answered, and nothing waits for a commit.
        self._group.close()
        await loop.run_in_executor(self._readers, self._sealer.stop)
        await loop.run_in_executor(self._readers, self._journal.stop)
        self._readers.shutdown()
        await send({"type": "lifespan.shutdown.complete"})

    async def _sample(self) -> None:
        while True:
            QUEUE.set(self._held)
            await asyncio.sleep(_SAMPLE_SECONDS)

    async def _elsewhere(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False
        incoming = Incoming(scope, receive)

        async def sending(message: Message) -> None:
            nonlocal started
            if not started and not await incoming.pass_over(self.guard.max_request):
                message = {**message, "headers": [*message["headers"], _CLOSE]}
            started = True
            await send(message)

        try:
            await self._flask(cast(Any, scope), cast(Any, incoming), cast(Any, sending))
        except Exception as error:
            # The server would log the traceback, with what was sent.
            response = problem_of(error)
            if not started:
                await _send(sending, response)

    def admit(self, peer: Peer, head: RequestHead) -> None:
        """Check the sender of a batch or a capsule.

        Raises:
            IntakeError: as `Admission.admit` does; for a capsule, its network sends too much, and
                it is no relay that has a key.
        """
        admission = self._batch_reader.admission
        if head.path == CAPSULES:
            assert self._gateway is not None
            pace(self._gateway, self._batch_reader, peer, head.found)
        elif admission is not None:
            admission.admit_peer(peer, head.found, head.query)

    def expect(self, head: RequestHead) -> Expected:
        """What a request for one of `resources` announces.

        Raises:
            IntakeError: a batch does not come like this.
        """
        headers = head.found
        content_type = headers.get(b"content-type", b"")
        if head.path == CAPSULES:
            assert self._gateway is not None
            most = self._gateway.max_capsule
            return Expected(most, capsule_type=content_type.decode("latin-1"))
        if content_type != _JSON:
            described = (headers.get(name, b"").decode("latin-1") for name in _DESCRIBED)
            self._batch_reader.check_type(*described)
        encoding = framing.token(headers.get(b"content-encoding", b"").decode("latin-1"))
        if is_compressed(encoding):
            return Expected(self._batch_reader.limit(encoding), encoding)
        return self._plain

    def page_headers(self, origin: bytes) -> tuple[tuple[bytes, bytes], ...]:
        """What a response to a page of this origin also carries; b"" if the request names none."""
        cors = self._batch_reader.cors
        found = {} if cors is None else cors.headers(origin.decode("latin-1"))
        return tuple(
            (name.lower().encode(), text.encode("latin-1")) for name, text in found.items()
        )

    def reserve(self, size: int) -> None:
        """Count bytes of a body that waits, until `release`.

        Raises:
            IntakeError: too many wait already. These are counted all the same.
        """
        self._held += size
        if self._held > self._settings.queue:
            raise IntakeError(
                "queue-full",
                "the collector is busy: send the batch again later, unchanged",
                retry_after=1.0,
            )

    def release(self, size: int) -> None:
        """Stop counting these bytes as waiting."""
        self._held -= size

    def handle_fast(
        self, expected: Expected, body: bytes, done: Done, respond: Callable[[HttpResponse], None]
    ) -> bool:
        """The fast path: handle a body if that needs no waiting.

        For a batch `done` is called as by `GroupCommit.add`, for a capsule `respond`.

        Returns False if the fast path cannot handle this body; then neither is called. Call
        `handle` instead.
        """
        _, encoding, capsule_type = expected
        if encoding or len(body) > _INLINE:
            return False
        if capsule_type is not None:
            assert self._gateway is not None
            if capsule_type != REQUEST_TYPE:
                return False
            found = read_at_once(self._gateway, self._batch_reader, body)
            if found is None:
                return False
            batch, seal = found
            self._group.add(batch, lambda outcome: respond(seal(outcome)))
            return True
        read = self._batch_reader.intake.read_fast(body)
        if read is not None:
            self._group.add(read, done)
        return read is not None

    async def handle(self, expected: Expected, body: bytes) -> HttpResponse:
        """The response to a body that the fast path cannot handle.

        Raises:
            IntakeError, StoreError: nothing of it is counted.
        """
        if expected.capsule_type is None:
            return accepted(await self._commit(expected.encoding, body))
        assert self._gateway is not None
        return await answer(
            self._gateway, self._batch_reader, self._commit, expected.capsule_type, body
        )

    async def _commit(self, encoding: str, body: bytes) -> Receipt:
        """Read a body, in a thread, and commit it.

        Raises:
            IntakeError, StoreError: nothing of it is counted.
        """
        run = asyncio.get_running_loop().run_in_executor
        grown = 0
        try:
            if encoding:
                read = self._batch_reader.decompressed
                body = await run(self._readers, read, io.BytesIO(body), encoding)
                # What waits for its commit is as large as this, however little was sent.
                grown = len(body)
                self.reserve(grown)
            batch = await run(self._readers, self._batch_reader.intake.read, body)
            return await self._group.take(batch)
        finally:
            self.release(grown)


async def _send(send: Send, response: HttpResponse) -> None:
    length = (b"content-length", b"%d" % len(response.body))
    headers = [length, *head(response.content_type, response.retry_after, response.status)]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


def app() -> Collector:
    """The app that the environment makes; servers call this a factory."""
    held = inherited()
    flask = create_app(
        held.settings, registry=held.registry, mistakes=held.mistakes, keys=held.keys
    )
    return Collector(flask, held.settings)
