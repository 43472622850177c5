"""What comes of one ASGI request: its body within a limit, or read on and forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from deniable_collector.batches.bodies import too_large

__all__ = ["Gone", "Incoming", "Message", "Receive", "Scope"]

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]


class Gone(Exception):
    """The client closed the connection before its body was complete."""


class Incoming:
    """The messages of one request; knows whether all have come.

    It is called as the server's `receive` is, and may be from several tasks.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._lock = asyncio.Lock()
        self._more = True
        # Such a client waits for a word before it sends its body: asking for that says it.
        self._waits = any(
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
        self, limit: int, hold: Callable[[int], None], *, compressed: bool = False
    ) -> bytes:
        """The body as it was sent; `hold` is told the size of each piece and may refuse it.

        Raises:
            Gone: it will never be complete.
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
            hold(len(piece))
            pieces.append(piece)
            if not message.get("more_body", False):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def pass_over(self, limit: int) -> bool:
        """Read what is left, up to about that many bytes, and forget it.

        What is not read when a connection closes takes the answer with it. False if the client
        still waits for a word: nothing is on its way then, and the connection should end.
        """
        if self._waits:
            return False
        while self._more and limit > 0:
            limit -= len((await self()).get("body", b""))
        return True
