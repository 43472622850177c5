"""What hostile bodies cost a collector, and how long honest devices wait meanwhile.

The first table has the CPU of a real collector's processes for each body of `floods.bodies`, as a
ratio to the largest good body of its type. The second has the waits of honest batches, which are
due at a fixed rate and come from 50 networks, alone and beside 20 hostile requests a second from
one network, with the bodies that cost most; and beside one that sends as fast as it can. Each run
stands between two runs without it.
Run: python benchmarks/hostile.py [--quick] [--only costs|waits]
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import aiohttp
import numpy as np
from rich.console import Console
from rich.table import Table

from deniable import Registry, windows, wire
from floods.bodies import Body, good, hostile

METRICS = """
schema = 1
app = "example"
[defaults]
owner = "benchmarks@acme.example"
expires = 2999-12-31
[metrics.dark_mode]
type = "boolean"
description = "One bit."
epsilon = 1.0
lifetime_epsilon = 8.0
[metrics.browser]
type = "category"
description = "One column of few."
epsilon = 1.0
lifetime_epsilon = 8.0
values = ["firefox", "chrome", "safari", "edge", "other"]
[metrics.country]
type = "category"
description = "A bitmap of 200 columns."
epsilon = 1.0
lifetime_epsilon = 8.0
values = [{countries}]
""".replace("{countries}", ", ".join(f'"c{number:03}"' for number in range(200)))
WINDOW = windows.window_at("day", time.time() - 86_400)
PATH = "/v1/reports"
HONEST, NETWORKS = 200.0, 50
"""Honest batches a second in all, and the networks that they come from."""
HOSTILE = 20.0
"""Hostile requests a second."""
WORST = 4
"""How many of the dearest bodies the honest are measured beside."""
LONG_AGO = "empty reports to the limit of bytes, gzip"
"""The body that once cost 90 ms."""


class Server:
    """A collector with its default settings, and what its workers have spent."""

    def __init__(self, folder: Path, **environ: str) -> None:
        (folder / "metrics.toml").write_text(METRICS)
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from deniable.cli import main; main()", "collect"],
            env={"PATH": "", "DENIABLE_BIND": "127.0.0.1:0", **environ},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=(folder / "log").open("w"),
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "listening at" not in line:
            sys.exit((folder / "log").read_text())
        self.url = line.rpartition(" ")[2].strip()
        time.sleep(2)

    def cpu(self) -> float:
        """Seconds that all threads of the workers have run."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        threads = [each for child in children for each in Path(f"/proc/{child}/task").iterdir()]
        return sum(int((each / "schedstat").read_text().split()[0]) for each in threads) / 1e9


@contextmanager
def collector(**environ: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as name:
        server = Server(Path(name), **environ)
        try:
            yield server
        finally:
            server.process.terminate()
            server.process.wait()


def headers(body: Body) -> dict[str, str]:
    encoding = {"Content-Encoding": body.encoding} if body.encoding else {}
    return {"Content-Type": "application/json", **encoding}


class Cost(NamedTuple):
    """Of one request: seconds of CPU, the status, and the bytes that were sent."""

    seconds: float
    status: int
    size: int


def cost(server: Server, body: Body, times: int) -> Cost:
    """The least of five means over `times` requests."""
    means = []
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as connection:
        for _ in range(5):
            made = [body.make(wire.new_batch_id()) for _ in range(times)]
            spent = server.cpu()
            for data in made:
                connection.request("POST", PATH, data, headers(body))
                with connection.getresponse() as response:
                    response.read()
            # The loop that samples figures and the master's heartbeat are in it: microseconds.
            means.append((server.cpu() - spent) / times)
    return Cost(min(means), response.status, len(made[0]))


def costs(registry: Registry, times: int) -> tuple[Table, list[str]]:
    """The table, and the names of the bodies that cost most."""
    table = Table(title="CPU of a collector for one body")
    for column in ("body", "bytes", "response", "CPU, ms", "times the largest good one"):
        table.add_column(column, justify="left" if column == "body" else "right")
    noise = random.Random(7).getrandbits
    found: dict[str, tuple[float, Cost]] = {}
    with collector(DENIABLE_RATE="off", DENIABLE_WORKERS="1") as server:
        most = 0.0
        for name, body in good(registry, WINDOW, noise).items():
            each = cost(server, body, times)
            if each.status != 202:
                sys.exit(f"a good body was answered {each.status}")
            most = max(most, each.seconds)
            table.add_row(
                f"good: {name}", f"{each.size:,}", "202", f"{1000 * each.seconds:.2f}", ""
            )
        for name, body in hostile(registry, WINDOW).items():
            each = cost(server, body, times)
            found[name] = each.seconds / most, each
    ordered = sorted(found, key=lambda name: -found[name][0])
    for name in [*ordered[:12], LONG_AGO]:
        ratio, each = found[name]
        table.add_row(name, f"{each.size:,}", str(each.status), f"{1000 * each.seconds:.2f}",
                      f"{ratio:.2f}")  # fmt: skip
    table.caption = f"{len(found)} bodies, the dearest first; at most {found[ordered[0]][0]:.2f}"
    # The seconds count for those who wait, not the ratio.
    dear = sorted(found, key=lambda name: -found[name][1].seconds)
    return table, dear[:WORST]


class Waits(NamedTuple):
    """Seconds that honest batches waited, what they were answered, and what the hostile were."""

    waits: list[float]
    statuses: Counter[int]
    hostile: Counter[int]

    def quantile(self, share: float) -> float:
        """Milliseconds."""
        return 1000 * float(np.quantile(self.waits, share))


async def honest(url: str, seconds: float, batch: Callable[[str], bytes]) -> Waits:
    """Batches at a fixed rate, each from one of the networks in turn."""
    loop = asyncio.get_running_loop()
    waits, statuses = [], Counter[int]()

    async def one(session: aiohttp.ClientSession, due: float) -> None:
        data = batch(wire.new_batch_id())
        try:
            async with session.post(url, data=data, headers={"Content-Type": "application/json"}) as response:
                await response.read()
                statuses[response.status] += 1
        except aiohttp.ClientError:
            statuses[0] += 1
        waits.append(loop.time() - due)

    sessions = [
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(local_addr=(f"127.1.{place}.1", 0)))
        for place in range(NETWORKS)
    ]
    try:
        began, sent = loop.time() + 0.2, []
        for number in range(int(HONEST * seconds)):
            due = began + number / HONEST
            if (pause := due - loop.time()) > 0:
                await asyncio.sleep(pause)
            sent.append(asyncio.ensure_future(one(sessions[number % NETWORKS], due)))
        await asyncio.gather(*sent)
    finally:
        for session in sessions:
            await session.close()
    return Waits(waits, statuses, Counter())


