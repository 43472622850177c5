"""What the SDK costs the app that embeds it, beside baselines measured in the same run.

`record` is compared with appending the same pair to a list. What starting costs is in
benchmarks/start.py. Run: python benchmarks/client.py
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from deniable import Client, Registry
from deniable.transport import Reply

REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "benchmark"
expires = 2999-01-01
[metrics.dark_mode]
type = "boolean"
description = "Dark mode."
epsilon = 1.0
lifetime_epsilon = 8.0
[metrics.browser]
type = "category"
description = "Browser."
values = ["firefox", "chrome", "safari", "edge", "other"]
epsilon = 1.0
lifetime_epsilon = 8.0
"""
RECORDS = 5_000
DEVICES = 200


def calls(record: object, count: int = RECORDS) -> tuple[float, float]:
    """Median and 99th percentile of one call, in microseconds."""
    assert callable(record)
    times = []
    for index in range(count):
        value = "chrome" if index & 1 else "edge"
        begin = time.perf_counter()
        record("browser", value)
        times.append((time.perf_counter() - begin) * 1e6)
    times.sort()
    return times[count // 2], times[count * 99 // 100]


class Acknowledge:
    """A collector that takes everything at once."""

    def send(self, body: bytes) -> Reply:
        return Reply(202, b'{"rejected": [], "batch": "%s"}' % body[10:42])


def device_microseconds(registry: Registry) -> float:
    """One device in memory: made, two values recorded, sealed, sent and closed."""
    now = [1.8e9]
    begin = time.perf_counter()
    for _ in range(DEVICES):
        client = Client(
            registry,
            state_dir=":memory:",
            clock=lambda: now[0],
            transport=Acknowledge(),
            background=False,
        )
        client.record("browser", "chrome")
        client.record("dark_mode", True)
        client._write()
        now[0] += 86_400
        assert client.flush()
        client.close()
    return (time.perf_counter() - begin) / DEVICES * 1e6


def main() -> None:
    console = Console()
    registry = Registry.parse(REGISTRY)
    pairs: list[tuple[str, str]] = []
    rows = {"list.append((name, value))": calls(lambda name, value: pairs.append((name, value)))}
    with tempfile.TemporaryDirectory() as folder:
        client = Client(registry, state_dir=Path(folder))
        rows["record, thread and disk at work"] = calls(client.record)
        assert client.flush(60)
        threads = [threading.Thread(target=calls, args=(client.record,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        rows["record, three more threads recording"] = calls(client.record)
        for thread in threads:
            thread.join()
        client.close(60)
    table = Table(title=f"One call (microseconds, {RECORDS:,} calls)")
    for heading in ("call", "median", "99%"):
        table.add_column(heading, justify="left" if heading == "call" else "right")
    for name, (middle, high) in rows.items():
        table.add_row(name, f"{middle:.2f}", f"{high:.2f}")
    console.print(table)
    console.print(
        f"A device in memory, from Client() to close(), two reports: "
        f"{device_microseconds(registry):,.0f} microseconds"
    )


if __name__ == "__main__":
    main()
