"""Faults that count: whatever breaks, what was acknowledged is in the tallies, exactly once.

Each test sends batches to real collectors while something fails, retries as a device does,
and compares the tallies with what was sent, to the last cell. `docs/faults.md` lists them.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import socket
import struct
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from deniable import windows, wire
from deniable_collector.intake import Intake
from deniable_collector.stores import open_store

from .devices import Devices, post

STORES = ["sqlite", "redis", "cluster"]


@pytest.fixture
def lonely_redis(new_redis):
    """Starts a Redis for one test, which may harm it; with the address of a store in it."""

    def new(*options):
        server = new_redis(*options)
        return server, {"DENIABLE_STORE": server.url}

    return new


def workers(collector):
    """The process ids of a collector's workers."""
    pid = collector.process.pid
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_a_killed_collector(home, new_collector, registry):
    """The whole collector is killed five times under 1,000 batches, and started again."""
    collector = new_collector(**home.environ)
    devices = Devices(registry, 1_000, [collector.address])
    devices.start()

    def trouble():
        collector.kill()
        collector.start()

    devices.disturb(5, trouble)
    assert devices.statuses["broken"] > 0, "no kill met a request"
    devices.check(home.open())


def test_killed_workers(home, new_collector, registry, until):
    """Workers are killed six times, one at a time, under 1,000 batches."""
    collector = new_collector(**home.environ)
    devices = Devices(registry, 1_000, [collector.address])
    devices.start()

    def trouble():
        until(lambda: len(workers(collector)) == 2, "the master starts no new worker")
        kill(workers(collector)[0])

    devices.disturb(6, trouble)
    assert devices.statuses["broken"] > 0, "no kill met a request"
    devices.check(home.open())


def test_a_killed_master(home, new_collector, registry, until):
    """The master is killed twice and started again beside the workers that it left."""
    collector = new_collector(**home.environ)
    devices = Devices(registry, 400, [collector.address], pause=0.1)
    devices.start()

    def trouble():
        left = workers(collector)
        kill(collector.process.pid)
        collector.process.wait()
        collector.process.stdout.close()
        # Workers without a master end by themselves, and the port is free again.
        until(lambda: not any(map(alive, left)), "a worker outlives its master")
        collector.start()

    devices.disturb(2, trouble)
    devices.check(home.open())


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_a_killed_redis(lonely_redis, new_collector, registry):
    """Redis, which syncs before it answers, is killed four times and started again."""
    redis, environ = lonely_redis()
    collector = new_collector(**environ)
    devices = Devices(registry, 1_000, [collector.address])
    devices.start()

    def trouble():
        redis.kill()
        time.sleep(0.2)
        redis.start()

    devices.disturb(4, trouble)
    assert devices.statuses[503] > 0, "no kill met a commit"
    devices.check(reading(redis))


def test_a_redis_that_is_killed_while_it_rewrites(lonely_redis, new_collector, registry, until):
    """Redis is killed twice in the middle of a rewrite of its append-only file, which is slowed
    down for that, and started again."""
    server, environ = lonely_redis("--rdb-key-save-delay", "100000")
    collector = new_collector(**environ, DENIABLE_JOURNAL_SECONDS="2")
    devices = Devices(registry, 600, [collector.address], pause=0.05)
    devices.start()

    def trouble():
        with closing(redis.Redis.from_url(server.url)) as client:
            until(lambda: client.info()["aof_rewrite_in_progress"], "nothing is rewritten")
        server.kill()
        server.start()

    devices.disturb(2, trouble)
    assert devices.statuses[503] > 0, "no kill met a commit"
    devices.check(reading(server))


def reading(redis):
    return open_store(redis.url)


def test_a_paused_redis(lonely_redis, new_collector, registry):
    """Redis stands still for ten seconds, longer than any timeout, and then goes on with what
    it was sent before: what was answered 503 and committed all the same is a duplicate later."""
    redis, environ = lonely_redis()
    collector = new_collector(**environ)
    devices = Devices(registry, 600, [collector.address])
    devices.start()

    def trouble():
        redis.pause()
        time.sleep(10)
        redis.resume()

    devices.disturb(1, trouble)
    assert devices.statuses[503] > 0
    devices.check(reading(redis))


def limit_files(pid, size):
    """No file of this process may grow beyond `size` bytes; None: any size."""
    soft = resource.RLIM_INFINITY if size is None else size
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))


def test_a_full_disk_under_sqlite(tmp_path, new_collector, registry):
    """No file of the collector can grow any more, twice, for a while."""
    collector = new_collector(DENIABLE_STORE=f"sqlite:///{tmp_path / 'store.db'}")
    devices = Devices(registry, 800, [collector.address])
    devices.start()

    def trouble():
        before = devices.statuses[503]
        for pid in workers(collector):
            # The log of SQLite is reused from its beginning; only a cut far below stops it.
            limit_files(pid, 4_096)
        deadline = time.monotonic() + 30
        while devices.statuses[503] < before + 10:
            assert time.monotonic() < deadline, devices.statuses
            time.sleep(0.01)
        for pid in workers(collector):
            limit_files(pid, None)

    devices.disturb(2, trouble)
    with closing(open_store(f"sqlite:///{tmp_path / 'store.db'}")) as store:
        devices.check(store)


