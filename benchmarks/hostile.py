"""How long honest people and devices wait beside somebody who means harm, and without.

Honest batches are due at a fixed rate. From another network come 20 hostile requests a second, each
a body of `common/floods.py` that costs a collector most. Each run stands between two runs without
it.

Then 200 connections send or read slowly, or ask for much at once, from one network and from fifty,
while somebody asks the dashboard for a page, or the collector takes batches. Last, readers have
pictures drawn while another one asks for a page, and a probe for /healthz.
"""

from __future__ import annotations

import gzip
import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np

from common.floods import KINDS, Body, besiege, hostile
from common.tables import Table, run
from deniable import Metric, Registry
from deniable.protocol import wire
from deniable.protocol.mechanisms import Report
from deniable_collector.settings import Settings
from deniable_collector.stores import Store, open_store
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import sample_tally
from deniable_estimator.development.crowd import fold_tally
from ingest import METRICS, WINDOW, Outcome, Server, batch_of, fresh, load, redis

HONEST, HOSTILE = 200.0, 20.0
"""Requests a second."""
TOKEN = "c0Yt8nRkV2-hWq5JxZ_e7mDsLbG4uTpA"
WAIT = 15.0
"""Seconds for which strangers hold their connections."""
SCATTERED, MILLION = "1,000 reports far from each other, gzip", 1_000_000
WORDS = """
[metrics.word]
type = "string"
description = "Discovery."
epsilon = 4.0
lifetime_epsilon = 8.0
"""
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Answered(NamedTuple):
    """A response: `cookie` is what it sets."""

    status: int
    cookie: str
    text: str


class Place(NamedTuple):
    """A dashboard, as somebody in a network sees it who shows a cookie."""

    address: tuple[str, int]
    network: str = "127.0.0.1"
    cookie: str = ""

    def ask(self, path: str, **form: str) -> Answered:
        """The response to a page, or to a form."""
        connection = http.client.HTTPConnection(*self.address, source_address=(self.network, 0))
        with closing(connection):
            headers = {"Cookie": self.cookie, **(FORM if form else {})}
            connection.request("POST" if form else "GET", path, urlencode(form), headers)
            response = connection.getresponse()
            body = response.read().decode("latin-1")
            cookie = response.getheader("Set-Cookie", "").partition(";")[0]
            return Answered(response.status, cookie, body)

    def ask_all(self, lists: Sequence[Sequence[str]]) -> Counter[int]:
        """The statuses of all paths: the lists at the same time, and each one's in turn."""
        with ThreadPoolExecutor(len(lists)) as crowd:
            found = crowd.map(lambda paths: [self.ask(path).status for path in paths], lists)
            return Counter(chain.from_iterable(found))

    def signed_in(self, network: str) -> Place:
        """Somebody else, who has signed in."""
        return self._replace(network=network, cookie=self.ask("/login", token=TOKEN).cookie)


def flood(
    address: tuple[str, int], name: str, seconds: float, metrics: str = METRICS
) -> Counter[int]:
    """What hostile requests were answered, which one connection sends at a rate."""
    body = {**hostile(Registry.parse(metrics), WINDOW), **scattered(metrics)}[name]
    encoding = {"Content-Encoding": body.encoding} if body.encoding else {}
    made = [body.make(wire.new_batch_id()) for _ in range(50)]
    connection = http.client.HTTPConnection(*address, source_address=("127.2.0.1", 0))
    statuses, began = Counter[int](), time.monotonic()
    for place in range(int(HOSTILE * seconds)):
        time.sleep(max(0.0, began + place / HOSTILE - time.monotonic()))
        headers = {"Content-Type": "application/json", **encoding}
        connection.request("POST", "/v1/reports", made[place % len(made)], headers)
        with connection.getresponse() as response:
            response.read()
        statuses[response.status] += 1
    return statuses


def waits(quick: bool) -> Iterator[Table]:
    title = f"Honest batches, {HONEST:g} a second, beside {HOSTILE:g} hostile requests a second"
    table = Table("hostile", title)
    seconds, turns = (2, 1) if quick else (4, 6)
    with collecting() as (server, pool, honest):
        honest(seconds)
        for body in hostile(Registry.parse(METRICS), WINDOW):
            alone, beside, statuses = [honest(seconds)], [], Counter[int]()
            for _ in range(turns):
                told = pool.submit(flood, server.address, body, seconds + 2)
                time.sleep(1)
                beside.append(honest(seconds))
                statuses += told.result()
                alone.append(honest(seconds))
            table.rows.append(
                {
                    "beside": body,
                    "p50, ms": 1000 * median(each.latency(0.5) for each in beside),
                    "p99, ms": 1000 * median(each.latency(0.99) for each in beside),
                    "p99 without": 1000 * median(each.latency(0.99) for each in alone),
                    "responses": ", ".join(f"{n:,} x {code}" for code, n in statuses.items()),
                }
            )
    yield table


