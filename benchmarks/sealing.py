"""What a sealed window takes, beside the entropy of its counts, gzip, and the open form.

First blocks: of windows of 10^3 to 10^7 reports in 16 to 8 million cells, beside the entropy of
order 0 of the counts and gzip -6 of the dense vector. Then the memory of a Redis with string
metrics of 20,000 answers a day and a year of days, 30 open and 335 sealed, beside the same
tallies in the dense form, which they had before; it is scaled down to --metrics metrics. Then
what a commit costs whose tally is sparse, or dense; how long commits take while windows are sealed;
a year of sealed days of such a metric: its sum, and the trends of 20,000 candidates by week and by
month, with sums over calendars and without; and sums of days of 100,000 and of 8 million cells,
with the memory that they take.
Run: python benchmarks/sealing.py [--quick] [--only blocks|memory|commits|beside|year|scale].
"""

from __future__ import annotations

import gzip
import resource
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np
import redis
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from deniable import Registry, Scheme
from deniable.retention import CALENDARS
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.stores.redis.forms import HEADER
from deniable_collector.stores.sealed.blocks import block_of, counters_in
from deniable_collector.stores.sqlite.store import SqliteStore
from deniable_collector.stores.summed.calendars import period_of
from deniable_collector.stores.vectors import Shape, shape_of
from deniable_collector.upkeep.sealing import Sealer, seal_all
from deniable_estimator.questions.trend import trend
from ingest import redis as started_redis

REGISTRY = """
schema = 1
app = "bench"

[metrics.search]
owner = "bench@acme.example"
expires = 2999-12-31
type = "string"
description = "What was searched for."
epsilon = 2.0
lifetime_epsilon = 8.0
"""

ANSWERS, OPEN, SEALED = 20_000, 30, 335
NOW = datetime(2026, 11, 23, tzinfo=UTC).timestamp()
TALLY = TallyKey("m", "abcdefabcdef", "2026-11-20")
DRAW = np.random.default_rng(18)


def entropy(counts: NDArray[np.int64]) -> float:
    """Bytes of the entropy of order 0 of these counts."""
    _, often = np.unique(counts, return_counts=True)
    return -float(often @ np.log2(often / len(counts))) / 8


def drawn(reports: int, cells: int, share: float | None) -> NDArray[np.int64]:
    """The counts of a window: each report sets one cell (None), or each cell with this chance."""
    if share is None:
        return DRAW.poisson(reports / cells, cells)
    return DRAW.binomial(reports, share, cells)


def blocks(quick: bool) -> Table:
    """Bytes of blocks, and how long they take."""
    table = Table(title="A sealed window")
    for column in (
        "a report sets", "cells", "reports", "entropy", "block", "over the entropy", "goal",
        "gzip -6", "seal ms", "read ms",
    ):  # fmt: skip
        table.add_column(column, justify="left" if column == "a report sets" else "right")
    sizes = (16, 1_024, 65_536) if quick else (16, 256, 4_096, 65_536, 1 << 20, 8_000_000)
    for share, name in ((None, "one cell"), (0.27, "27% of cells"), (0.5, "half of cells")):
        for cells in sizes:
            for reports in (10**3, 10**5, 10**7):
                counts = drawn(reports, cells, share)
                counters = np.append(reports, counts).astype(np.int64)
                began = time.process_time()
                block = block_of(TALLY, 1, counters)
                sealed = time.process_time()
                assert np.array_equal(counters_in(TALLY, len(counters), block), counters)
                read = time.process_time()
                least, size = entropy(counts), len(block)
                packed = len(gzip.compress(counters.astype("<u4").tobytes(), 6))
                table.add_row(
                    name, f"{cells:,}", f"{reports:,}", f"{least:,.0f}", f"{size:,}",
                    f"{size / least:.2f}" if least > 200 else f"+{size - least:.0f}",
                    "yes" if size <= 1.2 * least + 200 else "NO", f"{packed:,}",
                    f"{1000 * (sealed - began):.1f}", f"{1000 * (read - sealed):.1f}",
                )  # fmt: skip
    return table


def a_day(scheme: Scheme, tally: TallyKey) -> dict[TallyRowKey, Increment]:
    """The increments of a day of answers."""
    shape = shape_of(scheme)
    rows = DRAW.integers(0, len(shape.widths), ANSWERS)
    parts = {}
    for row in np.unique(rows).tolist():
        here = np.bincount(
            DRAW.integers(0, shape.widths[row], np.count_nonzero(rows == row)),
            minlength=shape.widths[row],
        )
        columns = np.flatnonzero(here)
        parts[TallyRowKey(tally, row)] = Increment(
            shape.widths[row], int(here.sum()), columns, here[columns]
        )
    return parts


