"""Where the time of a request goes in the collector: a sampled profile of a worker under load.

py-spy looks at the worker's stacks, C functions included, many times a second while wrk keeps it
busy with small batches (`ingest.py`). Each sample counts for the stage of its innermost function
that has one. Threads that wait are left out, and so is Redis, which is another process.
Run: pip install py-spy; python benchmarks/ingest_profile.py [--seconds N] [--stacks FILE]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from deniable import Registry
from ingest import EVENT_LOOP, METRICS, Server, json_body, redis, saturate

RATE = 400
"""Samples a second."""

WAITING = ("PyThread_acquire_lock_timed", "take_gil", "lock_PyThread_acquire_lock", "epoll_pwait")

STAGES = (
    ("store: the client of Redis", ("stores/", "redis/", "operation/watch.py")),
    ("fold: add up the reports of a group", ("batches/folding.py", "batches/sums.py")),
    ("commit: ids, receipts, metrics, its thread", (
        "Intake.take", "Intake._fold", "commit_by_shard", "_commit_together",
        "operation/metrics.py", "prometheus_client/", "concurrent/futures/thread.py",
    )),
    ("group: gather, and tell the outcome", ("serving/group.py",)),
    ("decode: from JSON to reports", ("batches/typed.py", "msgspec/")),
    ("look up: the tally and the columns of each", (
        "batches/common.py", "batches/catalogue.py", "intake.py", "wire.py",
    )),
    ("admit: rate of the network, keys", ("serving/admission.py", "limits/", "ipaddress.py")),
    ("send: the system call", ("send (libc", "write (libc", "_exec_write", "_try_write")),
    ("receive: the system call", ("read (libc", "recv (libc")),
    ("answer: its bytes", ("Connection.answer", "_Exchange.done", "serving/responses.py",
                           "UVStream_write")),
    ("body: gather it, count its bytes", (
        "on_body", "on_message_complete", "asgi.py", "serving/batch_reader.py",
    )),
    ("header: one call for each line, then its checks", (
        "on_header", "on_url", "on_message_begin", "on_headers_complete", "serving/guard.py",
        "connection.py",
    )),
    ("parse: HTTP", ("llhttp", "parser.c", "httptools_impl.py", "HttpParser")),
)  # fmt: skip
OTHER = "loop: everything else"


def stage_of(stack: list[str]) -> str | None:
    """The stage of a stack, outermost function first; None if it waits."""
    if any(each.startswith(WAITING) for each in stack[-4:]):
        return None
    for function in reversed(stack):
        for stage, names in STAGES:
            if any(name in function for name in names):
                return stage
    return OTHER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--stacks", type=Path, help="keep the stacks in this file (flamegraph.pl)")
    given = parser.parse_args()
    for tool in ("py-spy", "wrk"):
        if not shutil.which(tool, path=f"{Path(sys.executable).parent}:/usr/bin:/usr/local/bin"):
            sys.exit(f"this needs {tool}")
    registry = Registry.parse(METRICS)
    bodies = [json_body([registry["city"]] * 8 + [registry["site"]] * 2) for _ in range(500)]
    with tempfile.TemporaryDirectory() as name, redis(Path(name)) as (url, pid):
        folder = Path(name)
        (folder / "metrics.toml").write_text(METRICS)
        stacks = given.stacks or folder / "stacks"
        server = Server(folder, url, pid, EVENT_LOOP)
        try:
            saturate(server, folder, bodies, 1)
            (worker,) = server.workers()
            spy = [str(Path(sys.executable).with_name("py-spy")), "record", "--native", "--threads"]
            spy += ["--format", "raw", "--rate", str(RATE), "--duration", str(given.seconds)]
            sampling = subprocess.Popen(
                [*spy, "--output", str(stacks), "--pid", str(worker)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            cost = saturate(server, folder, bodies, given.seconds + 1).cpu * 1e6
            if sampling.wait():
                sys.exit("py-spy may not look at the worker: allow ptrace, or run this as root")
        finally:
            server.stop()
        samples: Counter[str] = Counter()
        for line in stacks.read_text().splitlines():
            stack, number = line.rsplit(" ", 1)
            stage = stage_of(stack.split(";"))
            if stage is not None:
                samples[stage] += int(number)
    table = Table(title="Where a worker's time goes: batches of 10 reports, on Redis")
    table.add_column("stage")
    table.add_column("share", justify="right")
    for stage, number in samples.most_common():
        table.add_row(stage, f"{number / samples.total():.1%}")
    table.caption = (
        f"{samples.total():,} samples of threads that do not wait; {cost:,.0f} us of CPU a request "
        "while they were taken, Redis included"
    )
    Console().print(table)


if __name__ == "__main__":
    main()
