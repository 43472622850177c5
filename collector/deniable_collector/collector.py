"""The collector for an event loop: batches and capsules by a short way, all else by the Flask app.

POST /v1/reports and capsules are answered by callbacks, and everything else by the app in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from flask import Flask

from deniable.protocol.oblivious.capsules import NoKey
from deniable.protocol.oblivious.signed_keys import PATH
from deniable_collector.app import NOT_ALLOWED, PARTS, Parts, create_app
from deniable_collector.batches.batch import Receipt
from deniable_collector.batches.catalogue import MustWait
from deniable_collector.inherited import inherited
from deniable_collector.oblivious.gateway import Gateway, key_refused
from deniable_collector.operation.metrics import QUEUE, count_answer
from deniable_collector.refusals import IntakeError, too_large
from deniable_collector.serving.batch_reader import BatchReader, Expected, ReadBody
from deniable_collector.serving.group import GroupCommit
from deniable_collector.serving.http import HttpServer, Request
from deniable_collector.serving.problems import problem_of
from deniable_collector.serving.responses import HttpResponse
from deniable_collector.serving.wsgi import WsgiHandler
from deniable_collector.settings import Settings, port_of

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

REPORTS = b"/v1/reports"

_THREADS = 8
"""Threads of a process that read large bodies, and as many that answer what is no batch."""

_OF_ONE = 2
"""Of these, how many one sender may have at a time: a thread that calculates holds the event loop
up."""

_INLINE = 1 << 15
"""Largest body that is read on the event loop: about a millisecond of work. A larger one is read
in a thread, where it delays no other request."""


class Collector(WsgiHandler):
    """Serves a Flask app of `create_app`, with a short way for batches and capsules."""

    def __init__(self, flask: Flask, settings: Settings) -> None:
        app, rate = flask.wsgi_app, settings.rate
        # No route of the app reads a body.
        super().__init__(app, settings, _THREADS, _OF_ONE, {b"": 0}, rate)
        self.max_body = settings.max_body
        parts: Parts = flask.extensions[PARTS]
        self._batch_reader, gateway, self._upkeep = parts
        self._flask = flask
        self._private_port = port_of(settings.metrics_bind)
        self._readers = ThreadPoolExecutor(_THREADS, "read")
        self._group = GroupCommit(self._batch_reader.intake.take)
        self._resources: dict[bytes, BatchReader | Gateway] = {REPORTS: self._batch_reader}
        if gateway is not None:
            self._resources[PATH.encode()] = gateway

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
        for each in self._upkeep:
            each.start()
        if self.settings.metrics_bind:
            self.keep_sampling(server, QUEUE.set)

    async def stop(self) -> None:
        """Called when every request has been answered, and nothing waits for a commit."""
        await super().stop()
        self._group.close()
        loop = asyncio.get_running_loop()
        for each in self._upkeep:
            await loop.run_in_executor(self._readers, each.stop)
        self._readers.shutdown()

    def admit(self, request: Request) -> int:
        """Check the sender of a batch or a capsule, and what is announced.

        Raises:
            IntakeError: as `Admission.admit` does, or a batch does not come like this; for all
                but batches, the network sends too much; a relay that has a key may.
        """
        resource = self._resources.get(request.path) if request.method == b"POST" else None
        if resource is not None or request.path == REPORTS:
            request.given = self._batch_reader.cors.lines(request.method, request.headers)
        if resource is None:
            return 0 if request.connection.port == self._private_port else super().admit(request)
        request.context = expected = resource.admit(request)
        return expected.limit

    def handle(self, request: Request) -> None:
        """Answer a request that has come whole.

        Raises:
            IntakeError, NoKey, StoreError: nothing of it is counted.
        """
        expected: Expected | None = request.context
        if expected is None:
            if request.path == REPORTS:
                self._answer_others(request)
            else:
                super().handle(request)
            return
        if request.size > expected.limit:
            raise too_large(expected.limit, compressed=expected.compressed)
        if len(request.body) <= _INLINE:
            try:
                self._take(request, expected.read(request.body, False))
                return
            except MustWait:
                pass
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
        return key_refused(error) if isinstance(error, NoKey) else problem_of(error)

    async def _slowly(self, request: Request, expected: Expected) -> None:
        """Read a body in a thread, and commit it."""
        run = asyncio.get_running_loop().run_in_executor
        try:
            reading = await run(self._readers, expected.read, request.body, True)
        except Exception as error:
            request.respond(self.problem(error))
        else:
            self._take(request, reading)

    def _take(self, request: Request, reading: ReadBody) -> None:
        """Commit what was read, and answer."""
        batch = reading.batch

        def done(outcome: Receipt | Exception) -> None:
            self._server.release(reading.grown)
            request.respond(reading.answer(outcome))

        if reading.grown:
            try:
                # What waits for its commit is as large as this, however little was sent.
                self._server.reserve(reading.grown)
            except IntakeError as error:
                batch = error
        if isinstance(batch, Exception):
            done(batch)
        else:
            self._group.add(batch, done)


def app() -> Collector:
    """The collector that the environment makes."""
    held = inherited()
    flask = create_app(
        held.settings, registry=held.registry, mistakes=held.mistakes, keys=held.keys
    )
    return Collector(flask, held.settings)
