"""The server of a process: its connections, and the limits that they share."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from email.utils import formatdate
from math import inf
from typing import Protocol

from deniable_collector.operation.events import tell_unexpected
from deniable_collector.serving import limits
from deniable_collector.serving.rates import network_of
from deniable_collector.serving.request import OpenConnection, Request, Response
from deniable_collector.settings import Settings, port_of

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
        self._private_port = port_of(settings.metrics_bind)
        self._open: dict[OpenConnection, Mapping[bytes, int]] = {}
        """The connections, with what each of them counts to."""
        self._counts: Counter[bytes] = Counter()
        self._gone = asyncio.Event()
        self._look()

    def enter(self, connection: OpenConnection) -> int:
        """Count a connection; returns how many there are beyond its limit."""
        most = self._open[connection] = self._limits(connection)
        self._counts.update(most.keys())
        return max(self._counts[name] - each for name, each in most.items())

    def _limits(self, connection: OpenConnection) -> dict[bytes, int]:
        """What a connection counts to, with how many there may be of it.

        Those at the private address have their own limit, because probes and metrics are needed
        most during a flood. Behind a proxy all clients share the proxy's network.
        """
        if connection.port == self._private_port:
            return {b"at the private address": limits.ROOM}
        found = {b"all others": self.settings.max_connections}
        if connection.peer.address and not self.settings.trusted_proxies:
            found[network_of(connection.peer.address)] = self.settings.network_connections
        return found

    def leave(self, connection: OpenConnection) -> None:
        """Forget a connection that has ended."""
        for name in self._open.pop(connection, ()):
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]
        if not self._open:
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
        for connection in tuple(self._open):
            connection.finish()
        if self._open:
            with_limit = None if seconds == inf else seconds
            try:
                await asyncio.wait_for(self._gone.wait(), with_limit)
            except TimeoutError:
                for connection in tuple(self._open):
                    connection.abort()
        self._timer.cancel()

    def _look(self) -> None:
        self.date = b"date: " + formatdate(usegmt=True).encode()
        now = self.loop.time()
        for connection in tuple(self._open):
            try:
                connection.look(now)
            except Exception as error:
                # An error with one connection must not keep the others from being closed.
                tell_unexpected(error)
                connection.abort()
        self._timer = self.loop.call_later(_LOOK_SECONDS, self._look)
