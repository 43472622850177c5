"""Two hops with real servers: a device's transport, a relay, and a collector that is a gateway."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import signal
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deniable import TransportError
from deniable.replies import read_reply

from .hops import CAPSULE, PATH, hops, new_body, told

pytestmark = pytest.mark.campaign

__all__ = ["hops", "new_body"]


def ask(address, method="POST", body=None, headers=CAPSULE, path=PATH):
    """(status, header, body) of one request."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    try:
        connection.request(method, path, body, headers)
        with connection.getresponse() as response:
            return response.status, response.headers, response.read()
    finally:
        connection.close()


@pytest.fixture
def more(hops):
    """How many more reports are counted than at the begin of the test."""
    before = hops.counted()
    return lambda: hops.counted() - before


def test_a_batch_is_counted_once(hops, more, new_body):
    """A batch through both hops is acknowledged as ever; sent again, it counts no second time."""
    transport, body = hops.transport(), new_body()
    first, again = transport.send(body), transport.send(body)
    assert (first.status, told(first)["accepted"]) == (202, 1)
    assert (again.status, told(again)["duplicate"]) == (202, 1)
    batch = json.loads(body)["batch"]
    assert read_reply(first, batch, time.time) == {}
    assert more() == 1


def test_the_gateway_away(hops, more, new_body):
    """While the gateway is down, the relay asks to wait, and nothing is lost or counted twice."""
    transport, bodies = hops.transport(), [new_body() for _ in range(5)]
    assert transport.send(bodies[0]).status == 202
    hops.gateway.kill()
    for body in bodies:
        with pytest.raises(TransportError) as raised:
            transport.send(body)
        assert raised.value.retry_after == 5.0
        assert not raised.value.final
    hops.gateway.start()
    assert sum(told(transport.send(body))["accepted"] for body in bodies) == 4
    assert more() == 5


def reload(hops, until):
    """Have the collector read its files again, and wait until `until` holds in new workers."""
    before = children(hops.gateway.process.pid)
    os.kill(hops.gateway.process.pid, signal.SIGHUP)
    deadline = time.monotonic() + 60
    while before & children(hops.gateway.process.pid) or not until():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def children(pid):
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def until_sent(transport, body):
    """The reply to a batch, which is sent until it is acknowledged: the relay may tell the old list
    of keys for a moment."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return transport.send(body)
        except TransportError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_key_changes_while_batches_are_on_their_way(hops, more, new_body):
    """Whether the old key is kept or not, a device ends with the new one, and every batch counts
    once."""
    transport = hops.transport()
    for keep, kem in ((1, "p256"), (0, "x25519")):
        first, under_way, last = new_body(), new_body(), new_body()
        assert told(transport.send(first))["accepted"] == 1
        sealed = hops.seal(under_way)
        hops.keys.rotated(kem, keep).write(hops.path, replacing=True)
        reload(hops, lambda: ask(hops.gateway.address, "GET")[2] == hops.keys.document)
        assert ask(hops.relay.address, body=sealed.capsule)[0] == (200 if keep else 400)
        found = [told(until_sent(transport, each))["accepted"] for each in (first, under_way, last)]
        assert found == [0, 0 if keep else 1, 1]
    assert more() == 6