@pytest.mark.parametrize("sync", ["always", "everysec"])
def test_a_full_disk_under_redis(lonely_redis, new_collector, registry, sync):
    """The append-only file cannot grow: Redis refuses or ends itself, and comes back."""
    redis, environ = lonely_redis("--appendfsync", sync)
    collector = new_collector(**environ)
    devices = Devices(registry, 800, [collector.address])
    devices.start()

    def trouble():
        before = devices.statuses[503]
        limit_files(redis.process.pid, 8_192)
        deadline = time.monotonic() + 30
        while devices.statuses[503] < before + 10:
            assert time.monotonic() < deadline, devices.statuses
            time.sleep(0.01)
        if redis.process.poll() is None:
            limit_files(redis.process.pid, None)
        else:
            redis.start()

    devices.disturb(2, trouble)
    devices.check(reading(redis))


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


class DeafProxy:
    """Forwards connections; of every second one it drops what the server answers."""

    def __init__(self, target):
        self._target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = "http://{}:{}".format(*self._server.getsockname())
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self._server.close()

    def _serve(self):
        turn = 0
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                turn += 1
                threading.Thread(
                    target=self._forward, args=(client, turn % 2 == 0), daemon=True
                ).start()

    def _forward(self, client, deaf):
        with suppress(OSError), client, socket.create_connection(self._target) as server:
            client.settimeout(0.05)
            server.settimeout(5)
            pieces = b""
            with suppress(TimeoutError):
                while piece := client.recv(65_536):
                    pieces += piece
            server.sendall(pieces)
            answer = server.recv(65_536)
            if not deaf:
                client.sendall(answer)


def test_lost_answers(home, new_collector, registry):
    """Every second answer gets lost on its way: the retries are told that they are duplicates."""
    collector = new_collector(**home.environ)
    address = urlsplit(collector.address)
    with closing(DeafProxy((address.hostname, address.port))) as proxy:
        devices = Devices(registry, 200, [proxy.address])
        devices.start()
        devices.finish()
    assert devices.duplicates > 20
    devices.check(home.open())


def test_the_same_batch_from_many_clients_at_once(home, new_collector, registry):
    """16 clients send the same 40 batches at the same moment, to two collectors on one store:
    of each batch one client is told that it counted, the others that it is a duplicate."""
    collectors = [new_collector(**home.environ, DENIABLE_BIND="127.0.0.1:0") for _ in range(2)]
    devices = Devices(registry, 40, [])
    barrier = threading.Barrier(16)
    told = [Counter() for _ in devices.batches]

    def send(number):
        for place, batch in enumerate(devices.batches):
            barrier.wait(60)
            status, answer = post(collectors[number % 2].address, batch)
            told[place][status, bool(answer.get("accepted"))] += 1

    threads = [threading.Thread(target=send, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert told == [{(202, True): 1, (202, False): 15}] * len(told)
    devices.check(home.open())


def test_clock_jumps(home, registry, new_id, noon):
    """A collector's clock jumps by up to a week, forward and back, 1,500 times (seed 11), while
    devices send reports of ten days and repeat them: no batch is counted twice."""
    draw = random.Random(11)
    store, now = home.open(), [noon]
    intake = Intake(registry, store, clock=lambda: now[0])
    metric = registry["browser"]
    fingerprint = metric.scheme.fingerprint
    width = metric.scheme.mechanism.rows[0].width
    labels = [windows.window_at("day", noon + day * 86_400) for day in range(-5, 5)]
    batches = []
    for number in range(300):
        report = wire.SealedReport("browser", fingerprint, labels[number % 10], 0, number % width)
        batches.append((report, wire.encode_batch(new_id(), [report])))
    counted, refused = Counter(), 0
    for _ in range(1_500):
        now[0] = noon + draw.uniform(-3.5, 3.5) * 86_400
        group = draw.choices(range(len(batches)), k=3)
        receipts = intake.take([intake.read(batches[number][1]) for number in group])
        for number, receipt in zip(group, receipts, strict=True):
            counted[number] += receipt.accepted
            refused += len(receipt.rejected)
    assert refused > 100
    assert max(counted.values()) == 1
    for label in labels:
        cells = store.tally("browser", fingerprint, [label]).rows[0].cells.tolist()
        mine = Counter(
            batches[number][0].columns
            for number in counted.elements()
            if batches[number][0].window == label
        )
        assert cells == [mine[column] for column in range(width)]
