"""A clock that tests set, bits that repeat, a collector in memory, and clients that re-raise."""

from __future__ import annotations

import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from deniable import Client, Registry
from deniable.device import state
from deniable.device.device import Device
from deniable.device.state import State
from deniable.device.transport import Reply

REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2030-06-30

[metrics.browser]
type = "category"
description = "The browser in use."
values = ["firefox", "chrome", "safari", "edge", "other"]
epsilon = 1.0
lifetime_epsilon = 3.0

[metrics.dark_mode]
type = "boolean"
description = "Dark mode is on."
epsilon = 0.5
lifetime_epsilon = 100.0
aggregate = "max"
"""


def metrics_toml(top="", app="example", **metrics):
    """The text of a registry: metrics by their names, each with what is not usual about it."""
    text = f'schema = 1\napp = "{app}"\n{top}\n'
    usual = {"type": "boolean", "description": "What it is.", "owner": "a"}
    usual |= {"expires": "2040-06-30", "epsilon": 1.0, "lifetime_epsilon": 100.0}
    for name, keys in metrics.items():
        text += f"[metrics.{name}]\n"
        for key, value in (usual | keys).items():
            text += f"{key} = {value if key == 'expires' else json.dumps(value)}\n"
    return text


Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def http_server(answer):
    """A server on loopback. `answer` takes path, headers and body of a request, and gives status,
    headers and body of the reply, or None to hang up."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            reply = answer(self.path, dict(self.headers), body)
            if reply is None:
                self.close_connection = True
                return
            status, headers, content = reply
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_):
            """A client that is killed hangs up in the middle."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def raw_server(answer):
    """A server on loopback that gives its first connection to `answer`, which need not speak
    HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection = listener.accept()[0]
            with connection, suppress(OSError):
                answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def run_app(folder, registry, script, *options):
    """Run an app in a folder, with this registry as its metrics.toml. Returns what it printed."""
    (folder / "metrics.toml").write_text(registry)
    (folder / "app.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DO_NOT_TRACK": "0"}
    environment.pop("DENIABLE_DISABLED", None)
    app = [sys.executable, *options, "app.py"]
    done = subprocess.run(
        app, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


class Clock:
    """POSIX seconds that stand still until they are set."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now

    def days(self, count):
        """Let days pass."""
        self.now += 86_400 * count


class Collector:
    """A transport that remembers every body, and answers as `replies` say, then with 202."""

    def __init__(self):
        self.bodies: list[bytes] = []
        self.replies: list[Reply | Exception] = []
        self.rejected: list[dict[str, Any]] = []

    def send(self, body):
        self.bodies.append(body)
        if self.replies:
            reply = self.replies.pop(0)
            if isinstance(reply, Exception):
                raise reply
            return reply
        batch = json.loads(body)
        document = {
            "batch": batch["batch"],
            "accepted": len(batch["reports"]) - len(self.rejected),
            "duplicate": 0,
            "rejected": self.rejected,
        }
        return Reply(202, json.dumps(document).encode())

    @property
    def reports(self):
        """Every report that arrived, in order."""
        return [report for body in self.bodies for report in json.loads(body)["reports"]]


@contextmanager
def locked(path):
    """Another process has the state file."""
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


class Life:
    """A device without a network, whose clock the test sets; in memory, unless a state is given."""

    def __init__(self, registry, bits, state=None):
        self.now, self.state = 0.0, state or State(None)
        self.registry = registry
        self.device = Device(
            registry, self.state, None, clock=lambda: self.now, bits=bits, spread=0.0
        )

    def use(self, now, value=True, *names):
        """Record a value at that time, of these metrics or of all."""
        self.now = now
        records = [self.device.admit(name, value) for name in names or self.registry.metrics]
        self.device.write([each for each in records if each is not None])

    def wait(self, now):
        """Let time pass without a use."""
        self.now = now
        self.device.write([])

    def rows(self, query, *values):
        """What the state holds."""
        with self.state.transaction() as connection:
            return connection.execute(query, values).fetchall()

    def reported(self, metric="m"):
        """The windows that have a report, in the order of the reports."""
        query = "SELECT window FROM reports WHERE metric = ? ORDER BY rowid"
        return [window for (window,) in self.rows(query, metric)]


@pytest.fixture
def live():
    """Makes lives, whose states are closed in the end."""
    made = []

    def make(*arguments):
        made.append(Life(*arguments))
        return made[-1]

    yield make
    for each in made:
        each.state.close()


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch):
    """Nobody pulls the plug in a test, so it need not wait for the disk."""
    fast = [each.replace("FULL", "OFF") for each in state._SETTINGS]
    monkeypatch.setattr(state, "_SETTINGS", tuple(fast))
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def clock():
    """Noon of 2027-01-04, a Monday."""
    return Clock(datetime(2027, 1, 4, 12, tzinfo=UTC).timestamp())


@pytest.fixture
def bits():
    """A seeded source of bits."""
    return random.Random(4).getrandbits


@pytest.fixture
def collector():
    """A collector in memory."""
    return Collector()


@pytest.fixture
def registry():
    """Two metrics: a category with a small budget and a boolean with a large one."""
    return Registry.parse(REGISTRY)


MakeClient = Callable[..., Client]


@pytest.fixture
def make_client(tmp_path, clock, bits, collector, registry, monkeypatch):
    """Makes clients over one state directory that work in the calling thread.

    What a client would swallow fails the test, unless the test gives its own `on_trouble`.
    """
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    monkeypatch.delenv("DENIABLE_DISABLED", raising=False)
    clients: list[Client] = []
    troubles: list[Exception] = []

    def make(**options):
        settings: dict[str, Any] = {
            "registry": registry,
            "state_dir": tmp_path / "state",
            "clock": clock,
            "bits": bits,
            "transport": collector,
            "background": False,
            "consent": True,
            "on_trouble": troubles.append,
        }
        client = Client(**(settings | options))
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()
    assert not troubles
