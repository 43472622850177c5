# ruff: noqa: F811  (fixtures are imported, and are arguments of others)
"""Real servers for the collector's tests, and what the store tests share."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.ports import free_port
from tests.registries import declared
from tests.stores import (  # noqa: F401  (fixtures)
    RedisServer,
    home,
    new_cluster,
    new_id,
    new_redis,
    noon,
    redis_binary,
    redis_cluster,
    redis_server,
    shelf,
    store,
)
from tests.stores import parametrize_home as pytest_generate_tests  # noqa: F401  (a hook)
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder, TestResponse

from deniable import Registry
from deniable.protocol import windows
from deniable_collector.collector import Collector as Service
from deniable_collector.inherited import Inherited
from deniable_collector.serving.connection import Connection
from deniable_collector.serving.http import HttpServer
from deniable_collector.settings import Settings

from .certificates import make_certificates

METRICS = declared(
    dark_mode={"type": "boolean", "epsilon": 1.0},
    browser={"type": "category", "values": ["firefox", "chrome", "safari", "edge", "other"]},
    country={"type": "category", "values": [f"c{number:03}" for number in range(200)],
             "epsilon": 1.0, "window": "week"},
)  # fmt: skip


@pytest.fixture(scope="session")
def metrics():
    """The text of a small registry: two daily metrics and a weekly one, packed as bitmaps."""
    return METRICS


@pytest.fixture
def registry(metrics):
    """The same registry, read."""
    return Registry.parse(metrics)


@pytest.fixture
def scheme(shelf):
    """A scheme whose tallies have one row of 8 columns."""
    return shelf(8)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """Certificates for TLS to Redis, good ones and bad ones."""
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def report(registry):
    """A good report of yesterday, by the real clock."""
    return {
        "metric": "browser",
        "scheme": registry["browser"].scheme.fingerprint,
        "window": windows.window_at("day", time.time() - 86_400),
        "columns": 1,
    }


@pytest.fixture
def new_body(report, new_id):
    """Makes good batches of one report."""
    return lambda: json.dumps({"batch": new_id(), "reports": [report]}).encode()


@pytest.fixture
def counted(registry, store):
    """How many such reports the store has."""
    scheme = registry["browser"].scheme.fingerprint
    return lambda: store.tally("browser", scheme, store.windows("browser", scheme)).reports


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now


@dataclass
class Collector:
    """A real `deniable collect`, in a process group of its own."""

    environ: dict[str, str]
    folder: Path
    address: str = ""
    process: subprocess.Popen[str] | None = None
    output: str = ""
    """What it wrote to standard output, once it has ended."""

    def start(self):
        with (self.folder / "collector.log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from deniable.cli import main; main()", "collect"],
                # Here all devices have one address.
                env={"DENIABLE_RATE": "off", **os.environ, **self.environ},
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "listening at" in line, self.log
        told = json.loads(line)["address"] if line.startswith("{") else line.rsplit(" ", 1)[1]
        self.address = told.strip()
        # The next start listens at the same place.
        self.environ["DENIABLE_BIND"] = self.address.removeprefix("http://")

    @property
    def private(self):
        """The address of its figures."""
        return f"http://{self.environ['DENIABLE_METRICS_BIND']}"

    @property
    def place(self):
        """Host and port."""
        host, port = self.environ["DENIABLE_BIND"].split(":")
        return host, int(port)

    @property
    def log(self):
        return (self.folder / "collector.log").read_text()

    def kill(self):
        self._signal(signal.SIGKILL)

    def stop(self):
        return self._signal(signal.SIGTERM)

    def _signal(self, number):
        assert self.process is not None
        if self.process.poll() is None:
            # Workers of a master that is killed would live on.
            end = os.killpg if number == signal.SIGKILL else os.kill
            end(self.process.pid, number)
        code = self.process.wait(60)
        if self.process.stdout is not None and not self.process.stdout.closed:
            self.output += self.process.stdout.read()
            self.process.stdout.close()
        return code


@contextmanager
def collecting(folder, **environ):
    """A collector with SQLite, in one process."""
    (folder / "metrics.toml").write_text(METRICS)
    places = {"DENIABLE_BIND": "127.0.0.1:0", "DENIABLE_METRICS_BIND": f"127.0.0.1:{free_port()}"}
    collector = Collector({**places, "DENIABLE_WORKERS": "1", **environ}, folder)
    collector.start()
    yield collector
    collector.kill()


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    """One collector with SQLite for all tests that do not harm it."""
    with collecting(tmp_path_factory.mktemp("running")) as collector:
        yield collector


@pytest.fixture
def new_collector(tmp_path, metrics):
    """Starts collectors, and ends them after the test."""
    started: list[Collector] = []
    (tmp_path / "metrics.toml").write_text(metrics)

    def new(**environ):
        defaults = {"DENIABLE_BIND": "127.0.0.1:0", "DENIABLE_WORKERS": "2"}
        collector = Collector({**defaults, **environ}, tmp_path)
        collector.start()
        started.append(collector)
        return collector

    yield new
    for collector in started:
        collector.kill()


class SocketClient:
    """Flask's test client, as far as the tests need it, of a collector over a socket."""

    port = None
    """Where the client connects, if that is to be another port than it is."""

    def __init__(self, app):
        self.app = app
        self.loop = asyncio.new_event_loop()
        self.peer = "127.0.0.1"
        self.loop.run_until_complete(self._start())

    async def _start(self):
        self.server = HttpServer(self.app)
        await self.app.start(self.server)
        self.listening = await self.loop.create_server(lambda: Here(self), "127.0.0.1", 0)
        self.address = self.listening.sockets[0].getsockname()

    @property
    def held(self):
        """Bytes of bodies that wait."""
        return self.server.held

    def get(self, path, **options):
        return self.loop.run_until_complete(self.request(path, method="GET", **options))

    def post(self, path, **options):
        return self.loop.run_until_complete(self.request(path, method="POST", **options))

    def open(self, path, **options):
        return self.loop.run_until_complete(self.request(path, **options))

    def close(self):
        self.listening.close()
        self.loop.run_until_complete(self.server.close())
        self.loop.run_until_complete(self.app.stop())
        self.loop.close()

    async def request(self, path, *, environ_base=None, size=7_000, **options):
        """One request on a connection of its own, whose body comes in pieces of `size` bytes."""
        self.peer = (environ_base or {}).get("REMOTE_ADDR", "127.0.0.1")
        builder = EnvironBuilder(path, **options)
        data = builder.input_stream.read() if builder.input_stream else b""
        asked = builder.get_request()
        target = asked.environ["PATH_INFO"] + "?" * bool(builder.query_string)
        lines = [f"{builder.method} {quote(target + builder.query_string, '/?=&%')} HTTP/1.1"]
        fields = {"Host": "localhost", **dict(builder.headers.to_wsgi_list())}
        fields |= {"Content-Length": str(len(data)), "Connection": "close"}
        pieces = [data[first : first + size] for first in range(0, len(data), size)]
        if "Transfer-Encoding" in fields:
            del fields["Content-Length"]
            pieces = [b"%x\r\n%b\r\n" % (len(each), each) for each in (*pieces, b"")]
        lines += [f"{name}: {text}" for name, text in fields.items()]
        builder.close()
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0)
        answer = await reader.read()
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        status, *headers = head.decode("latin-1").split("\r\n")
        pairs = [line.partition(": ")[::2] for line in headers]
        given = [pair for pair in pairs if pair[0].lower() not in ("connection", "date")]
        return TestResponse([body], status.partition(" ")[2], Headers(given), asked)


class Here(Connection):
    """A connection from where the client says that it is."""

    def __init__(self, client):
        super().__init__(client.server)
        self._client = client

    def connection_made(self, transport):
        super().connection_made(transport)
        self.peer = self._client.peer
        self.port = self.port if self._client.port is None else self._client.port


@pytest.fixture
def serve(tmp_path):
    """Makes a client of a collector of a registry and a store; closed before its store's folder
    goes."""
    assert tmp_path.exists()
    opened: list[SocketClient] = []

    def serve(registry, store=None, settings=None, **held):
        app = Service(Inherited(settings or Settings(), registry, **held), store)
        opened.append(SocketClient(app))
        return opened[-1]

    yield serve
    for client in opened:
        client.close()


@pytest.fixture
def new_client(serve, registry, store):
    """Makes a client of a collector with the settings given; of a gateway, if it has keys."""

    def new(keys=None, **given):
        settings = Settings(**{"rate": "off", **given})
        return serve(registry, store, settings, keys=keys)

    return new
