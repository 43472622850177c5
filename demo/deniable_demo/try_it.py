"""The page on loopback where a visitor answers as one more device, with the TypeScript SDK."""

from __future__ import annotations

import html
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from string import Template
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import deniable_demo
import deniable_estimator
from deniable import DeniableError, Registry
from deniable.tools.web_command import web_files

QUESTIONS = ("browser", "dark_mode")
"""The metrics that a visitor may answer."""

_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


@contextmanager
def try_it(port: int) -> Iterator[TryIt]:
    """A page at that port (0: any free one), which is there from its `open` on."""
    with ThreadingHTTPServer(("127.0.0.1", port), _Handler) as server:
        page = TryIt(server)
        try:
            yield page
        finally:
            page.close()


class TryIt:
    """The page's server. Its address is known before what it shows."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.address = f"http://127.0.0.1:{server.server_port}"
        self._server = server
        self._thread: threading.Thread | None = None

    def open(
        self,
        registry: Registry,
        endpoint: str,
        dashboard: str,
        shift: int,
        devices: int,
        estimate: Callable[[str], dict[str, Any]],
    ) -> None:
        """Serve the page. Reports go to the collector at `endpoint`, dated `shift` seconds before
        now. `estimate` is what is known of a metric now, as JSON data."""
        _Handler.files = _files(registry, endpoint, dashboard, shift, devices)
        _Handler.estimate = staticmethod(estimate)
        _Handler.policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
            f"connect-src 'self' {endpoint}; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="try-it", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End the server."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files: ClassVar[dict[str, bytes]] = {}
    estimate: ClassVar[Callable[[str], dict[str, Any]]]
    policy: ClassVar[str]

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        name = asked.path.removeprefix("/") or "index.html"
        if name == "estimate.json":
            self._estimate(parse_qs(asked.query).get("metric", [""])[0])
        elif name in self.files:
            self._send(HTTPStatus.OK, _type(name), self.files[name])
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"There is no such page.\n")

    def _estimate(self, metric: str) -> None:
        if metric not in QUESTIONS:
            text = f"metric must be one of {', '.join(QUESTIONS)}\n"
            self._send(HTTPStatus.NOT_FOUND, "text/plain", text.encode())
            return
        try:
            body = json.dumps(type(self).estimate(metric)).encode()
        except DeniableError as error:
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"{error}\n".encode())
            return
        self._send(HTTPStatus.OK, "application/json", body)

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for header, value in (
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", self.policy),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ):
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        # Each line would tell when the visitor did what.
        pass


def _files(
    registry: Registry, endpoint: str, dashboard: str, shift: int, devices: int
) -> dict[str, bytes]:
    """Each file of the page by its name."""
    # An app's name of this run's own: what an earlier demo left in the browser does not count.
    asked = replace(
        registry,
        app=f"{registry.app}-{secrets.token_hex(4)}",
        metrics={name: registry[name] for name in QUESTIONS},
    )
    page = resources.files(deniable_demo) / "page"
    static = resources.files(deniable_estimator) / "dashboard" / "static"
    filled = {
        "endpoint": endpoint,
        "dashboard": dashboard,
        "shift": str(shift),
        "devices": f"{devices + 1:,}",
    }
    index = Template((page / "index.html").read_text(encoding="utf-8")).substitute(
        {name: html.escape(text) for name, text in filled.items()}
    )
    return {
        "index.html": index.encode(),
        "icon.svg": (static / "icon.svg").read_bytes(),
        "deniable.min.js": web_files(asked)["deniable.min.js"],
        **{name: (page / name).read_bytes() for name in ("page.css", "page.js")},
    }


def _type(name: str) -> str:
    return _TYPES[name[name.rindex(".") :]]
