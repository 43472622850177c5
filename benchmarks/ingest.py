"""What a batch costs the collector over HTTP, and how long it waits, beside the plain way.

CPU (user and system) of all of the server's processes, Redis included, per request, over
127.0.0.1 on connections that are kept alive. The plain way is a function under gunicorn's threads:
JSON, and one pipeline of HINCRBY for each request, without any check. The bare protocol is HTTP at
its cheapest in Python. wrk saturates the servers in turn: a slower sender lets them sleep between
requests, and each request then pays for being woken. Latencies are those at half of the saturating
rate, from the moment at which a request was due. Needs wrk and redis-server.
"""

from __future__ import annotations

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
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from common.tables import Table, run
from deniable import Metric, Registry
from deniable.protocol import windows, wire
from deniable.protocol.mechanisms import Report
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store

CONNECTIONS = 512

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

PROTOCOL = """
import asyncio
import httptools
from deniable_collector.serving import gunicorn_worker

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

class Worker(gunicorn_worker.HttpWorker):
    async def _serve(self):
        loop = asyncio.get_running_loop()
        ended = self._ended = asyncio.Event()
        loop.add_signal_handler(15, self.handle_exit, 15, None)
        for each in self.sockets:
            await loop.create_server(Protocol, sock=each.sock, backlog=2048)
        await self._live(ended)

def unused(environ, start):
    pass
"""
"""HTTP at its cheapest in Python: the parser calls one function, which answers."""


PLAIN = """
import json, os, redis
client = redis.Redis.from_url(os.environ["DENIABLE_STORE"])

def app(environ, start):
    batch = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
    pipeline = client.pipeline()
    for report in batch["reports"]:
        pipeline.hincrby("plain:" + report["metric"], report["columns"], 1)
    pipeline.execute()
    start("202 Accepted", [("Content-Type", "application/json"), ("Content-Length", "2")])
    return [b"{}"]
"""

BARE = ("-k", "protocol.Worker", "protocol:unused")
EVENT_LOOP = ("deniable_collector.collector:app()",)
THREADS = ("-k", "gthread", "plain:app")


