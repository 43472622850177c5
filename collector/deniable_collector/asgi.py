"""The collector for an event loop: a fast path for batches, in front of the Flask app.

POST /v1/reports is answered here, with the same code for reading and the same responses as in
the app. Everything else goes to the app, in threads.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, cast

from a2wsgi import WSGIMiddleware
from flask import Flask

from deniable.oblivious.signed_keys import PATH
from deniable.oblivious.transport import REQUEST_TYPE
from deniable_collector.app import BATCH_READER, GATEWAY, JOURNAL, SEALER, create_app
from deniable_collector.batches.batch import Receipt
from deniable_collector.batches.binary import MEDIA_TYPE
from deniable_collector.batches.bodies import IntakeError, is_compressed, read_body, too_large
from deniable_collector.inherited import inherited
from deniable_collector.oblivious.gateway import Gateway
from deniable_collector.oblivious.routes import answer, pace, read_at_once
from deniable_collector.operation.metrics import QUEUE
from deniable_collector.serving import framing
from deniable_collector.serving.batch_reader import JSON, BatchReader
from deniable_collector.serving.group import Done, GroupCommit
from deniable_collector.serving.guard import Guard
from deniable_collector.serving.incoming import Gone, Incoming, Message, Receive, Scope
from deniable_collector.serving.problems import problem_of
from deniable_collector.serving.responses import HttpResponse, accepted, head
from deniable_collector.settings import Settings
from deniable_collector.upkeep.journal import JournalKeeper
from deniable_collector.upkeep.sealing import Sealer

__all__ = ["Collector", "app"]

Send: TypeAlias = Callable[[Message], Awaitable[None]]
Read: TypeAlias = Callable[[int, bool], Awaitable[bytes]]
"""Reads a body of at most so many bytes; the second argument says whether it is compressed."""

_PATH = "/v1/reports"
_INLINE = {JSON: 1 << 15, MEDIA_TYPE: 1 << 18}
"""Largest body that is read on the event loop: about a millisecond of work. A larger one is read
in a thread, where it delays no other request."""

_DESCRIBED = (b"content-type", b"origin", b"sec-fetch-site")
"""Headers that say what a body is, and which page sends it."""

_SAMPLE_SECONDS = 1.0
"""How often the bytes that wait are written down for the metrics."""


_CLOSE = (b"connection", b"close")


class Collector:
    """The ASGI app around a Flask app of `create_app`.

    The lifespan protocol must be on: it creates the objects that belong to the event loop.
    """

    def __init__(self, flask: Flask, settings: Settings) -> None:
        self._batch_reader: BatchReader = flask.extensions[BATCH_READER]
        self._journal: JournalKeeper = flask.extensions[JOURNAL]
        self._gateway: Gateway | None = flask.extensions[GATEWAY]
        self._sealer: Sealer = flask.extensions[SEALER]
        self._settings = settings
        self._flask = WSGIMiddleware(cast(Any, flask), workers=settings.threads)
        self._readers = ThreadPoolExecutor(settings.threads, "read")
        self._group = GroupCommit(self._batch_reader.intake, settings.tick / 1000)
        self.guard = Guard(settings)
        self._held = 0
        self.short = {
            each: min(most, self._batch_reader.limit(each)) for each, most in _INLINE.items()
        }
        """The largest body of each media type that `commit_fast` accepts, in bytes."""
        if self._gateway is not None:
            self.short[REQUEST_TYPE] = min(_INLINE[JSON], self._gateway.max_capsule)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == _PATH:
            await self._reports(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif self._gateway is not None and _is_capsule(scope):
            await self._capsules(self._gateway, scope, receive, send)
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

    def admit(
        self,
        client: tuple[str, int] | None,
        headers: Iterable[tuple[bytes, bytes]],
        query: bytes = b"",
    ) -> None:
        """Check the sender of a batch: the peer, the header with names in lower case, and the query
        string.

        Raises:
            IntakeError: as `Admission.admit` does.
        """
        if self._batch_reader.admission is not None:
            self._batch_reader.admission.admit_scope(client, headers, query)

    def page_headers(self, origin: bytes) -> tuple[tuple[bytes, bytes], ...] | None:
        """What the responses to pages of this origin also carry; None if they may not send."""
        cors = self._batch_reader.cors
        if cors is None or not cors.allows(text := origin.decode("latin-1")):
            return None
        return tuple(_encoded(cors.headers(text)))

    def reserve(self, size: int) -> None:
        """Count bytes of a body that waits, until `release`.

        Raises:
            IntakeError: too many wait already. These are counted all the same.
        """
        self._held += size
        if self._held > self._settings.queue:
            raise IntakeError(
                "queue-full",
                503,
                "Queue full",
                "the collector is busy: send the batch again later, unchanged",
                retry_after=1.0,
            )

    def release(self, size: int) -> None:
        """Stop counting these bytes as waiting."""
        self._held -= size

    def commit_fast(self, media_type: str, body: bytes, done: Done) -> bool:
        """The fast path: handle an uncompressed body if that needs no waiting.

        The body has at most `short` bytes. `done` is called as by `GroupCommit.add`.

        Returns False if the fast path cannot handle this body; then `done` is not called. Call
        `commit` instead.
        """
        batch = self._batch_reader.read_fast(media_type, "", body)
        if batch is None:
            return False
        self._group.add(batch, done)
        return True

    def admit_capsule(
        self, client: tuple[str, int] | None, headers: Iterable[tuple[bytes, bytes]]
    ) -> None:
        """Check the sender of a capsule, as `admit` does that of a batch.

        Raises:
            IntakeError: its network sends too much, and it is no relay that has a key.
        """
        assert self._gateway is not None
        pace(self._gateway, self._batch_reader, client, headers)

    def open_fast(self, capsule: bytes, respond: Callable[[HttpResponse], None]) -> bool:
        """The fast path for a capsule, as `commit_fast` is for a batch; call `open_slowly` if it
        returns False."""
        assert self._gateway is not None
        found = read_at_once(self._gateway, self._batch_reader, capsule)
        if found is None:
            return False
        batch, seal = found
        self._group.add(batch, lambda outcome: respond(seal(outcome)))
        return True

    async def open_slowly(self, capsule: bytes) -> HttpResponse:
        """The response to a capsule.

        Raises:
            IntakeError: it is none.
        """
        assert self._gateway is not None
        return await answer(self._gateway, self._batch_reader, self._take, REQUEST_TYPE, capsule)

    async def commit(self, media_type: str, encoding: str, body: bytes) -> Receipt:
        """Read a body, in a thread, and commit it.

        Raises:
            IntakeError, StoreError: nothing of it is counted.
        """
        run = asyncio.get_running_loop().run_in_executor
        grown = 0
        try:
            if encoding:
                limit = self._batch_reader.limit(media_type, encoding)
                limits = limit, self._batch_reader.compressed_limit
                body = await run(self._readers, read_body, io.BytesIO(body), encoding, *limits)
                # What waits for its commit is as large as this, however little was sent.
                grown = len(body)
                self.reserve(grown)
            batch = await run(self._readers, self._batch_reader.read, media_type, body)
            return await self._group.take(batch)
        finally:
            self.release(grown)

    async def _reports(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope)

        async def respond(read: Read) -> HttpResponse:
            self.admit(scope.get("client"), scope["headers"], scope["query_string"])
            media_type = self._batch_reader.media_type(*map(headers.__getitem__, _DESCRIBED))
            encoding = framing.token(headers[b"content-encoding"])
            limit, packed = self._batch_reader.limit(media_type), is_compressed(encoding)
            if packed:
                limit = self._batch_reader.compressed_limit
            return accepted(await self._take(media_type, encoding, await read(limit, packed)))

        await self._serve(scope, receive, send, headers, respond)

    async def _capsules(self, gateway: Gateway, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope)

        async def respond(read: Read) -> HttpResponse:
            self.admit_capsule(scope.get("client"), scope["headers"])
            capsule = await read(gateway.max_capsule, False)
            content_type = headers[b"content-type"]
            return await answer(gateway, self._batch_reader, self._take, content_type, capsule)

        await self._serve(scope, receive, send, headers, respond)

    async def _serve(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: Mapping[bytes, str],
        respond: Callable[[Read], Awaitable[HttpResponse]],
    ) -> None:
        """Send what `respond` makes of the body, or the problem that it raises."""
        held = 0
        incoming = Incoming(scope, receive)

        def reserve(size: int) -> None:
            nonlocal held
            held += size
            self.reserve(size)

        async def read(limit: int, packed: bool) -> bytes:
            length = headers[b"content-length"]
            expected = int(length) if length.isdecimal() and length.isascii() else 0
            if expected > limit:
                raise too_large(limit, compressed=packed)
            return await incoming.collect(limit, reserve, compressed=packed)

        try:
            response = await respond(read)
        except Gone:
            return
        except Exception as error:
            response = problem_of(error)
        finally:
            self.release(held)
        more = [] if await incoming.pass_over(self.guard.max_request) else [_CLOSE]
        if self._batch_reader.cors is not None:
            found = self._batch_reader.cors.headers(headers[b"origin"])
            more += _encoded(found)
        await _send(send, response, more)

    async def _take(self, media_type: str, encoding: str, body: bytes) -> Receipt:
        if len(body) <= self.short[media_type]:
            batch = self._batch_reader.read_fast(media_type, encoding, body)
            if batch is not None:
                return await self._group.take(batch)
        return await self.commit(media_type, encoding, body)


def _is_capsule(scope: Scope) -> bool:
    return bool(scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == PATH)


def _headers(scope: Scope) -> dict[bytes, str]:
    """The headers that a batch is read by; "" where there is none."""
    found = dict.fromkeys((*_DESCRIBED, b"content-encoding", b"content-length"), b"")
    for name, value in scope["headers"]:
        if name in found:
            # A header that comes twice is invalid.
            found[name] = value if not found[name] else found[name] + b"," + value
    return {name: value.decode("latin-1") for name, value in found.items()}


def _encoded(headers: Mapping[str, str]) -> Iterator[tuple[bytes, bytes]]:
    for name, text in headers.items():
        yield name.lower().encode(), text.encode("latin-1")


async def _send(
    send: Send, response: HttpResponse, more: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    length = (b"content-length", b"%d" % len(response.body))
    headers = [length, *head(response.content_type, response.retry_after, response.status), *more]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


def app() -> Collector:
    """The app that the environment makes; servers call this a factory."""
    held = inherited()
    flask = create_app(
        held.settings, registry=held.registry, mistakes=held.mistakes, keys=held.keys
    )
    return Collector(flask, held.settings)
