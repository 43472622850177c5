"""What commits, ids and tallies cost in each store, beside the plain way, in the same run.

CPU is that of this process and of the Redis server (an AOF synced every second). The plain
way in Redis is a pipeline of one HINCRBY for each cell, in SQLite one upsert for each cell
in a transaction; neither remembers a batch id, while each of our commits brings 64.
"""

from __future__ import annotations

import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import redis
from rich.console import Console
from rich.table import Table

from deniable import Registry, Scheme
from deniable_collector.stores import Store, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from ingest import METRICS

NOW = 1_795_262_400.0
WINDOW = "2026-11-20"
IDS = 64
"""Ids in a commit: a tick's batches."""

SCHEMES = {metric.name: metric.scheme for metric in Registry.parse(METRICS)}

DRAW = np.random.default_rng(1)
ROUNDS = 10
PARTS = ("commits", "ids", "memory")


@dataclass(frozen=True)
class Case:
    """A commit to `cells` of each row of a metric, and how often it is measured."""

    metric: str
    cells: int
    times: int

    @property
    def scheme(self) -> Scheme:
        return SCHEMES[self.metric]

    @property
    def name(self) -> str:
        rows = self.scheme.mechanism.rows
        cells = f"{self.cells:,} of {rows[0].width:,}"
        return f"{len(rows)} rows, each {cells}" if len(rows) > 1 else cells

    def columns(self) -> list[np.ndarray | range]:
        """Columns of each row, side by side where they are many."""
        found: list[np.ndarray | range] = []
        for row in self.scheme.mechanism.rows:
            if self.cells == row.width:
                found.append(range(row.width))
            else:
                found.append(np.sort(DRAW.permutation(row.width)[: self.cells]))
        return found


CASES = (
    Case("city", 1, 400),
    Case("town", 10, 400),
    Case("town", 200, 200),
    Case("town", 8_000, 100),
    Case("site", 128, 200),
)


