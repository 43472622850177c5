"""What the SDK costs the app that embeds it: `record`, and the start of a process.

record  one call, while the thread and the disk are at work, beside appending to a list
start   each program is a process of its own, measured from its start to its exit; they take turns
        with a bare Python. CPU time (user and system) stands beside the wall time, because a busy
        machine moves it less. Modules are read from their bytecode, as pip leaves a package. The
        tool runs on a device that has a state file; it has no endpoint, so nothing is sent.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from common.tables import Table, run
from deniable import Client, Registry

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
TOOL = """
from deniable import Client
client = Client({registry!r}, state_dir={state!r}, consent=True)
client.record("browser", "chrome")
client.close()
"""

BARE = "bare Python"


class Cost(NamedTuple):
    """Of one process, in milliseconds."""

    wall: float
    cpu: float


def record(quick: bool) -> Iterator[Table]:
    table = Table("start-record", "One call, microseconds (goal for a record: 50)")
    pairs: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        client = Client(Registry.parse(REGISTRY), state_dir=Path(folder), consent=True)
        calls: dict[str, Callable[[str, str], object]] = {
            "list.append((name, value))": lambda name, value: pairs.append((name, value)),
            "record, thread and disk at work": client.record,
        }
        for name, call in calls.items():
            times = []
            for index in range(5_000):
                value = "chrome" if index & 1 else "edge"
                begin = time.perf_counter()
                call("browser", value)
                times.append((time.perf_counter() - begin) * 1e6)
            times.sort()
            row = {"call": name, "median": median(times), "99%": times[len(times) * 99 // 100]}
            table.rows.append(row)
        client.close(60)
    yield table


def one_process(code: str, environment: dict[str, str]) -> Cost:
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall * 1e3, cpu * 1e3)


def programs(folder: Path) -> dict[str, str]:
    """The code of each program by its name."""
    declared, shipped = folder / "metrics.toml", folder / "metrics.json"
    declared.write_text(REGISTRY, encoding="utf-8")
    document = Registry.parse(REGISTRY).compile()
    shipped.write_text(json.dumps(document), encoding="utf-8")
    return {
        BARE: "pass",
        "dataclasses, json, pathlib, sqlite3": ("import dataclasses, json, pathlib, sqlite3"),
        "import deniable": "import deniable",
        "from deniable import Client": "from deniable import Client",
        "record one value and exit, metrics.toml": TOOL.format(
            registry=str(declared), state=str(folder / "first")
        ),
        "record one value and exit, metrics.json": TOOL.format(
            registry=str(shipped), state=str(folder / "second")
        ),
    }


def start(quick: bool) -> Iterator[Table]:
    starts = 3 if quick else 31
    table = Table("start-process", f"One process, milliseconds (median and least of {starts})")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {
            key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
        }
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        codes = programs(folder)
        for code in codes.values():
            one_process(code, environment)  # writes the bytecode of everything, and the state file
        costs: dict[str, list[Cost]] = {name: [] for name in codes}
        for _ in range(starts):
            for name, code in codes.items():
                costs[name].append(one_process(code, environment))
    bare = median(each.cpu for each in costs[BARE])
    for name, measured in costs.items():
        cpu = median(each.cpu for each in measured)
        table.rows.append(
            {
                "program": name,
                "CPU": cpu,
                "above bare": cpu - bare,
                "times bare": cpu / bare,
                "wall, least": min(each.wall for each in measured),
            }
        )
    yield table


if __name__ == "__main__":
    run(__doc__, {"record": record, "start": start})
