"""Whether the dashboard still answers while readers ask for more than it can calculate.

A real dashboard over SQLite, with two metrics that ask for strings: one with the mechanism that
is chosen by default, one with `cohort_local_hashing`, which takes longest to decode. 24
connections ask for as much as they can, one kind of question at a time: plans of 10,000 values
with memory, on the page and by the API, each with numbers of its own; lists of 100,000 strings,
each list another; and a page and a file of a list of a million. Meanwhile /healthz is asked every
50 ms. The first line, without any load, is the baseline.

The table shows the answers of /healthz in milliseconds, the largest memory of all processes of
the dashboard together (proportional set size, so that what they share counts once), and how the
other questions were answered: with the answer, with "ask again" (202 or 503) or otherwise.
Run: python benchmarks/dashboard_flood.py [--seconds 15]
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from deniable import Registry
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.analyses.sampling import sample_tally

CONNECTIONS = 24
LONGEST = 30
"""Seconds after which nobody waits for /healthz any more."""
TOKEN = secrets.token_urlsafe(32)
REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "a@acme.example"
expires = 2099-06-30
[metrics.site]
type = "string"
description = "Which site?"
epsilon = 2.0
lifetime_epsilon = 8.0
[metrics.slow]
type = "string"
description = "Which site, slowly?"
epsilon = 2.0
lifetime_epsilon = 8.0
mechanism = "cohort_local_hashing"
"""


class Question(NamedTuple):
    """What is asked: made anew for each request."""

    method: str
    path: str
    body: bytes = b""
    accept: str = "*/*"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=15)
    seconds = parser.parse_args().seconds
    table = Table(title=f"/healthz under {CONNECTIONS} connections, {seconds:g} s of each load")
    for name in ("load", "p50 ms", "p99 ms", "longest ms", "MiB", "answered", "again", "other"):
        table.add_column(name, justify="left" if name == "load" else "right")
    with tempfile.TemporaryDirectory() as folder:
        for label, question in loads():
            # A dashboard of its own for each: none finds what another has left.
            with dashboard(Path(folder)) as (host, process):
                table.add_row(label, *measured(host, process, question, seconds))
    Console(width=110).print(table)


def loads() -> list[tuple[str, Callable[[], Question] | None]]:
    numbers = count(1)

    def plan(path: str) -> Callable[[], Question]:
        def ask() -> Question:
            devices = 100_000 + next(numbers)
            numbers_ = f"size=10000&epsilon=1&lifetime_epsilon=8&devices={devices}"
            return Question("GET", f"{path}?{numbers_}&sample_rate=0.1&memoize=1")

        return ask

    def listed(metric: str) -> Callable[[], Question]:
        names = [f"s{number}.example" for number in range(100_000)]
        # So that each list is another, at no cost.
        common = "\n".join(names[1:]).encode()

        def ask() -> Question:
            body = b"x%d.example\n" % next(numbers) + common
            return Question("POST", f"/api/v1/metrics/{metric}/estimate", body)

        return ask

    def long(path: str) -> Callable[[], Question]:
        return lambda: Question("GET", f"{path}&n={next(numbers)}" if "?" in path else path)

    return [
        ("none", None),
        ("/plan, 10,000 values", plan("/plan")),
        ("/api/v1/plan, 10,000 values", plan("/api/v1/plan")),
        ("100,000 strings sent", listed("site")),
        ("the same, cohort_local_hashing", listed("slow")),
        ("page of 1,000,000 strings", long("/metric/site")),
        ("file of 1,000,000 strings", long("/metric/site.csv")),
    ]