@dataclass(frozen=True)
class Server:
    """A Redis of our own."""

    url: str
    pid: int

    def spent(self) -> float:
        """Seconds of CPU, to the microsecond."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


@contextmanager
def own_redis(folder: Path) -> Iterator[Server]:
    binary = shutil.which("redis-server")
    if binary is None:
        sys.exit("this benchmark needs redis-server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    command += ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    server = Server(f"redis://127.0.0.1:{port}/0", process.pid)
    try:
        with closing(redis.Redis.from_url(server.url)) as client:
            while True:
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    time.sleep(0.05)
        yield server
    finally:
        process.terminate()
        process.wait()


def new_ids(count: int) -> tuple[str, ...]:
    text = DRAW.bytes(16 * count).hex()
    return tuple(text[first : first + 32] for first in range(0, len(text), 32))


def increments(case: Case) -> Mapping[TallyRowKey, Increment]:
    tally = TallyKey(case.metric, case.scheme.fingerprint, WINDOW)
    rows = case.scheme.mechanism.rows
    return {
        TallyRowKey(tally, number): Increment(
            row.width, len(columns), columns, np.ones(len(columns), np.int64)
        )
        for number, (row, columns) in enumerate(zip(rows, case.columns(), strict=True))
    }


def fold_in(store: Store, case: Case) -> Callable[[], object]:
    commits = iter([Commit(new_ids(IDS), increments(case)) for _ in range(case.times + 1)])
    return lambda: store.fold(next(commits), NOW)


def hincrby_in(client: redis.Redis, case: Case) -> Callable[[], object]:
    rows = [[str(column) for column in columns] for columns in case.columns()]

    def commit() -> None:
        pipeline = client.pipeline(transaction=True)
        for number, columns in enumerate(rows):
            for column in columns:
                pipeline.hincrby(f"plain:{case.name}:{number}", column, 1)
        pipeline.execute()

    return commit


def upsert_in(connection: sqlite3.Connection, case: Case) -> Callable[[], object]:
    rows = [
        (f"{case.name}:{number}", int(column))
        for number, columns in enumerate(case.columns())
        for column in columns
    ]

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO cells VALUES (?, ?, 1)"
            " ON CONFLICT (tally, cell) DO UPDATE SET count = count + 1",
            rows,
        )
        connection.execute("COMMIT")

    return commit


def cpu(commit: Callable[[], object], times: int, server: Server | None) -> str:
    """Microseconds of CPU for each commit, of this process and of the server: the best of
    ROUNDS, as other work on the machine only ever adds."""
    commit()
    rounds = []
    each = times // ROUNDS
    for _ in range(ROUNDS):
        mine, theirs = time.process_time(), server.spent() if server else 0.0
        for _ in range(each):
            commit()
        spent = time.process_time() - mine
        rounds.append((spent, (server.spent() if server else 0.0) - theirs))
    mine, theirs = (1e6 * part / each for part in min(rounds, key=sum))
    return f"{mine:,.0f} + {theirs:,.0f}" if server else f"{mine:,.0f}"


@contextmanager
def stores(server: Server, folder: Path) -> Iterator[tuple[redis.Redis, Store, Store]]:
    with (
        closing(redis.Redis.from_url(server.url)) as client,
        closing(open_store(server.url, prefix="ours")) as in_redis,
        closing(open_store(f"sqlite:///{folder}/store.db")) as in_sqlite,
    ):
        for store in (in_redis, in_sqlite):
            store.publish({name: [scheme] for name, scheme in SCHEMES.items()})
        yield client, in_redis, in_sqlite


def measure_commits(server: Server, folder: Path) -> Table:
    """The cost of one commit."""
    table = Table(title="CPU of one commit, microseconds (Redis: client + server)")
    for name in ("cells", "Redis", "HINCRBY", "SQLite", "upserts"):
        table.add_column(name, justify="right")
    with (
        stores(server, folder) as (client, in_redis, in_sqlite),
        closing(sqlite3.connect(folder / "plain.db", isolation_level=None)) as plain,
    ):
        plain.execute("PRAGMA journal_mode = WAL")
        plain.execute("PRAGMA synchronous = FULL")
        plain.execute("CREATE TABLE cells (tally, cell, count, PRIMARY KEY (tally, cell))")
        for case in CASES:
            plainly = max(ROUNDS, case.times // 10)
            table.add_row(
                case.name,
                cpu(fold_in(in_redis, case), case.times, server),
                cpu(hincrby_in(client, case), plainly, server),
                cpu(fold_in(in_sqlite, case), case.times, None),
                cpu(upsert_in(plain, case), plainly, None),
            )
    return table


def measure_ids(server: Server, folder: Path, count: int) -> Table:
    """The room that the ids of one day take, and what they cost in commits of IDS."""
    table = Table(title=f"{count:,} batch ids within a day")
    for name in ("", "Redis", "SADD", "SQLite", "plain rows"):
        table.add_column(name, justify="right")
    room, cost = ["bytes for each"], ["microseconds for each"]

    def fill(remember: Callable[[tuple[str, ...], float], object], size: Callable[[], int]) -> None:
        before, mine, theirs = size(), time.process_time(), server.spent()
        for number in range(count // IDS):
            remember(new_ids(IDS), NOW + 86_400.0 * number * IDS / count)
        spent = time.process_time() - mine + server.spent() - theirs
        cost.append(f"{1e6 * spent / count:.1f}")
        room.append(f"{(size() - before) / count:.1f}")

    def memory() -> int:
        return int(client.info("memory")["used_memory"])

    def disk() -> int:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.stat().st_size

    with stores(server, folder) as (client, in_redis, in_sqlite):
        fill(lambda ids, now: in_redis.fold(Commit(ids, {}), now), memory)
        fill(lambda ids, _: client.sadd("plain", *map(bytes.fromhex, ids)), memory)
        path = folder / "store.db"
        fill(lambda ids, now: in_sqlite.fold(Commit(ids, {}), now), disk)
    path = folder / "plain.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as plain:
        plain.execute("PRAGMA journal_mode = WAL")
        plain.execute("PRAGMA synchronous = FULL")
        plain.execute("CREATE TABLE ids (id BLOB PRIMARY KEY, expires) WITHOUT ROWID")
        plain.execute("CREATE INDEX by_expiry ON ids (expires)")

        def insert(ids: tuple[str, ...], now: float) -> None:
            plain.execute("BEGIN IMMEDIATE")
            rows = [(bytes.fromhex(each), now) for each in ids]
            plain.executemany("INSERT INTO ids VALUES (?, ?)", rows)
            plain.execute("COMMIT")

        fill(insert, disk)
    table.add_row(*room)
    table.add_row(*cost)
    return table


def measure_memory(server: Server, folder: Path) -> Table:
    """What Redis keeps for one metric and window, as devices grow, in 100 commits each."""
    table = Table(title="bytes in Redis for one metric and window")
    crowds = [10**power for power in range(4, 9)]
    for name in ("metric", *(f"{devices:,} devices" for devices in crowds)):
        table.add_column(name, justify="right")
    with stores(server, folder) as (client, store, _):
        for name, scheme in SCHEMES.items():
            rows = scheme.mechanism.rows
            used = []
            for number, devices in enumerate(crowds):
                tally = TallyKey(name, scheme.fingerprint, f"2026-11-{number + 1:02}")
                before = set(client.keys("ours:*"))
                for reports in np.full(100, devices // 100):
                    parts = {}
                    for row, mine in enumerate(
                        DRAW.multinomial(reports, np.ones(len(rows)) / len(rows))
                    ):
                        width = rows[row].width
                        chance = 0.5 if len(rows) > 1 else 1 / width
                        parts[TallyRowKey(tally, row)] = Increment(
                            width, int(mine), range(width), DRAW.binomial(mine, chance, width)
                        )
                    store.fold(Commit(new_ids(1), parts), NOW)
                new = [key for key in set(client.keys("ours:*")) - before if b":ids" not in key]
                used.append(sum(client.memory_usage(key, samples=0) or 0 for key in new))
            table.add_row(
                f"{name}: {len(rows)} × {rows[0].width:,}", *(f"{each:,}" for each in used)
            )
    return table


@click.command(help=__doc__)
@click.option("--only", multiple=True, type=click.Choice(PARTS), help="This part (repeatable).")
@click.option("--ids", "count", default=1_000_000, show_default=True, help="Batch ids remembered.")
def main(only: tuple[str, ...], count: int) -> None:
    measures: dict[str, Callable[[Server, Path], Table]] = {
        "commits": measure_commits,
        "ids": lambda server, folder: measure_ids(server, folder, count),
        "memory": measure_memory,
    }
    for part in only or PARTS:
        with tempfile.TemporaryDirectory() as name, own_redis(Path(name)) as server:
            Console().print(measures[part](server, Path(name)))


if __name__ == "__main__":
    main()
