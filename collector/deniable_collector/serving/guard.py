"""The limits of a connection: size of its header, time, and the number of connections.

The parser accepts a header of any length, and uvicorn waits for ever for a request that has
begun. Here both have limits, with a problem document if the client can still read one.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from deniable_collector.operation.events import tell
from deniable_collector.refusals import IntakeError, not_http
from deniable_collector.serving.framing import check_framing
from deniable_collector.serving.problems import problem_of, tell_unexpected
from deniable_collector.serving.responses import wire
from deniable_collector.settings import Settings

ROOM: Final = 64
"""How many connections beyond the limit get an answer at the same time; others are cut off. As many
connections are reserved for the private address."""

PIPELINED: Final = 64
"""How many pipelined requests of one connection may wait. What was read at once can contain
thousands, each of which needs a hundred times its bytes of memory."""

_SPARE = 3 * ROOM
"""Open files that are needed in addition to the connections."""

_LOOK_SECONDS = 0.5
_LINGER_SECONDS = 2.0
"""Seconds for which a refused client may read the reason. Closing at once would reset the
connection, and what the client had not read yet would be lost."""

_CHUNKS = 2048
_CHUNK_BYTES = 256
"""A body may come in so many chunks, and in one more for each so many bytes: each takes a call."""

_SLACK = 1 << 16
_BODY = (b"content-length", b"transfer-encoding")


_PER_REQUEST = (
    "Invalid HTTP request received.",
    "Unsupported upgrade request.",
    "No supported WebSocket library detected.",
)


def _is_logged(record: logging.LogRecord) -> bool:
    """Leave out uvicorn's messages about malformed requests, with which a flood would fill the
    disk. The metrics count them."""
    return not record.getMessage().startswith(_PER_REQUEST)


logging.getLogger("uvicorn.error").addFilter(_is_logged)


def open_files(connections: int) -> None:
    """Raise the limit of open files of this process and its children, if the system allows it.

    Without it, a server that reaches the system's limit (often 1,024) stops accepting.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
        if allowed < wanted:
            tell(
                "warning",
                "few-files",
                f"the system allows {hard} open files, too few for {connections} connections: "
                f"lower DENIABLE_MAX_CONNECTIONS to {max(1, hard - _SPARE)}, or raise the limit",
            )


class Guard:
    """The limits that all connections of one process share, and a periodic check of each.

    Checking all of them twice a second costs a request nothing, unlike a timer for each.
    """

    def __init__(self, settings: Settings) -> None:
        self.max_header = settings.max_header
        self.max_headers = settings.max_headers
        # Chunked coding may take as much again; trailers and extensions end here too.
        self.max_request = settings.max_header + 2 * settings.max_body + _SLACK
        self.timeout = float(settings.request_timeout)
        self.keep_alive = float(settings.keep_alive)
        self.max_connections = settings.max_connections
        self._private_port = int(settings.metrics_bind.rpartition(":")[2] or -1)
        self._connections: set[GuardedConnection] = set()
        self._private: set[GuardedConnection] = set()
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, connection: GuardedConnection) -> int:
        """Watch a connection; returns how many there are now beyond the limit.

        Connections at the private address have their own limit, because probes and metrics are
        needed most during a flood.
        """
        crowd, most = self._connections, self.max_connections
        if connection.server is not None and connection.server[1] == self._private_port:
            crowd, most = self._private, ROOM
        crowd.add(connection)
        if self._timer is None:
            self._timer = connection.loop.call_later(_LOOK_SECONDS, self._look, connection.loop)
        return len(crowd) - most

    def leave(self, connection: GuardedConnection) -> None:
        """Stop watching a connection."""
        self._connections.discard(connection)
        self._private.discard(connection)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for connection in (*self._connections, *self._private):
            try:
                connection.look(now)
            except Exception as error:
                # An error with one connection must not keep the others from being closed.
                tell_unexpected(error)
                self.leave(connection)
                connection.transport.abort()
        if self._connections or self._private:
            self._timer = loop.call_later(_LOOK_SECONDS, self._look, loop)


