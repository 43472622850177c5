"""How long honest devices wait while somebody sends hostile bodies, beside the same without them.

Honest batches are due at a fixed rate. From another network come 20 hostile requests a second, each
a body of `floods.bodies` that costs a collector most. Each run stands between two runs without it.
What a body costs in CPU is tested (tests/collector/test_costs.py).

Then 200 connections send or read slowly, from one network and from fifty, while somebody asks the
dashboard for a page, or the collector takes batches.
"""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from common.tables import Table, run
from deniable import Registry, wire
from floods.bodies import hostile
from floods.strangers import KINDS, besiege
from ingest import METRICS, WINDOW, Outcome, Server, batch_of, fresh, load

HONEST, HOSTILE = 200.0, 20.0
"""Requests a second."""
TOKEN = "c0Yt8nRkV2-hWq5JxZ_e7mDsLbG4uTpA"
WAIT = 15.0
"""Seconds for which strangers hold their connections."""
BODIES = (
    "a list of columns without end",
    "1,000 wrong columns, gzip",
    "a text without end, gzip",
    "empty reports to the limit of bytes, gzip",
)


def flood(address: tuple[str, int], name: str, seconds: float) -> Counter[int]:
    """What hostile requests were answered, which one connection sends at a rate."""
    body = hostile(Registry.parse(METRICS), WINDOW)[name]
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
    request = fresh([batch_of([Registry.parse(METRICS)["city"]] * 10)])
    seconds, turns = (2, 1) if quick else (4, 6)
    with (
        tempfile.TemporaryDirectory() as name,
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
    ):
        folder = Path(name)
        (folder / "metrics.toml").write_text(METRICS)
        server = Server(folder, f"sqlite:///{folder}/store.db")

        def honest() -> Outcome:
            return load(server, request, int(HONEST * seconds), HONEST, 50)

        try:
            honest()
            for body in BODIES:
                alone, beside, statuses = [honest()], [], Counter[int]()
                for _ in range(turns):
                    told = pool.submit(flood, server.address, body, seconds + 2)
                    time.sleep(1)
                    beside.append(honest())
                    statuses += told.result()
                    alone.append(honest())
                table.rows.append(
                    {
                        "beside": body,
                        "p50, ms": 1000 * median(each.latency(0.5) for each in beside),
                        "p99, ms": 1000 * median(each.latency(0.99) for each in beside),
                        "p99 without": 1000 * median(each.latency(0.99) for each in alone),
                        "responses": ", ".join(f"{n:,} x {code}" for code, n in statuses.items()),
                    }
                )
        finally:
            server.stop()
    yield table


def dashboard(folder: Path) -> tuple[subprocess.Popen[str], tuple[str, int]]:
    """One with its defaults, and where it listens."""
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
    lines = (re.search(r"//(\S+):(\d+)", line) for line in process.stdout)
    found = next(each for each in lines if each)
    return process, (found[1], int(found[2]))


def pages(place: tuple[str, int], seconds: float) -> list[float]:
    """Seconds that a page takes a reader who has signed in, each on a connection of its own."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    connection = http.client.HTTPConnection(*place)
    connection.request("POST", "/login", f"token={TOKEN}", form)
    with connection.getresponse() as response:
        cookie = (response.getheader("Set-Cookie") or "").partition(";")[0]
    took, ends = [], time.monotonic() + seconds
    while time.monotonic() < ends:
        began = time.perf_counter()
        connection = http.client.HTTPConnection(*place)
        connection.request("GET", "/plan", headers={"Cookie": cookie})
        with connection.getresponse() as response:
            response.read()
            if response.status != 200:
                sys.exit(f"unexpected status: {response.status}")
        took.append(time.perf_counter() - began)
        connection.close()
        time.sleep(0.02)
    return sorted(took)


def strangers(quick: bool) -> Iterator[Table]:
    """200 connections that send or read slowly."""
    table = Table("strangers", "A reader, and 200 honest batches a second, beside 200 strangers")
    request = fresh([batch_of([Registry.parse(METRICS)["city"]] * 10)])
    seconds = 5 if quick else 10
    with (
        tempfile.TemporaryDirectory() as name,
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
    ):
        folder = Path(name)
        (folder / "metrics.toml").write_text(METRICS)
        server = Server(folder, f"sqlite:///{folder}/store.db")
        reading, place = dashboard(folder)

        def batches() -> list[float]:
            return load(server, request, int(HONEST * seconds), HONEST, 50).latencies

        try:
            for title, address, paths, honest in (
                ("dashboard", place, ("/login", "/login"), lambda: pages(place, seconds)),
                ("collector", server.address, ("/v1/reports", "/v1/registry"), batches),
            ):
                honest()
                for kind in KINDS:
                    for networks in (1, 50):
                        alone = honest()
                        # 15 seconds after the last request none may be left.
                        besieged = pool.submit(besiege, address, kind, paths, networks, WAIT)
                        time.sleep(1)
                        beside = honest()
                        table.rows.append(
                            {
                                "server": title,
                                "strangers": f"{kind}, {networks} networks",
                                "p99, ms": 1000 * beside[int(0.99 * len(beside))],
                                "p99 without": 1000 * alone[int(0.99 * len(alone))],
                                f"open after {WAIT:g} s": besieged.result(),
                            }
                        )
        finally:
            server.stop()
            reading.terminate()
            reading.wait()
    yield table


if __name__ == "__main__":
    run(__doc__, {"waits": waits, "strangers": strangers})
