"""The devices: each is a `deniable.Client` that recorded yesterday and reports today, with the
memos that it has had in the weeks before (`history.py`).

Recording, sealing, randomizing, ledger, outbox and batches are the SDK's, with the operating
system's randomness. Only the clock is simulated, so that yesterday's window has closed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

from deniable import Registry
from deniable.device.client import Client
from deniable.device.state import State
from deniable.device.state_file import begin
from deniable.protocol.types import Value
from deniable_demo.population import memo_key
from deniable_demo.relay import Relay

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
            for (name,) in tables.fetchall():
                connection.execute(f"DELETE FROM {name}")
            begin(connection, None)
            connection.executemany("INSERT INTO memo_keys VALUES (?, ?)", keys.items())


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def report_from(registry_path: str, endpoint: str, devices: list[Device], now: float) -> int:
    """Let each device record its values a day before `now`, and report. Returns how many did.

    `now` is POSIX time in seconds. Runs in a process of its own.

    Raises:
        Exception: an error that a client has kept from its app, or a refusal of the collector.
    """
    registry, memory = _load(registry_path), _memory()
    relay, clock = Relay(endpoint), _Clock()
    kept = [each.name for each in registry if each.longitudinal == "memoize"]
    for segments, values, secret in devices:
        memory.renew({name: memo_key(secret, name) for name in kept})
        clock.now = now - DAY
        client = Client(
            registry,
            state_dir=memory,
            transport=relay,
            clock=clock,
            spread=0,
            background=False,
            on_trouble=_raise,
            segments=segments,
            consent=True,
        )
        for metric, value in values.items():
            client.record(metric, value)
        clock.now = now
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
