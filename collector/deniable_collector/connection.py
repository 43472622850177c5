"""uvicorn's HTTP connection, with a fast path for most requests.

Small JSON batches and binary batches are read, counted and answered by callbacks, without the
task and the messages of an ASGI call. Everything else is handled by uvicorn and the app. In
both cases uvicorn parses the HTTP.
"""

from __future__ import annotations

import asyncio
from typing import Any

from deniable.oblivious.signed_keys import PATH
from deniable.oblivious.transport import REQUEST_TYPE
from deniable_collector.asgi import Collector
from deniable_collector.batches.batch import Receipt
from deniable_collector.serving.batch_reader import JSON
from deniable_collector.serving.framing import VERSIONS, is_host
from deniable_collector.serving.guard import GuardedConnection
from deniable_collector.serving.problems import problem_of
from deniable_collector.serving.responses import HttpResponse, accepted, wire

__all__ = ["Connection"]

_URL = b"/v1/reports"
_CAPSULES = PATH.encode()
_UNUSUAL = frozenset((b"content-encoding", b"transfer-encoding", b"expect", b"upgrade"))
"""Headers that the fast path does not support."""

_TEXTS = ("text/plain;charset=utf-8", "text/plain;charset=UTF-8", "text/plain")
"""How browsers write the type of a beacon and of a text; other spellings take the slow path."""


class _Exchange:
    """A request on the fast path. It has the names of uvicorn's request cycle."""

    __slots__ = (
        "connection",
        "disconnected",
        "given",
        "held",
        "keep_alive",
        "media_type",
        "more_body",
        "pieces",
        "refusal",
        "response_complete",
    )
    message_event = asyncio.Event()
    """uvicorn sets this at the end of a cycle; nothing waits for it here."""

    def __init__(
        self,
        connection: Connection,
        media_type: str,
        keep_alive: bool,
        given: tuple[tuple[bytes, bytes], ...],
    ) -> None:
        self.connection = connection
        self.media_type = media_type
        self.keep_alive = keep_alive
        self.given = given
        """What its response carries for the page that asks."""
        self.pieces: list[bytes] = []
        self.held = 0
        self.more_body = True
        self.refusal: Exception | None = None
        self.response_complete = False
        self.disconnected = False

    def done(self, outcome: Receipt | Exception) -> None:
        self.connection.answer(
            self, problem_of(outcome) if isinstance(outcome, Exception) else accepted(outcome)
        )

    def respond(self, response: HttpResponse) -> None:
        self.connection.answer(self, response)


