"""The collector: public, write-only, and silent about who sends.

POST /v1/reports takes batches and, of a gateway, another path takes capsules: both are answered by
callbacks of the event loop. What everyone may read (`documents`) and the operator's probes are
pages (`serving.pages`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from prometheus_client.core import Metric

from deniable.protocol.oblivious.capsules import NoKey
from deniable.protocol.oblivious.signed_keys import PATH
from deniable_collector.batches.batch import Receipt
from deniable_collector.batches.catalogue import MustWait
from deniable_collector.documents import documents
from deniable_collector.inherited import Inherited, inherited
from deniable_collector.intake import Intake
from deniable_collector.oblivious.gateway import Gateway, key_refused
from deniable_collector.operation.prometheus import QUEUE, begin_counts, store_figures, summed
from deniable_collector.operation.store_watch import WatchedStore
from deniable_collector.refusals import IntakeError, too_large
from deniable_collector.serving.batch_reader import BatchReader, Expected, ReadBody
from deniable_collector.serving.group import GroupCommit
from deniable_collector.serving.http import HttpServer, Request
from deniable_collector.serving.pages import PageHandler
from deniable_collector.serving.responses import HttpResponse, problem_of
from deniable_collector.stores import Store, StoreUnavailable, open_store
from deniable_collector.upkeep.journal_clearing import JournalKeeper
from deniable_collector.upkeep.keeper import Keeper, Sealer, Upkeep

REPORTS = b"/v1/reports"

_THREADS = 8
"""Threads of a process that read large bodies."""

_INLINE = 1 << 15
"""Largest body that is read on the event loop: about a millisecond of work. A larger one is read
in a thread, where it delays no other request."""


class Collector(PageHandler):
    """Serves what a master holds, also while its store is down: then it answers 503.

    `store` is that of the settings where none is given.

    Raises:
        StoreError: the store's address names no store.
    """

    def __init__(self, held: Inherited, store: Store | None = None) -> None:
        settings = held.settings
        super().__init__(settings, QUEUE)
        self._registry = held.registry
        begin_counts(held.registry.metrics)
        self._store = store = WatchedStore(open_store(settings) if store is None else store)
        self._intake = Intake(held.registry, store, max_reports=settings.max_reports)
        self._batch_reader = BatchReader(self._intake, settings)
        self._resources: dict[bytes, BatchReader | Gateway] = {REPORTS: self._batch_reader}
        self.pages |= documents(held.registry, settings.metrics_bind)
        if held.keys is not None:
            gateway = Gateway(settings, held.keys, self._batch_reader)
            self._resources[PATH.encode()] = gateway
            self.pages[PATH.encode()] = gateway.tell_keys
        self.posts = frozenset(self._resources)
        self.upkeep: tuple[Upkeep, ...] = (
            Keeper(store, settings.keep_days, metrics=held.registry),
            Sealer(store),
            # The last one closes the store.
            JournalKeeper(store, settings.journal_seconds),
        )
        """The work beside requests, which ends in this order."""
        self._readers = ThreadPoolExecutor(_THREADS, "read")
        self._group = GroupCommit(self._intake.take)
        self._checking: asyncio.Future[None] | None = None
        self._ready: dict[str, Any] = {"status": "ready"}
        if held.mistakes:
            self._ready["detail"] = "nothing was reloaded, and what was read before serves on"
            self._ready["mistakes"] = list(held.mistakes)

    async def start(self, server: HttpServer) -> None:
        """Publish the schemes before the first batch, if the store is there."""
        self._server = server
        loop = asyncio.get_running_loop()
        warm = loop.run_in_executor(self._readers, self._intake.prepare)
        await asyncio.wait([warm])
        warm.exception()
        for each in self.upkeep:
            each.start()

    async def stop(self) -> None:
        """Called when every request has been answered, and nothing waits for a commit."""
        await super().stop()
        self._group.close()
        loop = asyncio.get_running_loop()
        for each in self.upkeep:
            await loop.run_in_executor(self._readers, each.stop)
        self._readers.shutdown()

    def admit(self, request: Request) -> int:
        """Check the sender of a batch or a capsule, and what is announced.

        Raises:
            IntakeError: as `BatchReader.admit` does; for all but batches, the network sends too
                much; a relay that has a key may.
        """
        resource = self._resources.get(request.path) if request.method == b"POST" else None
        if resource is not None or request.path == REPORTS:
            request.given = self._batch_reader.cors.lines(request.method, request.headers)
        if resource is None:
            return super().admit(request)
        request.context = expected = resource.admit(request)
        return expected.limit

    def handle(self, request: Request) -> None:
        """Answer a request that has come whole.

        Raises:
            IntakeError, NoKey, StoreError: nothing of it is counted.
        """
        expected: Expected | None = request.context
        if expected is None:
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

    async def ready(self, request: Request) -> HttpResponse:
        """Whether the store takes commits. However many ask, one thread finds out for all."""
        if self._checking is None or self._checking.done():
            self._checking = asyncio.ensure_future(asyncio.to_thread(self._check))
        try:
            await asyncio.shield(self._checking)
        except StoreUnavailable as error:
            # Whoever probes has no batch to keep, and is told what the log has.
            raise IntakeError("store-unavailable", str(error), error.retry_after) from None
        return HttpResponse(200, json.dumps(self._ready).encode())

    def _check(self) -> None:
        self._intake.prepare()
        self._store.ping()

    def collect(self) -> Iterator[Metric]:
        yield from summed().collect()
        yield from store_figures(self._store, len(self._registry))

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
    return Collector(inherited())
