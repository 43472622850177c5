"""A request, its response, and the connection between a client and what answers."""

from __future__ import annotations

from typing import Any, Protocol

from deniable_collector.serving.rates import Peer


class Response(Protocol):
    """What a handler answers: `body`, and by `start` all of the header but Date and length."""

    @property
    def body(self) -> bytes: ...

    @property
    def length(self) -> int | None:
        """Of the body; None if the response has none by its status."""

    def start(self, keep_alive: bool, given: tuple[tuple[bytes, bytes], ...]) -> bytes: ...


class OpenConnection(Protocol):
    """A connection, as those see it that answer its requests or end it."""

    peer: Peer
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


class Request:
    """A request whose header has come; its handler calls `respond`, once, on the event loop."""

    __slots__ = (
        *("begun", "body", "connection", "context", "given", "headers", "held", "http_version"),
        *("keep_alive", "limit", "method", "path", "pieces", "query", "refusal", "response"),
        *("size", "target", "waits", "whole"),
    )

    def __init__(self, connection: OpenConnection, method: bytes, target: bytes) -> None:
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
