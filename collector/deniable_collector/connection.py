"""uvicorn's HTTP connection, which reads batches and capsules itself and responds to them.

They are handled by callbacks of the parser, without the task and the messages of an ASGI call.
All other requests are handled by uvicorn and the app. Its parser reads the HTTP of both, but for a
header that came before in the same bytes (`heads.py`).
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote_to_bytes

import httptools

from deniable_collector.asgi import CAPSULES, REPORTS, Collector
from deniable_collector.batches.batch import Receipt
from deniable_collector.refusals import IntakeError, too_large
from deniable_collector.serving.guard import GuardedConnection
from deniable_collector.serving.heads import Expected, RequestHead
from deniable_collector.serving.problems import problem_of
from deniable_collector.serving.rates import Peer
from deniable_collector.serving.responses import HttpResponse, accepted, wire

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class _Exchange:
    """A request for one of the collector's own resources. It has the names of uvicorn's request
    cycle, and stands in its place."""

    __slots__ = (
        "body",
        "connection",
        "disconnected",
        "expected",
        "given",
        "head",
        "held",
        "its_turn",
        "keep_alive",
        "more_body",
        "refusal",
        "response",
        "response_complete",
        "waits",
    )

    message_event = asyncio.Event()
    """uvicorn sets this at the end of a cycle; nothing waits for it here."""

    def __init__(
        self,
        connection: Connection,
        head: RequestHead,
        expected: Expected | None = None,
        keep_alive: bool = True,
        its_turn: bool = True,
    ) -> None:
        self.connection = connection
        self.head = head
        self.expected = expected
        self.keep_alive = keep_alive
        self.its_turn = its_turn
        """Whether all requests before it have been answered."""
        self.given: tuple[tuple[bytes, bytes], ...] = ()
        """What its response carries for the page that asks."""
        self.body: bytes | bytearray = b""
        self.held = 0
        """Bytes that are counted as waiting."""
        self.more_body = True
        self.waits = False
        """Whether the client waits for "100 Continue" before it sends the body."""
        self.refusal: Exception | None = None
        self.response: HttpResponse | None = None
        self.response_complete = self.disconnected = False

    def may_come_again(self) -> bool:
        """Whether another request with this header can be handled as this one was."""
        plain = self.keep_alive and not self.more_body and not self.waits
        return plain and self.expected is not None and self.refusal is None

    def done(self, outcome: Receipt | Exception) -> None:
        self.connection.answer(
            self, accepted(outcome) if isinstance(outcome, Receipt) else problem_of(outcome)
        )

    def respond(self, response: HttpResponse) -> None:
        self.connection.answer(self, response)

    async def run_asgi(self, app: object) -> None:
        """Called by uvicorn when the requests before it have been answered."""
        self.its_turn = True
        self.connection.begin_turn(self)


class Connection(GuardedConnection):
    """Serves a `Collector`; any other app is served as by uvicorn."""

    __slots__ = ("_collector", "_peer")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        app: Any = self.app
        self._collector: Collector | None = app if isinstance(app, Collector) else None
        self._peer: Peer | None = None
        # Without this, uvicorn would log addresses and paths, whatever the logging settings are.
        self.access_log = False

    def data_received(self, data: bytes) -> None:
        collector = self._collector
        if collector is None or not self.at_rest():
            super().data_received(data)
            return
        known = collector.heads.find(data)
        if known is None:
            before = self.cycle
            super().data_received(data)
            last = self.cycle
            if isinstance(last, _Exchange) and last is not before and last.may_come_again():
                assert last.expected is not None
                collector.heads.keep(data, last.head, last.expected)
            return
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        exchange = _Exchange(self, known.head, known.expected)
        self.cycle = exchange  # type: ignore[assignment]
        exchange.more_body = False
        try:
            self._admit(exchange)
            exchange.held = known.length
            collector.reserve(known.length)
        except Exception as error:
            exchange.refusal = error
        self._handle(exchange, data[len(data) - known.length :])

    def on_headers_complete(self) -> None:
        collector = self._collector
        path, query = self.url, b""
        if path != REPORTS:
            path, query = _split(path)
        if (
            collector is None
            or path not in collector.resources
            or self.parser.get_method() != b"POST"
        ):
            super().on_headers_complete()
            return
        found = self.check_request()
        last = self.cycle
        # HTTP/1.0 would want to hear that the connection stays, where it may.
        keep_alive = self.http_version != "1.0" and self.parser.should_keep_alive()
        its_turn = last is None or last.response_complete
        exchange = _Exchange(self, RequestHead(path, query, found), None, keep_alive, its_turn)
        self.cycle = exchange  # type: ignore[assignment]
        if not its_turn:
            self.flow.pause_reading()
            self.pipeline.appendleft((exchange, self.app))  # type: ignore[arg-type]
        try:
            self._admit(exchange)
            exchange.expected = expected = collector.expect(exchange.head)
            # The parser has checked that this is a number; one as long is large enough.
            if int(found.get(b"content-length", b"0")[:19]) > expected.limit:
                raise _too_large(expected)
        except Exception as error:
            # Nothing of its body is kept then.
            exchange.refusal = error
        if self.waits_for_leave(found):
            exchange.waits = True
            if its_turn:
                self.begin_turn(exchange)

    def _admit(self, exchange: _Exchange) -> None:
        """Check the sender of a request.

        Raises:
            IntakeError: as `Collector.admit` does.
        """
        collector = self._collector
        assert collector is not None
        if collector.has_pages:
            origin = exchange.head.found.get(b"origin", b"")
            exchange.given = collector.page_headers(origin)
        if self._peer is None:
            self._peer = Peer(self.client[0] if self.client else "")
        collector.admit(self._peer, exchange.head)

    def begin_turn(self, exchange: _Exchange) -> None:
        """Send what a request may have now that all before it have been answered."""
        if exchange.response is not None:
            self.answer(exchange, exchange.response)
        elif exchange.waits and exchange.more_body:
            if exchange.refusal is not None:
                # The client need not send the body, and nobody knows whether it will.
                exchange.keep_alive = False
                self.answer(exchange, problem_of(exchange.refusal))
            elif not self.transport.is_closing():
                self.flow.resume_reading()
                self.transport.write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        exchange = self.cycle
        if not isinstance(exchange, _Exchange):
            super().on_body(body)
            return
        self.count_chunk()
        self._gather(exchange, body)

    def _gather(self, exchange: _Exchange, body: bytes) -> None:
        """Keep the next part of a body."""
        if exchange.refusal is None:
            assert self._collector is not None
            assert exchange.expected is not None
            size = len(body)
            if exchange.held:
                if isinstance(exchange.body, bytes):
                    exchange.body = bytearray(exchange.body)
                exchange.body += body
            else:
                exchange.body = body
            exchange.held += size
            try:
                self._collector.reserve(size)
                if exchange.held > exchange.expected.limit:
                    raise _too_large(exchange.expected)
            except IntakeError as error:
                # Answer only when all has arrived: if unread bytes are left when the connection
                # closes, the response is lost.
                exchange.refusal = error
                self._release(exchange)

    def on_message_complete(self) -> None:
        exchange = self.cycle
        if not isinstance(exchange, _Exchange):
            super().on_message_complete()
            return
        exchange.more_body = False
        if not exchange.response_complete:
            body, exchange.body = bytes(exchange.body), b""
            self._handle(exchange, body)

    def _handle(self, exchange: _Exchange, body: bytes) -> None:
        """Handle a request that has come whole."""
        collector = self._collector
        assert collector is not None
        try:
            if exchange.refusal is not None:
                raise exchange.refusal
            assert exchange.expected is not None
            if collector.handle_fast(exchange.expected, body, exchange.done, exchange.respond):
                return
        except Exception as error:
            self.answer(exchange, problem_of(error))
            return
        task = self.loop.create_task(self._slowly(exchange, exchange.expected, body))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    async def _slowly(self, exchange: _Exchange, expected: Expected, body: bytes) -> None:
        assert self._collector is not None
        try:
            response = await self._collector.handle(expected, body)
        except Exception as error:
            response = problem_of(error)
        self.answer(exchange, response)

    def pause_writing(self) -> None:
        # The client does not read: its next requests wait until it does.
        super().pause_writing()
        self.flow.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.pipeline:
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.flow.write_paused:
            self.flow.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        exchange = self.cycle
        if isinstance(exchange, _Exchange) and exchange.more_body:
            # A request that never arrives completely is not answered.
            self._release(exchange)
        super().connection_lost(exc)
        # A connection and its requests refer to each other, here and in the guard. Breaking
        # the cycle frees them at once, without the garbage collector.
        self.cycle = self._before = self._seen = None  # type: ignore[assignment]
        self.pipeline.clear()

    def answer(self, exchange: _Exchange, response: HttpResponse) -> None:
        """Write the response of a request, if the client is still connected; or keep it until
        the requests before have theirs."""
        if exchange.held:
            self._release(exchange)
        transport = self.transport
        if exchange.disconnected or transport.is_closing():
            exchange.response_complete = True
            return
        if not exchange.its_turn:
            exchange.response = response
            return
        exchange.response_complete = True
        keep_alive = exchange.keep_alive and not (self._ended and not self.pipeline)
        state = self.server_state
        transport.write(wire(response, keep_alive, state.default_headers, exchange.given))
        if keep_alive and self.pipeline:
            self.on_response_complete()
            return
        # One that stays is closed by the guard when it has been idle for too long.
        state.total_requests += 1
        if not keep_alive:
            transport.close()

    def _release(self, exchange: _Exchange) -> None:
        """Release the parts of a body that have arrived; it no longer waits."""
        assert self._collector is not None
        self._collector.release(exchange.held)
        exchange.held, exchange.body = 0, b""


def _too_large(expected: Expected) -> IntakeError:
    return too_large(expected.limit, compressed=bool(expected.encoding))


def _split(url: bytes) -> tuple[bytes, bytes]:
    """The path and the query of a request's target; b"" if it is none."""
    if url in (REPORTS, CAPSULES):
        return url, b""
    try:
        parsed = httptools.parse_url(url)
    except httptools.HttpParserInvalidURLError:
        return b"", b""
    return unquote_to_bytes(parsed.path or b""), parsed.query or b""
