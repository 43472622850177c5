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
from typing import Any
from urllib.parse import parse_qs, urlsplit

import deniable_demo
import deniable_estimator
from deniable import DeniableError, Registry
from deniable.web_command import web_files

__all__ = ["QUESTIONS", "try_it"]

QUESTIONS = ("browser", "dark_mode")
"""The metrics that a visitor may answer."""

_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


@contextmanager
def try_it(
    registry: Registry,
    endpoint: str,
    dashboard: str,
    shift: int,
    devices: int,
    port: int,
    estimate: Callable[[str], dict[str, Any]],
) -> Iterator[str]:
    """Serve the page at that port (0: any free one); its address.

    Reports go to the collector at `endpoint`, dated `shift` seconds before now. `estimate` is
    what is known of a metric now, as JSON data.
    """
    files = _files(registry, endpoint, dashboard, shift, devices)
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self' {endpoint}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            name = asked.path.removeprefix("/") or "index.html"
            if name == "estimate.json":
                metric = parse_qs(asked.query).get("metric", [""])[0]
                self._estimate(metric)
            elif name in files:
                self._send(HTTPStatus.OK, _type(name), files[name])
            else:
                self._send(HTTPStatus.NOT_FOUND, "text/plain", b"There is no such page.\n")

        def _estimate(self, metric: str) -> None:
            if metric not in QUESTIONS:
                choices = ", ".join(QUESTIONS)
                text = f"metric must be one of {choices}\n".encode()
                self._send(HTTPStatus.NOT_FOUND, "text/plain", text)
                return
            try:
                body = json.dumps(estimate(metric)).encode()
            except DeniableError as error:
                self._send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"{error}\n".encode())
                return
            self._send(HTTPStatus.OK, "application/json", body)

        def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
            self.send_response(status)
            for header, value in (
                ("Content-Type", f"{kind}; charset=utf-8"),
                ("Content-Length", str(len(body))),
                ("Content-Security-Policy", policy),
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

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, name="try-it", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


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
