"""A tool that runs for a moment on many devices: real processes and a real collector."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deniable import Registry, windows
from deniable_collector.stores import open_store
from deniable_demo.fleet import Device, report_from

METRICS = """
schema = 1
app = "example"
[defaults]
owner = "tests@acme.example"
expires = 2999-12-31
window = "month"

[metrics.command]
type = "category"
description = "The command that was run first in the month."
values = ["build", "check", "publish", "other"]
epsilon = 10.0
lifetime_epsilon = 80.0
aggregate = "first"
answer = "at_once"

[metrics.last_command]
type = "category"
description = "The command that was run last in the month."
values = ["build", "check", "publish", "other"]
epsilon = 10.0
lifetime_epsilon = 80.0
"""

TOOL = """
import os, signal, sys
import deniable
registry, endpoint, folder, command, end = sys.argv[1:]
client = deniable.Client(registry, endpoint, folder)
client.record("command", command)
client.record("last_command", command)
if end == "killed":
    client._work(10.0, urgent=False)
    os.kill(os.getpid(), signal.SIGKILL)
client.close(20.0)
"""
DEVICES = 6


class Collector:
    """The collector, which can be killed and started again at the same address."""

    def __init__(
        self, command: list[str], start: Callable[[list[str]], subprocess.Popen[str]]
    ) -> None:
        self._command, self._start = command, start
        self.address = ""
        self.process: subprocess.Popen[str] | None = None

    def begin(self) -> None:
        self.process = self._start([*self._command, "collect"])
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "listening at" in line
        self.address = line.rsplit(" ", 1)[1].strip()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


def run_tool(folder: Path, endpoint: str, device: int, command: str, end: str = "") -> None:
    """One run of the tool on one device."""
    arguments = [str(folder / "metrics.toml"), endpoint, str(folder / f"device{device}")]
    done = subprocess.run(
        [sys.executable, "-c", TOOL, *arguments, command, end], timeout=60, check=False
    )
    assert done.returncode == (-signal.SIGKILL if end == "killed" else 0)


def test_a_tool_that_runs_once_is_counted_once(
    command: list[str],
    environ: dict[str, str],
    start: Callable[[list[str]], subprocess.Popen[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each device counts once in the month that runs: whether its only run could send, was killed
    before it could, or met no collector; and however often it ran. The metric that is answered
    at the close has sent nothing, and the estimate says that its window is unfinished."""
    for name in ("DO_NOT_TRACK", "DENIABLE_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "metrics.toml").write_text(METRICS)
    store = f"sqlite:///{tmp_path / 'store.db'}"
    environ.update(
        DENIABLE_REGISTRY=str(tmp_path / "metrics.toml"),
        DENIABLE_STORE=store,
        DENIABLE_BIND="127.0.0.1:0",
        DENIABLE_LOG_FORMAT="text",
    )
    month = windows.window_at("month", time.time())
    if windows.end(month) - time.time() < 300:
        pytest.skip("the month ends within five minutes")
    collector = Collector(command, start)
    collector.begin()
    for device in range(DEVICES):
        run_tool(tmp_path, collector.address, device, "build", ["", "killed"][device % 2])
    collector.kill()
    for device in range(DEVICES, 2 * DEVICES):
        run_tool(tmp_path, collector.address, device, "build")
    environ["DENIABLE_BIND"] = collector.address.removeprefix("http://")
    collector.begin()
    for _ in range(2):
        for device in range(2 * DEVICES):
            run_tool(tmp_path, collector.address, device, "check")
    registry = Registry.load(tmp_path / "metrics.toml")
    deadline = time.monotonic() + 30
    while _counted(store, registry, "command", month) < 2 * DEVICES:
        assert time.monotonic() < deadline, _counted(store, registry, "command", month)
        time.sleep(0.2)
    assert _counted(store, registry, "command", month) == 2 * DEVICES
    assert _counted(store, registry, "last_command", month) == 0
    shown = subprocess.run(
        [*command, "estimate", "command", "--json"],
        env=environ,
        capture_output=True,
        check=True,
        timeout=60,
    )
    document = json.loads(shown.stdout)
    assert (document["n"], document["unfinished"]) == (2 * DEVICES, [month])
    share = {each["value"]: each["share"] for each in document["values"]}
    # At epsilon 10 a report is another value with probability below 0.00014, and two or more of
    # twelve are with probability below 2e-6.
    assert share["build"] > 0.85


def test_simulated_devices_answer_at_once(
    command: list[str],
    environ: dict[str, str],
    start: Callable[[list[str]], subprocess.Popen[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The demo's devices report such a metric like any other, and `deniable simulate` draws it."""
    for name in ("DO_NOT_TRACK", "DENIABLE_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "metrics.toml"
    path.write_text(METRICS.replace('window = "month"', 'window = "day"'))
    store = f"sqlite:///{tmp_path / 'store.db'}"
    environ.update(
        DENIABLE_REGISTRY=str(path),
        DENIABLE_STORE=store,
        DENIABLE_BIND="127.0.0.1:0",
        DENIABLE_LOG_FORMAT="text",
    )
    collector = Collector(command, start)
    collector.begin()
    now = time.time()
    devices: list[Device] = [({}, {"command": "build", "last_command": "check"})] * 50
    assert report_from(str(path), collector.address, devices, now) == 50
    yesterday, registry = windows.window_at("day", now - 86_400), Registry.load(path)
    assert _counted(store, registry, "command", yesterday) == 50
    assert _counted(store, registry, "last_command", yesterday) == 50
    drawn = subprocess.run(
        [*command, "simulate", "command", "--devices", "1000", "--seed", "1", "--json"],
        env=environ,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(drawn.stdout)["n"] == 1000


def _counted(store: str, registry: Registry, metric: str, month: str) -> int:
    opened = open_store(store)
    try:
        scheme = registry[metric].scheme.fingerprint
        if scheme not in opened.schemes().get(metric, {}):
            return 0
        return opened.tally(metric, scheme, [month]).reports
    finally:
        opened.close()