class Connection(GuardedConnection):
    """Serves a `Collector`; any other app is served as by uvicorn."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        app: Any = self.app
        self._collector: Collector | None = app if isinstance(app, Collector) else None
        # Without this, uvicorn would log addresses and paths, whatever the logging settings are.
        self.access_log = False

    def on_headers_complete(self) -> None:
        plain = self._plain_type() if self.url in (_URL, _CAPSULES) else None
        if plain is not None:
            assert self._collector is not None
            self.check_header()
            # HTTP/1.0 would want to hear that the connection stays, where it may.
            stays = self.parser.should_keep_alive() and self.parser.get_http_version() != "1.0"
            media_type, given = plain
            exchange = _Exchange(self, media_type, stays, given)
            self.cycle = exchange  # type: ignore[assignment]
            try:
                if media_type == REQUEST_TYPE:
                    self._collector.admit_capsule(self.client, self.headers)
                else:
                    self._collector.admit(self.client, self.headers)
            except Exception as error:
                # Nothing of its body is kept then.
                exchange.refusal = error
        else:
            super().on_headers_complete()

    def _plain_type(self) -> tuple[str, tuple[tuple[bytes, bytes], ...]] | None:
        """The media type of a batch for the fast path, and the headers of its response for a page.
        The batch must be uncompressed, not large, of no page that may not send, and in the only
        request in progress; else None."""
        if self._collector is None or self.parser.get_method() != b"POST":
            return None
        if self.cycle is not None and not self.cycle.response_complete:
            return None
        if self.flow.write_paused:
            # The client does not read. The slow path waits for it, and reads nothing more.
            return None
        limit = self.limit_concurrency
        if limit is not None and max(len(self.connections), len(self.tasks)) >= limit:
            return None
        length = media_type = host = origin = None
        given: tuple[tuple[bytes, bytes], ...] | None = ()
        for name, value in self.headers:
            if name == b"host":
                if host is not None or not is_host(value):
                    return None
                host = value
            elif name == b"content-type":
                if media_type is not None:
                    return None
                media_type = value.decode("latin-1")
            elif name == b"content-length":
                if len(value) > 9:
                    return None
                length = int(value)
            elif name == b"origin":
                given = self._collector.page_headers(value)
                if given is None or origin is not None:
                    return None
                origin = value
            elif name in _UNUSUAL:
                return None
        if media_type is None or length is None or host is None or given is None:
            return None
        if self.parser.get_http_version() not in VERSIONS:
            return None
        if media_type in _TEXTS:
            media_type = JSON
        if (media_type == REQUEST_TYPE) != (self.url == _CAPSULES):
            return None
        return (media_type, given) if length <= self._collector.short.get(media_type, -1) else None

    def on_body(self, body: bytes) -> None:
        exchange = self.cycle
        if not isinstance(exchange, _Exchange):
            super().on_body(body)
        elif exchange.refusal is None:
            assert self._collector is not None
            exchange.pieces.append(body)
            exchange.held += len(body)
            try:
                self._collector.reserve(len(body))
            except Exception as error:
                # Answer only when all has arrived: if unread bytes are left when the connection
                # closes, the response is lost.
                exchange.refusal = error
                self._release(exchange)

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
                pieces, exchange.pieces = exchange.pieces, []
                body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                if exchange.media_type == REQUEST_TYPE:
                    if self._collector.open_fast(body, exchange.respond):
                        return
                elif self._collector.commit_fast(exchange.media_type, body, exchange.done):
                    return
            except Exception as error:
                self.answer(exchange, problem_of(error))
                return
            task = self.loop.create_task(self._slowly(exchange, body))
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)

    async def _slowly(self, exchange: _Exchange, body: bytes) -> None:
        assert self._collector is not None
        try:
            if exchange.media_type == REQUEST_TYPE:
                response = await self._collector.open_slowly(body)
            else:
                response = accepted(await self._collector.commit(exchange.media_type, "", body))
        except Exception as error:
            response = problem_of(error)
        self.answer(exchange, response)

    def connection_lost(self, exc: Exception | None) -> None:
        exchange = self.cycle
        if isinstance(exchange, _Exchange) and exchange.more_body:
            # A request that never arrives completely is not answered.
            self._release(exchange)
        super().connection_lost(exc)
        # A connection and its last request refer to each other, here and in the guard. Breaking
        # the cycle frees them at once, without the garbage collector.
        self.cycle = self._before = self._seen = None  # type: ignore[assignment]

    def answer(self, exchange: _Exchange, response: HttpResponse) -> None:
        """Write the response of a request, if the client is still connected."""
        self._release(exchange)
        exchange.response_complete = True
        if exchange.disconnected or self.transport.is_closing():
            return
        keep_alive = exchange.keep_alive and not (self._ended and not self.pipeline)
        given = (*self.server_state.default_headers, *exchange.given)
        self.transport.write(wire(response, keep_alive, given))
        if not keep_alive:
            self.server_state.total_requests += 1
            self.transport.close()
        elif self.pipeline:
            self.on_response_complete()
        else:
            # The guard closes it when it has been idle for too long.
            self.server_state.total_requests += 1

    def _release(self, exchange: _Exchange) -> None:
        """Release the parts of a body that have arrived; it no longer waits."""
        assert self._collector is not None
        self._collector.release(exchange.held)
        exchange.held, exchange.pieces = 0, []