class Server:
    """A collector with one worker, and what it and its store have spent."""

    def __init__(
        self,
        folder: Path,
        store: str,
        redis_pid: int | None = None,
        app: tuple[str, ...] = EVENT_LOOP,
        **settings: str,
    ) -> None:
        self.redis_pid, self.store = redis_pid, store
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = probe.getsockname()
        environ = {
            **os.environ,
            "DENIABLE_REGISTRY": str(folder / "metrics.toml"),
            "DENIABLE_STORE": store,
            "DENIABLE_BIND": "{}:{}".format(*self.address),
            "DENIABLE_WORKERS": "1",
            # Counted as ever, and never reached by the one address that sends here.
            "DENIABLE_RATE": "1000000/second",
            **settings,
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
        while True:
            try:
                socket.create_connection(self.address).close()
                break
            except OSError:
                if self.process.poll() is not None:
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
    server: Server, request: Callable[[], bytes], count: int, rate: float, width: int = CONNECTIONS
) -> Outcome:
    """Send `count` requests, `rate` a second; a latency counts from when its request was due."""
    chosen = selectors.DefaultSelector()
    # In turn, so that none is idle for so long that the server closes it.
    # Each network (/24) may send so many batches a second.
    free = deque(
        socket.create_connection(server.address, source_address=(f"127.4.{place % 256}.1", 0))
        for place in range(width)
    )
    for connection in free:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        chosen.register(connection, selectors.EVENT_READ)
    everyone, due, latencies = list(free), {}, []
    sent = 0
    spent, begun = server.cpu(), time.perf_counter()
    while len(latencies) < count:
        now = time.perf_counter()
        while sent < count and free and begun + sent / rate <= now:
            connection = free.popleft()
            due[connection] = begun + sent / rate
            connection.sendall(request())
            sent += 1
        wait = max(0.0, begun + sent / rate - now) if free and sent < count else 5.0
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
    done = subprocess.run(
        [*command, str(folder / "batches.lua"), url],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    spent, took = server.cpu() - spent, time.perf_counter() - begun
    found = re.search(r"(\d+) requests in", done.stdout)
    if found is None or "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        sys.exit(f"unexpected answers:\n{done.stdout}{done.stderr}")
    count = max(1, int(found[1]))
    return Outcome(spent / count, count / took, [], count)


def draw(metric: Metric) -> Report:
    """A report as a device might send it; that the noise is real does not matter here."""
    rows = metric.scheme.mechanism.rows
    row = DRAW.randrange(len(rows))
    if rows[row].columns == 1:
        return Report(row, DRAW.randrange(rows[row].width))
    return Report(row, DRAW.getrandbits(rows[row].width))


def batch_of(metrics: list[Metric]) -> bytes:
    reports = []
    for metric in metrics:
        report = draw(metric)
        packed = wire.pack_columns(metric.scheme.mechanism.rows[report.row], report)
        reports.append(
            wire.SealedReport(metric.name, metric.scheme.fingerprint, WINDOW, report.row, packed)
        )
    return wire.encode_batch("0" * 32, reports)


def fresh(bodies: list[bytes]) -> Callable[[], bytes]:
    """Makes requests out of these, each under an id of its own."""

    def request() -> bytes:
        body = DRAW.choice(bodies).replace(b"0" * 32, wire.new_batch_id().encode(), 1)
        head = "POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

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


def counted(store: str, metrics: list[Metric]) -> int:
    """Reports in the store."""
    with closing(open_store(Settings(store=store))) as opened:
        return sum(
            opened.tally(each.name, each.scheme.fingerprint, [WINDOW]).reports for each in metrics
        )


def batches(quick: bool) -> Iterator[Table]:
    """Of 10 reports, 2 of them RAPPOR of 128 bits; one worker."""
    if not shutil.which("wrk"):
        sys.exit("this benchmark needs wrk")
    registry, part = Registry.parse(METRICS), 10 if quick else 1
    with tempfile.TemporaryDirectory() as path, redis(Path(path)) as (url, pid):
        folder = Path(path)
        (folder / "metrics.toml").write_text(METRICS)
        (folder / "protocol.py").write_text(PROTOCOL)
        (folder / "plain.py").write_text(PLAIN)
        yield compared(folder, url, pid, registry, part)


def compared(folder: Path, url: str, pid: int, registry: Registry, part: int) -> Table:
    table = Table("ingest", "Batches of 10 reports, 2 of them RAPPOR-128; one worker")
    metrics = [registry["city"], registry["site"]]
    bodies = [batch_of([metrics[0]] * 8 + [metrics[1]] * 2) for _ in range(500)]
    redis_store, sqlite, none = "Redis, AOF everysec", "SQLite, FULL", "none"
    stores = {
        none: (f"sqlite:///{folder}/none.db", None),
        redis_store: (url, pid),
        sqlite: (f"sqlite:///{folder}/store.db", None),
    }
    asked = {
        (none, "bare protocol"): BARE,
        (redis_store, "event loop"): EVENT_LOOP,
        (sqlite, "event loop"): EVENT_LOOP,
        (redis_store, "plain, threads"): THREADS,
    }
    servers: dict[tuple[str, str], Server] = {}
    runs: dict[tuple[str, str], list[Outcome]] = {each: [] for each in asked}
    waits: dict[tuple[str, str], list[float]] = {}
    try:
        for each, app in asked.items():
            servers[each] = Server(folder, *stores[each[0]], app)
        # In turn: what else the machine does then falls on all of them.
        for seconds in (3, *[20 // part] * 3):
            for each, server in servers.items():
                runs[each].append(saturate(server, folder, bodies, seconds))
        for store in (redis_store, sqlite):
            done = sum(outcome.count for outcome in runs[store, "event loop"])
            extra = counted(stores[store][0], metrics) - 10 * done
            # wrk leaves while its last requests are under way.
            if not 0 <= extra <= 100 * CONNECTIONS:
                sys.exit(f"{extra} reports more than acknowledged in {store}, of {10 * done}")
        for each, server in servers.items():
            if each[0] != none:
                rate = max(outcome.rate for outcome in runs[each]) / 2
                half = load(server, fresh(bodies), int(rate * 30 / part), rate)
                waits[each] = [1000 * half.latency(share) for share in (0.5, 0.99)]
    finally:
        for server in servers.values():
            server.stop()
    cheapest = {each: min(outcome.cpu for outcome in runs[each][1:]) for each in asked}
    for (store, name), cost in cheapest.items():
        p50, p99 = waits.get((store, name), (None, None))
        table.rows.append(
            {
                "store": store,
                "server": name,
                "CPU, μs per request": 1e6 * cost,
                "times the bare protocol": cost / cheapest[none, "bare protocol"],
                "requests/s": max(outcome.rate for outcome in runs[store, name]),
                "p50, ms": p50,
                "p99, ms": p99,
            }
        )
    table.note = "Goals: 6 times the bare protocol; SQLite at least 60% of Redis."
    return table


if __name__ == "__main__":
    run(__doc__, {"batches": batches})
