"""Both ends of the two hops with another implementation: RFC 9458 around the npm packages
@hpke/core (RFC 9180) and bhttp-js (RFC 9292). They share no code and no author with pyhpke."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from deniable.oblivious import ObliviousTransport
from deniable_collector.oblivious.key_file import KeyFile

from .hops import hops, new_body, web

pytestmark = pytest.mark.campaign

__all__ = ["hops", "new_body", "web"]

HERE = Path(__file__).parent


@pytest.fixture
def node(web):
    """The beginning of a command line of the other implementation."""
    return ["node", str(HERE / "hops_interop.mjs"), str(web)]


@pytest.fixture
def body(new_body):
    return new_body()


@pytest.mark.parametrize("kem", ["x25519", "p256"])
def test_their_client_our_gateway(hops, node, body, tmp_path, kem):
    """The other implementation's client reads our list of keys through the relay; our gateway opens
    its capsule and counts the batch, and it opens our response."""
    path = tmp_path / "keys.json"
    KeyFile.new(kem).write(path)
    gateway = hops.start_gateway(DENIABLE_GATEWAY_KEYS=str(path))
    relay = hops.start_relay(gateway.address)
    before = hops.counted()
    done = subprocess.run(
        [*node, "client", relay.address, gateway.address, kem, body.decode()],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    status, told = json.loads(done.stdout)
    assert (status, told["batch"], told["accepted"]) == (202, json.loads(body)["batch"], 1)
    assert hops.counted() - before == 1


@pytest.mark.parametrize("kem", ["x25519", "p256"])
def test_our_client_their_gateway(hops, node, body, kem):
    """The SDK's transport takes the other gateway's signed list through the relay. That gateway
    reads the padded request in its capsule, and the SDK reads its response."""
    with subprocess.Popen(
        [*node, "gateway", kem], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address, identity = json.loads(process.stdout.readline())
            relay = hops.start_relay(address)
            reply = ObliviousTransport(address, relay.address, identity).send(body)
        finally:
            process.stdin.close()
    told = json.loads(reply.body)
    assert (reply.status, told["batch"], told["accepted"]) == (202, json.loads(body)["batch"], 1)
