"""The devices: each is a `deniable.Client` that recorded yesterday and reports today, with the
memos that it has had in the weeks before (`history.py`).

Recording, sealing, randomizing, ledger, outbox and batches are the SDK's, with the operating
system's randomness. Only the clock is simulated, so that yesterday's window has closed.

A relay sends the batches of many devices to the collector in one request. A company would put it
between its users and the collector, so that not even the collector's network sees their addresses.
Here it also saves two cores 50,000 requests. It posts a batch like any other.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

from deniable import DeniableError, Registry
from deniable.device.client import Client
from deniable.device.state import State
from deniable.device.transport import HttpTransport, Reply, read_reply
from deniable.protocol.coded_message import counted
from deniable.protocol.types import Value
from deniable.protocol.wire import new_batch_id
from deniable_demo.population import memo_key

DAY = 86_400
"""Seconds. Devices record so long before they report."""

Device: TypeAlias = tuple[Mapping[str, str], Mapping[str, Value], bytes]
"""The device's segments, its value of each metric, and the secret of its memos."""


class _MemoryState(State):
    """A device's state in memory, which is that of another device after `renew`.

    Preparing SQLite's statements again for each of 50,000 devices would take longer than
    running them.
    """

    def __init__(self) -> None:
        super().__init__(None)

    def renew(self, keys: Mapping[str, bytes]) -> None:
        """Empty it, but for the keys of memos: the device has reported in the weeks before."""
        with self.transaction() as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for name in {name for (name,) in tables.fetchall()} - {"device", "pauses"}:
                connection.execute(f"DELETE FROM {name}")
            connection.executemany("INSERT INTO memo_keys VALUES (?, ?)", keys.items())


def report_from(registry_path: str, endpoint: str, devices: list[Device], now: float) -> int:
    """Let each device record its values a day before `now`, and report. Returns how many did.

    `now` is POSIX time in seconds. Runs in a process of its own.

    Raises:
        Exception: an error that a client has kept from its app, or a refusal of the collector.
    """
    registry, memory = _load(registry_path), _memory()
    relay, clock = Relay(endpoint), [now]
    kept = [each.name for each in registry if each.longitudinal == "memoize"]
    for segments, values, secret in devices:
        memory.renew({name: memo_key(secret, name) for name in kept})
        clock[0] = now - DAY
        client = Client(
            registry,
            state_dir=memory,
            transport=relay,
            clock=lambda: clock[0],
            spread=0,
            background=False,
            on_trouble=_raise,
            segments=segments,
            consent=True,
        )
        for metric, value in values.items():
            client.record(metric, value)
        clock[0] = now
        client.flush()
    relay.forward()
    return len(devices)


def prepare_worker() -> None:
    """Make this process a worker of the demo."""
    # Ctrl-C reaches the whole group of processes; the parent ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What the person at this machine has set does not apply to simulated devices.
    for name in ("DO_NOT_TRACK", "DENIABLE_DISABLED", "DENIABLE_DEV"):
        os.environ.pop(name, None)


@cache
def _load(path: str) -> Registry:
    return Registry.load(path)


@cache
def _memory() -> _MemoryState:
    return _MemoryState()


def _raise(error: Exception) -> None:
    raise error


_FULL = 900
"""Reports in one request; the collector takes a thousand."""


class RelayError(DeniableError):
    """The collector left out some of what the devices sent."""


class Relay:
    """A transport for many clients of one process; `forward` sends what is still waiting."""

    def __init__(self, endpoint: str) -> None:
        self._collector = HttpTransport(endpoint)
        self._reports: list[dict[str, Any]] = []

    def send(self, body: bytes) -> Reply:
        """Take one device's batch.

        Raises:
            TransportError: the collector cannot be reached.
            RelayError: it refused a report.
        """
        batch = json.loads(body)
        self._reports += batch["reports"]
        if len(self._reports) >= _FULL:
            self.forward()
        receipt = {"batch": batch["batch"], "rejected": []}
        return Reply(202, json.dumps(receipt).encode())

    def forward(self) -> None:
        """Post all reports as one batch, and start a new one."""
        if not self._reports:
            return
        batch_id = new_batch_id()
        body = json.dumps({"batch": batch_id, "reports": self._reports}).encode()
        rejected = read_reply(self._collector.send(body), batch_id, lambda: 0.0)
        if rejected:
            raise RelayError(
                f"the collector refused {counted(len(rejected), 'report')}: {rejected}"
            )
        self._reports = []