def memory(metrics: int) -> Table:
    """Memory of Redis (used_memory above an empty one), before and now."""
    scheme = Registry.parse(REGISTRY)["search"].scheme
    shape = shape_of(scheme)
    days = [f"{date(2025, 11, 15) + timedelta(each)}" for each in range(OPEN + SEALED)]
    table = Table(
        title=f"Redis: {metrics} string metrics of {shape.size:,} counters, {ANSWERS:,} answers a "
        f"day, {OPEN} open and {SEALED} sealed windows"
    )
    for column in ("form", "MB a metric", "GB for 50 metrics", "beside dense"):
        table.add_column(column, justify="left" if column == "form" else "right")
    found: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory() as name,
        started_redis(Path(name)) as (url, _),
        closing(redis.Redis.from_url(url)) as client,
    ):
        # A dense window has the same size each day, so ten are enough.
        empty = client.info()["used_memory"]
        dense = HEADER.pack(1, 4) + bytes(4 * shape.size)
        for each in range(10):
            client.set(f"dense:{each}", dense)
        found["dense, as before"] = (client.info()["used_memory"] - empty) / 10 * len(days)
        client.flushall()
        store = open_store(url)
        plan = [(f"m{number}", day) for number in range(metrics) for day in days]
        for number in range(metrics):
            store.publish({f"m{number}": [scheme]})
        empty = client.info()["used_memory"]
        for each, (metric, day) in enumerate(track(plan)):
            key = TallyKey(metric, scheme.fingerprint, day)
            store.fold(Commit((f"{each:032x}",), a_day(scheme, key)), NOW)
        found["all open, sparse"] = (client.info()["used_memory"] - empty) / metrics
        for metric, day in track(plan):
            if day in days[:SEALED]:
                store.seal(TallyKey(metric, scheme.fingerprint, day))
        found["30 open, 335 sealed"] = (client.info()["used_memory"] - empty) / metrics
        made = seal_all(store, NOW)
        assert made.sums
        assert not made.failed
        found[f"the same, with {made.sums // metrics} sums a metric"] = (
            client.info()["used_memory"] - empty
        ) / metrics
        store.close()
    most = found["dense, as before"]
    for form, size in found.items():
        table.add_row(
            form, f"{size / 1e6:,.1f}", f"{50 * size / 1e9:,.2f}", f"1/{most / size:,.0f}"
        )
    return table


def commits(quick: bool) -> Table:
    """CPU of client and server of a commit to a tally of many cells."""
    scheme = Registry.parse(REGISTRY)["search"].scheme
    shape = shape_of(scheme)
    table = Table(title=f"A commit of n reports to a tally of {shape.size:,} counters, us")
    for column in ("n", "sparse (20,000 answers)", "dense (all cells)", "sealed, opened again"):
        table.add_column(column, justify="right")
    with (
        tempfile.TemporaryDirectory() as name,
        started_redis(Path(name)) as (url, _),
        closing(open_store(url)) as store,
        closing(redis.Redis.from_url(url)) as client,
    ):
        store.publish({"m": [scheme]})
        sparse, dense, sealed = (
            TallyKey("m", scheme.fingerprint, day)
            for day in ("2026-11-01", "2026-11-02", "2026-11-03")
        )
        for each, tally in enumerate((sparse, sealed)):
            store.fold(Commit((f"{each:032x}",), a_day(scheme, tally)), NOW)
        client.set(
            f"deniable:{{0}}:tally:{':'.join(dense)}",
            HEADER.pack(1, 4) + np.ones(shape.size, "<u4").tobytes(),
        )
        number = 10
        for reports in (1, 10, 100, 1_000):
            shown = [f"{reports:,}"]
            for tally in (sparse, dense, sealed):
                times = 5 if quick else 30
                spent = []
                for _ in range(times):
                    if tally == sealed:
                        store.seal(tally)
                    number += 1
                    row = int(DRAW.integers(0, len(shape.widths)))
                    cells = np.unique(DRAW.integers(0, shape.widths[row], reports))
                    part = Increment(shape.widths[row], reports, cells, np.ones_like(cells))
                    commit = Commit((f"{number:032x}",), {TallyRowKey(tally, row): part})
                    info = client.info("cpu")
                    before = time.process_time(), info["used_cpu_user"] + info["used_cpu_sys"]
                    store.fold(commit, NOW)
                    mine = time.process_time() - before[0]
                    info = client.info("cpu")
                    spent.append(mine + info["used_cpu_user"] + info["used_cpu_sys"] - before[1])
                shown.append(f"{1e6 * float(np.median(spent)):,.0f}")
            table.add_row(*shown)
    return table


