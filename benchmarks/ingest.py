"""What a batch costs the collector over HTTP, and how long it waits, beside the plain way.

CPU (user and system) of all of the server's processes, Redis included, per request, over
127.0.0.1 on connections that are kept alive. The plain way is the same Flask route under
gunicorn's threads: one store call for each request. The bare protocol is HTTP at its cheapest in
Python. wrk saturates the servers in turn: a slower sender lets them sleep between requests, and
each request then pays for being woken.
Run: python benchmarks/ingest.py [--quick] [--only small]; --memory [--requests N] watches one
worker's memory.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import secrets
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

from deniable import Metric, Registry, windows, wire
from deniable.mechanisms import Report
from deniable_collector.batches.binary import MEDIA_TYPE, encode
from deniable_collector.stores import open_store

CONNECTIONS = 512
BULK = 10_000
"""Reports in a large batch."""

METRICS = """
schema = 1
app = "example"
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

SCRIPT = """
local parts, places, sent, number = {}, 0, 0, 0
for line in io.lines(os.getenv("BODIES")) do
  local before, after = line:match("^(.-)@(.*)$")
  local head = "POST /v1/reports HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: application/json\\r\\n"
  local length = "Content-Length: " .. (#before + #after + 32) .. "\\r\\n\\r\\n"
  places = places + 1
  parts[places] = {head .. length .. before .. os.getenv("RUN"), after}
end
function request()
  sent = sent + 1
  local part = parts[sent % places + 1]
  return part[1] .. string.format("%016x", sent) .. part[2]
end
"""
"""What wrk sends: prepared batches, each under an id of its own."""

BARE = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        for step in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{step}.complete"})
        return
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 202, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})
"""
"""HTTP alone: an app that reads and answers."""


PROTOCOL = """
import asyncio
import httptools
from uvicorn_worker import UvicornWorker

ANSWER = b"HTTP/1.1 202 Accepted\\r\\ncontent-length: 2\\r\\n\\r\\n{}"

class Protocol(asyncio.Protocol):
    def __init__(self, *args, **kwargs):
        self.parser = httptools.HttpRequestParser(self)
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        self.parser.feed_data(data)
    def on_message_complete(self):
        self.transport.write(ANSWER)
    def shutdown(self):
        self.transport.close()

class Worker(UvicornWorker):
    CONFIG_KWARGS = {"loop": "uvloop", "http": Protocol, "ws": "none", "access_log": False}