class GuardedConnection(HttpToolsProtocol):
    """uvicorn's connection within the limits of the app's `guard`.

    What goes on is read from uvicorn's own state when it is looked at, so that a request
    pays for one note of its beginning and a sum of its bytes.
    """

    # Side by side in the object, so that a request of one among hundreds of connections finds them
    # in few lines of the processor's cache. In uvicorn's dictionary they would be too many for the
    # form that is as fast.
    __slots__ = (
        "_before",
        "_begun",
        "_changed",
        "_chunks",
        "_ended",
        "_guard",
        "_host",
        "_in_piece",
        "_own",
        "_piece",
        "_received",
        "_refusal",
        "_refused",
        "_running",
        "_seen",
        "_shared",
        "_state",
        "_trailers",
        "http_version",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        guard = getattr(self.app, "guard", None)
        self._guard: Guard = Guard(Settings()) if guard is None else guard
        self._begun = self._changed = self.loop.time()
        self._received = self._piece = self._own = self._chunks = self._trailers = 0
        self._shared = False
        self._running: Any = None
        self._in_piece = False
        self._before: object = None
        self._state = ""
        self._seen: object = None
        self._refused = False
        self._ended = False
        self._host = b" "
        """The Host of an earlier request, which need not be checked again; none at first."""
        self.http_version = ""
        self._refusal: IntakeError | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        over = self._guard.enter(self)
        if over > ROOM:
            transport.abort()
        elif over > 0:
            self.refuse(_full())

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.leave(self)
        self._stop_running()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        # Whether it begins with the rest of a request.
        self._shared = self._received > 0 and (self._in_header() or self.cycle.more_body)
        self._piece = len(data)
        self._received += self._piece
        self._own += self._piece
        self._in_piece = False
        super().data_received(data)
        if self._own > self._guard.max_header and not self._refused:
            if self._in_header():
                self.refuse(_header_too_large(self._guard))
            elif self._own > self._guard.max_request:
                self.refuse(_request_too_large())

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's always ends it
        """The client sends no more. It may still read: requests that came whole are answered, and
        then the connection ends."""
        last = self.cycle
        if self._refused or last is None or last.response_complete:
            return False
        if last.more_body:
            if not self.pipeline:
                return False
            # It waits for others, and need not begin; they are answered.
            self.pipeline.popleft()
            if not self.pipeline:
                # The one before it is being answered, and is the last.
                self._ended = True
                return True
            last, _ = self.pipeline[0]
        last.keep_alive = False
        return True

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._ended and not self.pipeline:
            self.transport.close()

    def on_message_begin(self) -> None:
        # uvicorn's own is called where its request cycle begins.
        self.url = b""
        self.headers = []
        self._begun = self.loop.time()
        self._before = self.cycle
        # Nobody knows how much of this piece belongs to requests before this one: `_received` is
        # the most that has come of this one, and `_own` the least.
        self._received = self._piece
        self._own = 0 if self._shared else self._piece
        self._shared = True
        self._chunks = self._trailers = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.cycle is self._before:
            self.headers.append((name.lower(), value))
            return
        # A line of the trailer, behind a body in chunks. Nothing reads it, and as a header it would
        # come too late to be checked (RFC 9110, 6.5.1).
        self._trailers += 1
        if self._trailers > self._guard.max_headers:
            self._refusal = _header_too_large(self._guard)
            raise self._refusal

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _stop_running(self) -> None:
        """Tell the app that its client is gone. uvicorn tells the last request only, and it may be
        one before that which is being answered."""
        running, self._running = self._running, None
        if running is not None and not running.response_complete:
            running.disconnected = True
            running.message_event.set()

    def on_headers_complete(self) -> None:
        found = self.check_request()
        url, headers = self.url, self.headers
        super().on_message_begin()
        self.url = url
        self.headers += headers
        self.expect_100_continue = self.waits_for_leave(found)
        super().on_headers_complete()

    def waits_for_leave(self, found: dict[bytes, bytes]) -> bool:
        """Whether the client waits for "100 Continue". One of HTTP/1.0 does not know it, and would
        take it for the response (RFC 9110, 10.1.1)."""
        return (
            b"expect" in found
            and found[b"expect"].lower() == b"100-continue"
            and self.http_version == "1.1"
        )

    def on_body(self, body: bytes) -> None:
        self.count_chunk()
        super().on_body(body)

    def count_chunk(self) -> None:
        """Stop parsing a body that comes in too many chunks; called for each of its pieces."""
        # What comes in one piece is one chunk, unless it was sent as several.
        if not self._in_piece:
            self._in_piece = True
            return
        self._chunks += 1
        if self._chunks > _CHUNKS + self._received // _CHUNK_BYTES:
            self._refusal = not_http("send a body in fewer and longer chunks")
            raise self._refusal

    def check_request(self) -> dict[bytes, bytes]:
        """Stop parsing a request that nobody may read, or that is one too many. Returns its
        headers; those of one name are joined by commas, as RFC 9110 (5.3) has it."""
        self.check_header()
        headers = self.headers
        self.http_version = version = self.parser.get_http_version()
        found = dict(headers)
        if (
            found.get(b"host") != self._host
            or len(found) != len(headers)
            or version != "1.1"
            or b"transfer-encoding" in found
        ):
            try:
                check_framing(version, headers)
            except IntakeError as error:
                self._refusal = error
                raise
            if b"host" in found:
                self._host = found[b"host"]
            found = {}
            for name, value in headers:
                found[name] = b"%b,%b" % (found[name], value) if name in found else value
        if self.parser.should_upgrade() and any(name in found for name in _BODY):
            # The parser takes what follows for the other protocol, not for a body: a proxy in
            # front, which does not, could be made to see another request than we do.
            self._refusal = not_http("a request with a body may ask for no upgrade")
            raise self._refusal
        if len(self.pipeline) >= PIPELINED:
            # The connection ends: whoever sends so many ahead can send the rest again.
            raise _full()
        return found

    def check_header(self) -> None:
        """Stop parsing a request whose header is too large."""
        guard = self._guard
        if len(self.headers) > guard.max_headers or (
            self._received > guard.max_header
            and len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            > guard.max_header
        ):
            self._refusal = _header_too_large(guard)
            raise self._refusal

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn when the parser, or one of its callbacks, raises."""
        self.refuse(self._refusal or not_http())

    def refuse(self, why: IntakeError) -> None:
        """Answer with the problem, if the client can tell which request it is for, and close."""
        self._refused = True
        cycle = self.cycle
        pending = cycle is not None and not cycle.response_complete
        if self._in_header():
            clear = not pending
        else:
            clear = pending and cycle.more_body and not getattr(cycle, "response_started", False)
        if pending:
            # For the app, the client is gone.
            cycle.disconnected = True
            cycle.message_event.set()
        if self.pipeline or not clear:
            self._stop_running()
            # A response now would be taken for the response to another request.
            self.transport.close()
            return
        self.flow.resume_reading()
        self.transport.write(wire(problem_of(why), keep_alive=False))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def look(self, now: float) -> None:
        """Close the connection, if it has waited too long for its client."""
        state, limit = self._condition()
        if state != self._state or self._seen is not self.cycle:
            self._state, self._seen, self._changed = state, self.cycle, now
        if now - (self._begun if state == "reading" else self._changed) < limit:
            return
        if state == "reading" and self._received:
            self.refuse(_too_slow(self._guard.timeout))
        elif state in ("reading", "idle"):
            self.transport.close()
        else:
            self.transport.abort()

    def _condition(self) -> tuple[str, float]:
        """What the connection is waiting for, and the limit in seconds."""
        cycle = self.cycle
        if self._refused:
            return "lingering", _LINGER_SECONDS
        if self.flow.write_paused or self.transport.is_closing():
            return "writing", self._guard.timeout
        if self._in_header() or (not self.pipeline and cycle.more_body):
            return "reading", self._guard.timeout
        if cycle.response_complete and not self.pipeline:
            return "idle", self._guard.keep_alive
        return "working", float("inf")

    def at_rest(self) -> bool:
        """Whether all requests have been answered, and nothing has come of the next."""
        last = self.cycle
        if last is None:
            return not self._received and not self._refused
        return (
            last.response_complete
            and not last.more_body
            and last is not self._before
            and not self._refused
        )

    def _in_header(self) -> bool:
        """Whether a header has begun and not ended, or nothing has arrived at all."""
        return self.cycle is self._before


def _full() -> IntakeError:
    return IntakeError(
        "too-many-connections",
        "the collector has as many connections as it can serve: send the batch again later, "
        "unchanged",
        retry_after=5.0,
    )


def _header_too_large(guard: Guard) -> IntakeError:
    return IntakeError(
        "header-too-large",
        f"a header may have up to {guard.max_headers} lines and {guard.max_header} bytes, the "
        "request line included",
    )


def _request_too_large() -> IntakeError:
    return IntakeError(
        "body-too-large",
        "a request may not be longer than its body's limit allows: send several batches",
    )


def _too_slow(seconds: float) -> IntakeError:
    return IntakeError(
        "too-slow",
        f"a request must arrive whole within {seconds:g} seconds: send it again, unchanged",
    )
