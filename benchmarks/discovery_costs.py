"""What a discovery costs: a report on the device, and its tally in the collector's store.

Device: the time from the recorded string to the finished report, beside a string metric in the same
run. Store: a tally of 8,647,200 counters (epsilon 2, 16
bytes), filled with so many reports spread evenly over its cells, which needs the most room; folded
in commits of 20,000 reports, as a busy collector does.

Run: python benchmarks/discovery_costs.py [--store REDIS_URL] [--most REPORTS]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from deniable import Scheme
from deniable.mechanisms import PrefixTree, design_string
from deniable.types import Discovery, String
from deniable_collector.stores import open_store
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey

GOAL = 20.0
"""Microseconds a report."""
CALLS, ROUNDS = 2_000, 15
COMMIT = 20_000
"""Reports in one commit."""
WORDS = ("weather", "weather tomorrow morning in Oslo", "погода завтра", "天气预报")


def least(call: Callable[[], object]) -> float:
    """The smallest CPU time of many calls, in microseconds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.process_time_ns()
        call()
        best = min(best, (time.process_time_ns() - begin) / 1e3)
    return best


def device(console: Console) -> None:
    """Print what a report costs."""
    table = Table(title="A report of a string; goal 20 us and 4 bytes beside the row")
    for heading in ("type", "bytes of a string", "epsilon", "us a report", "bytes", "goal"):
        table.add_column(heading, justify="left" if heading == "type" else "right")
    for epsilon in (1.0, 2.0, 3.0, 4.0):
        for length in (16, 32):
            kind, made = Discovery(length), PrefixTree.design("search", epsilon, length // 2)

            def found(kind: Discovery = kind, made: PrefixTree = made) -> None:
                for place in range(CALLS):
                    made.randomize(kind.normalize(WORDS[place & 3]))

            each, size = least(found) / CALLS, made.rows[0].report_bytes
            goal = "yes" if each <= GOAL and size <= 4 else "no"
            row = (str(length), f"{epsilon:g}", f"{each:.1f}", str(size), goal)
            table.add_row("discovery", *row)
        oracle, text = design_string("auto", "search", epsilon), String()

        def named(oracle: object = oracle, text: String = text) -> None:
            for place in range(CALLS):
                oracle.randomize(text.normalize(WORDS[place & 3]))  # type: ignore[attr-defined]

        row = ("any", f"{epsilon:g}", f"{least(named) / CALLS:.1f}")
        table.add_row("string", *row, str(oracle.rows[0].report_bytes), "")
    console.print(table)


def fold(store: Store, scheme: Scheme, window: str, reports: int) -> tuple[float, float]:
    """Add so many reports, in commits. Returns the CPU time of all, and of the longest commit."""
    rng = np.random.default_rng(reports)
    whole = longest = 0.0
    tally = TallyKey("search", scheme.fingerprint, window)
    store.publish({"search": [scheme]})
    for number, first in enumerate(range(0, reports, COMMIT)):
        size = min(COMMIT, reports - first)
        rows = rng.integers(len(scheme.rows), size=size)
        increments = {}
        for row, shape in enumerate(scheme.rows):
            some = rng.integers(shape.width, size=int((rows == row).sum()))
            columns, counts = np.unique(some, return_counts=True)
            key = TallyRowKey(tally, row)
            increments[key] = Increment(shape.width, len(some), columns, counts)
        begin = time.process_time()
        store.fold(Commit((f"{reports + number:032x}",), increments), time.time())
        took = time.process_time() - begin
        whole, longest = whole + took, max(longest, took)
    return whole, longest


def room_of(url: str | None, folder: str) -> int:
    """The bytes of the files, or the memory of Redis."""
    if url is None:
        return sum(each.stat().st_size for each in Path(folder).iterdir())
    from redis import Redis

    return int(Redis.from_url(url).info("memory")["used_memory"])


def stores(console: Console, url: str | None, most: int) -> None:
    """Print what a tally costs."""
    scheme = Scheme("discovery", PrefixTree.design("search", 2.0, 8), ())
    cells = sum(row.width for row in scheme.rows)
    table = Table(title=f"A tally of {cells:,} counters")
    headings = ("store", "reports", "MB", "bytes a report", "us a report", "longest commit, s")
    for heading in (*headings, "read, s"):
        table.add_column(heading, justify="left" if heading == "store" else "right")
    reports = 1_000
    while reports <= most:
        window = f"2026-11-{len(str(reports)):02}"
        with tempfile.TemporaryDirectory() as folder:
            before = room_of(url, folder)
            path = Path(folder) / "tallies.db"
            with closing(open_store(url or f"sqlite:///{path}")) as store:
                whole, longest = fold(store, scheme, window, reports)
                begin = time.perf_counter()
                assert store.tally("search", scheme.fingerprint, [window]).reports == reports
                read = time.perf_counter() - begin
            room = room_of(url, folder) - before
            each = 1e6 * whole / reports
            row = (f"{reports:,}", f"{room / 1e6:.1f}", f"{room / reports:,.0f}", f"{each:.1f}")
            table.add_row(url or "SQLite", *row, f"{longest:.2f}", f"{read:.2f}")
        reports *= 10
    console.print(table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(f"Largest memory of the process: {peak:.0f} MB")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", metavar="URL", help="Another store than SQLite in a file.")
    parser.add_argument("--most", type=int, default=1_000_000, help="Reports of the last row.")
    given = parser.parse_args()
    console = Console(width=100)
    device(console)
    stores(console, given.store, given.most)


if __name__ == "__main__":
    main()
