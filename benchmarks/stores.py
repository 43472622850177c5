"""What a commit costs in each store, beside the plain way to do it, measured in the same run.

CPU of this process and of the Redis server (an AOF synced every second), per commit. The
plain way in Redis is a pipeline of one HINCRBY for each cell, in SQLite one upsert for
each cell in a transaction; neither remembers a batch id.
Run: python benchmarks/stores.py
"""

from __future__ import annotations

import itertools
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import redis
from rich.console import Console
from rich.table import Table

from hearsay_collector.stores import Store, open_store
from hearsay_collector.stores.base import Commit, Increment, TallyKey, TallyRowKey

NOW = 1_795_262_400.0
SIZES = {1: 400, 10: 400, 128: 200, 10_000: 20}
"""Cells of a commit, and how many commits are measured."""

_numbers = itertools.count()


def new_id() -> str:
    return f"{next(_numbers) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:032x}"


def cells_of(size: int) -> tuple[int, tuple[int, ...]]:
    """The width of a row and the columns: alone where few, side by side where many."""
    width = max(1_024, size)
    return width, tuple(range(0, width, width // size))[:size]


def fold_in(store: Store, size: int) -> Callable[[], object]:
    width, columns = cells_of(size)
    key = TallyRowKey(TallyKey("m", f"{size:012x}", "2026-11-20"), 0)
    increment = Increment(width, size, columns, (1,) * size)
    return lambda: store.fold(Commit((new_id(),), {key: increment}), NOW)


def hincrby_in(client: redis.Redis, size: int) -> Callable[[], object]:
    _, columns = cells_of(size)

    def commit() -> None:
        pipeline = client.pipeline(transaction=True)
        for column in columns:
            pipeline.hincrby(f"plain:{size}", str(column), 1)
        pipeline.execute()

    return commit


def upsert_in(connection: sqlite3.Connection, size: int) -> Callable[[], object]:
    _, columns = cells_of(size)
    rows = [(size, column) for column in columns]

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO cells VALUES (?, ?, 1)"
            " ON CONFLICT (tally, cell) DO UPDATE SET count = count + 1",
            rows,
        )
        connection.execute("COMMIT")

    return commit


def cpu(commit: Callable[[], object], times: int, server: psutil.Process | None) -> str:
    """Microseconds of CPU for each commit: of this process, and of the server."""

    def spent() -> tuple[float, float]:
        mine = time.process_time()
        theirs = sum(server.cpu_times()[:2]) if server else 0.0
        return mine, theirs

    commit()
    before = spent()
    for _ in range(times):
        commit()
    mine, theirs = (1e6 * (b - a) / times for a, b in zip(before, spent(), strict=True))
    return f"{mine:,.0f} + {theirs:,.0f}" if server else f"{mine:,.0f}"


def main() -> None:
    binary = shutil.which("redis-server")
    if binary is None:
        sys.exit("this benchmark needs redis-server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder]
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            measure(f"redis://127.0.0.1:{port}/0", psutil.Process(process.pid), Path(folder))
        finally:
            process.terminate()
            process.wait()


def measure(url: str, server: psutil.Process, folder: Path) -> None:
    table = Table(title="CPU of one commit (microseconds; Redis: client + server)")
    for name in ("cells", "Redis", "HINCRBY", "SQLite", "upserts"):
        table.add_column(name, justify="right")
    with (
        closing(redis.Redis.from_url(url)) as client,
        closing(open_store(url)) as in_redis,
        closing(open_store(f"sqlite:///{folder}/store.db")) as in_sqlite,
        closing(sqlite3.connect(folder / "plain.db", isolation_level=None)) as plain,
    ):
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        plain.execute("PRAGMA journal_mode = WAL")
        plain.execute("PRAGMA synchronous = FULL")
        plain.execute("CREATE TABLE cells (tally, cell, count, PRIMARY KEY (tally, cell))")
        for size, times in SIZES.items():
            table.add_row(
                f"{size:,}",
                cpu(fold_in(in_redis, size), times, server),
                cpu(hincrby_in(client, size), times, server),
                cpu(fold_in(in_sqlite, size), times, None),
                cpu(upsert_in(plain, size), times, None),
            )
        Console().print(table)
        remember(client, in_redis, in_sqlite, folder)


def remember(client: redis.Redis, in_redis: Store, in_sqlite: Store, folder: Path) -> None:
    """The room that 100,000 ids take."""
    count = 100_000
    file = folder / "store.db"
    before = client.info("memory")["used_memory"], file.stat().st_size
    for store in (in_redis, in_sqlite):
        for _ in range(count // 1_000):
            store.fold(Commit(tuple(new_id() for _ in range(1_000)), {}), NOW)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    after = client.info("memory")["used_memory"], file.stat().st_size
    redis_bytes, sqlite_bytes = ((b - a) / count for a, b in zip(before, after, strict=True))
    Console().print(f"a batch id: {redis_bytes:.0f} bytes in Redis, {sqlite_bytes:.0f} in SQLite")


if __name__ == "__main__":
    main()
