"""What starting costs: importing the SDK, and a tool that records one value and exits.

    python benchmarks/start.py

Each program is a process of its own, measured from its start to its exit; they take turns with a
bare Python, the baseline. CPU time (user and system) stands beside the wall time, because a busy
machine moves it less. Modules are read from their bytecode, as pip leaves a package; where Python
may not write it, each start compiles the sources in addition. The tool runs on a device that has
a state file. It has no endpoint, so nothing is sent.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from client import REGISTRY
from deniable import Registry, compiled

TOOL = """
from deniable import Client
client = Client({registry!r}, state_dir={state!r})
client.record("browser", "chrome")
client.close()
"""

BARE = "bare Python"


class Cost(NamedTuple):
    """Of one process, in milliseconds."""

    wall: float
    cpu: float


def run(code: str, environment: dict[str, str]) -> Cost:
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall * 1e3, cpu * 1e3)


def programs(folder: Path) -> dict[str, str]:
    """The code of each program by its name."""
    declared, shipped = folder / "metrics.toml", folder / "metrics.json"
    declared.write_text(REGISTRY, encoding="utf-8")
    document = compiled.to_document(Registry.parse(REGISTRY))
    shipped.write_text(compiled.to_text(document), encoding="utf-8")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=31, help="of each program (31)")
    given = parser.parse_args()
    if given.starts < 1:
        parser.error("--starts must be at least 1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {
            key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
        }
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        codes = programs(folder)
        for code in codes.values():
            run(code, environment)  # writes the bytecode of everything, and the state file
        costs: dict[str, list[Cost]] = {name: [] for name in codes}
        for _ in range(given.starts):
            for name, code in codes.items():
                costs[name].append(run(code, environment))
    table = Table(title=f"One process (ms; median and least of {given.starts})")
    for heading in ("program", "wall", "least", "CPU", "wall above bare", "times bare"):
        table.add_column(heading, justify="left" if heading == "program" else "right")
    bare = median(each.wall for each in costs[BARE])
    for name, measured in costs.items():
        wall = median(each.wall for each in measured)
        table.add_row(
            name,
            f"{wall:.1f}",
            f"{min(each.wall for each in measured):.1f}",
            f"{median(each.cpu for each in measured):.1f}",
            f"{wall - bare:.1f}",
            f"{wall / bare:.1f}",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