"""
"""HTTP at its cheapest in Python: the parser calls one function, which answers."""


EVENT_LOOP = ("deniable_collector.asgi:app()",)
FLASK = ("-k", "deniable_collector.worker.ThreadWorker", "deniable_collector.wsgi:app")
HTTPTOOLS = ("-k", "protocol.Worker", "bare:app")
UVICORN = ("-k", "uvicorn_worker.UvicornWorker", "bare:app")
GUNICORN = ("-k", "asgi", "bare:app")


class Server:
    """A collector with one worker, and what it and its store have spent."""

    def __init__(
        self, folder: Path, store: str, redis_pid: int | None, app: tuple[str, ...] = EVENT_LOOP
    ) -> None:
        self.redis_pid = redis_pid
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = probe.getsockname()
        environ = {
            **os.environ,
            "DENIABLE_REGISTRY": str(folder / "metrics.toml"),
            "DENIABLE_STORE": store,
            "DENIABLE_BIND": "{}:{}".format(*self.address),
            "DENIABLE_WORKERS": "1",
            "DENIABLE_THREADS": "8",
            "DENIABLE_MAX_REPORTS": str(BULK),
            "DENIABLE_MAX_BODY": "16 MiB",
            # Counted as ever, and never reached by the one address that sends here.
            "DENIABLE_RATE": "1000000/second",
        }
        command = [
            sys.executable,
            "-m",
            "gunicorn",
            "-c",
            "python:deniable_collector.gunicorn_conf",
        ]
        self.process = subprocess.Popen(
            [*command, *app],
            env=environ,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
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
        pids = [self.process.pid, *self.workers(), *([self.redis_pid] if self.redis_pid else [])]
        ticks = 0
        for each in pids:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def workers(self) -> list[int]:
        pid = self.process.pid
        return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def memory(self) -> float:
        """MiB that the worker has in memory."""
        (worker,) = self.workers()
        return int(Path(f"/proc/{worker}/statm").read_text().split()[1]) * 4096 / 2**20

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


@dataclass
class Outcome:
    """`cpu` seconds per request, requests per second, and latencies in seconds, ascending."""

    cpu: float
    rate: float
    latencies: list[float]
    count: int

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
            # The bare server answers with an empty object.
            counted = answer.endswith(
                (b'"duplicate": 0, "rejected": [], "refused": {}}', b"\r\n\r\n{}")
            )
            if b" 202 " not in answer or not counted:
                sys.exit(f"unexpected answer: {answer!r}")
            latencies.append(time.perf_counter() - due[key.fileobj])
            free.append(key.fileobj)
    seconds = time.perf_counter() - begun
    spent = server.cpu() - spent
    for connection in everyone:
        connection.close()
    return Outcome(spent / count, count / seconds, sorted(latencies), count)


def saturate(server: Server, folder: Path, batches: list[bytes], seconds: int) -> Outcome:
    """Keep every connection of wrk busy for so long; what it counts were answered by 2xx."""
    (folder / "batches").write_bytes(
        b"\n".join(each.replace(b"0" * 32, b"@", 1) for each in batches)
    )
    (folder / "batches.lua").write_text(SCRIPT)
    environ = {
        **os.environ,
        "BODIES": str(folder / "batches"),
        "RUN": secrets.token_hex(8),
    }
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", "--timeout", "30s", "-s"]
    url = "http://{}:{}/".format(*server.address)
    spent, begun = server.cpu(), time.perf_counter()
    told = subprocess.run(
        [*command, str(folder / "batches.lua"), url],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    spent, took = server.cpu() - spent, time.perf_counter() - begun
    found = re.search(r"(\d+) requests in", told)
    if found is None or "Non-2xx" in told or "Socket errors" in told:
        sys.exit(f"unexpected answers:\n{told}")
    count = int(found[1])
    return Outcome(spent / count, count / took, [], count)


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


def json_body(metrics: list[Metric]) -> bytes:
    reports = []
    for metric in metrics:
        row, columns = draw(metric)
        packed = wire.pack_columns(metric.scheme.mechanism.rows[row], Report(row, columns))
        reports.append(
            wire.SealedReport(metric.name, metric.scheme.fingerprint, WINDOW, row, packed)
        )
    return wire.encode_batch("0" * 32, reports)


def json_batch(metrics: list[Metric]) -> bytes:
    return http("application/json", json_body(metrics))


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
    server: Server, request: Callable[[], bytes], count: int, width: int = CONNECTIONS
) -> Outcome:
    """The cheapest of three runs, after one that warms up."""
    load(server, request, max(1, count // 10), width=width)
    return min((load(server, request, count, width=width) for _ in range(3)), key=lambda x: x.cpu)


def counted(store: str, metrics: list[Metric]) -> int:
    """Reports in the store."""
    opened = open_store(store)
    try:
        return sum(
            opened.tally(each.name, each.scheme.fingerprint, [WINDOW]).reports for each in metrics
        )
    finally:
        opened.close()


def small_batches(folder: Path, url: str, pid: int, registry: Registry, part: int) -> Table:
    """Batches as devices send them."""
    if not shutil.which("wrk"):
        sys.exit("this needs wrk")
    city, site = registry["city"], registry["site"]
    bodies = [json_body([city] * 8 + [site] * 2) for _ in range(500)]
    request = fresh([http("application/json", each) for each in bodies], str.encode, "0" * 32)
    table = Table(title="Batches of 10 reports, 2 of them RAPPOR-128; one worker")
    for column in ("store", "server", "CPU us", "x", "requests/s", "p50 ms", "p99 ms"):
        table.add_column(column, justify="left" if column in ("store", "server") else "right")
    (folder / "bare.py").write_text(BARE)
    (folder / "protocol.py").write_text(PROTOCOL)
    stores = {
        "none": (f"sqlite:///{folder}/none.db", None),
        "Redis, AOF everysec": (url, pid),
        "SQLite, FULL": (f"sqlite:///{folder}/store.db", None),
    }
    none, redis_store, sqlite = stores
    asked = {
        (none, "bare protocol"): HTTPTOOLS,
        (none, "bare app, uvicorn's worker"): UVICORN,
        (none, "bare app, gunicorn's worker"): GUNICORN,
        (redis_store, "event loop"): EVENT_LOOP,
        (sqlite, "event loop"): EVENT_LOOP,
        (redis_store, "Flask, threads"): FLASK,
        (sqlite, "Flask, threads"): FLASK,
    }
    servers: dict[tuple[str, str], Server] = {}
    runs: dict[tuple[str, str], list[Outcome]] = {each: [] for each in asked}
    waits: dict[tuple[str, str], list[str]] = {}
    try:
        for each, app in asked.items():
            servers[each] = Server(folder, *stores[each[0]], app)
        before = {store: counted(stores[store][0], [city, site]) for store in (redis_store, sqlite)}
        # In turn: what else the machine does then falls on all of them.
        for seconds in (1, *[20 // part] * 3, *[20 // part] * 2):
            for each, server in servers.items():
                if "Flask" not in each[1] or len(runs[each]) < 3:
                    runs[each].append(saturate(server, folder, bodies, seconds))
        for store, least in before.items():
            done = sum(run.count for each in runs if each[0] == store for run in runs[each])
            extra = counted(stores[store][0], [city, site]) - least - 10 * done
            # wrk leaves while its last requests are under way.
            if not 0 <= extra <= 100 * CONNECTIONS:
                sys.exit(f"{extra} reports more are in the store than were acknowledged")
        for each, server in servers.items():
            if each[0] != none:
                rate = max(run.rate for run in runs[each]) / 2
                half = load(server, request, int(rate * 30 / part), rate)
                waits[each] = [f"{1000 * half.latency(share):,.1f}" for share in (0.5, 0.99)]
    finally:
        for server in servers.values():
            server.stop()
    cheapest = {each: min(run.cpu for run in runs[each][1:]) for each in asked}
    bare = cheapest[none, "bare protocol"]
    for (store, name), cost in cheapest.items():
        rate = max(run.rate for run in runs[store, name])
        table.add_row(
            *(store, name, f"{cost * 1e6:,.1f}", f"{cost / bare:,.1f}", f"{rate:,.0f}"),
            *waits.get((store, name), ("", "")),
        )
    ratios = {
        store: cheapest[store, "Flask, threads"] / cheapest[store, "event loop"]
        for store in (redis_store, sqlite)
    }
    share = cheapest[redis_store, "event loop"] / cheapest[sqlite, "event loop"]
    table.caption = (
        "goal: 3.5 times the bare protocol; requests per CPU second "
        f"{ratios[redis_store]:.0f} times Flask's on Redis (goal: 10), {ratios[sqlite]:.0f} times "
        f"on SQLite; SQLite at {share:.0%} of Redis (goal: 60%)"
    )
    return table


def large_batches(folder: Path, url: str, pid: int, registry: Registry, part: int) -> Table:
    """Batches as relays send them."""
    table = Table(title=f"Batches of {BULK:,} reports; Redis, one worker")
    for column in ("reports", "format", "CPU ms", "million reports per CPU s", "goal"):
        table.add_column(column, justify="left" if column in ("reports", "format") else "right")
    for name, goal in (("city", "10"), ("town", "10"), ("site", "3.5")):
        metric = registry[name]
        rows = metric.scheme.mechanism.rows
        what = f"{rows[0].width:,} {'bits' if rows[0].columns is None else 'columns'}"
        what += f" x {len(rows)} cohorts" if len(rows) > 1 else ""
        packed = fresh([binary_batch(metric)], bytes.fromhex, "f" * 32)
        plain = fresh([json_batch([metric] * BULK)], str.encode, "0" * 32)
        for kind, request, app, count in (
            ("binary, event loop", packed, EVENT_LOOP, 1_000 // part),
            ("JSON, Flask", plain, FLASK, 20),
        ):
            server = Server(folder, url, pid, app)
            try:
                best = measure(server, request, count, width=8)
            finally:
                server.stop()
            speed = BULK / best.cpu / 1e6
            table.add_row(what, kind, f"{best.cpu * 1e3:,.2f}", f"{speed:,.2f}", goal)
    return table


def memory(folder: Path, url: str, pid: int, registry: Registry, requests: int) -> Table:
    """What one worker has in memory as requests go by."""
    if not shutil.which("wrk"):
        sys.exit("this needs wrk")
    bodies = [json_body([registry["city"]] * 8 + [registry["site"]] * 2) for _ in range(500)]
    table = Table(title="Memory of one worker")
    for column in ("requests", "MiB"):
        table.add_column(column, justify="right")
    server = Server(folder, url, pid)
    try:
        done = 0
        for tenth in range(11):
            while done < requests * tenth // 10:
                done += saturate(server, folder, bodies, 2 if requests < 5_000_000 else 10).count
            table.add_row(f"{done:,}", f"{server.memory():.1f}")
            Console(stderr=True).print(f"{done:,} requests: {server.memory():.1f} MiB")
    finally:
        server.stop()
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the requests")
    parser.add_argument("--only", choices=("small", "large"), help="one of the two tables")
    parser.add_argument("--memory", action="store_true", help="watch a worker's memory instead")
    parser.add_argument("--requests", type=int, default=10_000_000, help="for --memory")
    given = parser.parse_args()
    registry = Registry.parse(METRICS)
    with tempfile.TemporaryDirectory() as path, redis(Path(path)) as (url, pid):
        folder = Path(path)
        (folder / "metrics.toml").write_text(METRICS)
        if given.memory:
            Console().print(memory(folder, url, pid, registry, given.requests))
            return
        for name, each in (("small", small_batches), ("large", large_batches)):
            if given.only in (None, name):
                Console().print(each(folder, url, pid, registry, 5 if given.quick else 1))


if __name__ == "__main__":
    main()
