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
from tests.registries import declared

from deniable import Registry, windows

from .running import counted, until

COMMANDS = {"type": "category", "values": ["build", "check", "publish", "other"], "window": "month",
            "epsilon": 10.0, "lifetime_epsilon": 80.0}  # fmt: skip
METRICS = declared(
    command={**COMMANDS, "aggregate": "first", "answer": "at_once"}, last_command=COMMANDS
)

TOOL = """
import os, signal, sys
import deniable
registry, endpoint, folder, command, end = sys.argv[1:]
client = deniable.Client(registry, endpoint, folder, consent=True)
client.record("command", command)
client.record("last_command", command)
if end == "killed":
    client._work(10.0, urgent=False)
    os.kill(os.getpid(), signal.SIGKILL)
client.close(20.0)
"""
DEVICES = 6


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

    def begin() -> tuple[subprocess.Popen[str], str]:
        process = start([*command, "collect"])
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "listening at" in line
        return process, line.rsplit(" ", 1)[1].strip()

    collector, address = begin()
    for device in range(DEVICES):
        run_tool(tmp_path, address, device, "build", ["", "killed"][device % 2])
    collector.kill()
    collector.wait()
    for device in range(DEVICES, 2 * DEVICES):
        run_tool(tmp_path, address, device, "build")
    environ["DENIABLE_BIND"] = address.removeprefix("http://")
    begin()
    for _ in range(2):
        for device in range(2 * DEVICES):
            run_tool(tmp_path, address, device, "check")
    registry = Registry.load(tmp_path / "metrics.toml")
    command_metric = registry["command"]
    until(lambda: counted(store, command_metric, month) >= 2 * DEVICES)
    assert counted(store, command_metric, month) == 2 * DEVICES
    assert counted(store, registry["last_command"], month) == 0
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
