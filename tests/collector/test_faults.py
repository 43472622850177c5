"""Faults that count: whatever breaks, what was acknowledged is in the tallies, exactly once.

Each test sends batches to real collectors while something fails, retries as a device does,
and compares the tallies with what was sent, to the last cell. `docs/how-to/operate.md` lists them.
"""

import os
import resource
import signal
import socket
import struct
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.ports import until

from deniable_collector.settings import Settings
from deniable_collector.stores import open_store

from .devices import Devices

pytestmark = pytest.mark.campaign
STORES = ["sqlite", "redis"]


def workers(collector):
    """The process ids of a collector's workers."""
    pid = collector.process.pid
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def disturbed(new_collector, registry):
    """Sends batches to a collector of this store that gets into trouble so often, until each is
    acknowledged; then each is counted once."""

    def disturbed(environ, count, times, trouble):
        collector = new_collector(**environ)
        devices = Devices(registry, count, [collector.address])
        devices.start()
        devices.disturb(times, lambda: trouble(collector, devices.statuses))
        prefix = environ.get("DENIABLE_REDIS_PREFIX", "deniable")
        with closing(
            open_store(Settings(store=environ["DENIABLE_STORE"], redis_prefix=prefix))
        ) as store:
            devices.check(store)

    return disturbed


@pytest.mark.stores("sqlite", "redis", "cluster")
def test_a_killed_collector(home, disturbed):
    """The whole collector is killed four times under 400 batches, and started again."""

    def trouble(collector, statuses):
        before = statuses["broken"]
        collector.kill()
        until(lambda: statuses["broken"] > before, "nobody notices")
        collector.start()

    disturbed(home.environ, 400, 4, trouble)


def test_killed_workers(home, disturbed):
    """Workers are killed six times, one at a time, under 500 batches."""

    def trouble(collector, _):
        until(lambda: len(workers(collector)) == 2, "the master starts no new worker")
        with suppress(ProcessLookupError):
            os.kill(workers(collector)[0], signal.SIGKILL)

    disturbed(home.environ, 500, 6, trouble)


@pytest.fixture
def troubled(new_redis, disturbed):
    """The same for a collector whose Redis gets into trouble twice: `trouble` has the server, and a
    function that waits until a batch was refused since."""

    def troubled(trouble, *options, count=300):
        server = new_redis(*options)

        def once(_, statuses):
            before = statuses[503]
            trouble(server, lambda: until(lambda: statuses[503] > before, "no batch is refused"))

        disturbed({"DENIABLE_STORE": server.url}, count, 2, once)

    return troubled


def test_a_killed_redis(troubled):
    """Redis, which syncs before it answers, is killed and started again."""

    def trouble(server, refused):
        server.kill()
        refused()
        server.start()

    troubled(trouble)


def test_a_paused_redis(troubled):
    """Redis stands still for longer than any timeout, and then goes on with what it was sent
    before: what was answered 503 and committed all the same is a duplicate later."""

    def trouble(server, refused):
        server.pause()
        try:
            refused()
        finally:
            server.resume()

    troubled(trouble, count=150)


@pytest.mark.parametrize("sync", ["always", "everysec"])
def test_a_full_disk_under_redis(troubled, sync):
    """The append-only file cannot grow: Redis refuses, or if it syncs before each answer ends
    itself, and comes back."""

    def trouble(server, refused):
        limit_files(server.process.pid, 8_192)
        refused()
        if sync == "always":
            server.process.wait(300)  # Which takes a moment after it has refused.
            server.start()
        else:
            limit_files(server.process.pid, None)

    troubled(trouble, "--appendfsync", sync)


def limit_files(pid, size):
    """No file of this process may grow beyond `size` bytes; None: any size."""
    soft = resource.RLIM_INFINITY if size is None else size
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))


def test_a_full_disk_under_sqlite(tmp_path, disturbed):
    """No file of the collector can grow any more, twice, for a while."""

    def trouble(collector, statuses):
        before = statuses[503]
        for pid in workers(collector):
            # The log of SQLite is reused from its beginning; only a cut far below stops it.
            limit_files(pid, 4_096)
        until(lambda: statuses[503] > before + 10, "no batch is refused")
        for pid in workers(collector):
            limit_files(pid, None)

    disturbed({"DENIABLE_STORE": f"sqlite:///{tmp_path / 'store.db'}"}, 300, 2, trouble)


def test_connections_cut_in_the_middle_of_a_body(home, new_collector, registry):
    """Each of 150 batches is cut at a random byte, by a FIN or a RST, and then sent whole, by
    several clients: a part counts nothing."""
    collector = new_collector(**home.environ)
    devices = Devices(registry, 150, [collector.address], senders=4)
    address = urlsplit(collector.address)
    for number, batch in enumerate(devices.batches):
        head = (
            f"POST /v1/reports HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(batch)}\r\n\r\n"
        ).encode()
        whole = head + batch
        with socket.create_connection((address.hostname, address.port)) as client:
            # Every place once in a while: in the request line, the headers, the body.
            client.sendall(whole[: 1 + number * 7919 % (len(whole) - 1)])
            if number % 2:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    devices.start()
    devices.finish()
    devices.check(home.open())
