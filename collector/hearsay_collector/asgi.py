"""The collector for an event loop: a short way in for batches, in front of the Flask app.

POST /v1/reports is answered here, from the same reception and with the same answers as by
the app; everything else goes to the app, in threads.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, cast

from a2wsgi import WSGIMiddleware
from flask import Flask

from hearsay_collector.answers import SECURITY_HEADERS, Answer, accepted
from hearsay_collector.app import RECEPTION, create_app
from hearsay_collector.bodies import IntakeError, read_body, too_large
from hearsay_collector.group import GroupCommit
from hearsay_collector.intake import Batch
from hearsay_collector.problems import problem_of
from hearsay_collector.reception import Reception
from hearsay_collector.settings import Settings

__all__ = ["Collector", "app"]

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

_PATH = "/v1/reports"
_INLINE = 1 << 15
"""Bytes of a body that is read on the event loop: about a millisecond of work. A larger one
is read in a thread, where it holds nobody up."""

_SECURITY = [(name.lower().encode(), text.encode()) for name, text in SECURITY_HEADERS.items()]


class _Gone(Exception):
    """The client closed the connection before its body was complete."""


class Collector:
    """The ASGI app around a Flask app of `create_app`.

    The lifespan protocol must be on: it makes what lives with the event loop.
    """

    def __init__(self, flask: Flask, settings: Settings) -> None:
        self._reception: Reception = flask.extensions[RECEPTION]
        self._settings = settings
        self._flask = WSGIMiddleware(cast(Any, flask), workers=settings.threads)
        self._readers = ThreadPoolExecutor(settings.threads, "read")
        self._group = GroupCommit(self._reception.intake, settings.tick / 1000)
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == _PATH:
            await self._reports(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._elsewhere(scope, receive, send)
        else:
            # A WebSocket: there is none here.
            await send({"type": "websocket.close", "code": 1000})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        # The schemes are published before the first batch, if the store is there.
        loop = asyncio.get_running_loop()
        warm = loop.run_in_executor(self._readers, self._reception.intake.prepare)
        await asyncio.wait([warm])
        warm.exception()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        # By now every request has been answered: nothing waits for a commit any more.
        self._group.close()
        self._readers.shutdown()
        await send({"type": "lifespan.shutdown.complete"})

    async def _elsewhere(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._flask(cast(Any, scope), cast(Any, receive), cast(Any, sending))
        except Exception as error:
            # The server would log the traceback, with what was sent.
            answer = problem_of(error)
            if not started:
                await _send(send, answer)

    async def _reports(self, scope: Scope, receive: Receive, send: Send) -> None:
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            held += size
            self._held += size
            if self._held > self._settings.queue:
                raise IntakeError(
                    "queue-full",
                    503,
                    "Queue full",
                    "the collector is busy: send the batch again later, unchanged",
                    retry_after=1.0,
                )

        try:
            batch = await self._read(scope, receive, hold)
            answer = accepted(await self._group.take(batch))
        except _Gone:
            return
        except Exception as error:
            answer = problem_of(error)
        finally:
            self._held -= held
        await _send(send, answer)

    async def _read(self, scope: Scope, receive: Receive, hold: Callable[[int], None]) -> Batch:
        media_type, encoding = _headers(scope)
        limit = self._reception.limit(media_type)
        body = await _collect(receive, limit, hold)
        if len(body) <= _INLINE:
            batch = self._reception.glance(media_type, encoding, body)
            if batch is not None:
                return batch
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._readers, self._read_slowly, media_type, encoding, body, limit
        )

    def _read_slowly(self, media_type: str, encoding: str, body: bytes, limit: int) -> Batch:
        plain = read_body(io.BytesIO(body), encoding, limit) if encoding else body
        return self._reception.read(media_type, plain)


def _headers(scope: Scope) -> tuple[str, str]:
    """The media type, in lower case and without parameters, and the content encoding."""
    media_type = encoding = b""
    for name, value in scope["headers"]:
        # Of a header that comes twice nothing is right.
        if name == b"content-type":
            media_type = value if not media_type else media_type + b"," + value
        elif name == b"content-encoding":
            encoding = value if not encoding else encoding + b"," + value
    return (
        media_type.decode("latin-1").partition(";")[0].strip().lower(),
        encoding.decode("latin-1"),
    )


async def _collect(receive: Receive, limit: int, hold: Callable[[int], None]) -> bytes:
    """The body as it was sent, of at most `limit` bytes."""
    pieces: list[bytes] = []
    left = limit
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        piece: bytes = message.get("body", b"")
        left -= len(piece)
        if left < 0:
            raise too_large(limit)
        hold(len(piece))
        pieces.append(piece)
        if not message.get("more_body", False):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _send(send: Send, answer: Answer) -> None:
    headers = [
        (b"content-type", answer.content_type.encode()),
        (b"content-length", b"%d" % len(answer.body)),
        *_SECURITY,
    ]
    if answer.retry_after is not None:
        headers.append((b"retry-after", b"%d" % max(1, round(answer.retry_after))))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def app() -> Collector:
    """The app that the environment makes; servers call this a factory."""
    settings = Settings.from_env()
    return Collector(create_app(settings), settings)
