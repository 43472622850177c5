"""What a running app is promised: each record reaches the disk, and each report the network."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from contextlib import closing
from functools import partial
from queue import SimpleQueue

import pytest
from tests.ports import until

from deniable import Registry
from deniable.device.device import Device
from deniable.device.worker import Worker

from .conftest import REGISTRY, metrics_toml, run_app

LIMIT = 30.0
"""Seconds after which something that should come within one is missing. A worker that has missed
work looks again after a minute at the earliest."""


def soon():
    """The `time.monotonic` at which something is missing."""
    return time.monotonic() + LIMIT


def await_that(found, expected):
    """Wait until so many are found."""
    until(lambda: found() >= expected, f"{expected} never came")
    assert found() == expected


def stored(folder):
    """How many records the values on the disk are made from."""
    path = folder / "state.sqlite3"
    if not path.exists():
        return 0
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=LIMIT)) as connection:
        query = "SELECT coalesce(sum(records), 0) FROM open_values"
        return int(connection.execute(query).fetchone()[0])


def record_burst(client, folder):
    """Record until the disk has more than before: over the whole time for which the writer waits
    for more. Returns how many records that took."""
    before, count = stored(folder), 0
    deadline = time.monotonic() + LIMIT
    while stored(folder) == before:
        assert time.monotonic() < deadline, "no record came"
        client.record("dark_mode", True)
        count += 1
        time.sleep(0.002)
    return count


@pytest.mark.parametrize("exists", [False, True], ids=["first start", "second start"])
def test_each_record_reaches_the_disk(make_client, tmp_path, exists):
    """Record, record, wait, record: each is written, after a burst as well, and also where the
    writer begins by itself because there is a state."""
    folder, count = tmp_path / "state", 0
    if exists:
        with make_client() as earlier:
            earlier.record("dark_mode", True)
            count = 1
    client = make_client(background=True)
    for _ in range(2):
        client.record("dark_mode", True)
        client.record("dark_mode", True)
        count += 2
        await_that(partial(stored, folder), count)
    count += record_burst(client, folder)
    await_that(partial(stored, folder), count)
    client.record("dark_mode", True)
    await_that(partial(stored, folder), count + 1)


SCARCE = """
import os, resource
import deniable
client = deniable.Client(
    "metrics.toml", "http://127.0.0.1:9", os.getcwd(), clock=lambda: 1.8e9, consent=True
)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
taken = []
try:
    while True:
        taken.append(os.dup(1))
except OSError:
    pass
client.record("dark_mode", True)
assert not client.flush(30)
assert client.counters.keys() == {"disk"}, client.counters
for each in taken:
    os.close(each)
assert client.flush(30)
client.close()
"""


def test_without_free_files_nothing_is_printed(tmp_path):
    """An app that has used up its file descriptors neither fails nor prints because of the client,
    and its records are written once there are some again."""
    assert run_app(tmp_path, REGISTRY, SCARCE) == ""
    assert stored(tmp_path) == 1


def test_an_answer_at_once_leaves_after_a_burst(make_client, tmp_path, collector, monkeypatch):
    """Reports that answer at once are sealed and sent while an app goes on recording, each of
    them."""
    monkeypatch.setattr(Device, "jitter", 0.0)
    names = ["first", "second"]
    soon = {"aggregate": "first", "answer": "at_once"}
    registry = Registry.parse(metrics_toml(dark_mode={}, **dict.fromkeys(names, soon)))
    client = make_client(registry=registry, background=True)
    for number, name in enumerate(names, 1):
        record_burst(client, tmp_path / "state")
        client.record(name, True)
        await_that(lambda: len(collector.reports), number)
    assert [report["metric"] for report in collector.reports] == names


class Owner:
    """Work that waits, and the steps that took it."""

    def __init__(self, linger):
        self.work: deque[int] = deque()
        self.steps: list[tuple[int, bool]] = []
        self.idle = 3600.0
        self.finished = threading.Event()
        self.worker = Worker(self.step, self.finished.set, linger)

    def step(self, urgent):
        taken = len(self.work)
        for _ in range(taken):
            self.work.popleft()
        self.steps.append((taken, urgent))
        return True, self.idle

    def add(self):
        self.work.append(1)
        self.worker.wake()


@pytest.mark.parametrize("linger", [0.0, 0.002], ids=["sender", "writer"])
def test_no_wake_is_lost(linger):
    """However work comes in from three threads, a step follows that takes it."""
    owner = Owner(linger)

    def produce():
        for _ in range(100):
            owner.add()
            owner.add()
            until(lambda: not owner.work)  # Another thread may add more at once.

    threads = [threading.Thread(target=produce) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    await_that(lambda: sum(taken for taken, _ in owner.steps), 600)
    owner.worker.stop(soon())


def test_one_step_takes_what_comes_while_it_waits():
    """The thread waits for more work, and no longer once somebody waits for a step."""
    owner = Owner(linger=3600.0)
    for _ in range(50):
        owner.add()
    assert owner.worker.run(soon())
    assert owner.steps == [(50, True)]
    assert owner.worker.run(soon(), urgent=False)
    assert owner.steps == [(50, True), (0, False)]
    owner.worker.stop(soon())
    assert not owner.worker.started


def test_nobody_waits_for_a_worker_that_has_ended():
    """Who asks for a step while the last one runs is told that there is none."""
    begun, may_end = threading.Event(), threading.Event()

    class Slow:
        def step(self, urgent):
            begun.set()
            assert may_end.wait(LIMIT)
            return True, 3600.0

    owner, results = Slow(), SimpleQueue()
    worker = Worker(owner.step, lambda: None, 0.0)
    worker.wake()
    assert begun.wait(LIMIT)
    asking = threading.Thread(target=lambda: results.put(worker.run(None)), daemon=True)
    asking.start()
    await_that(lambda: worker._asked.qsize(), 1)
    worker.stop(time.monotonic())
    may_end.set()
    assert results.get(timeout=LIMIT) is False


def test_steps_are_repeated_after_a_while():
    """Without work a step is taken after `idle` seconds, again and again, until the owner goes."""
    owner = Owner(linger=0.0)
    owner.idle = 0.001
    owner.worker.wake()
    steps, worker = owner.steps, owner.worker
    await_that(lambda: len(steps) > 5, True)
    del owner
    until(lambda: not worker.started, "the thread outlived its owner")
