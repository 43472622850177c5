"""A registry that is read again: a mistake in it changes nothing, and is told."""

from __future__ import annotations

import json
import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from deniable_collector import inherited
from deniable_collector.app import create_app
from deniable_collector.settings import Settings

from .devices import fetch

NEW = """
[metrics.new]
type = "boolean"
description = "A new question."
epsilon = 1.0
lifetime_epsilon = 8.0
"""


def workers(collector):
    """The process ids of the workers."""
    pid = collector.process.pid
    return {*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())}


@pytest.fixture
def replaced(until):
    """Does something to a collector, and waits until other workers have taken the place of all."""

    def replaced(collector, act):
        until(lambda: len(workers(collector)) == 2, "the workers do not start")
        before = workers(collector)
        act(before)

        def others():
            assert collector.process.poll() is None, collector.log
            now = workers(collector)
            return len(now) == 2 and not now & before

        until(others, "no other workers come")

    return replaced


def hang_up(collector):
    return lambda _: collector.process.send_signal(signal.SIGHUP)


def kill(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def events(collector, name):
    """The log's events of this name; every line of it must be JSON."""
    read = [json.loads(line) for line in collector.log.splitlines()]
    return [each for each in read if each["event"] == name]


@pytest.mark.campaign
def test_a_mistake_and_a_hangup(new_collector, new_body, replaced, until, tmp_path, metrics):
    """After a mistake in metrics.toml and SIGHUP, and when its workers are killed then, a collector
    takes batches by the old registry; log and /readyz name each mistake. Mended, it is read."""
    collector = new_collector(DENIABLE_LOG_FORMAT="json")
    file = tmp_path / "metrics.toml"

    def registry():
        return set(fetch(f"{collector.address}/v1/registry")[1]["metrics"])

    def serves():
        with suppress(OSError):
            return fetch(f"{collector.address}/v1/reports", new_body())[0] == 202
        return False

    old = registry()
    file.write_text(metrics.replace("epsilon = 2.0", "epsilon = -2.0").replace("boolean", "bool"))
    replaced(collector, hang_up(collector))
    replaced(collector, kill)
    until(serves, "it takes no batch")
    assert registry() == old
    status, ready = fetch(f"{collector.address}/readyz")
    assert (status, ready["status"]) == (200, "ready")
    assert "serves on" in ready["detail"]
    (told,) = events(collector, "reload-refused")
    assert told["level"] == "error"
    assert len(told["mistakes"]) >= 2
    assert told["mistakes"] == ready["mistakes"]
    assert any(re.match(r"metrics.toml:\d+: .*epsilon", each) for each in ready["mistakes"])
    file.write_text(metrics + NEW)
    replaced(collector, hang_up(collector))
    until(serves, "it takes no batch")
    assert registry() == {*old, "new"}
    assert fetch(f"{collector.address}/readyz")[1] == {"status": "ready"}
    (told,) = events(collector, "reloaded")
    assert told["metrics"] == 4
    assert collector.stop() == 0


@pytest.fixture
def held(monkeypatch, tmp_path, metrics):
    """What a master would hold, of a file that the test may change."""
    (tmp_path / "metrics.toml").write_text(metrics)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inherited, "_held", None)
    inherited.read()
    return tmp_path / "metrics.toml"


@pytest.mark.parametrize("trouble", ["mistake", "gone", "not text", "bug", "settings"])
def test_whatever_is_wrong_what_was_read_stays(held, monkeypatch, caplog, trouble):
    """A mistake, a file that is gone or no text, a secret that cannot be read, and an error that
    nobody expects leave what is held as it is, and are told."""
    before = inherited.inherited()
    if trouble == "mistake":
        held.write_text("schema = 2")
    elif trouble == "gone":
        held.unlink()
    elif trouble == "not text":
        held.write_bytes(b"\xff")
    elif trouble == "bug":
        monkeypatch.setattr(inherited.Registry, "load", lambda _: 1 / 0)
    else:
        monkeypatch.setenv("DENIABLE_STORE_FILE", "/none")
    inherited.read_again()
    after = inherited.inherited()
    assert (after.settings, after.registry) == (before.settings, before.registry)
    assert after.mistakes
    (record,) = caplog.records
    assert record.event == "reload-refused"
    assert after.mistakes[0] in record.getMessage()
    assert record.fields["mistakes"] == list(after.mistakes)


def test_without_a_master_each_reads_for_itself(monkeypatch, tmp_path, metrics):
    """Under a server that shares nothing, the environment and the file are read each time."""
    monkeypatch.setattr(inherited, "_held", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "metrics.toml").write_text(metrics)
    assert len(inherited.inherited().registry) == 3
    (tmp_path / "metrics.toml").write_text(metrics + NEW)
    assert len(inherited.inherited().registry) == 4


def test_a_collector_without_mistakes_says_nothing_of_them(registry, tmp_path):
    """/readyz has a detail only where something was not reloaded."""
    settings = Settings(store=f"sqlite:///{tmp_path / 'store.db'}")
    client = create_app(settings, registry=registry, mistakes=("one", "two")).test_client()
    ready = client.get("/readyz").json
    assert (ready["status"], ready["mistakes"]) == ("ready", ["one", "two"])
    client = create_app(settings, registry=registry).test_client()
    assert client.get("/readyz").json == {"status": "ready"}