def beside() -> Table:
    """How long commits take, one every 20 ms, while nothing or a collector's thread seals."""
    scheme = Registry.parse(REGISTRY)["search"].scheme
    days = [f"{date(2025, 11, 3) + timedelta(each)}" for each in range(60)]
    table = Table(title="Commits of 10 reports, one every 20 ms, ms")
    for column in ("store", "meanwhile", "commits", "p50", "p99", "longest", "sealed"):
        left = column in ("store", "meanwhile")
        table.add_column(column, justify="left" if left else "right")
    with tempfile.TemporaryDirectory() as folder, started_redis(Path(folder)) as (url, _):
        for name, address in (("SQLite", f"sqlite:///{folder}/store.db"), ("Redis", url)):
            fill(address, days, False)
            with closing(open_store(address)) as store:
                sealer = Sealer(store, clock=lambda: NOW)
                store.publish({"now": [scheme]})
                for number, meanwhile in enumerate(("nothing", "sealing")):
                    worker = threading.Thread(target=sealer.apply)
                    if number:
                        worker.start()
                    spent = []
                    for each in range(500):
                        cells = np.unique(DRAW.integers(0, shape_of(scheme).widths[0], 10))
                        part = Increment(shape_of(scheme).widths[0], 10, cells, np.ones_like(cells))
                        key = TallyKey("now", scheme.fingerprint, "2026-11-22")
                        batch = f"{10_000 * (number + 1) + each:032x}"
                        began = time.perf_counter()
                        store.fold(Commit((batch,), {TallyRowKey(key, 0): part}), NOW)
                        spent.append(1000 * (time.perf_counter() - began))
                        time.sleep(0.02)
                    sealed = len(store.sealed("search", scheme.fingerprint, days))
                    shown = [*np.percentile(spent, (50, 99)), max(spent)]
                    table.add_row(
                        name, meanwhile, "500", *(f"{each:.1f}" for each in shown), str(sealed)
                    )
                sealer.stop()
                worker.join()
    return table


def year() -> Table:
    """CPU, time and memory of reading a year of sealed days from SQLite."""
    registry = Registry.parse(REGISTRY)
    scheme = registry["search"].scheme
    first = date(2025, 11, 3)
    days = [f"{first + timedelta(each)}" for each in range(364)]
    candidates = [f"candidate {number}" for number in range(ANSWERS)]
    table = Table(title=f"A year of sealed days, {ANSWERS:,} answers a day, SQLite")
    for column in ("what", "CPU s", "seconds", "most MB"):
        table.add_column(column, justify="left" if column == "what" else "right")
    with tempfile.TemporaryDirectory() as folder:
        path, open_path = f"{folder}/year.db", f"{folder}/open.db"
        # In a process of its own, so that its memory is not counted below.
        with ProcessPoolExecutor(1) as pool:
            pool.submit(fill, f"sqlite:///{path}", days, True).result()
            pool.submit(fill, f"sqlite:///{open_path}", days, False).result()
        with (
            closing(open_store(f"sqlite:///{path}")) as store,
            closing(open_store(f"sqlite:///{open_path}")) as others,
        ):

            def timed(what: str, work: Callable[[], object]) -> None:
                clocks = time.process_time(), time.perf_counter()
                work()
                spent = time.process_time() - clocks[0], time.perf_counter() - clocks[1]
                most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                table.add_row(what, f"{spent[0]:.2f}", f"{spent[1]:.2f}", f"{most:,.0f}")

            timed("imports and registry", lambda: None)
            name = scheme.fingerprint
            timed("sum of the year, open days", lambda: others.tally("search", name, days))
            timed("sum of the year", lambda: store.tally("search", name, days))

            def trends(how: str) -> None:
                for by in ("week", "month"):
                    timed(
                        f"trend by {by}, 20,000 candidates{how}",
                        lambda by=by: trend(  # type: ignore[misc]
                            store, registry, "search", by=by, first=first,
                            last=first + timedelta(363), candidates=candidates, now=NOW,
                        ),
                    )  # fmt: skip

            trends("")
            # In a process of its own: it decodes every day three times.
            size = Path(path).stat().st_size
            with ProcessPoolExecutor(1) as pool:
                spent = pool.submit(add_up, f"sqlite:///{path}").result()
            grown = (Path(path).stat().st_size - size) / 1e6
            table.add_row(
                f"making all sums: {grown:.1f} MB more on the disk", f"{spent:.2f}", "", ""
            )
            timed("sum of the year, with sums", lambda: store.tally("search", name, days))
            trends(", with sums")
    return table


