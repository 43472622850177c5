"""What collector and relay serve alike: pages, each at its path, and among them the operator's
probes and, at the private address, the figures for Prometheus."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from deniable_collector.operation.prometheus import count_answer
from deniable_collector.refusals import IntakeError
from deniable_collector.serving.admission import Admission
from deniable_collector.serving.http import HttpHandler, Request
from deniable_collector.serving.responses import HttpResponse, Response
from deniable_collector.settings import Settings, port_of

Page: TypeAlias = Callable[[Request], Awaitable[HttpResponse]]

_METRICS = b"/metrics"


class PageHandler(HttpHandler, Collector):
    """Answers by tasks of the event loop: `pages` are what GET gets, `posts` the paths that take
    POST. `held` is the figure of the bytes that wait."""

    def __init__(self, settings: Settings, held: Gauge) -> None:
        super().__init__()
        self.settings = settings
        self.max_body = settings.max_body
        self.pages: dict[bytes, Page] = {b"/healthz": self._health, b"/readyz": self.ready}
        self.posts: frozenset[bytes] = frozenset()
        self._others = Admission(settings)
        self._private_port = port_of(settings.metrics_bind)
        self._held = held

    def __call__(self, environ: object, start_response: object) -> None:
        """gunicorn takes for an app what can be called."""
        raise TypeError("it is served by its own worker")

    @abstractmethod
    async def ready(self, request: Request) -> HttpResponse:
        """What /readyz says.

        Raises:
            Exception: it cannot serve now.
        """

    @abstractmethod
    def collect(self) -> Iterable[Metric]:
        """What Prometheus gets. It may wait."""

    def note_held(self, held: int) -> None:
        """Write the bytes that wait down, where they are asked for."""
        if self._private_port:
            self._held.set(held)

    def admit(self, request: Request) -> int:
        """No page has a body.

        Raises:
            IntakeError: the network sends too much; at the private address it may.
        """
        if not self._is_private(request):
            self._others.pace(request.connection.peer, request.headers)
        return 0

    def handle(self, request: Request) -> None:
        """Answer a request that has come whole."""
        self.keep(self._serve(request))

    async def _serve(self, request: Request) -> None:
        response: Response
        try:
            response = await self.answer(request)
        except Exception as error:
            response = self.problem(error)  # which is counted by its code
        else:
            # A problem is the gateway's then, and is not looked at: it is one code for all.
            count_answer(response.status, "" if response.status < 400 else "gateway")
        request.respond(response)

    async def answer(self, request: Request) -> HttpResponse:
        """The response to a request.

        Raises:
            IntakeError: there is nothing at its path, or not by its method.
        """
        page = self.pages.get(request.path)
        if request.path == _METRICS and self._is_private(request):
            page = self._tell_figures
        if page is not None and request.method in (b"GET", b"HEAD"):
            return await page(request)
        methods = [b"GET", b"HEAD"] * (page is not None) + [b"OPTIONS"]
        methods += [b"POST"] * (request.path in self.posts)
        if len(methods) == 1:
            raise IntakeError("http-404", "there is nothing at this path")
        request.given += ((b"allow", b", ".join(methods)),)
        if request.method == b"OPTIONS":
            return HttpResponse(200, b"", "text/plain")
        told = "this path does not accept this method: see the Allow header"
        raise IntakeError("http-405", told)

    def _is_private(self, request: Request) -> bool:
        return 0 < self._private_port == request.connection.port

    async def _health(self, request: Request) -> HttpResponse:
        return HttpResponse(200, b'{"status": "ok"}')

    async def _tell_figures(self, request: Request) -> HttpResponse:
        encode, kind = choose_encoder(request.headers.get(b"accept", b"").decode("latin-1"))
        figures = CollectorRegistry()
        figures.register(self)
        # It reads files.
        text = await asyncio.to_thread(encode, figures)
        return HttpResponse(200, text, kind)
