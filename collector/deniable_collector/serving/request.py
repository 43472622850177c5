"""What a server gives to what serves requests, and takes from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from deniable_collector.settings import Settings

if TYPE_CHECKING:
    from deniable_collector.serving.connection import Connection
    from deniable_collector.serving.http import HttpServer


class Response(Protocol):
    """What a handler answers: `body`, and by `start` all of the header but Date and length."""

    @property
    def body(self) -> bytes: ...

    @property
    def length(self) -> int | None:
        """Of the body; None if the response has none by its status."""

    def start(self, keep_alive: bool, given: tuple[tuple[bytes, bytes], ...]) -> bytes: ...


class Request:
    """A request whose header has come; its handler calls `respond`, once, on the event loop."""

    __slots__ = (
        *("begun", "body", "connection", "context", "given", "headers", "held", "http_version"),
        *("keep_alive", "limit", "method", "path", "pieces", "query", "refusal", "response"),
        *("size", "target", "waits", "whole"),
    )

    def __init__(self, connection: Connection, method: bytes, target: bytes) -> None:
        self.connection = connection
        self.method = method
        self.target = target
        self.path = self.query = self.body = b""
        self.headers: dict[bytes, bytes] = {}
        """Names in lower case; lines of one name are joined by commas (RFC 9110, 5.3)."""
        self.http_version = "1.1"
        self.given: tuple[tuple[bytes, bytes], ...] = ()
        """Headers that a handler adds to the response, also to a refusal."""
        self.context: Any = None
        """What the handler keeps of `admit` for `handle`."""
        self.limit = 0
        self.size = 0
        """Bytes of the body: those that it announces, or else those that have come. Where they are
        more than `limit`, `body` is empty."""
        self.pieces: list[bytes] = []
        self.held = 0
        self.refusal: Exception | None = None
        self.response: Response | None = None
        self.keep_alive = True
        self.waits = self.whole = self.begun = False

    def respond(self, response: Response) -> None:
        """Answer it, when those before it have been answered."""
        self.connection.answer(self, response)


class Handler(Protocol):
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
