"""What two hops cost: CPU of the gateway and of the relay for each request, beside plain ingest.

CPU (user and system) of all processes of each server, one worker each, over 127.0.0.1 on
connections that are kept alive; batches of one report, each under an id of its own, on SQLite. The
runs of the three ways take turns, and the cheapest of each counts.
Run: python benchmarks/two_hops.py [--requests N] [--kem x25519|p256] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from deniable import Registry, windows
from deniable.oblivious.binary_http import InnerRequest, InnerResponse, padded
from deniable.oblivious.capsules import (
    KeyConfiguration,
    PrivateKey,
    open_request,
    seal_request,
)
from deniable.oblivious.signed_keys import PATH
from deniable.oblivious.sizes import sealed_size
from deniable.oblivious.suites import KEMS
from deniable.wire import SealedReport, encode_batch, new_batch_id
from deniable_collector.oblivious.key_file import KeyFile

CONNECTIONS = 64
GOAL = 200
METRICS = """
schema = 1
app = "example"
[defaults]
owner = "benchmarks@acme.example"
expires = 2999-12-31
[metrics.browser]
type = "category"
description = "The browser in use."
values = ["firefox", "chrome", "safari", "edge", "other"]
epsilon = 2.0
lifetime_epsilon = 8.0
"""


class Server:
    """A collector or a relay with one worker, and what it has spent."""

    def __init__(self, folder: Path, *command: str, **environ: str) -> None:
        main = (sys.executable, "-c", "from deniable.cli import main; main()", *command)
        self.process = subprocess.Popen(
            main,
            env={
                **os.environ,
                "DENIABLE_WORKERS": "1",
                "DENIABLE_BIND": "127.0.0.1:0",
                "DENIABLE_RATE": "1000000/second",
                **environ,
            },
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().rsplit(" ", 1)[1].strip()
        time.sleep(1)

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        pid, ticks = self.process.pid, 0
        workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (str(pid), *workers):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def post(path: str, media_type: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media_type}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def load(address: str, requests: list[bytes], expected: bytes) -> float:
    """Send all requests on 64 connections; the seconds that it took."""
    host, _, port = address.removeprefix("http://").partition(":")
    chosen = selectors.DefaultSelector()
    waiting, done, begun = list(reversed(requests)), 0, time.perf_counter()
    for _ in range(CONNECTIONS):
        connection = socket.create_connection((host, int(port)))
        chosen.register(connection, selectors.EVENT_READ)
        connection.sendall(waiting.pop())
    while done < len(requests):
        for key, _ in chosen.select(10):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            answer = connection.recv(1 << 16)
            while not _whole(answer):
                answer += connection.recv(1 << 16)
            if not answer.startswith(b"HTTP/1.1 " + expected):
                sys.exit(f"unexpected answer: {answer[:300]!r}")
            done += 1
            if waiting:
                connection.sendall(waiting.pop())
    for key in list(chosen.get_map().values()):
        assert isinstance(key.fileobj, socket.socket)
        key.fileobj.close()
    return time.perf_counter() - begun


def _whole(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return found is not None and len(body) >= int(found[1])


def bodies(registry: Registry, count: int) -> list[bytes]:
    window = windows.window_at("day", time.time() - 86_400)
    scheme = registry["browser"].scheme.fingerprint
    return [
        encode_batch(new_batch_id(), [SealedReport("browser", scheme, window, 0, number % 5)])
        for number in range(count)
    ]


def capsule(key: KeyConfiguration, body: bytes) -> bytes:
    fields = ((b"content-type", b"application/json"),)
    message = InnerRequest(
        b"POST", b"https", b"t.acme.example", b"/v1/reports", fields, body
    ).encode()
    return seal_request(key, padded(message, sealed_size(body, len(message) - len(body)))).capsule


def bare(private: PrivateKey, capsule: bytes) -> dict[str, float]:
    """What cryptography itself takes of opening a capsule: the key exchange and one decryption, and
    its own HPKE in Rust, which cannot export the secret that the response is sealed with."""
    from cryptography.hazmat.primitives import hpke
    from cryptography.hazmat.primitives.asymmetric import ec, x25519
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    def read(enc: bytes) -> Any:
        if private.kem == KEMS["x25519"]:
            return x25519.X25519PublicKey.from_public_bytes(enc)
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), enc)

    curve = () if private.kem == KEMS["x25519"] else (ec.ECDH(),)
    kem = hpke.KEM.X25519 if private.kem == KEMS["x25519"] else hpke.KEM.P256
    own, size = private.loaded.raw, kem.enc_length()
    enc, message, nonce = capsule[7 : 7 + size], bytes(len(capsule) - 7 - size - 16), bytes(12)
    sealed = AESGCM(bytes(16)).encrypt(nonce, message, None)
    suite = hpke.Suite(kem, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)
    whole = suite.encrypt(message, own.public_key(), info=capsule[:7])

    def exchange() -> None:
        own.exchange(*curve, read(enc))
        AESGCM(bytes(16)).decrypt(nonce, sealed, None)

    return {
        "the library alone: ECDH and AES-GCM": alone(exchange),
        "the library alone: HPKE without export": alone(
            lambda: suite.decrypt(whole, own, info=capsule[:7])
        ),
    }


def alone(work: Callable[[], object], count: int = 2_000) -> float:
    """Microseconds of CPU of one call, the least of five runs."""
    runs = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(count):
            work()
        runs.append((time.process_time() - begun) / count)
    return min(runs) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5_000, help="of each run (default: 5000)")
    parser.add_argument("--kem", choices=[*KEMS], default="x25519")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    registry, keys = Registry.parse(METRICS), KeyFile.new(given.kem)
    key, count = keys.keys[0].configuration, given.requests
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "metrics.toml").write_text(METRICS)
        keys.write(folder / "keys.json")
        collector = Server(
            folder,
            "collect",
            DENIABLE_STORE="sqlite:///tallies.db",
            DENIABLE_GATEWAY_KEYS="keys.json",
        )
        relay = Server(folder, "relay", DENIABLE_RELAY_GATEWAY=collector.address)
        costs: dict[str, list[tuple[float, float]]] = {"plain": [], "capsule": [], "relay": []}
        try:
            for _ in range(4):
                for way, spent in costs.items():
                    plain = bodies(registry, count)
                    made = [post("/v1/reports", "application/json", each) for each in plain]
                    if way != "plain":
                        sealed = [capsule(key, each) for each in plain]
                        made = [post(PATH, "message/ohttp-req", each) for each in sealed]
                    before = collector.cpu(), relay.cpu()
                    to = relay.address if way == "relay" else collector.address
                    load(to, made, b"202" if way == "plain" else b"200")
                    after = collector.cpu(), relay.cpu()
                    spent.append(
                        ((after[0] - before[0]) / count * 1e6, (after[1] - before[1]) / count * 1e6)
                    )
        finally:
            relay.stop()
            collector.stop()
    # The first run warms up.
    best = {
        way: [min(each) for each in zip(*spent[1:], strict=True)] for way, spent in costs.items()
    }
    (body,) = bodies(registry, 1)
    one = capsule(key, body)
    private = {each.id: each for each in keys.keys}
    opened = open_request(private, one)
    answer = padded(InnerResponse(202, (), b"x" * 100).encode(), 1024)
    parts = {
        "seal a request (device)": alone(lambda: capsule(key, body)),
        "open it (gateway)": alone(lambda: open_request(private, one)),
        "seal the response (gateway)": alone(lambda: opened.seal_response(answer)),
        **bare(keys.keys[0], one),
    }
    if given.json:
        print(json.dumps({"kem": given.kem, "cpu": best, "parts": parts}, indent=2))
        return
    table = Table(
        title=f"CPU of one request, microseconds ({given.kem}, goal: {GOAL} for each server)"
    )
    for column in ("way", "collector", "beyond plain", "relay"):
        table.add_column(column, justify="left" if column == "way" else "right")
    for way, label in (
        ("plain", "POST /v1/reports"),
        ("capsule", "capsule to the gateway"),
        ("relay", "capsule through the relay"),
    ):
        spent, passed = best[way]
        beyond = "" if way == "plain" else f"{spent - best['plain'][0]:.0f}"
        table.add_row(label, f"{spent:.0f}", beyond, f"{passed:.0f}" if way == "relay" else "")
    Console().print(table)
    alone_table = Table(title="Cryptography alone, microseconds")
    for column in ("what", "CPU"):
        alone_table.add_column(column, justify="left" if column == "what" else "right")
    for what, spent in parts.items():
        alone_table.add_row(what, f"{spent:.0f}")
    Console().print(alone_table)


if __name__ == "__main__":
    main()
