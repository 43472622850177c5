"""What a batch costs the collector over HTTP, and how long it waits, beside the plain way.

CPU (user and system) of all of the server's processes, Redis included, per request; the
load comes from this process over 127.0.0.1, on connections that are kept alive. The plain
way is the same Flask route under gunicorn's threads: one store call for each request.
Run: python benchmarks/ingest.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import random
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hearsay import Metric, Registry, windows, wire
from hearsay.mechanisms import Report
from hearsay_collector.binary import MEDIA_TYPE, encode

CONNECTIONS = 256
BULK = 10_000
"""Reports in a large batch."""

METRICS = """
schema = 1
[defaults]
owner = "benchmarks@acme.example"
expires = 2999-12-31
[metrics.city]
type = "category"
description = "One column of few."
epsilon = 4.0
lifetime_epsilon = 8.0
values = [{few}]
[metrics.town]
type = "category"
description = "One column of many."
epsilon = 2.0
lifetime_epsilon = 8.0
values = [{many}]
[metrics.site]
type = "string"
description = "RAPPOR: 64 cohorts of 128 bits."
epsilon = 2.0
lifetime_epsilon = 8.0
mechanism = "one_time_rappor"
""".replace("{few}", ", ".join(f'"v{number}"' for number in range(16))).replace(
    "{many}", ", ".join(f'"v{number}"' for number in range(3_000))
)
WINDOW = windows.window_at("day", time.time() - 86_400)
DRAW = random.Random(1)


class Server:
    """A collector with one worker, and what it and its store have spent."""

    def __init__(self, folder: Path, store: str, flask: bool, redis_pid: int | None) -> None:
        self.redis_pid = redis_pid
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = probe.getsockname()
        app = ("-k", "gthread", "hearsay_collector.wsgi:app") if flask else (
            "hearsay_collector.asgi:app()",
        )  # fmt: skip
        environ = {
            **os.environ,
            "HEARSAY_REGISTRY": str(folder / "metrics.toml"),
            "HEARSAY_STORE": store,
            "HEARSAY_BIND": "{}:{}".format(*self.address),
            "HEARSAY_WORKERS": "1",
            "HEARSAY_THREADS": "8",
            "HEARSAY_MAX_REPORTS": str(BULK),
            "HEARSAY_MAX_BODY": "16 MiB",
        }
        command = [sys.executable, "-m", "gunicorn", "-c", "python:hearsay_collector.gunicorn_conf"]
        self.process = subprocess.Popen(
            [*command, *app], env=environ, cwd=folder, stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(self.address).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        time.sleep(1)

    def cpu(self) -> float:
        """Seconds of CPU so far, of the server's processes and of Redis."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        pids = [pid, *map(int, children), *([self.redis_pid] if self.redis_pid else [])]
        ticks = 0
        for each in pids:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


@dataclass
class Outcome:
    """`cpu` seconds per request, requests per second, and latencies in seconds, ascending."""

    cpu: float
    rate: float
    latencies: list[float]

    def latency(self, share: float) -> float:
        return self.latencies[int(share * (len(self.latencies) - 1))]


def load(
    server: Server, request: Callable[[], bytes], count: int, rate: float = 0.0, width: int = 0
) -> Outcome:
    """Send `count` requests: as fast as they are answered, or `rate` a second.

    At a rate, a request's latency counts from the moment at which it was due.
    """
    chosen = selectors.DefaultSelector()
    # In turn, so that none is idle for so long that the server closes it.
    free = deque(socket.create_connection(server.address) for _ in range(width or CONNECTIONS))
    for connection in free:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        chosen.register(connection, selectors.EVENT_READ)
    everyone, due, latencies = list(free), {}, []
    sent = 0
    spent, begun = server.cpu(), time.perf_counter()
    while len(latencies) < count:
        now = time.perf_counter()
        while sent < count and free and (not rate or begun + sent / rate <= now):
            connection = free.popleft()
            due[connection] = begun + sent / rate if rate else time.perf_counter()
            connection.sendall(request())
            sent += 1
        wait = max(0.0, begun + sent / rate - now) if rate and free and sent < count else 5.0
        for key, _ in chosen.select(wait):
            answer = key.fileobj.recv(1 << 16)
            if b"\r\n\r\n{" not in answer:
                # It may come in two pieces, the head first.
                answer += key.fileobj.recv(1 << 16)
            if b'"duplicate": 0, "rejected": []' not in answer:
                sys.exit(f"unexpected answer: {answer!r}")
            latencies.append(time.perf_counter() - due[key.fileobj])
            free.append(key.fileobj)
    seconds = time.perf_counter() - begun
    spent = server.cpu() - spent
    for connection in everyone:
        connection.close()
    return Outcome(spent / count, count / seconds, sorted(latencies))


def http(media_type: str, body: bytes) -> bytes:
    head = f"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Type: {media_type}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def draw(metric: Metric) -> Report:
    """A report as a device might send it; that the noise is real does not matter here."""
    rows = metric.scheme.mechanism.rows
    row = DRAW.randrange(len(rows))
    if rows[row].columns == 1:
        return Report(row, DRAW.randrange(rows[row].width))
    return Report(row, DRAW.getrandbits(rows[row].width))


