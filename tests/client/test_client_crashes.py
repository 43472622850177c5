"""A device that is killed, and processes that share one: against a real collector's socket."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from deniable import Client, Registry
from deniable.device.ledger import draw
from deniable.device.state import State
from deniable.protocol.mechanisms import Memoizing

from .conftest import http_server, metrics_toml

LONG = {"expires": "2999-01-01", "lifetime_epsilon": 10_000}
CHOICE = {**LONG, "type": "category", "values": list("abcd"), "epsilon": 2.0}
REGISTRY = metrics_toml(
    one=LONG,
    two=CHOICE,
    three={
        **LONG,
        "type": "string",
        "longitudinal": "memoize",
        "mechanism": "rappor",
        "lifetime_epsilon": 2.0,
    },
    four={**CHOICE, "aggregate": "first", "answer": "at_once"},
    five={"type": "retention", "window": "day", "expires": "2999-01-01", "lifetime_epsilon": 2.0},
)

DEVICE = """
import sys, time
import deniable
folder, endpoint, first, days = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
now = [first * 86400.0]
client = deniable.Client(
    folder + "/metrics.toml", endpoint, folder, clock=lambda: now[0], consent=True
)
for day in range(days):
    client.record("one", day % 3 == 0)
    client.record("two", "abcd"[day % 4])
    client.record("three", "abcd"[day % 4])
    client.record("four", "abcd"[day % 4])
    client.record("four", "a")
    client.active("five")
    client.active("five")
    client.flush(30)
    now[0] += 86400
    client.flush(30)
client.close()
"""


class Sink:
    """Counts each batch id once, as the collector does, on a network that loses things."""

    def __init__(self):
        self.lock = threading.Lock()
        self.requests = 0
        self.bodies: dict[str, bytes] = {}
        self.counted: dict[str, bytes] = {}
        self.changed_bytes: list[str] = []

    def take(self, body):
        """The reply to a request, or None where it is to get none."""
        with self.lock:
            self.requests += 1
            batch = json.loads(body)["batch"]
            if self.bodies.setdefault(batch, body) != body:
                self.changed_bytes.append(batch)
            if self.requests % 7 == 0:
                return None  # the request is lost
            self.counted.setdefault(batch, body)
            if self.requests % 5 == 0:
                return None  # it was counted, and the reply is lost
            return json.dumps({"batch": batch, "rejected": []}).encode()

    def reports(self):
        """How often each metric and window was counted."""
        with self.lock:
            return Counter(
                (report["metric"], report["window"])
                for body in self.counted.values()
                for report in json.loads(body)["reports"]
            )


@pytest.fixture
def sink(monkeypatch):
    """A sink and its address."""
    for name in ("DO_NOT_TRACK", "DENIABLE_DISABLED", "http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    sink = Sink()

    def answer(path, headers, body):
        reply = sink.take(body)
        return None if reply is None else (202, {}, reply)

    with http_server(answer) as address:
        yield sink, address


def start(folder, endpoint, first, days):
    """A device process that records, seals and sends for so many days of its own clock."""
    arguments = [str(folder), endpoint, str(first), str(days)]
    return subprocess.Popen([sys.executable, "-c", DEVICE, *arguments])


def spent_reports(folder):
    """The reports in the ledger."""
    state = State(folder)
    with state.transaction() as connection:
        (reports,) = connection.execute("SELECT coalesce(sum(answers), 0) FROM ledger").fetchone()
    state.close()
    return int(reports)


def check_memory(folder, sink):
    """All reports with memory are of the row that the one key of their metric gives, and the first
    window of a retention is the first that was reported."""
    found = {"three": [], "five": []}
    for body in sink.counted.values():
        for report in json.loads(body)["reports"]:
            if report["metric"] in found:
                found[report["metric"]].append((report.get("row", 0), report["window"]))
    state = State(folder)
    with state.transaction() as connection:
        keys = dict(connection.execute("SELECT * FROM memo_keys").fetchall())
        firsts = connection.execute("SELECT metric, window FROM firsts").fetchall()
    state.close()
    for metric, item in (("three", "a"), ("five", 0)):
        scheme = Registry.parse(REGISTRY)[metric].scheme
        assert isinstance(scheme.mechanism, Memoizing)
        row, _ = draw(keys[metric], scheme.fingerprint, scheme.mechanism, item)
        assert {each for each, _ in found[metric]} == {row}
    assert firsts == [("five", min(window for _, window in found["five"]))]


def settle(folder, endpoint, day):
    """Send all that is left, as a last process of the device."""
    with Client(
        folder / "metrics.toml",
        endpoint,
        folder,
        clock=lambda: day * 86_400.0,
        background=False,
        consent=True,
    ) as client:
        assert any(client.flush() for _ in range(10))
        assert client.status == "on"


@pytest.mark.campaign
def test_a_device_that_is_killed_twenty_times(tmp_path, sink):
    """SIGKILL at twenty moments while recording, sealing and sending: every sealed report
    arrives, none is counted twice, every retry has the same bytes, cohort and memos stay as
    they were drawn, and the ledger is never below what was sent."""
    counts, endpoint = sink
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    day = 20_000
    for turn in range(20):
        seen = counts.requests
        device = start(tmp_path, endpoint, day, 1000)
        try:
            while counts.requests < seen + 2 and device.poll() is None:
                time.sleep(0.001)
            time.sleep(turn * 0.0017)  # another moment of the cycle each time
        finally:
            device.kill()
            assert device.wait() == -signal.SIGKILL
        sent = sum(len(json.loads(body)["reports"]) for body in list(counts.bodies.values()))
        assert spent_reports(tmp_path) >= sent > 0
        day += 1000
    settle(tmp_path, endpoint, day)
    reports = counts.reports()
    assert set(reports.values()) == {1}
    assert len(reports) == spent_reports(tmp_path) > 40
    check_memory(tmp_path, counts)
    assert counts.changed_bytes == []
    assert counts.bodies == counts.counted


@pytest.mark.campaign
def test_processes_share_one_device(tmp_path, sink):
    """Three processes that live through the same ten days on one state file give one report
    for each metric and window, and count each record of a window."""
    counts, endpoint = sink
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    devices = [start(tmp_path, endpoint, 20_000, 10) for _ in range(3)]
    assert [device.wait() for device in devices] == [0, 0, 0]
    settle(tmp_path, endpoint, 20_020)
    reports = counts.reports()
    assert set(reports.values()) == {1}
    assert len(reports) == spent_reports(tmp_path) == 50
    check_memory(tmp_path, counts)
    assert counts.changed_bytes == []
