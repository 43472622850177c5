"""What it costs to keep single commits out of a store's files (DENIABLE_JOURNAL_SECONDS).

First the collector: the same batches with the journal left alone (0), at the default (60) and
cleared all the time (2), in turn. Then one clearing: of SQLite's log, and the rewrite of Redis's
append-only file beside commits every 20 ms, by the size of all tallies.
Run: python benchmarks/journal.py [--quick] [--only ingest|clearing].
"""

from __future__ import annotations

import datetime
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import click
import numpy as np
import redis
from rich.console import Console
from rich.table import Table

from deniable import Registry, Scheme, wire
from deniable_collector.stores import Store, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from ingest import METRICS, Outcome, Server, fresh, http, json_body, load
from ingest import redis as started_redis

SCHEMES = {metric.name: metric.scheme for metric in Registry.parse(METRICS)}
NOW = 1_795_262_400.0
SETTINGS = (0, 60, 2)
TICK = 0.02
DRAW = np.random.default_rng(1)


def ingest(quick: bool) -> Table:
    """Requests with each setting, in turn; the cheapest run and the shortest waits of three."""
    table = Table(title="Batches of 10 reports; one worker")
    for column in ("store", "journal seconds", "CPU us", "requests/s", "p50 ms", "p99 ms"):
        table.add_column(column, justify="left" if column == "store" else "right")
    registry = Registry.parse(METRICS)
    count = 4_000 if quick else 20_000
    bodies = [json_body([registry["city"]] * 8 + [registry["site"]] * 2) for _ in range(500)]
    request = fresh([http("application/json", each) for each in bodies], str.encode, "0" * 32)
    with tempfile.TemporaryDirectory() as name, started_redis(Path(name)) as (url, pid):
        folder = Path(name)
        (folder / "metrics.toml").write_text(METRICS)
        for label, store, redis_pid in (
            ("SQLite, FULL", f"sqlite:///{folder}/store.db", None),
            ("Redis, AOF everysec", url, pid),
        ):
            runs: dict[int, list[tuple[Outcome, Outcome]]] = {each: [] for each in SETTINGS}
            for _ in range(1 if quick else 3):
                for seconds in SETTINGS:
                    os.environ["DENIABLE_JOURNAL_SECONDS"] = str(seconds)
                    server = Server(folder, store, redis_pid)
                    try:
                        load(server, request, count // 10)
                        full = load(server, request, count)
                        half = load(server, request, int(full.rate * 5), full.rate / 2)
                    finally:
                        server.stop()
                    runs[seconds].append((full, half))
            for seconds, found in runs.items():
                table.add_row(
                    label,
                    str(seconds),
                    f"{1e6 * min(full.cpu for full, _ in found):,.0f}",
                    f"{max(full.rate for full, _ in found):,.0f}",
                    *(
                        f"{1e3 * min(half.latency(share) for _, half in found):.1f}"
                        for share in (0.5, 0.99)
                    ),
                )
    return table


def commit(scheme: Scheme, metric: str, window: str, columns: range | np.ndarray) -> Commit:
    """A tick's batches: 64 ids, and some counts in one row."""
    key = TallyRowKey(TallyKey(metric, scheme.fingerprint, window), 0)
    width = scheme.mechanism.rows[0].width
    counts = DRAW.poisson(1_000, len(columns)).astype(np.int64)
    ids = tuple(wire.new_batch_id() for _ in range(64))
    return Commit(ids, {key: Increment(width, 1_000, columns, counts)})


def fill(store: Store, megabytes: int) -> list[str]:
    """Tallies of 19,608 columns, 80 kB each; the days that they are of."""
    scheme = SCHEMES["town"]
    width = scheme.mechanism.rows[0].width
    store.publish({"town": [scheme]})
    first = datetime.date(1990, 1, 1)
    days = [str(first + datetime.timedelta(day)) for day in range(megabytes * 1_000_000 // 78_436)]
    for day in days:
        store.fold(commit(scheme, "town", day, range(width)), NOW)
    return days


def waits(store: Store, days: list[str], until: Callable[[], bool], least: float) -> list[float]:
    """Milliseconds of commits to 200 columns of random tallies, one each tick."""
    scheme, found = SCHEMES["town"], []
    begun = time.perf_counter()
    while time.perf_counter() - begun < least or not until():
        columns = np.sort(DRAW.choice(scheme.mechanism.rows[0].width, 200, replace=False))
        one = commit(scheme, "town", random.choice(days), columns)
        start = time.perf_counter()
        store.fold(one, NOW)
        took = time.perf_counter() - start
        found.append(1e3 * took)
        time.sleep(max(0.0, TICK - took))
    return sorted(found)


def shown(found: list[float]) -> str:
    return f"{statistics.median(found):.1f}, {found[int(0.99 * len(found))]:.1f}, {found[-1]:.0f}"


def clearing(quick: bool) -> Table:
    """One clearing, by the size of the tallies."""
    table = Table(title="One clearing; commits every 20 ms meanwhile: median, 99%, longest in ms")
    headings = (
        "store",
        "tallies MB",
        "took s",
        "CPU s",
        "written MB",
        "copied MB",
        "without",
        "with",
    )
    for column in headings:
        table.add_column(column, justify="left" if column == "store" else "right")
    sizes = (10, 100) if quick else (10, 100, 1_000)
    for size in sizes:
        with tempfile.TemporaryDirectory() as name, started_redis(Path(name)) as (url, _):
            table.add_row("Redis", f"{size:,}", *rewritten(Path(name), url, size))
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            table.add_row("SQLite", f"{size:,}", *emptied(Path(name), size))
    return table


def rewritten(folder: Path, url: str, size: int) -> list[str]:
    """The columns of a rewrite."""
    with closing(open_store(url)) as store, closing(redis.Redis.from_url(url)) as client:
        days = fill(store, size)

        def ended() -> bool:
            found = client.info("persistence")
            return not (found["aof_rewrite_in_progress"] or found["aof_rewrite_scheduled"])

        # Redis rewrites by itself while it grows.
        while not ended():
            time.sleep(0.1)
        without = waits(store, days, lambda: True, 5.0)
        spent = client.info("cpu")
        start = time.perf_counter()
        client.bgrewriteaof()
        during = waits(store, days, ended, 0.0)
        took = time.perf_counter() - start
        cpu = client.info("cpu")
        child = sum(
            cpu[each] - spent[each] for each in ("used_cpu_user_children", "used_cpu_sys_children")
        )
        (base,) = folder.glob("appendonlydir/*.base.rdb")
        copied = client.info("persistence")["aof_last_cow_size"]
        figures = [f"{took:.1f}", f"{child:.1f}", f"{base.stat().st_size / 1e6:,.0f}"]
        return [*figures, f"{copied / 1e6:,.0f}", shown(without), shown(during)]


def emptied(folder: Path, size: int) -> list[str]:
    """The columns of SQLite: the log is emptied every second beside commits."""
    with closing(open_store(f"sqlite:///{folder}/store.db")) as store:
        days = fill(store, size)
        without = waits(store, days, lambda: True, 5.0)
        took, cpu, written = [], [], []
        during: list[float] = []
        for _ in range(5):
            during += waits(store, days, lambda: True, 1.0)
            written.append((folder / "store.db-wal").stat().st_size / 1e6)
            start, spent = time.perf_counter(), time.process_time()
            store.clear_journal(0.0)
            took.append(time.perf_counter() - start)
            cpu.append(time.process_time() - spent)
            # The next commit waits for it.
            during.append(1e3 * took[-1])
        figures = [f"{max(took):.2f}", f"{max(cpu):.2f}", f"{max(written):,.0f}"]
        return [*figures, "0", shown(without), shown(sorted(during))]


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Fewer requests, and no large tallies.")
@click.option("--only", type=click.Choice(["ingest", "clearing"]), help="One of the tables.")
def main(quick: bool, only: str | None) -> None:
    """Print both tables."""
    for part in (ingest, clearing):
        if only in (None, part.__name__):
            Console().print(part(quick))


if __name__ == "__main__":
    main()