def scattered(metrics: str) -> dict[str, Body]:
    """A batch of the last metric that adds to 1,000 cells far from each other, as gzip."""
    metric, rng = [*Registry.parse(metrics)][-1], np.random.default_rng(1)
    rows = metric.scheme.rows

    def make(batch: str) -> bytes:
        reports = []
        for row in rng.integers(len(rows), size=1000).tolist():
            packed = wire.pack_columns(rows[row], Report(row, int(rng.integers(rows[row].width))))
            reports.append(
                wire.SealedReport(metric.name, metric.scheme.fingerprint, WINDOW, row, packed)
            )
        return gzip.compress(wire.encode_batch(batch, reports))

    return {SCATTERED: Body("gzip", make)}


def dense(quick: bool) -> Iterator[Table]:
    """A window with a million reports, to which each body adds everywhere."""
    title = f"The same, where each hostile body adds to {MILLION:,} reports in 1,000 places"
    table = Table("dense", title)
    seconds = 5 if quick else 20
    metrics = METRICS + WORDS
    metric = Registry.parse(metrics)["word"]
    with tempfile.TemporaryDirectory() as name, redis(Path(name)) as (url, pid):
        for store, address in (("SQLite", ""), ("Redis", url)):
            with collecting(metrics, address, pid) as (server, pool, honest):
                with closing(open_store(Settings(store=address or server.store))) as filled:
                    filled.publish([(metric.name, metric.scheme)])
                    fill_densely(filled, metric)
                honest(2)
                alone = honest(seconds).latency(0.99)
                pids = server.workers() + ([pid] if address else [])
                began, spent, wrote = time.monotonic(), server.cpu(), written(pids)
                told = pool.submit(flood, server.address, SCATTERED, seconds + 2, metrics)
                time.sleep(1)
                beside = honest(seconds).latency(0.99)
                statuses = told.result()
                honest_cost = server.cpu() - spent, written(pids) - wrote
                lasted, bodies = time.monotonic() - began, statuses.total()
                # What honest batches cost alone for as many seconds.
                spent, wrote = server.cpu(), written(pids)
                honest(seconds)
                quiet = server.cpu() - spent, written(pids) - wrote
                table.rows.append(
                    {
                        "store": store,
                        "CPU of a body, ms": 1000 * (honest_cost[0] - quiet[0]) / bodies,
                        "written for a body, kB": (honest_cost[1] - quiet[1]) / bodies / 1000,
                        "honest p99, ms": 1000 * beside,
                        "p99 without": 1000 * alone,
                        "bodies a second": bodies / lasted,
                        "responses": ", ".join(f"{n:,} x {code}" for code, n in statuses.items()),
                    }
                )
    yield table


def fill_densely(store: Store, metric: Metric) -> None:
    """Add a million reports."""
    rng, reports = np.random.default_rng(1), MILLION // len(metric.scheme.rows)
    rows = [
        TallyRow(reports, np.bincount(rng.integers(row.width, size=reports), minlength=row.width))
        for row in metric.scheme.rows
    ]
    tally = Tally(metric.name, metric.scheme.fingerprint, (WINDOW,), tuple(rows))
    fold_tally(store, tally, time.time())


def written(pids: Sequence[int]) -> int:
    """Bytes that these processes have sent to the disk so far."""
    texts = (Path(f"/proc/{pid}/io").read_text() for pid in pids)
    return sum(int(text.partition("\nwrite_bytes: ")[2].split()[0]) for text in texts)


@contextmanager
def collecting(
    metrics: str = METRICS, store: str = "", pid: int | None = None, **settings: str
) -> Iterator[tuple[Server, ProcessPoolExecutor, Callable[[float], Outcome]]]:
    """A collector, a process for those who mean harm, and what sends it honest batches for so many
    seconds, from 50 networks."""
    request = fresh([batch_of([Registry.parse(METRICS)["city"]] * 10)])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pool = stack.enter_context(ProcessPoolExecutor(1, get_context("spawn")))
        (folder / "metrics.toml").write_text(metrics)
        server = Server(folder, store or f"sqlite:///{folder}/store.db", pid, **settings)
        stack.callback(server.stop)

        def honest(seconds: float) -> Outcome:
            return load(server, request, int(HONEST * seconds), HONEST, 50)

        yield server, pool, honest


