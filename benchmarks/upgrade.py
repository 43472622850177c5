"""Upgrade collectors under load from an earlier version, which is installed from git.

Two collectors of the earlier version and a reader of it run on one store. The collectors are
replaced one after the other while batches come, then this version seals the window. Measured are
the batches that were lost or counted twice, the responses, and what the earlier reader saw.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from random import Random

from deniable import Registry, windows, wire
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import TallyKey
from ingest import redis

ROOT = Path(__file__).parents[1]
BEFORE_SEALING = "4cf2599"
"""The last commit before tallies in Redis were sparse and windows were sealed."""

METRICS = """
schema = 1
app = "example"
[defaults]
owner = "bench@acme.example"
expires = 2999-12-31
[metrics.browser]
type = "category"
description = "The browser in use."
values = ["firefox", "chrome", "safari", "edge", "other"]
epsilon = 2.0
lifetime_epsilon = 8.0
[metrics.site]
type = "string"
description = "A site."
epsilon = 2.0
lifetime_epsilon = 8.0
"""

READER = """
import json, sys, time
from deniable_collector.stores import open_store
store = open_store(sys.argv[1])
while True:
    try:
        found = {name: sum(store.tally(name, each, sys.argv[2:]).reports for each in schemes)
                 for name, schemes in store.schemes().items()}
        print(json.dumps({"reports": found}), flush=True)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
    time.sleep(0.2)
"""


def install(commit: str, folder: Path) -> str:
    """A virtualenv with the version of a commit; its interpreter."""
    source = folder / "source"
    source.mkdir()
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=False
    )
    if packed.returncode:
        sys.exit(f"this clone has no commit {commit}: fetch the whole history, or give --commit")
    subprocess.run(["tar", "-x", "-C", str(source)], input=packed.stdout, check=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = str(folder / "venv" / "bin" / "python")
    options = ["--quiet", "--disable-pip-version-check", "-c", str(source / "constraints.txt")]
    subprocess.run(
        [python, "-m", "pip", "install", *options, f"{source}[collector]"],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    return python


class Collector:
    """`deniable collect` of either version, always at the same address."""

    def __init__(self, folder: Path, store: str, port: int) -> None:
        self._folder, self._store, self._port = folder, store, port
        self.address = f"http://127.0.0.1:{port}"

    def start(self, python: str) -> None:
        environ = {
            **os.environ,
            "DENIABLE_STORE": self._store,
            "DENIABLE_BIND": f"127.0.0.1:{self._port}",
            "DENIABLE_WORKERS": "1",
            "DENIABLE_RATE": "off",
        }
        with (self._folder / "collectors.log").open("a") as log:
            command = [python, "-c", "from deniable.cli import main; main()", "collect"]
            self._process = subprocess.Popen(
                command, env=environ, cwd=self._folder, stdout=log, stderr=log
            )
        while ask(f"{self.address}/readyz") != 200:
            time.sleep(0.05)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def ask(url: str, body: bytes | None = None) -> int | str:
    """The status of a response; "no response" without one."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return "no response"


class Devices:
    """Threads that send batches, each until it is acknowledged."""

    def __init__(self, registry: Registry, addresses: list[str]) -> None:
        self.windows = [windows.window_at("day", time.time() - 86_400)]
        self.truth = {metric.name: Counter[tuple[str, int, int]]() for metric in registry}
        self.statuses: Counter[int | str] = Counter()
        self.stopped = threading.Event()
        self._registry, self._addresses, self._lock = registry, addresses, threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(seed,)) for seed in range(8)]
        for thread in self._threads:
            thread.start()

    def _run(self, seed: int) -> None:
        draw = Random(seed)
        while not self.stopped.is_set():
            reports, window = [], draw.choice(self.windows)
            for metric in self._registry:
                rows = metric.scheme.mechanism.rows
                row = draw.randrange(len(rows))
                cell = draw.randrange(rows[row].width)
                reports.append((metric, row, cell))
            body = wire.encode_batch(
                wire.new_batch_id(),
                [
                    wire.SealedReport(each.name, each.scheme.fingerprint, window, row, cell)
                    for each, row, cell in reports
                ],
            )
            while True:
                status = ask(draw.choice(self._addresses) + "/v1/reports", body)
                with self._lock:
                    self.statuses[status] += 1
                if status == 202:
                    break
                time.sleep(0.05)
            with self._lock:
                for metric, row, cell in reports:
                    self.truth[metric.name][window, row, cell] += 1
            time.sleep(0.02)

    def finish(self) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.join()


def differences(store: str, registry: Registry, devices: Devices) -> int:
    """The number of cells that differ from what was acknowledged."""
    opened = open_store(store)
    try:
        wrong = 0
        for metric in registry:
            for window in devices.windows:
                tally = opened.tally(metric.name, metric.scheme.fingerprint, [window])
                for number, row in enumerate(tally.rows):
                    right = devices.truth[metric.name]
                    wrong += sum(
                        int(count) != right[window, number, cell]
                        for cell, count in enumerate(row.cells)
                    )
        return wrong
    finally:
        opened.close()


def run(python: str, store: str, folder: Path, seconds: float) -> None:
    """One upgrade, and what came of it."""
    (folder / "metrics.toml").write_text(METRICS, encoding="utf-8")
    registry = Registry.parse(METRICS)
    collectors = [Collector(folder, store, port) for port in (58_471, 58_472)]
    for each in collectors:
        each.start(python)
    devices = Devices(registry, [each.address for each in collectors])
    with (folder / "reader.log").open("w") as log:
        command = [python, "-c", READER, store, *devices.windows]
        reader = subprocess.Popen(command, stdout=log, cwd=folder)
    try:
        time.sleep(seconds)
        for each in collectors:
            each.stop()
            each.start(sys.executable)
            # A window that this version is the first to meet.
            devices.windows = [
                windows.window_at("day", time.time() - 86_400 * day) for day in (1, 2)
            ]
            time.sleep(seconds)
        devices.finish()
        opened = open_store(store)
        for metric in registry:
            for window in devices.windows:
                opened.seal(TallyKey(metric.name, metric.scheme.fingerprint, window))
        opened.close()
        time.sleep(1)
    finally:
        devices.finish()
        reader.terminate()
        reader.wait()
        for each in collectors:
            each.stop()
    print(f"batches acknowledged: {devices.statuses[202]:,}")
    print(f"responses: {dict(devices.statuses)}")
    print(f"cells that differ from what was acknowledged: {differences(store, registry, devices)}")
    told = [json.loads(line) for line in (folder / "reader.log").read_text().splitlines()]
    errors = Counter(each["error"] for each in told if "error" in each)
    print(f"errors of the earlier reader: {dict(errors)}")
    print(f"the last sums that it saw: {[x['reports'] for x in told if 'reports' in x][-1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commit", default=BEFORE_SEALING, help="the earlier version")
    parser.add_argument("--seconds", type=float, default=5.0, help="load between two steps")
    options = parser.parse_args()
    if shutil.which("git") is None:
        sys.exit("this benchmark needs git")
    with tempfile.TemporaryDirectory() as name:
        python = install(options.commit, Path(name))
        for kind in ("Redis", "SQLite"):
            folder = Path(name) / kind
            folder.mkdir()
            print(f"\n{kind}, from {options.commit}")
            if kind == "Redis":
                with redis(folder) as (store, _):
                    run(python, store, folder, options.seconds)
            else:
                run(python, f"sqlite:///{folder}/store.db", folder, options.seconds)


if __name__ == "__main__":
    main()
