"""Gateways and relays for the tests of the two hops."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deniable import Registry, windows
from deniable.oblivious import ObliviousTransport
from deniable.oblivious.binary_http import InnerRequest, padded
from deniable.oblivious.capsules import Sealed, seal_request
from deniable.oblivious.signed_keys import PATH
from deniable.wire import new_batch_id
from deniable_collector.oblivious.key_file import KeyFile
from deniable_collector.stores import open_store

CAPSULE = {"Content-Type": "message/ohttp-req"}
RELAY = ("-c", "from deniable.cli import main; main()", "relay")


@contextmanager
def answering(response: bytes, last: bytes = b"the capsule") -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers one request, which ends with `last`: its host and port, and a list that
    gets all bytes of the request, before the block ends."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                data = b""
                while not data.endswith(last):
                    data += connection.recv(65_536)
                seen.append(data)
                connection.sendall(response)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}", seen
        thread.join(30)


@dataclass
class Hops:
    """A real collector that is a gateway, and a real relay in front of it."""

    new: Callable[..., Any]
    path: Path
    environ: dict[str, str]
    gateway: Any = None
    relay: Any = None

    def start_gateway(self, **environ: str) -> Any:
        """Another collector with the same keys and the same store."""
        return self.new(**{"DENIABLE_GATEWAY_KEYS": str(self.path), **self.environ, **environ})

    def start_relay(self, gateway: str = "", **environ: str) -> Any:
        """Another relay, by default to the gateway."""
        address = gateway or self.gateway.address
        return self.new(
            *RELAY, **{"DENIABLE_RELAY_GATEWAY": address, "DENIABLE_WORKERS": "1", **environ}
        )

    def counted(self, metric: str = "browser") -> int:
        """The reports of a metric in the store."""
        store = open_store(self.environ["DENIABLE_STORE"])
        try:
            return sum(
                store.tally(metric, scheme, store.windows(metric, scheme)).reports
                for scheme in store.schemes().get(metric, ())
            )
        finally:
            store.close()

    @property
    def keys(self) -> KeyFile:
        return KeyFile.read(self.path)

    def transport(self, relay: Any = None, **options: Any) -> ObliviousTransport:
        """What a device sends with, by default through the relay."""
        address = (relay or self.relay).address
        return ObliviousTransport(self.gateway.address, address, self.keys.identity, **options)

    def seal(self, body: bytes, **changes: bytes) -> Sealed:
        """A capsule of a request for the gateway's first key."""
        fields = ((b"content-type", b"application/json"),)
        parts = {"method": b"POST", "scheme": b"http", "authority": b"x", "path": b"/v1/reports"}
        request = InnerRequest(**{**parts, **changes}, fields=fields, content=body)
        return seal_request(self.keys.keys[0].configuration, padded(request.encode(), 1024))


@pytest.fixture(scope="module")
def hops(
    collector_class: Any, metrics: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hops]:
    """A gateway and a relay with one process each, which a module shares, on an SQLite store."""
    folder = tmp_path_factory.mktemp("hops")
    (folder / "metrics.toml").write_text(metrics)
    started = []

    def new(*command: str, **environ: str) -> Any:
        collector = collector_class({"DENIABLE_BIND": "127.0.0.1:0", **environ}, folder)
        collector.command = command or collector.command
        collector.start()
        started.append(collector)
        return collector

    path = folder / "keys.json"
    KeyFile.new("x25519").write(path)
    made = Hops(
        new, path, {"DENIABLE_STORE": f"sqlite:///{folder}/store.db", "DENIABLE_WORKERS": "1"}
    )
    made.gateway = made.start_gateway()
    made.relay = made.start_relay()
    yield made
    for each in started:
        each.kill()


def told(reply: Any) -> dict[str, Any]:
    """The document of a reply."""
    found: dict[str, Any] = json.loads(reply.body)
    return found


@pytest.fixture
def new_body(registry: Registry) -> Callable[[], bytes]:
    """Makes good batches of one report, by the real clock, with ids of their own: one store is
    shared by a module's tests."""
    report = {
        "metric": "browser",
        "scheme": registry["browser"].scheme.fingerprint,
        "window": windows.window_at("day", time.time() - 86_400),
        "columns": 1,
    }
    return lambda: json.dumps({"batch": new_batch_id(), "reports": [report]}).encode()


__all__ = ["CAPSULE", "PATH", "Hops", "hops", "new_body", "told"]
