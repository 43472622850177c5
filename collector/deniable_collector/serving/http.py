"""Requests: what one must be before anybody reads it (RFC 9112), and what the connections of one
process share, their limits and their end.

Where two readers could see different requests in the same bytes, or differ in whom it is for,
nobody reads it: a proxy in front must not be made to see another request than the collector.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Coroutine, Mapping
from email.utils import formatdate
from math import inf
from typing import Any, Protocol

import msgspec

from deniable_collector.refusals import IntakeError, not_http
from deniable_collector.serving.admission import network_of
from deniable_collector.serving.responses import Fields, Response, problem_of
from deniable_collector.settings import ROOM, Settings, port_of

_SLACK = 1 << 16
"""Bytes that are read of a body beyond twice its limit. One that is too long is read and forgotten
so far, as its sender may look for the response only when it has sent all."""

_LOOK_SECONDS = 0.5


class OpenConnection(Protocol):
    """A connection, as those see it that answer its requests or end it."""

    peer: str
    """The other end's address; "" where there is none."""
    host: str
    port: int
    """Where the client connected; -1 for a Unix socket."""

    def answer(self, request: Request, response: Response) -> None:
        """Write a response, when the requests before have theirs."""

    def look(self, now: float) -> None:
        """End it, if it has waited too long for its client."""

    def finish(self) -> None:
        """Answer what has come whole, and end."""

    def abort(self) -> None:
        """End at once."""


class Request(msgspec.Struct, eq=False):
    """A request whose header has come; its handler calls `respond`, once, on the event loop.

    Header names are in lower case, and lines of one name joined by commas (RFC 9110, 5.3). `size`
    is that of the body which it announces, or else which has come; where it is more than `limit`,
    `body` is empty. `given` are headers that a handler adds to any response, `context` is what it
    keeps of `admit` for `handle`.
    """

    connection: OpenConnection
    method: bytes = b""
    target: bytes = b""
    http_version: str = "1.1"
    headers: dict[bytes, bytes] = {}
    path: bytes = b""
    query: bytes = b""
    keep_alive: bool = False
    size: int = 0
    limit: int = 0
    body: bytes = b""
    given: Fields = ()
    context: Any = None
    pieces: list[bytes] = []
    held: int = 0
    refusal: Exception | None = None
    response: Response | None = None
    waits: bool = False
    whole: bool = False
    begun: bool = False

    def respond(self, response: Response) -> None:
        """Answer it, when those before it have been answered."""
        self.connection.answer(self, response)


class HttpHandler(ABC):
    """What serves requests; all is called on the event loop."""

    settings: Settings
    max_body: int
    """The largest body that any request may have."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, server: HttpServer) -> None:  # noqa: B027
        """Called before the first request to this server."""

    async def stop(self) -> None:
        """Called after the last response; ends all tasks."""
        for task in self._tasks:
            task.cancel()

    def note_held(self, held: int) -> None:  # noqa: B027
        """Called twice a second with the bytes of bodies that wait."""

    @abstractmethod
    def admit(self, request: Request) -> int:
        """The most bytes that this request's body may have, of which only the header is known.

        Raises:
            Exception: what `problem` answers, as soon as the request has come whole.
        """

    @abstractmethod
    def handle(self, request: Request) -> None:
        """Answer a whole request, now or later; or raise what `problem` answers."""

    def problem(self, error: Exception) -> Response:
        """The response for an exception, which is counted."""
        return problem_of(error)

    def keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it beside what else is done, until `stop`."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class HttpServer:
    """What the connections of one process share. All are looked at twice a second, so that no
    request needs a timer."""

    def __init__(self, handler: HttpHandler) -> None:
        self.handler = handler
        self.settings = settings = handler.settings
        self.most_received = 2 * handler.max_body + _SLACK
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
            return {b"at the private address": ROOM}
        found = {b"all others": self.settings.max_connections}
        if connection.peer and not self.settings.trusted_proxies:
            found[network_of(connection.peer)] = self.settings.network_connections
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
            told = "the server is busy: send the request again later, unchanged"
            raise IntakeError("queue-full", told, retry_after=1.0)

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
            try:
                await asyncio.wait_for(self._gone.wait(), None if seconds == inf else seconds)
            except TimeoutError:
                for connection in tuple(self._open):
                    connection.abort()
        self._timer.cancel()

    def _look(self) -> None:
        self._timer = self.loop.call_later(_LOOK_SECONDS, self._look)
        self.date = b"date: " + formatdate(usegmt=True).encode()
        self.handler.note_held(self.held)
        now = self.loop.time()
        for connection in tuple(self._open):
            connection.look(now)


_VERSIONS = ("1.1", "1.0")

_is_host = re.compile(rb"[A-Za-z0-9._~%!$&'()*+;=:\[\]-]*").fullmatch
"""Whether this can be a Host. It has no comma, so two lines, which are joined by one, are none."""

_PRINTABLE = re.compile(r"[\t\x20-\x7e]*")


def check_framing(version: str, headers: Mapping[bytes, bytes]) -> None:
    """Refuse a request of another version, without its one Host, or in an unknown coding.

    `version` is "1.1"; the names of `headers` are in lower case, and lines of one name joined.

    Raises:
        IntakeError: `not-http`.
    """
    if version not in _VERSIONS:
        raise not_http("no other version is served but 1.0")
    host = headers.get(b"host", None if version == "1.1" else b"")
    if host is None or not _is_host(host):
        raise not_http("a request has one Host header, which names a host")
    coding = headers.get(b"transfer-encoding")
    if coding is not None and (version != "1.1" or coding.lower() != b"chunked"):
        raise not_http("a body may come in chunks over HTTP/1.1, and in no other coding")


def token(value: str) -> str:
    """A header's value in lower case without white space around it; of odd bytes, no known one."""
    if not _PRINTABLE.fullmatch(value):
        return "?"
    return value.strip(" \t").lower()


def media_type(value: str) -> str:
    """A Content-Type in lower case and without its parameters; of odd bytes, no known one."""
    return token(value).partition(";")[0].rstrip(" \t")


def is_text(value: str) -> bool:
    """Whether a Content-Type is text/plain in UTF-8, or without a charset."""
    kind, *parameters = token(value).split(";")
    named = (each.partition("=") for each in parameters)
    charsets = {text.strip(' \t"') for name, _, text in named if name.strip(" \t") == "charset"}
    return kind.rstrip(" \t") == "text/plain" and charsets <= {"utf-8", "utf8"}
