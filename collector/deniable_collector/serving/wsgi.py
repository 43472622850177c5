"""WSGI apps (PEP 3333) in a thread pool: a whole request takes a thread, until the app has made its
whole response. One sender has a part of the threads at a time, so that others need not wait."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeAlias
from weakref import WeakValueDictionary
from wsgiref.types import WSGIApplication

from werkzeug.test import run_wsgi_app

from deniable_collector.serving.admission import Admission, client_address, network_of
from deniable_collector.serving.http import HttpHandler, Request
from deniable_collector.serving.responses import Response, WsgiResponse, problem_of
from deniable_collector.settings import OFF, Settings

_Sender: TypeAlias = tuple[bytes, ...]
"""A network, and what its request says of who asks."""

_OWN = frozenset(("connection", "content-length", "date", "server", "transfer-encoding"))
"""Headers that are the server's, whatever the app says."""


class WsgiHandler(HttpHandler):
    """Serves a WSGI app; the settings say how many proxies are in front.

    Args:
        most: threads that one sender may have at a time.
        limits: the most bytes of a body at a path that begins so, in their order; of a longer body
            the app gets nothing but its length, so that it can say what it thinks of it.
        rate: the most requests from a network.
        person: the header in which proxies name who asks, if there is one.
    """

    def __init__(
        self,
        app: WSGIApplication,
        settings: Settings,
        threads: int,
        most: int,
        limits: Mapping[bytes, int],
        rate: str = OFF,
        person: str = "",
    ) -> None:
        super().__init__()
        self.settings = settings
        self.max_body = max(limits.values())
        self._limits = limits
        self._admission = Admission(replace(settings, rate=rate))
        self._app = app
        self._threads = ThreadPoolExecutor(threads, "wsgi")
        self._most = most
        self._naming = (b"cookie", b"authorization", person.lower().encode())
        self._turns: WeakValueDictionary[_Sender, asyncio.Semaphore] = WeakValueDictionary()
        """Those of each sender whose requests run or wait; the requests hold them."""

    async def stop(self) -> None:
        """End the threads; what they do is not waited for."""
        await super().stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def admit(self, request: Request) -> int:
        """The most bytes of the body.

        Raises:
            IntakeError: the request's network sends too many.
        """
        self._admission.pace(request.connection.peer, request.headers)
        return next(most for path, most in self._limits.items() if request.path.startswith(path))

    def handle(self, request: Request) -> None:
        """Run the app, in a thread, as soon as its sender may have another one."""
        self.keep(self._run(request))

    async def _run(self, request: Request) -> None:
        run = asyncio.get_running_loop().run_in_executor
        response: Response
        # First come, first served.
        async with self._turns.setdefault(self._sender(request), asyncio.Semaphore(self._most)):
            try:
                response = await run(self._threads, self._call, environ_of(request))
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                # An app's exit is a bug of that request, and not the end of the server.
                response = problem_of(error)
        request.respond(response)

    def _sender(self, request: Request) -> _Sender:
        headers, peer = request.headers, request.connection.peer
        forwarded = headers.get(b"x-forwarded-for", b"").decode("latin-1")
        network = network_of(client_address(peer, forwarded, self.settings.trusted_proxies))
        return network, *(headers.get(name, b"") for name in self._naming)

    def _call(self, environ: dict[str, Any]) -> WsgiResponse:
        pieces, status, headers = run_wsgi_app(self._app, environ, buffered=True)
        body = b"".join(pieces)
        length: int | None = len(body)
        if environ["REQUEST_METHOD"] == "HEAD":
            length = headers.get("content-length", type=int)
        elif status[:3] in ("204", "304"):
            length = None
        lines = [f"{name}: {text}" for name, text in headers if name.lower() not in _OWN]
        head = "\r\n".join([f"HTTP/1.1 {status}", *lines, ""]).encode("latin-1")
        return WsgiResponse(head, body, length)


def environ_of(request: Request) -> dict[str, Any]:
    """The environment of a request. Forwarded headers are the app's to believe."""
    connection = request.connection
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method.decode("latin-1"),
        "SCRIPT_NAME": "",
        "PATH_INFO": request.path.decode("latin-1"),
        "QUERY_STRING": request.query.decode("latin-1"),
        "RAW_URI": request.target.decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{request.http_version}",
        "SERVER_NAME": connection.host,
        "SERVER_PORT": str(max(0, connection.port)),
        "REMOTE_ADDR": connection.peer,
        "CONTENT_LENGTH": str(request.size),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in request.headers.items():
        # One with an underscore would pass for that with a hyphen, which a proxy sets.
        if b"_" not in name and name not in (b"content-length", b"transfer-encoding"):
            key = name.decode("latin-1").upper().replace("-", "_")
            environ[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value.decode("latin-1")
    return environ
