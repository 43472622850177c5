"""Reads the body of one ASGI request: within a limit, or discarding it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from deniable_collector.refusals import too_large

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]


class Gone(Exception):
    """The client closed the connection before its body was complete."""


class Incoming:
    """The messages of one request, and whether all have arrived.

    It is called like the server's `receive`, also from several tasks.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._lock = asyncio.Lock()
        self._more = True
        # Such a client waits for "100 Continue", which the server sends when we call receive.
        # One of HTTP/1.0 does not know it (RFC 9110, 10.1.1).
        self._waits = scope["http_version"] == "1.1" and any(
            name == b"expect" and value.lower() == b"100-continue"
            for name, value in scope["headers"]
        )

    async def __call__(self) -> Message:
        async with self._lock:
            if not self._more:
                return {"type": "http.request", "body": b"", "more_body": False}
            self._waits = False
            message = await self._receive()
            self._more = message.get("more_body", False)
            return message

    async def collect(
        self, limit: int, reserve: Callable[[int], None], *, compressed: bool = False
    ) -> bytes:
        """The body as it was sent; `reserve` is told the size of each piece and may refuse it.

        Raises:
            Gone: the body will never be complete.
            IntakeError: it has more than `limit` bytes.
        """
        pieces: list[bytes] = []
        left = limit
        while True:
            message = await self()
            if message["type"] == "http.disconnect":
                raise Gone
            piece: bytes = message.get("body", b"")
            left -= len(piece)
            if left < 0:
                raise too_large(limit, compressed=compressed)
            reserve(len(piece))
            pieces.append(piece)
            if not message.get("more_body", False):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def pass_over(self, limit: int) -> bool:
        """Read the rest, up to about that many bytes, and discard it.

        If unread bytes are left when the connection closes, the response is lost. Returns False
        if the client still waits for "100 Continue": then nothing is on its way, and the
        connection should be closed.
        """
        if self._waits:
            return False
        while self._more and limit > 0:
            limit -= len((await self()).get("body", b""))
        return True
