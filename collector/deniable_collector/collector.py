"""The collector for an event loop: batches and capsules by a short way, all else by the Flask app.

POST /v1/reports and capsules are answered by callbacks, and everything else by the app in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from flask import Flask

from deniable.protocol.oblivious.capsules import REQUEST_TYPE
from deniable.protocol.oblivious.signed_keys import PATH
from deniable_collector.app import (
    BATCH_READER,
    GATEWAY,
    JOURNAL,
    NOT_ALLOWED,
    SEALER,
    create_app,
)
from deniable_collector.batches.batch import Receipt
from deniable_collector.batches.bodies import is_compressed
from deniable_collector.batches.catalogue import MustWait
from deniable_collector.inherited import inherited
from deniable_collector.oblivious.gateway import Gateway, answer, pace, read_at_once
from deniable_collector.operation.metrics import QUEUE, count_answer
from deniable_collector.refusals import IntakeError, too_large
from deniable_collector.serving.admission import Admission, tell_refused
from deniable_collector.serving.batch_reader import JSON, BatchReader
from deniable_collector.serving.group import GroupCommit
from deniable_collector.serving.http import HttpServer, Request, TaskHandler, token
from deniable_collector.serving.problems import problem_of
from deniable_collector.serving.responses import HttpResponse, accepted, lines_of
from deniable_collector.serving.wsgi import WsgiThreads
from deniable_collector.settings import Settings, port_of
from deniable_collector.upkeep.journal import JournalKeeper
from deniable_collector.upkeep.sealing import Sealer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

REPORTS = b"/v1/reports"
CAPSULES = PATH.encode()

_THREADS = 8
"""Threads of a process that read large bodies, and as many that answer what is no batch."""

_OF_ONE = 2
"""Of these, how many one sender may have at a time: a thread that calculates holds the event loop
up."""

_INLINE = 1 << 15
"""Largest body that is read on the event loop: about a millisecond of work. A larger one is read
in a thread, where it delays no other request."""

_JSON = JSON.encode()
_DESCRIBED = (b"content-type", b"origin", b"sec-fetch-site")
"""Headers that say what a body is, and which page sends it."""


class Expected(NamedTuple):
    """What the header of a request says about its body: the most bytes that it may have as it is
    sent, its encoding ("": it is not compressed), and the Content-Type if it is a capsule."""

    limit: int
    encoding: str = ""
    capsule_type: str | None = None


class Collector(TaskHandler):
    """Serves a Flask app of `create_app`, with a short way for batches and capsules."""

    def __init__(self, flask: Flask, settings: Settings) -> None:
        super().__init__()
        self._batch_reader: BatchReader = flask.extensions[BATCH_READER]
        self._journal: JournalKeeper = flask.extensions[JOURNAL]
        self._gateway: Gateway | None = flask.extensions[GATEWAY]
        self._sealer: Sealer = flask.extensions[SEALER]
        self._flask = flask
        proxies = settings.trusted_proxies
        self._threads = WsgiThreads(flask.wsgi_app, problem_of, _THREADS, _OF_ONE, proxies)
        self._others = Admission(settings)
        self._private_port = port_of(settings.metrics_bind)
        self._readers = ThreadPoolExecutor(_THREADS, "read")
        self._group = GroupCommit(self._batch_reader.intake)
        self._plain = Expected(self._batch_reader.limit(""))
        self._resources = frozenset((REPORTS,) if self._gateway is None else (REPORTS, CAPSULES))
        self.settings = settings
        self.max_body = settings.max_body

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """The app alone: gunicorn takes for an app what can be called so."""
        return self._flask(environ, start)

    async def start(self, server: HttpServer) -> None:
        """Publish the schemes before the first batch, if the store is there."""
        self._server = server
        loop = asyncio.get_running_loop()
        warm = loop.run_in_executor(self._readers, self._batch_reader.intake.prepare)
        await asyncio.wait([warm])
        warm.exception()
        self._journal.start()
        self._sealer.start()
        if self.settings.metrics_bind:
            self.keep_sampling(server, QUEUE.set)

    async def stop(self) -> None:
        """Called when every request has been answered, and nothing waits for a commit."""
        self.cancel()
        self._group.close()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._readers, self._sealer.stop)
        await loop.run_in_executor(self._readers, self._journal.stop)
        self._readers.shutdown()
        self._threads.close()

    def admit(self, request: Request) -> int:
        """Check the sender of a batch or a capsule, and what is announced.

        Raises:
            IntakeError: as `Admission.admit` does, or a batch does not come like this; for all
                but batches, the network sends too much; a relay that has a key may.
        """
        reader, headers, peer = self._batch_reader, request.headers, request.connection.peer
        posted, asked = request.method == b"POST", request.method == b"OPTIONS"
        origin = headers.get(b"origin", b"").decode("latin-1")
        if reader.cors is not None and (
            request.path == REPORTS or (posted and request.path in self._resources)
        ):
            cors = reader.cors.preflight if asked else reader.cors.headers
            request.given = lines_of(cors(origin))
        elif asked and request.path == REPORTS:
            tell_refused(origin)
        if request.path not in self._resources or not posted:
            if request.connection.port != self._private_port:
                self._others.pace(peer, headers)
            # No route of the app reads a body.
            return 0
        if request.path == CAPSULES:
            assert self._gateway is not None
            pace(self._gateway, reader, peer, headers)
        elif reader.admission is not None:
            reader.admission.admit(peer, headers, request.query)
        request.context = expected = self._expect(request)
        return expected.limit

    def _expect(self, request: Request) -> Expected:
        """What a request for one of the resources announces.

        Raises:
            IntakeError: a batch does not come like this.
        """
        headers = request.headers
        content_type = headers.get(b"content-type", b"")
        if request.path == CAPSULES:
            assert self._gateway is not None
            most = self._gateway.max_capsule
            return Expected(most, capsule_type=content_type.decode("latin-1"))
        if content_type != _JSON:
            described = (headers.get(name, b"").decode("latin-1") for name in _DESCRIBED)
            self._batch_reader.check_type(*described)
        if b"content-encoding" in headers:
            encoding = token(headers[b"content-encoding"].decode("latin-1"))
            if is_compressed(encoding):
                return Expected(self._batch_reader.limit(encoding), encoding)
        return self._plain

    def handle(self, request: Request) -> None:
        """Answer a request that has come whole.

        Raises:
            IntakeError, StoreError: nothing of it is counted.
        """
        expected: Expected | None = request.context
        if expected is None:
            if request.path == REPORTS:
                self._answer_others(request)
            else:
                self._threads.handle(request)
            return
        if request.size > expected.limit:
            raise too_large(expected.limit, compressed=bool(expected.encoding))
        if not self.handle_fast(expected, request.body, request.respond):
            self.keep(self._slowly(request, expected))

    def _answer_others(self, request: Request) -> None:
        """Answer what is no POST to the reports.

        Raises:
            IntakeError: it is no OPTIONS either.
        """
        request.given += ((b"allow", b"OPTIONS, POST"),)
        if request.method != b"OPTIONS":
            raise IntakeError("http-405", NOT_ALLOWED)
        count_answer(200)
        request.respond(HttpResponse(200, b"", "text/plain"))

    def problem(self, error: Exception) -> HttpResponse:
        """The response for an exception, which is counted."""
        return problem_of(error)

    def handle_fast(
        self, expected: Expected, body: bytes, respond: Callable[[HttpResponse], None]
    ) -> bool:
        """Handle a body if that needs no waiting.

        Returns False if it cannot be handled so; then nothing was done. Call `handle_slowly`.

        Raises:
            IntakeError: it is no batch.
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
        try:
            batch = self._batch_reader.intake.read(body, wait=False)
        except MustWait:
            return False
        self._group.add(batch, partial(_tell, respond))
        return True

    async def _slowly(self, request: Request, expected: Expected) -> None:
        try:
            response = await self.handle_slowly(expected, request.body)
        except Exception as error:
            response = problem_of(error)
        request.respond(response)

    async def handle_slowly(self, expected: Expected, body: bytes) -> HttpResponse:
        """The response to a body that `handle_fast` cannot handle.

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
                body = await run(self._readers, read, body, encoding)
                # What waits for its commit is as large as this, however little was sent.
                grown = len(body)
                self._server.reserve(grown)
            batch = await run(self._readers, self._batch_reader.intake.read, body)
            return await self._group.take(batch)
        finally:
            self._server.release(grown)


def _tell(respond: Callable[[HttpResponse], None], outcome: Receipt | Exception) -> None:
    respond(accepted(outcome) if isinstance(outcome, Receipt) else problem_of(outcome))


def app() -> Collector:
    """The collector that the environment makes."""
    held = inherited()
    flask = create_app(
        held.settings, registry=held.registry, mistakes=held.mistakes, keys=held.keys
    )
    return Collector(flask, held.settings)