def json_batch(metrics: list[Metric]) -> bytes:
    answers = []
    for metric in metrics:
        row, columns = draw(metric)
        packed = wire.pack_columns(metric.scheme.mechanism.rows[row], Report(row, columns))
        answers.append(wire.Answer(metric.name, metric.scheme.fingerprint, WINDOW, row, packed))
    return http("application/json", wire.encode_batch("0" * 32, answers))


def binary_batch(metric: Metric) -> bytes:
    reports = [draw(metric) for _ in range(BULK)]
    scheme = metric.scheme
    names = ("f" * 32, metric.name, scheme.fingerprint, WINDOW, scheme.mechanism.rows)
    return http(MEDIA_TYPE, encode(*names, reports))


def fresh(templates: list[bytes], old: Callable[[str], bytes], zero: str) -> Callable[[], bytes]:
    """Makes requests out of these, each under an id of its own."""
    pieces = [template.split(old(zero), 1) for template in templates]

    def request() -> bytes:
        before, after = DRAW.choice(pieces)
        return before + old(wire.new_batch_id()) + after

    return request


@contextmanager
def redis(folder: Path) -> Iterator[tuple[str, int]]:
    """A Redis with an append-only file that is synced every second."""
    binary = shutil.which("redis-server")
    if binary is None:
        sys.exit("this benchmark needs redis-server")
    path = folder / "redis.sock"
    command = [binary, "--port", "0", "--unixsocket", str(path), "--dir", str(folder)]
    command += ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while not path.exists():
            time.sleep(0.05)
        yield f"unix://{path}", process.pid
    finally:
        process.terminate()
        process.wait()


def measure(
    folder: Path,
    store: str,
    request: Callable[[], bytes],
    count: int,
    *,
    redis_pid: int | None = None,
    flask: bool = False,
    half: bool = False,
    width: int = CONNECTIONS,
) -> tuple[Outcome, Outcome | None]:
    """At saturation, the cheapest of three runs; and at half of its rate."""
    server = Server(folder, store, flask, redis_pid)
    try:
        load(server, request, max(1, count // 10), width=width)
        runs = [load(server, request, count, width=width) for _ in range(3)]
        best = min(runs, key=lambda each: each.cpu)
        rate = max(each.rate for each in runs) / 2
        return best, load(server, request, count, rate) if half else None
    finally:
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the requests")
    part = 5 if parser.parse_args().quick else 1
    registry = Registry.parse(METRICS)
    city, town, site = (registry[name] for name in ("city", "town", "site"))
    small = fresh([json_batch([city] * 8 + [site] * 2) for _ in range(50)], str.encode, "0" * 32)
    with tempfile.TemporaryDirectory() as name, redis(Path(name)) as (url, pid):
        folder = Path(name)
        (folder / "metrics.toml").write_text(METRICS)
        few = Table(title="Batches of 10 reports, 2 of them RAPPOR-128; one worker")
        for column in ("store", "server", "CPU us", "requests/s", "per CPU s", "p50 ms", "p99 ms"):
            few.add_column(column, justify="left" if column in ("store", "server") else "right")
        costs = {}
        for label, store, redis_pid in (
            ("Redis, AOF everysec", url, pid),
            ("SQLite, FULL", f"sqlite:///{folder}/store.db", None),
        ):
            for server, flask in (("event loop", False), ("Flask, threads", True)):
                count = (4_000 if flask else 20_000) // part
                best, half = measure(
                    *(folder, store, small, count), redis_pid=redis_pid, flask=flask, half=True
                )
                assert half is not None
                costs[label, flask] = best.cpu
                few.add_row(
                    *(label, server, f"{best.cpu * 1e6:,.0f}", f"{best.rate:,.0f}"),
                    f"{1 / best.cpu:,.0f}",
                    *(f"{1000 * half.latency(share):,.1f}" for share in (0.5, 0.99)),
                )
        Console().print(few)
        ratios = [costs[label, True] / costs[label, False] for label, _ in costs if not _]
        share = costs["Redis, AOF everysec", False] / costs["SQLite, FULL", False]
        Console().print(
            f"requests per CPU second: {ratios[0]:.1f} times Flask's on Redis (goal: 10; at most "
            f"35 us), {ratios[1]:.1f} times on SQLite; SQLite at {share:.0%} of Redis (goal: 60 %)"
        )
        many = Table(title=f"Batches of {BULK:,} reports; Redis, one worker")
        for column in ("reports", "format", "CPU ms", "million reports per CPU s", "goal"):
            many.add_column(column, justify="left" if column in ("reports", "format") else "right")
        for metric, goal in ((city, "10"), (town, "10"), (site, "3.5")):
            rows = metric.scheme.mechanism.rows
            what = f"{rows[0].width:,} {'bits' if rows[0].columns is None else 'columns'}"
            what += f" x {len(rows)} cohorts" if len(rows) > 1 else ""
            packed = fresh([binary_batch(metric)], bytes.fromhex, "f" * 32)
            plain = fresh([json_batch([metric] * BULK)], str.encode, "0" * 32)
            for kind, request, flask, count in (
                ("binary, event loop", packed, False, 1_000 // part),
                ("JSON, Flask", plain, True, 20),
            ):
                best, _ = measure(
                    *(folder, url, request, count), redis_pid=pid, flask=flask, width=8
                )
                speed = BULK / best.cpu / 1e6
                many.add_row(what, kind, f"{best.cpu * 1e3:,.2f}", f"{speed:,.2f}", goal)
        Console().print(many)


if __name__ == "__main__":
    main()
