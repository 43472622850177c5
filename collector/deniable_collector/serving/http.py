"""The server of a process: its connections, and the limits that they share."""

from __future__ import annotations

import asyncio
from collections import Counter
from email.utils import formatdate
from math import inf
from typing import Protocol

from deniable_collector.operation.events import tell_unexpected
from deniable_collector.serving import limits
from deniable_collector.serving.rates import network_of
from deniable_collector.serving.request import OpenConnection, Request, Response
from deniable_collector.settings import Settings

_LOOK_SECONDS = 0.5


class HttpHandler(Protocol):
    """What serves requests; all is called on the event loop."""

    settings: Settings
    max_body: int
    """The largest body that any request may have."""

    async def start(self, server: HttpServer) -> None:
        """Called before the first request to this server."""

    async def stop(self) -> None:
        """Called after the last response."""

    def admit(self, request: Request) -> int:
        """The most bytes that this request's body may have, of which only the header is known.

        Raises:
            Exception: what `problem` answers, as soon as the request has come whole.
        """

    def handle(self, request: Request) -> None:
        """Answer a whole request, now or later; or raise what `problem` answers."""

    def problem(self, error: Exception) -> Response:
        """The response for an exception."""


class HttpServer:
    """What the connections of one process share. All are looked at twice a second, so that no
    request needs a timer."""

    def __init__(self, handler: HttpHandler) -> None:
        settings = handler.settings
        self.handler = handler
        self.settings = settings
        self.most_received = limits.most_received(handler.max_body)
        self.timeout = float(settings.request_timeout)
        self.keep_alive = float(settings.keep_alive)
        self.ending = False
        self.held = 0
        """Bytes of bodies that have come and are not answered."""
        self.date = b""
        self.loop = asyncio.get_running_loop()
        self._private_port = int(settings.metrics_bind.rpartition(":")[2] or -1)
        self._public: set[OpenConnection] = set()
        self._private: set[OpenConnection] = set()
        self._networks: Counter[bytes] = Counter()
        self._gone = asyncio.Event()
        self._look()

    def enter(self, connection: OpenConnection) -> int:
        """Count a connection; returns how many there are beyond its limit.

        Those at the private address have their own limit, because probes and metrics are needed
        most during a flood. Behind a proxy all clients share the proxy's network.
        """
        if connection.port == self._private_port:
            self._private.add(connection)
            return len(self._private) - limits.ROOM
        self._public.add(connection)
        settings, over = self.settings, len(self._public) - self.settings.max_connections
        if connection.peer.address and not settings.trusted_proxies:
            network = network_of(connection.peer.address)
            self._networks[network] += 1
            over = max(over, self._networks[network] - settings.network_connections)
        return over

    def leave(self, connection: OpenConnection) -> None:
        """Forget a connection that has ended."""
        self._private.discard(connection)
        if connection in self._public:
            self._public.discard(connection)
            network = network_of(connection.peer.address)
            if self._networks[network] > 1:
                self._networks[network] -= 1
            else:
                del self._networks[network]
        if not self._public and not self._private:
            self._gone.set()

    def reserve(self, size: int) -> None:
        """Count bytes that wait, until `release`.

        Raises:
            IntakeError: too many wait already. These are counted all the same.
        """
        self.held += size
        if self.held > self.settings.queue:
            raise limits.queue_full()

    def release(self, size: int) -> None:
        """Stop counting these bytes as waiting."""
        self.held -= size

    async def close(self, seconds: float = inf) -> None:
        """Answer what has come whole, and end all connections; wait no longer than that."""
        self.ending = True
        self._gone.clear()
        for connection in self._all():
            connection.finish()
        if self._all():
            with_limit = None if seconds == inf else seconds
            try:
                await asyncio.wait_for(self._gone.wait(), with_limit)
            except TimeoutError:
                for connection in self._all():
                    connection.abort()
        self._timer.cancel()

    def _all(self) -> tuple[OpenConnection, ...]:
        return (*self._public, *self._private)

    def _look(self) -> None:
        self.date = b"date: " + formatdate(usegmt=True).encode()
        now = self.loop.time()
        for connection in self._all():
            try:
                connection.look(now)
            except Exception as error:
                # An error with one connection must not keep the others from being closed.
                tell_unexpected(error)
                connection.abort()
        self._timer = self.loop.call_later(_LOOK_SECONDS, self._look)
