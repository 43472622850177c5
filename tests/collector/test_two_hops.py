"""Two hops with real servers: a device's transport, a relay, and a collector that is a gateway."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from deniable import TransportError
from deniable.oblivious import ObliviousTransport
from deniable.oblivious.binary_http import InnerRequest, padded
from deniable.oblivious.capsules import seal_request
from deniable.oblivious.signed_keys import PATH
from deniable_collector.oblivious.key_file import KeyFile
from deniable_collector.stores import open_store

pytestmark = pytest.mark.campaign
RELAY = ("-c", "from deniable.cli import main; main()", "relay")


class Hops:
    """A real collector that is a gateway, and a real relay in front of it."""

    def __init__(self, new, folder):
        self.path, self.url = folder / "keys.json", f"sqlite:///{folder}/store.db"
        self.write(KeyFile.new("x25519"))
        self.gateway = new(
            DENIABLE_GATEWAY_KEYS=str(self.path), DENIABLE_STORE=self.url, DENIABLE_WORKERS="1"
        )
        self.relay = new(
            *RELAY,
            DENIABLE_BIND="127.0.0.1:0",
            DENIABLE_RELAY_GATEWAY=self.gateway.address,
            DENIABLE_WORKERS="1",
        )
        self.transport = ObliviousTransport(
            self.gateway.address, self.relay.address, self.keys.identity
        )

    @property
    def keys(self):
        return KeyFile.read(self.path)

    def write(self, keys):
        keys.write(self.path, replacing=self.path.exists())

    def send(self, body):
        """What the collector tells of a batch of the device."""
        return json.loads(self.transport.send(body).body)

    def counted(self, metric):
        with closing(open_store(self.url)) as store:
            name, scheme = metric.name, metric.scheme.fingerprint
            return store.tally(name, scheme, store.windows(name, scheme)).reports


@pytest.fixture
def hops(new_collector, tmp_path):
    return Hops(new_collector, tmp_path)


def test_the_gateway_away(hops, registry, new_body):
    """A batch is counted once. While the gateway is down, the relay asks to wait, and nothing is
    lost or counted twice."""
    bodies = [new_body() for _ in range(5)]
    assert hops.send(bodies[0])["accepted"] == 1
    hops.gateway.kill()
    for body in bodies:
        with pytest.raises(TransportError) as raised:
            hops.transport.send(body)
        assert (raised.value.retry_after, raised.value.final) == (5.0, False)
    hops.gateway.start()
    assert [hops.send(body)["accepted"] for body in bodies] == [0, 1, 1, 1, 1]
    assert hops.counted(registry["browser"]) == 5


def workers(collector):
    pid = collector.process.pid
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def test_a_key_changes_while_batches_are_on_their_way(hops, registry, new_body, until):
    """Whether the old key is kept or not, a device ends with the new one, and every batch counts
    once."""
    for keep, kem in ((1, "p256"), (0, "x25519")):
        first, under_way, last = new_body(), new_body(), new_body()
        assert hops.send(first)["accepted"] == 1
        fields = ((b"content-type", b"application/json"),)
        asked = InnerRequest(b"POST", b"http", b"x", b"/v1/reports", fields, under_way).encode()
        sealed = seal_request(hops.keys.keys[0].configuration, padded(asked, 1024))
        hops.write(hops.keys.rotated(kem, keep))
        before = workers(hops.gateway)
        os.kill(hops.gateway.process.pid, signal.SIGHUP)
        until(lambda before=before: not before & workers(hops.gateway), "no new worker comes")
        until(lambda: served(hops.gateway.address) == hops.keys.document, "the old keys are told")
        request = urllib.request.Request(
            hops.relay.address + PATH, sealed.capsule, {"Content-Type": "message/ohttp-req"}
        )
        assert status_of(request) == (200 if keep else 400)
        # The relay may tell the old list of keys for a moment.
        found = []
        for body in (first, under_way, last):
            until(
                lambda body=body, found=found: acknowledged(hops, body, found),
                "a batch is not taken",
            )
        assert found == [0, 0 if keep else 1, 1]
    assert hops.counted(registry["browser"]) == 6


def served(address):
    with urllib.request.urlopen(address + PATH, timeout=30) as response:
        return response.read()


def status_of(request):
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def acknowledged(hops, body, found):
    try:
        found.append(hops.send(body)["accepted"])
    except TransportError:
        return False
    return True