def scale(quick: bool, days_of_largest: int) -> Table:
    """Time and memory of summing sealed days of large tallies, each in a process of its own,
    without and with sums over calendars."""
    table = Table(title="The sum of sealed days of large tallies, SQLite")
    for column in ("cells", "days", "a report sets", "block", "what", "CPU s",
                   "seconds", "MB before", "most MB"):  # fmt: skip
        left = column in ("a report sets", "what")
        table.add_column(column, justify="left" if left else "right")
    cases: list[tuple[int, int, int, float | None]] = [
        (100_000, 364, 20_000, None), (100_000, 364, 20_000, 0.27),
        (8_000_000, days_of_largest, 100_000, None), (8_000_000, days_of_largest, 100_000, 0.27),
    ]  # fmt: skip
    for cells, days, reports, share in cases[: 2 if quick else None]:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/year.db"

            def alone(work: Callable[..., Any], *more: object, path: str = path) -> Any:
                with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                    return pool.submit(work, path, *more).result()

            size = alone(fill_wide, cells, days, reports, share)
            for what, work in (
                ("sum of all days", sum_wide),
                ("making sums of weeks, months, quarters", sums_wide),
                ("sum of all days, with sums", sum_wide),
            ):
                found = alone(work, cells)
                table.add_row(
                    f"{cells:,}", str(days), "one cell" if share is None else f"{share:.0%}",
                    f"{size:,}", what, *(f"{each:.2f}" for each in found[:2]),
                    *(f"{each:,.0f}" for each in found[2:]),
                )  # fmt: skip
    return table


def wide_store(path: str, cells: int) -> SqliteStore:
    """A store that takes the tallies of `TALLY`'s metric and scheme for one row of so many
    cells."""
    store = SqliteStore(path)
    store._shapes._known[TALLY[:2]] = Shape((cells,), (1,), cells + 1)
    return store


def fill_wide(path: str, cells: int, days: int, reports: int, share: float | None) -> int:
    """Fills and seals so many days with the same counts. Returns the size of a block."""
    part = Increment(cells, reports, range(cells), drawn(reports, cells, share))
    with closing(wide_store(path, cells)) as store:
        for each in range(days):
            tally = TALLY._replace(window=f"{date(2025, 11, 3) + timedelta(each)}")
            store.fold(Commit((f"{each:032x}",), {TallyRowKey(tally, 0): part}), NOW)
            sealing = store.seal(tally)
            assert sealing is not None
    return sealing.after


def sum_wide(path: str, cells: int) -> tuple[float, float, float, float]:
    """What the sum of all days takes; see `spent_on`."""

    def work(store: SqliteStore) -> None:
        store.tally(*TALLY[:2], store.windows(*TALLY[:2]))

    return spent_on(path, cells, work)


def sums_wide(path: str, cells: int) -> tuple[float, float, float, float]:
    """What it takes to make the sums of all weeks, months and quarters; see `spent_on`."""

    def work(store: SqliteStore) -> None:
        days = store.windows(*TALLY[:2])
        periods = {period_of(each, day) for day in days for each in CALENDARS["day"]}
        assert sum(store.sums.add_up(*TALLY[:2], "day", each) > 0 for each in periods)

    return spent_on(path, cells, work)


def spent_on(
    path: str, cells: int, work: Callable[[SqliteStore], None]
) -> tuple[float, float, float, float]:
    """CPU and seconds of some work with a store, and the memory before and at most, in MB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with closing(wide_store(path, cells)) as store:
        clocks = time.process_time(), time.perf_counter()
        work(store)
        spent = time.process_time() - clocks[0], time.perf_counter() - clocks[1]
    return *spent, before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def add_up(address: str) -> float:
    """Makes all sums of a store; the seconds of CPU that it takes."""
    began = time.process_time()
    with closing(open_store(address)) as store:
        seal_all(store, NOW + 30 * 86_400)
    return time.process_time() - began


def fill(address: str, days: list[str], sealed: bool) -> None:
    """Puts answers into each of these days, and seals them if that is asked."""
    scheme = Registry.parse(REGISTRY)["search"].scheme
    with closing(open_store(address)) as store:
        store.publish({"search": [scheme]})
        for number, day in enumerate(days):
            tally = TallyKey("search", scheme.fingerprint, day)
            store.fold(Commit((f"{number:032x}",), a_day(scheme, tally)), NOW)
            if sealed:
                store.seal(tally)


@click.command()
@click.option("--quick", is_flag=True, help="Fewer and smaller.")
@click.option(
    "--only",
    type=click.Choice(["blocks", "memory", "commits", "beside", "year", "scale"]),
    multiple=True,
)
@click.option("--metrics", default=2, show_default=True, help="String metrics in Redis.")
@click.option("--days", default=28, show_default=True, help="Days of 8 million cells.")
def main(quick: bool, only: tuple[str, ...], metrics: int, days: int) -> None:
    console = Console(width=140)
    if not only or "blocks" in only:
        console.print(blocks(quick))
    if not only or "memory" in only:
        console.print(memory(1 if quick else metrics))
    if not only or "commits" in only:
        console.print(commits(quick))
    if not only or "beside" in only:
        console.print(beside())
    if not only or "year" in only:
        console.print(year())
    if not only or "scale" in only:
        console.print(scale(quick, days))


if __name__ == "__main__":
    main()
