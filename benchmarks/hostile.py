"""How long honest devices wait while somebody sends hostile bodies, beside the same without them.

Honest batches are due at a fixed rate. From another network come 20 hostile requests a second, each
a body of `floods.bodies` that costs a collector most. Each run stands between two runs without it.
What a body costs in CPU is tested (tests/collector/test_costs.py).
"""

from __future__ import annotations

import http.client
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
from ingest import METRICS, WINDOW, Outcome, Server, batch_of, fresh, load

HONEST, HOSTILE = 200.0, 20.0
"""Requests a second."""
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


if __name__ == "__main__":
    run(__doc__, {"waits": waits})
