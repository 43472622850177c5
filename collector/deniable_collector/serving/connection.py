"""HTTP/1.1 for an event loop (RFC 9110, 9112): asyncio's protocol around the parser of httptools.

A request reaches its handler when it has come whole, and the event loop writes the response: a
slow client takes nothing but its connection, and that for a limited time. The requests of one
connection are handled one after the other, and answered in their order.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Iterable
from functools import partial
from math import inf
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import httptools

from deniable_collector.refusals import IntakeError, not_http
from deniable_collector.serving.http import HttpHandler, HttpServer, Request, check_framing
from deniable_collector.serving.responses import Response
from deniable_collector.settings import ROOM

MAX_HEADER: Final = 1 << 14
MAX_LINES: Final = 64
"""Bytes and lines of a header, the request line included."""

PIPELINED: Final = 64
"""How many requests of one connection may wait. What was read at once can contain thousands, each
of which needs a hundred times its bytes of memory."""

_PACE = 1 << 15
"""Bytes a second: a client that sends or reads as fast has more time than the limit."""

_LINGER_SECONDS = 2.0
"""Seconds for which a refused client may read the reason. Closing at once would reset the
connection, and what the client had not read yet would be lost."""

_CHUNKS = 2048
_CHUNK_BYTES = 256
"""A body may come in so many chunks, and in one more for each so many bytes: each takes a call."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(asyncio.Protocol):
    """One connection: reads requests, and writes their responses in order."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._parser: Any = httptools.HttpRequestParser(self)
        self._queue: deque[Request] = deque()
        """Requests without an answer. The first is handled; the last may still be coming."""
        self._reading: Request | None = None
        """The one whose body is coming."""
        self._header = False
        """Whether a header has begun and not ended."""
        self._headers: dict[bytes, bytes] = {}
        self._url = b""
        self._untold = 0
        """Bytes that have come since the parser told anything: of a line that has not ended."""
        self._fields = self._field_bytes = 0
        """Lines and bytes of this header or trailer."""
        self._chunks = self._received = 0
        """Chunks and bytes of this body."""
        self._advancing = self._deaf = self._eof = self._full = self._paused = False
        self._since, self._write_by, self._unread = server.loop.time(), inf, 0
        """Since when the client is waited for, and when it must have read its response."""
        self.host, self.port = "localhost", -1

    # What the event loop tells.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        name = transport.get_extra_info("peername")
        self.peer = name[0] if isinstance(name, tuple) else ""
        place = transport.get_extra_info("sockname")
        if isinstance(place, tuple):
            self.host, self.port = place[:2]
        over = self._server.enter(self)
        if over > ROOM:
            transport.abort()
        elif over > 0:
            self._refuse(_too_many_connections())
        elif self._server.ending:
            self.finish()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.leave(self)
        for request in self._queue:
            # What is handled already is released when it is answered.
            if not request.begun:
                self._release(request)
        self._queue.clear()
        # They refer to each other. Without the cycle both are freed at once.
        self._parser = self._reading = None

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._untold += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._deaf = True
        except httptools.HttpParserError as error:
            # What a callback of ours has raised, or the parser itself.
            why = error.__context__
            self._refuse(why if isinstance(why, Exception) else not_http())
        else:
            if self._untold > MAX_HEADER:
                self._refuse(_header_too_large() if self._reading is None else _too_large())

    def eof_received(self) -> bool:
        """The client sends no more. It may still read: requests that came whole are answered, and
        then the connection ends."""
        self._eof = True
        self._read_no_more()
        return bool(self._queue)

    def pause_writing(self) -> None:
        """The client does not read: its next requests wait until it does."""
        self._full = True
        self._limit_writing(0.0)
        self._pause()

    def resume_writing(self) -> None:
        self._full = False
        self._write_by = inf
        self._advance()

    # What the parser tells.

    def on_message_begin(self) -> None:
        if self._deaf:
            # The request before was the last one, which the parser does not know.
            raise not_http()
        self._header = True
        self._url, self._headers = b"", {}
        self._untold = self._fields = self._field_bytes = self._chunks = self._received = 0
        self._since = self._server.loop.time()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count_field(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += 1
        self._count_field(len(name) + len(value) + 4)
        # A line of a trailer, behind a body in chunks, is read by nobody: as a header it would come
        # too late to be checked (RFC 9110, 6.5.1).
        if self._header:
            name, value = name.lower(), value.strip(b" \t")
            if name in self._headers:
                mark = b"; " if name == b"cookie" else b","
                value = self._headers[name] + mark + value
            self._headers[name] = value

    def _count_field(self, size: int) -> None:
        """Stop parsing a header or trailer that is too large."""
        self._untold = 0
        self._field_bytes += size
        if self._field_bytes > MAX_HEADER or self._fields > MAX_LINES:
            raise _header_too_large()

    def on_headers_complete(self) -> None:
        self._header = False
        self._untold = self._fields = self._field_bytes = 0
        version, headers = self._parser.get_http_version(), self._headers
        check_framing(version, headers)
        if len(self._queue) >= PIPELINED:
            # The connection ends: whoever sends so many ahead can send the rest again.
            raise _too_many_connections()
        try:
            url = httptools.parse_url(self._url)
        except httptools.HttpParserInvalidURLError:
            raise not_http("the request names no path") from None
        request = Request(
            self,
            self._parser.get_method(),
            self._url,
            version,
            headers,
            unquote_to_bytes(url.path or b"/"),
            url.query or b"",
            # HTTP/1.0 would want to hear that the connection stays, where it may.
            version != "1.0" and self._parser.should_keep_alive(),
            # The parser has checked that this is a number; one as long is large enough.
            int(headers.get(b"content-length", b"0")[:19]),
        )
        if self._parser.should_upgrade():
            # The parser reads no further, for what follows would be of the other protocol. A proxy
            # in front, which knows better, could be made to see another request than we do.
            if b"content-length" in headers or b"transfer-encoding" in headers:
                raise not_http("a request with a body may ask for no upgrade")
            request.keep_alive = False
        self._reading = request
        self._queue.append(request)
        try:
            request.limit = self._server.handler.admit(request)
        except Exception as error:
            # Nothing of its body is kept then.
            request.refusal = error
            if isinstance(error, IntakeError) and error.code == "too-many-requests":
                # What else it sends would have to be read and refused as well.
                request.keep_alive = False
        # One of HTTP/1.0 would take the leave for the response (RFC 9110, 10.1.1).
        if version == "1.1" and headers.get(b"expect", b"").lower() == b"100-continue":
            request.waits = True
            self._advance()
        if len(self._queue) > 1:
            self._pause()

    def on_chunk_header(self) -> None:
        self._untold = 0
        self._chunks += 1
        if self._chunks > _CHUNKS + self._received // _CHUNK_BYTES:
            raise not_http("send a body in fewer and longer chunks")

    def on_body(self, body: bytes) -> None:
        self._untold = 0
        self._received += len(body)
        if self._received > self._server.most_received:
            raise _too_large()
        request = self._reading
        if request is None or request.refusal is not None:
            return
        if self._chunks:
            request.size += len(body)
        if request.size > request.limit:
            self._release(request)
            return
        request.pieces.append(body)
        request.held += len(body)
        try:
            self._server.reserve(len(body))
        except Exception as error:
            # Answered only when all has come: if unread bytes are left when the connection
            # closes, the response is lost.
            request.refusal = error
            self._release(request)

    def on_message_complete(self) -> None:
        request, self._reading = self._reading, None
        self._untold = 0
        if request is None:
            return
        request.whole = True
        request.body, request.pieces = b"".join(request.pieces), []
        if not request.keep_alive:
            self._deaf = True
        self._advance()

    # What comes of it.

    def answer(self, request: Request, response: Response) -> None:
        """Called by `Request.respond`."""
        self._release(request)
        request.response = response
        self._advance()

    def finish(self) -> None:
        """The server ends: answer what has come whole, and close."""
        self._read_no_more()
        if not self._queue:
            self._transport.close()
            self._limit_writing(0.0)

    def _read_no_more(self) -> None:
        """Answer what has come whole, and nothing behind it."""
        self._deaf = True
        if self._reading is not None:
            self._release(self._queue.pop())
            self._reading = None
        if self._queue:
            self._queue[-1].keep_alive = False

    def abort(self) -> None:
        """Cut the client off."""
        self._server.leave(self)
        self._transport.abort()

    def look(self, now: float) -> None:
        """Close the connection, if it has waited too long for its client."""
        settings, left = self._server.settings, self._transport.get_write_buffer_size()
        if now >= self._write_by:
            if left and self._unread - left >= _PACE * settings.request_timeout:
                self._limit_writing(0.0)
            else:
                self._transport.abort()
        elif self._paused or self._deaf:
            return
        elif self._header or self._reading is not None:
            if now >= self._since + settings.request_timeout + self._received / _PACE:
                told = (
                    f"a request must arrive whole within {settings.request_timeout} seconds, and "
                    f"one more for each {_PACE >> 10} KiB: send it again, unchanged"
                )
                self._refuse(IntakeError("too-slow", told))
        elif not self._queue and now >= self._since + settings.keep_alive:
            self._transport.abort() if left else self._transport.close()

    def _advance(self) -> None:
        """Handle and answer as many requests as can be now."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._queue and not self._full and not self._transport.is_closing():
                request = self._queue[0]
                if request.response is not None:
                    self._queue.popleft()
                    self._write(request, request.response)
                elif request.begun or not self._ready(request):
                    break
                else:
                    request.begun = True
                    try:
                        if request.refusal is not None:
                            raise request.refusal
                        self._server.handler.handle(request)
                    except Exception as error:
                        self.answer(request, self._server.handler.problem(error))
        finally:
            self._advancing = False
        if self._transport.is_closing() or self._deaf:
            return
        if self._paused and len(self._queue) < 2 and not self._full:
            self._paused = False
            self._transport.resume_reading()
            self._since = self._server.loop.time()
        elif not self._queue and not self._header:
            self._since = self._server.loop.time()

    def _ready(self, request: Request) -> bool:
        """Whether the first request can be handled; its client is told if it waits for leave."""
        if request.waits and not request.whole:
            request.waits = False
            if request.refusal is not None or request.size > request.limit:
                # The client need not send the body, and nobody knows whether it will.
                request.keep_alive = False
                self._deaf, self._reading = True, None
                return True
            self._transport.write(_CONTINUE)
        return request.whole

    def _write(self, request: Request, response: Response) -> None:
        if self._server.ending and not self._queue:
            request.keep_alive = False
        start = response.start(request.keep_alive, request.given)
        if response.length is not None:
            start += b"content-length: %d\r\n" % response.length
        body = b"" if request.method == b"HEAD" else response.body
        self._transport.write(b"%b%b\r\n\r\n%b" % (start, self._server.date, body))
        if not request.keep_alive:
            self._end()

    def _refuse(self, why: Exception) -> None:
        """Read no more, and answer with the problem behind all that came before."""
        if self._deaf:
            return
        self._deaf = True
        request, self._reading = self._reading, None
        if request is None:
            request = Request(self)
            self._queue.append(request)
        request.begun = True
        request.keep_alive = False
        self.answer(request, self._server.handler.problem(why))

    def _end(self) -> None:
        """Close, as soon as the client has read all, or has had the time for it."""
        self._deaf = True
        self._queue.clear()
        self._limit_writing(_LINGER_SECONDS)
        if self._eof or not self._transport.can_write_eof():
            self._transport.close()
        else:
            self._transport.write_eof()
            # What the client sends meanwhile is read, and discarded.
            self._transport.resume_reading()

    def _limit_writing(self, linger: float) -> None:
        """From now on the client has a limited time to read what was written."""
        self._unread = self._transport.get_write_buffer_size()
        seconds = self._server.settings.request_timeout if self._unread else 0.0
        self._write_by = self._server.loop.time() + max(linger, seconds)

    def _pause(self) -> None:
        if not self._paused and not self._deaf:
            self._paused = True
            self._transport.pause_reading()

    def _release(self, request: Request) -> None:
        """Forget the parts of a body that have come; they no longer wait."""
        if request.held:
            self._server.release(request.held)
            request.held, request.pieces, request.body = 0, [], b""


def _too_many_connections() -> IntakeError:
    told = "the server has as many connections as it can serve: send the request again later, "
    return IntakeError("too-many-connections", f"{told}unchanged", retry_after=5.0)


def _header_too_large() -> IntakeError:
    told = f"a header may have up to {MAX_LINES} lines and {MAX_HEADER} bytes, the request line"
    return IntakeError("header-too-large", f"{told} included")


def _too_large() -> IntakeError:
    told = "a request may not be longer than its body's limit allows: send less at once"
    return IntakeError("body-too-large", told)


async def serve(
    handler: HttpHandler,
    sockets: Iterable[socket.socket],
    until: Awaitable[object],
    seconds: float = inf,
    backlog: int = 2048,
) -> None:
    """Serve at these sockets until `until` is done; then wait at most so long for answers."""
    server = HttpServer(handler)
    await handler.start(server)
    listening = [
        await server.loop.create_server(partial(Connection, server), sock=each, backlog=backlog)
        for each in sockets
    ]
    await until
    for each in listening:
        each.close()
    await server.close(seconds)
    await handler.stop()