def flood(url: str, name: str, rate: float, seconds: float) -> Counter[int]:
    """One network's hostile requests at a rate, or, at 0, on 16 connections as fast as answered."""
    return asyncio.run(_flood(url, hostile(Registry.parse(METRICS), WINDOW)[name], rate, seconds))


async def _flood(url: str, body: Body, rate: float, seconds: float) -> Counter[int]:
    loop = asyncio.get_running_loop()
    made = [body.make(wire.new_batch_id()) for _ in range(50)]
    statuses, places = Counter[int](), iter(range(10**9))
    began = loop.time()

    async def sender(session: aiohttp.ClientSession) -> None:
        for place in places:
            due = began + place / rate if rate else loop.time()
            if due > began + seconds:
                return
            await asyncio.sleep(max(0.0, due - loop.time()))
            try:
                data = made[place % len(made)]
                async with session.post(url, data=data, headers=headers(body)) as response:
                    await response.read()
                    statuses[response.status] += 1
            except aiohttp.ClientError:
                statuses[0] += 1

    connector = aiohttp.TCPConnector(local_addr=("127.2.0.1", 0))
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(sender(session) for _ in range(16)))
    return statuses


def waits(registry: Registry, names: list[str], seconds: float, turns: int) -> Table:
    """Runs with and without hostile requests, in turn."""
    table = Table(title=f"Honest batches, {HONEST:g} a second from {NETWORKS} networks")
    for column in ("beside", "p50, ms", "p99, ms", "p99 without", "ratio", "responses to hostile"):
        table.add_column(column, justify="left" if column == "beside" else "right")
    metric = registry["browser"]
    named = {"metric": metric.name, "scheme": metric.scheme.fingerprint, "window": WINDOW}
    report = wire.SealedReport(named["metric"], named["scheme"], WINDOW, 0, 1)
    body = wire.encode_batch("0" * 32, [report] * 10)

    def batch(batch_id: str) -> bytes:
        return body.replace(b"0" * 32, batch_id.encode(), 1)

    asked = [(name, HOSTILE) for name in names] + [(LONG_AGO, HOSTILE), (LONG_AGO, 0.0)]
    with collector() as server, ProcessPoolExecutor(1, get_context("spawn")) as pool:
        url = server.url + PATH
        pool.submit(time.sleep, 0).result()

        def run(name: str = "", rate: float = 0.0) -> Waits:
            hostile = pool.submit(flood, url, name, rate, seconds + 1) if name else None
            if hostile is not None:
                time.sleep(1)
            found = asyncio.run(honest(url, seconds, batch))
            if set(found.statuses) != {202}:
                print(f"honest batches were answered {dict(found.statuses)}", file=sys.stderr)
            return found if hostile is None else found._replace(hostile=hostile.result())

        run()
        for name, rate in asked:
            alone, beside = [], []
            for _ in range(turns):
                alone.append(run())
                beside.append(run(name, rate))
            alone.append(run())
            p50, p99 = (np.median([each.quantile(q) for each in beside]) for q in (0.5, 0.99))
            calm = np.median([each.quantile(0.99) for each in alone])
            told = ", ".join(
                f"{number:,} x {status}"
                for status, number in sum((each.hostile for each in beside), Counter()).items()
            )
            label = f"{rate:g}/s of {name}" if rate else f"as many as it can of {name}"
            table.add_row(
                label, f"{p50:.1f}", f"{p99:.1f}", f"{calm:.1f}", f"{p99 / calm:.2f}", told
            )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of the time")
    parser.add_argument("--only", choices=["costs", "waits"])
    given = parser.parse_args()
    registry = Registry.parse(METRICS)
    names = ["1,000 wrong columns, gzip", "a list of columns without end, gzip"]
    if given.only != "waits":
        table, names = costs(registry, 10 if given.quick else 40)
        Console().print(table)
    if given.only != "costs":
        seconds, turns = (4, 2) if given.quick else (4, 6)
        Console().print(waits(registry, names, seconds, turns))


if __name__ == "__main__":
    main()
