"""What the demo serves on loopback and ends with it: a collector and a dashboard, which are child
processes, and a page where a visitor answers as one more device, with the TypeScript SDK."""

from __future__ import annotations

import html
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, ClassVar, TextIO
from urllib.parse import parse_qs, urlsplit

import deniable_demo
import deniable_estimator
from deniable import DeniableError, Registry
from deniable.tools.compile_command import web_files

_LISTENING = " listening at "
_PATIENCE = 35.0
_EVERYDAY = re.compile(r"\S+ info ")


class ServiceError(DeniableError):
    """A service did not start, or ended too early."""


def collector(registry: Path, store: str, origin: str | None) -> AbstractContextManager[str]:
    """A collector at a free port, for devices and for the pages of an origin; its address."""
    # One relay sends for all devices.
    settings = {"DENIABLE_WORKERS": "1", "DENIABLE_RATE": "off"}
    if origin is not None:
        settings["DENIABLE_CORS_ORIGINS"] = origin
    return _service("collect", "127.0.0.1:0", registry, store, settings)


def dashboard(
    registry: Path, store: str, port: int, token: str, demo: str | None, data: Path
) -> AbstractContextManager[str]:
    """A dashboard at that port (0: any free one), whose header links to `demo`; its address."""
    settings = {
        "DENIABLE_DASHBOARD_TOKEN": token,
        "DENIABLE_DASHBOARD_LOGIN_LINK": "1",
        "DENIABLE_DATA": str(data),
        "DENIABLE_BOARDS": str(Path(__file__).with_name("boards")),
    }
    if demo is not None:
        settings["DENIABLE_DASHBOARD_DEMO"] = demo
    return _service("dashboard", f"127.0.0.1:{port}", registry, store, settings)


@contextmanager
def _service(
    command: str, bind: str, registry: Path, store: str, settings: Mapping[str, str]
) -> Iterator[str]:
    # DENIABLE_* settings of the user's own services do not apply to the demo's.
    environ = {name: text for name, text in os.environ.items() if not name.startswith("DENIABLE_")}
    arguments = [command, "--registry", str(registry), "--store", store, "--bind", bind]
    with ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile("w+"))
        stack.callback(_tell, log)
        child = stack.enter_context(
            subprocess.Popen(  # noqa: S603  (this very interpreter, and arguments of ours)
                [sys.executable, "-c", "from deniable.cli import main; main()", *arguments],
                env={**environ, **settings},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # Ctrl-C is for the demo, which ends its children in order.
                process_group=0,
            )
        )
        stack.callback(_end, child)
        yield _address(child, command)


def _address(child: subprocess.Popen[str], command: str) -> str:
    """The address at which the service says it listens."""
    assert child.stdout is not None
    for line in child.stdout:
        if _LISTENING in line:
            return line.partition(_LISTENING)[2].strip()
    raise ServiceError(f"`deniable {command}` did not start; its message stands above")


def _tell(log: TextIO) -> None:
    """What a service has logged, but for the events of every day: they would bury the demo."""
    log.seek(0)
    sys.stderr.writelines(line for line in log if not _EVERYDAY.match(line))


def _end(child: subprocess.Popen[str]) -> None:
    child.terminate()
    try:
        child.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)


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
            self._send(HTTPStatus.OK, _TYPES[name[name.rindex(".") :]], self.files[name])
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
