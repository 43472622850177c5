"""One HTTP connection of uvicorn's, with a short way for what most requests are.

A small, plain batch of JSON is read, counted and answered by callbacks, without the task and
the messages that an ASGI call takes. Everything else goes uvicorn's own way, to the app; so
does the parsing of HTTP in either case.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hearsay_collector.answers import Answer, accepted, wire
from hearsay_collector.asgi import Collector
from hearsay_collector.guard import GuardedConnection
from hearsay_collector.intake import Receipt
from hearsay_collector.problems import problem_of

__all__ = ["Connection"]

_URL = b"/v1/reports"
_JSON = "application/json"
_UNUSUAL = frozenset((b"content-encoding", b"transfer-encoding", b"expect", b"origin", b"upgrade"))
"""Headers that mean more than the short way knows of."""


class _Exchange:
    """A request on the short way. uvicorn knows it as the connection's cycle, by these names."""

    __slots__ = (
        "body",
        "connection",
        "disconnected",
        "keep_alive",
        "more_body",
        "refusal",
        "response_complete",
    )
    message_event = asyncio.Event()
    """uvicorn tells a cycle of its end by this; nobody waits for it here."""

    def __init__(self, connection: Connection, keep_alive: bool) -> None:
        self.connection = connection
        self.keep_alive = keep_alive
        self.body = b""
        self.more_body = True
        self.refusal: Exception | None = None
        self.response_complete = False
        self.disconnected = False

    def done(self, outcome: Receipt | Exception) -> None:
        self.connection.answer(
            self, problem_of(outcome) if isinstance(outcome, Exception) else accepted(outcome)
        )


class Connection(GuardedConnection):
    """Serves a `Collector`; any other app is served as uvicorn does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        app: Any = self.app
        self._collector: Collector | None = app if isinstance(app, Collector) else None
        # It would name addresses and paths, whatever the process does about logging.
        self.access_log = False

    def on_headers_complete(self) -> None:
        if self.url == _URL and self._is_plain():
            self.check_header()
            # HTTP/1.0 would want to hear that the connection stays, where it may.
            stays = self.parser.should_keep_alive() and self.parser.get_http_version() != "1.0"
            self.cycle = _Exchange(self, stays)  # type: ignore[assignment]
        else:
            super().on_headers_complete()

    def _is_plain(self) -> bool:
        """Whether this is a small batch of plain JSON, and the only request under way."""
        if self._collector is None or self.parser.get_method() != b"POST":
            return False
        if self.cycle is not None and not self.cycle.response_complete:
            return False
        if self.flow.write_paused:
            # The client does not read. The app's own way waits for it, and reads no more.
            return False
        limit = self.limit_concurrency
        if limit is not None and max(len(self.connections), len(self.tasks)) >= limit:
            return False
        length = typed = False
        for name, value in self.headers:
            if name == b"content-type":
                if value != b"application/json" or typed:
                    return False
                typed = True
            elif name == b"content-length":
                if len(value) > 5 or int(value) > self._collector.short:
                    return False
                length = True
            elif name in _UNUSUAL:
                return False
        return typed and length

    def on_body(self, body: bytes) -> None:
        exchange = self.cycle
        if not isinstance(exchange, _Exchange):
            super().on_body(body)
        elif exchange.refusal is None:
            assert self._collector is not None
            exchange.body += body
            try:
                self._collector.hold(len(body))
            except Exception as error:
                # Told when all has come: what is not read when a connection closes takes the
                # answer with it.
                exchange.refusal = error
                self._collector.release(len(exchange.body))
                exchange.body = b""

    def on_message_complete(self) -> None:
        exchange = self.cycle
        if not isinstance(exchange, _Exchange):
            super().on_message_complete()
        else:
            assert self._collector is not None
            exchange.more_body = False
            try:
                if exchange.refusal is not None:
                    raise exchange.refusal
                self._collector.admit(self.client, self.headers)
                if self._collector.offer(exchange.body, exchange.done):
                    return
            except Exception as error:
                self.answer(exchange, problem_of(error))
                return
            task = self.loop.create_task(self._slowly(exchange))
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)

    async def _slowly(self, exchange: _Exchange) -> None:
        assert self._collector is not None
        try:
            answer = accepted(await self._collector.settle(_JSON, "", exchange.body))
        except Exception as error:
            answer = problem_of(error)
        self.answer(exchange, answer)

    def connection_lost(self, exc: Exception | None) -> None:
        exchange = self.cycle
        if isinstance(exchange, _Exchange) and exchange.more_body:
            # Nobody will answer what never came whole.
            assert self._collector is not None
            self._collector.release(len(exchange.body))
            exchange.body = b""
        super().connection_lost(exc)
        # A connection and its last request name each other, here and where the guard looks.
        # Without that, what they hold is free at once and need not be searched for.
        self.cycle = self._before = self._seen = None  # type: ignore[assignment]

    def answer(self, exchange: _Exchange, answer: Answer) -> None:
        """Write the one answer of a request, if somebody is still there to read it."""
        assert self._collector is not None
        self._collector.release(len(exchange.body))
        exchange.body = b""
        exchange.response_complete = True
        if exchange.disconnected or self.transport.is_closing():
            return
        self.transport.write(wire(answer, exchange.keep_alive, self.server_state.default_headers))
        if not exchange.keep_alive:
            self.server_state.total_requests += 1
            self.transport.close()
        elif self.pipeline:
            self.on_response_complete()
        else:
            # The guard sees when it has been idle for long enough.
            self.server_state.total_requests += 1