@contextmanager
def dashboard(folder: Path) -> Iterator[tuple[str, int]]:
    """A dashboard at a free port; host and port, and the id of its first process."""
    if not (folder / "metrics.toml").exists():
        fill(folder)
    environ = {name: text for name, text in os.environ.items() if not name.startswith("DENIABLE_")}
    process = subprocess.Popen(
        [sys.executable, "-c", "from deniable.cli import main; main()", "dashboard"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={
            **environ,
            "DENIABLE_STORE": f"sqlite:///{folder}/tallies.db",
            "DENIABLE_CANDIDATES_DIR": str(folder / "lists"),
            "DENIABLE_DASHBOARD_BIND": "127.0.0.1:0",
            "DENIABLE_DASHBOARD_TOKEN": TOKEN,
        },
    )
    assert process.stdout is not None
    try:
        lines = (re.search(r"http://(\S+)", line) for line in process.stdout)
        yield next(found[1] for found in lines if found), process.pid
    finally:
        for each in family(process.pid):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        process.communicate()


def fill(folder: Path) -> None:
    (folder / "metrics.toml").write_text(REGISTRY)
    (folder / "lists").mkdir()
    names = [f"s{number}.example" for number in range(1_000_000)]
    (folder / "lists" / "site.txt").write_text("\n".join(names))
    registry = Registry.parse(REGISTRY)
    store = open_store(f"sqlite:///{folder}/tallies.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    rng, now = np.random.default_rng(1), datetime.now(UTC)
    for metric in registry:
        tally = sample_tally(
            metric.scheme, np.full(100, 2_000), rng, values=names[:100], metric=metric.name
        )
        increments = {}
        day = (now.date() - timedelta(days=1)).isoformat()
        for place, row in enumerate(tally.rows):
            columns = np.flatnonzero(row.cells)
            key = TallyRowKey(TallyKey(metric.name, metric.scheme.fingerprint, day), place)
            increments[key] = Increment(
                len(row.cells), row.reports, columns.tolist(), row.cells[columns].tolist()
            )
        store.fold(Commit((secrets.token_hex(16),), increments), now.timestamp())
    store.close()


def measured(
    host: str, process: int, question: Callable[[], Question] | None, seconds: float
) -> list[str]:
    ended = threading.Event()
    statuses: Counter[int] = Counter()
    threads = [
        threading.Thread(target=ask, args=(host, question, statuses, ended))
        for _ in range(CONNECTIONS if question else 0)
    ]
    for thread in threads:
        thread.start()
    times, memory, begun = [], 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        time.sleep(0.05)
        asked = time.perf_counter()
        connection = http.client.HTTPConnection(host, timeout=LONGEST)
        # No response counts as one after that time.
        with suppress(TimeoutError):
            connection.request("GET", "/healthz")
            assert connection.getresponse().read()
        connection.close()
        times.append((time.perf_counter() - asked) * 1000)
        memory = max(memory, size(process))
    ended.set()
    for thread in threads:
        thread.join()
    p50, p99 = np.percentile(times, [50, 99])
    again = statuses[202] + statuses[503]
    other = statuses.total() - statuses[200] - again
    figures = (p50, p99, max(times), memory / 2**20, statuses[200], again, other)
    return [f"{each:,.0f}" for each in figures]


def ask(
    host: str, question: Callable[[], Question], statuses: Counter[int], ended: threading.Event
) -> None:
    """Ask, and ask again at once: worse than any reader would."""
    while not ended.is_set():
        method, path, body, accept = question()
        connection = http.client.HTTPConnection(host, timeout=LONGEST)
        headers = {"Authorization": f"Bearer {TOKEN}", "Accept": accept}
        if body:
            headers["Content-Type"] = "text/plain"
        with suppress(OSError, http.client.HTTPException):
            connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            answer.read()
            statuses[answer.status] += 1
        connection.close()


def size(process: int) -> int:
    """Bytes of a process and of all that it has started."""
    total = 0
    for each in family(process):
        with suppress(OSError, StopIteration):
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text()
            total += int(next(line for line in rollup.splitlines() if "Pss:" in line).split()[1])
    return total << 10


def family(process: int) -> list[int]:
    """A process and all that it has started."""
    found = [process]
    for each in found:
        with suppress(OSError):
            for children in Path(f"/proc/{each}").glob("task/*/children"):
                found += map(int, children.read_text().split())
    return found


if __name__ == "__main__":
    main()
