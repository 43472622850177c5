"""The gateway changes its keys while many devices send."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field

from deniable import TransportError

from .hops import hops
from .test_two_hops import ask, new_body, reload

__all__ = ["hops", "new_body"]

DEVICES = 4
ROTATIONS = 3


@dataclass
class Device:
    """One device that sends until it is told to end, and what it was told."""

    transport: object
    new_body: object
    end: threading.Event
    sent: int = 0
    failures: list = field(default_factory=list)

    def run(self):
        try:
            while not self.end.is_set():
                self.send(self.new_body())
        except Exception as error:  # also of another kind than expected: the test lists them
            self.failures.append(repr(error))

    def send(self, body):
        """Send one batch, again and again until it is acknowledged, as the SDK does."""
        deadline = time.monotonic() + 30
        while True:
            try:
                reply = self.transport.send(body)
                break
            except TransportError:
                # The relay may still tell the old list: it asks once a second at most.
                assert time.monotonic() < deadline
                time.sleep(0.1)
        told = json.loads(reply.body)
        assert (reply.status, told["accepted"] + told["duplicate"]) == (202, 1)
        self.sent += 1


def test_keys_change_under_load(hops, new_body):
    """While devices send without a pause, the gateway's key changes three times and no older key is
    kept: every batch is acknowledged within seconds, and counted exactly once."""
    before = hops.counted()
    end = threading.Event()
    devices = [Device(hops.transport(timeout=60), new_body, end) for _ in range(DEVICES)]
    threads = [threading.Thread(target=each.run) for each in devices]
    for each in threads:
        each.start()
    try:
        for number in range(ROTATIONS):
            kem = ("p256", "x25519")[number % 2]
            hops.keys.rotated(kem, keep=0).write(hops.path, replacing=True)
            reload(hops, lambda: ask(hops.gateway.address, "GET")[2] == hops.keys.document)
            enough = [each.sent + 3 for each in devices]
            for device, least in zip(devices, enough, strict=True):
                while device.sent < least and not device.failures:
                    end.wait(0.05)
    finally:
        end.set()
        for each in threads:
            each.join(60)
    assert [each.failures for each in devices] == [[]] * DEVICES
    assert hops.counted() - before == sum(each.sent for each in devices) > DEVICES * ROTATIONS
