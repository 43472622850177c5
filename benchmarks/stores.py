"""What commits and ids cost in each store, beside the plain way, in the same run.

commits  CPU of one commit
ids      the room and the CPU that remembering batch ids takes

CPU is that of this process and of the Redis server (an AOF synced every second). The plain
way in Redis is a pipeline of one HINCRBY for each cell, in SQLite one upsert for each cell
in a transaction; neither remembers a batch id, while each of our commits brings 64.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import redis

from common.tables import Table, run
from deniable import Registry, Scheme
from deniable_collector.settings import Settings
from deniable_collector.stores import Store, open_store
from deniable_collector.stores.commits import Addition, Commit, TallyKey
from deniable_collector.stores.vectors import addition_of, shape_of
from deniable_collector.tally import TallyRow
from ingest import METRICS
from ingest import redis as started_redis

NOW = 1_795_262_400.0
WINDOW = "2026-11-20"
IDS = 64
"""Ids in a commit: a tick's batches."""

SCHEMES = {metric.name: metric.scheme for metric in Registry.parse(METRICS)}

DRAW = np.random.default_rng(1)
ROUNDS = 10


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

    def columns(self) -> list[np.ndarray]:
        """Columns of each row."""
        rows = self.scheme.mechanism.rows
        return [np.sort(DRAW.permutation(row.width)[: self.cells]) for row in rows]


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

    pid: int

    def spent(self) -> float:
        """Seconds of CPU, to the microsecond."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def new_ids(count: int) -> tuple[str, ...]:
    text = DRAW.bytes(16 * count).hex()
    return tuple(text[first : first + 32] for first in range(0, len(text), 32))


def additions(case: Case) -> Mapping[TallyKey, Addition]:
    shapes = zip(case.columns(), case.scheme.mechanism.rows, strict=True)
    cells = (np.bincount(columns, minlength=row.width) for columns, row in shapes)
    rows = {number: TallyRow(case.cells, each) for number, each in enumerate(cells)}
    addition = addition_of(shape_of(case.scheme), rows)
    return {TallyKey(case.metric, case.scheme.fingerprint, WINDOW): addition}


def fold_in(store: Store, case: Case) -> Callable[[], object]:
    commits = iter([Commit(new_ids(IDS), additions(case)) for _ in range(case.times + 1)])
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
def opened() -> Iterator[tuple[Server, Path, redis.Redis, Store, Store]]:
    """A Redis and a folder, with both stores, and a plain client."""
    with (
        tempfile.TemporaryDirectory() as name,
        started_redis(Path(name)) as (url, pid),
        closing(redis.Redis.from_url(url)) as client,
        closing(open_store(Settings(store=url, redis_prefix="ours"))) as in_redis,
        closing(open_store(Settings(store=f"sqlite:///{name}/store.db"))) as in_sqlite,
    ):
        for store in (in_redis, in_sqlite):
            store.publish(SCHEMES.items())
        yield Server(pid), Path(name), client, in_redis, in_sqlite


@contextmanager
def plain_database(path: Path, *tables: str) -> Iterator[sqlite3.Connection]:
    """SQLite with a write-ahead log that is synced at each commit, as ours."""
    with closing(sqlite3.connect(path, isolation_level=None)) as plain:
        for line in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", *tables):
            plain.execute(line)
        yield plain


def commits(quick: bool) -> Iterator[Table]:
    table = Table("stores-commits", "CPU of one commit, microseconds (Redis: client + server)")
    cells = "CREATE TABLE cells (tally, cell, count, PRIMARY KEY (tally, cell))"
    with (
        opened() as (server, folder, client, in_redis, in_sqlite),
        plain_database(folder / "plain.db", cells) as plain,
    ):
        for case in CASES:
            times = case.times // 10 if quick else case.times
            plainly = max(ROUNDS, times // 10)
            table.add(
                cells=case.name,
                Redis=cpu(fold_in(in_redis, case), times, server),
                HINCRBY=cpu(hincrby_in(client, case), plainly, server),
                SQLite=cpu(fold_in(in_sqlite, case), times, None),
                upserts=cpu(upsert_in(plain, case), plainly, None),
            )
    yield table


def ids(quick: bool) -> Iterator[Table]:
    """The room that the ids of one day take (goal: 16 bytes), and their CPU in commits of IDS."""
    count = 50_000 if quick else 1_000_000
    table = Table("stores-ids", f"{count:,} batch ids within a day")
    with opened() as (server, folder, client, in_redis, in_sqlite):

        def fill(name: str, remember: Callable[..., object], size: Callable[[], int]) -> None:
            before, mine, theirs = size(), time.process_time(), server.spent()
            for number in range(count // IDS):
                remember(new_ids(IDS), NOW + 86_400.0 * number * IDS / count)
            spent = time.process_time() - mine + server.spent() - theirs
            room = (size() - before) / count
            table.add(way=name, bytes=room, microseconds=1e6 * spent / count)

        def memory() -> int:
            return int(client.info("memory")["used_memory"])

        def disk(path: Path) -> int:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return path.stat().st_size

        def insert(ids: tuple[str, ...], now: float) -> None:
            plain.execute("BEGIN IMMEDIATE")
            rows = [(bytes.fromhex(each), now) for each in ids]
            plain.executemany("INSERT INTO ids VALUES (?, ?)", rows)
            plain.execute("COMMIT")

        fill("Redis", lambda ids, now: in_redis.fold(Commit(ids, {}), now), memory)
        fill("SADD", lambda ids, _: client.sadd("plain", *map(bytes.fromhex, ids)), memory)
        own, other = folder / "store.db", folder / "plain.db"
        fill("SQLite", lambda ids, now: in_sqlite.fold(Commit(ids, {}), now), lambda: disk(own))
        made = "CREATE TABLE ids (id BLOB PRIMARY KEY, expires) WITHOUT ROWID"
        with plain_database(other, made, "CREATE INDEX by_expiry ON ids (expires)") as plain:
            fill("plain rows with their expiry", insert, lambda: disk(other))
    yield table


PARTS = {"commits": commits, "ids": ids}

if __name__ == "__main__":
    run(__doc__, PARTS)