@contextmanager
def dashboard() -> Iterator[Place]:
    """One with its defaults, which has 90 days of a metric."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "metrics.toml").write_text(METRICS)
        fill(folder)
        process = subprocess.Popen(
            [sys.executable, "-c", "import deniable.cli; deniable.cli.main()", "dashboard"],
            env={
                **os.environ,
                "DENIABLE_STORE": f"sqlite:///{folder}/store.db",
                "DENIABLE_DASHBOARD_BIND": "127.0.0.1:0",
                "DENIABLE_DASHBOARD_TOKEN": TOKEN,
            },
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            lines = (re.search(r"//(\S+):(\d+)", line) for line in process.stdout)
            found = next(each for each in lines if each)
            yield Place((found[1], int(found[2])))
        finally:
            process.terminate()
            process.wait()


def fill(folder: Path) -> None:
    """Days of 20,000 reports of the first metric."""
    rng, metric = np.random.default_rng(1), Registry.parse(METRICS)["city"]
    with closing(open_store(Settings(store=f"sqlite:///{folder}/store.db"))) as store:
        store.publish([(metric.name, metric.scheme)])
        for day in days():
            counts = rng.multinomial(20_000, [1 / len(metric.values)] * len(metric.values))
            tally = sample_tally(metric.scheme, counts, rng, metric=metric.name, window=f"{day}")
            fold_tally(store, tally, time.time())


def days() -> list[date]:
    """The last 90, the newest first."""
    today = datetime.now(UTC).date()
    return [today - timedelta(days=ago) for ago in range(1, 91)]


def waited(place: Place, path: str, seconds: float) -> float:
    """Milliseconds that a page takes at the 99th percentile, on connections of their own."""
    took, ends = [], time.monotonic() + seconds
    while time.monotonic() < ends:
        began = time.perf_counter()
        if place.ask(path).status != 200:
            sys.exit(f"{path} failed")
        took.append(time.perf_counter() - began)
        time.sleep(0.02)
    return 1000 * sorted(took)[int(0.99 * len(took))]


def strangers(quick: bool) -> Iterator[Table]:
    """200 connections that send or read slowly, or send much ahead."""
    table = Table("strangers", "A reader, and 200 honest batches a second, beside 200 strangers")
    seconds = 5 if quick else 10
    with dashboard() as place, collecting(DENIABLE_RATE="20/second") as (server, pool, honest):
        reader = place.signed_in("127.0.0.1")

        def read() -> float:
            return waited(reader, "/plan", seconds)

        def send() -> float:
            return 1000 * honest(seconds).latency(0.99)

        for title, address, paths, measure in (
            ("dashboard", place.address, ("/login", "/login"), read),
            ("collector", server.address, ("/v1/reports", "/v1/registry"), send),
        ):
            measure()
            for kind in KINDS:
                for networks in (1, 50):
                    alone = measure()
                    # 15 seconds after the last request none may be left.
                    besieged = pool.submit(besiege, address, kind, paths, networks, WAIT)
                    time.sleep(1)
                    table.rows.append(
                        {
                            "server": title,
                            "strangers": f"{kind}, {networks} networks",
                            "p99, ms": measure(),
                            "p99 without": alone,
                            f"open after {WAIT:g} s": besieged.result(),
                        }
                    )
    yield table


def pictures(quick: bool) -> Iterator[Table]:
    """Readers who have pictures drawn, one of them without signing in."""
    table = Table("pictures", "A page of another reader, and /healthz, beside pictures")
    seconds = 5 if quick else 10
    newest, *_, oldest = days()
    with (
        dashboard() as place,
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
        ThreadPoolExecutor(2) as watch,
    ):
        reader, other = place.signed_in("127.0.0.1"), place.signed_in("127.2.0.1")
        view = f"/metric/city?from={oldest}&to={newest}"
        shared = other.ask("/share", view=view, days="9", note="", part="page", unfinished="1")
        path = re.search(r"/shared/[\w-]{30,}", shared.text)
        assert path is not None, shared.status
        stranger, probing = (place._replace(network=f"127.{n}.0.1") for n in (3, 5))

        def measure() -> tuple[float, float]:
            waiting = [watch.submit(waited, *each, seconds)
                       for each in ((reader, "/plan"), (probing, "/healthz"))]  # fmt: skip
            page, probe = (each.result() for each in waiting)
            return page, probe

        def asked(number: int) -> tuple[str, ...]:
            drawn = f"value=v{number % 16}&from={days()[40 + number]}&to={newest}"
            return (f"/metric/city/trend.png?{drawn}",)

        measure()
        for title, who, paths in (
            ("24 pictures of one reader at a time", other, [asked(each) for each in range(24)]),
            (
                "16 connections on a shared link's picture, 20 times each",
                stranger,
                [(f"{path[0]}/metric/city/trend.png",) * 20] * 16,
            ),
        ):
            page, probe = measure()
            told = pool.submit(who.ask_all, paths)
            time.sleep(1)
            beside = measure()
            statuses = told.result()
            table.rows.append(
                {
                    "beside": title,
                    "page p99, ms": beside[0],
                    "without": page,
                    "/healthz p99, ms": beside[1],
                    "without ": probe,
                    "responses": ", ".join(f"{n:,} x {code}" for code, n in statuses.items()),
                }
            )
    yield table


if __name__ == "__main__":
    run(__doc__, {"waits": waits, "dense": dense, "strangers": strangers, "pictures": pictures})
