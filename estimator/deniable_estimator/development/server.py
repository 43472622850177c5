"""The server of `deniable dev`: one port on loopback for devices, pages and the live page."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from werkzeug.wrappers import Request, Response

from deniable import DeniableError
from deniable.protocol.addresses import is_loopback_host
from deniable.tools.compile_command import web_files
from deniable_collector.serving.connection import serve
from deniable_collector.serving.wsgi import WsgiHandler
from deniable_collector.stores import open_store
from deniable_estimator.dashboard.app import close_app, create_app
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.development.crowd import SimulatedCrowd
from deniable_estimator.development.gate import Arrivals, Gate
from deniable_estimator.development.live import LIVE, Live, live
from deniable_estimator.development.mistakes import RegistryFile

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

HOST = "127.0.0.1"
"""The only address at which it listens."""

_THREADS = 8
_END_SECONDS = 2.0
"""How long its end waits for answers."""

_MOST_REPORTS = "100"
"""Reports in a batch; a device sends no more."""

_SCRIPTS = {"/deniable.min.js": "text/javascript", "/deniable.js": "text/javascript",
            "/metrics.js": "text/javascript", "/metrics.json": "application/json"}  # fmt: skip
"""The SDK for web pages, in its development build, with the registry of now."""


_DEVELOPER = {
    "REMOTE_ADDR": HOST,
    "HTTP_X_DENIABLE_DEVELOPER": "developer",
    "HTTP_X_DENIABLE_ROLE": "operator",
}
"""Whoever asks is an operator, named to the dashboard as a proxy would: all that there is are the
noisy reports of test values, and only this machine can reach it."""


class DevelopmentApp:
    """The WSGI application: the gate under /v1/, the SDK for pages, and the dashboard.

    Args:
        file: the registry, which was read.
        folder: where everything is that is kept; the caller deletes it.
        origins: those of pages that may send reports, beside those of this machine.
        candidates: a folder of METRIC.txt files with strings to look for; None: there is none.
        devices: so many simulated devices report as soon as `crowd.add` is called.
    """

    def __init__(
        self,
        file: RegistryFile,
        folder: Path,
        origins: Collection[str] = (),
        candidates: Path | None = None,
        devices: int = 0,
    ) -> None:
        self.arrivals = Arrivals()
        self._file = file
        environ = {
            "DENIABLE_STORE": f"sqlite:///{folder}/tallies.db",
            "DENIABLE_REGISTRY": str(file.path),
            "DENIABLE_RATE": "off",
            "DENIABLE_MAX_REPORTS": _MOST_REPORTS,
            "DENIABLE_DASHBOARD_TOKEN": secrets.token_urlsafe(32),
            "DENIABLE_DASHBOARD_PROXIES": HOST,
            "DENIABLE_DASHBOARD_USER_HEADER": "X-Deniable-Developer",
            "DENIABLE_DASHBOARD_ROLE_HEADER": "X-Deniable-Role",
            "DENIABLE_DATA": str(folder),
            **({} if candidates is None else {"DENIABLE_CANDIDATES_DIR": str(candidates)}),
        }
        self.settings = settings = DashboardSettings.from_env(environ)
        self.store = open_store(settings)
        self.crowd = SimulatedCrowd(devices)
        self._gate = Gate(settings, self.store, file.registry, self.arrivals, origins)
        self._dashboard = create_app(settings, store=self.store, registry=file.registry)
        self._dashboard.extensions[LIVE] = Live(file, self.arrivals, self.crowd)
        self._dashboard.config["DENIABLE_DEVELOPMENT"] = self.crowd
        self._dashboard.register_blueprint(live)
        self._load_scripts()

    def reload(self) -> None:
        """Serve by the registry that the file has now."""
        registry = self._file.registry
        self._gate.load(registry)
        source: DataSource = self._dashboard.extensions["deniable_source"]
        self._dashboard.extensions["deniable_source"] = replace(source, registry=registry)
        self._load_scripts()
        self.arrivals.forget_mistakes()

    def close(self) -> None:
        """Release the store, and end the processes that calculate."""
        close_app(self._dashboard)
        self.store.close()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        host = request.headers.get("Host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if not is_loopback_host(name):
            # A page of a site that has given its own name the address 127.0.0.1.
            refusal = Response("This server answers to the names of this machine alone.\n", 403)
            return refusal(environ, start_response)
        if request.path.startswith("/v1/"):
            return self._gate.respond(request)(environ, start_response)
        if request.path in self._scripts:
            return self._script(request)(environ, start_response)
        environ |= _DEVELOPER
        if "HTTP_ORIGIN" not in environ:
            # No page has made a program send this.
            environ.setdefault("HTTP_SEC_FETCH_SITE", "none")
        return self._dashboard.wsgi_app(environ, start_response)

    def _load_scripts(self) -> None:
        files = web_files(self._file.registry, development=True)
        self._scripts = {path: files[path[1:]] for path in _SCRIPTS}

    def _script(self, request: Request) -> Response:
        # Only pages that may send read the registry, which may not be released yet. Browsers say
        # from which site a request comes; other programs have no such header.
        origin = request.headers.get("Origin") or "/".join(
            request.headers.get("Referer", "").split("/")[:3]
        )
        cross = request.headers.get("Sec-Fetch-Site", "none") == "cross-site"
        if cross and not self._gate.may_send(origin):
            return Response("// pages of this origin may not load the SDK from here\n", 403)
        response = Response(self._scripts[request.path], content_type=_SCRIPTS[request.path])
        # Pages of other origins, which the developer's own server serves, load it from here.
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        if origin and self._gate.may_send(origin):
            response.headers["Access-Control-Allow-Origin"] = origin
        response.vary.update(("Origin", "Referer", "Sec-Fetch-Site"))
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-store"
        return response


@contextmanager
def serving(app: DevelopmentApp, port: int | None) -> Iterator[str]:
    """Serve at a port of loopback (None: the usual one, or else any that is free); the address."""
    with _listening(port) as listener:
        handler = WsgiHandler(app, app.settings, _THREADS, _THREADS, {b"": app.settings.max_body})
        loop, ended = asyncio.new_event_loop(), asyncio.Event()
        work = serve(handler, [listener], ended.wait(), _END_SECONDS)
        thread = threading.Thread(
            target=loop.run_until_complete, args=(work,), name="deniable-dev", daemon=True
        )
        thread.start()
        try:
            yield f"http://{HOST}:{listener.getsockname()[1]}"
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join()
            loop.close()


USUAL_PORT = 8099
"""Where it listens if no port is named and no other program is there."""


def _listening(port: int | None) -> socket.socket:
    tried = (USUAL_PORT, 0) if port is None else (port,)
    for each in tried:
        try:
            return socket.create_server((HOST, each))
        except OSError as error:
            reason = error.strerror
    raise DeniableError(f"port {port} of {HOST} cannot be used ({reason}): name another --port")
