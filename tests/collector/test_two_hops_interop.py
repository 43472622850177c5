"""Both ends of the two hops with another implementation: RFC 9458 around the npm packages
@hpke/core (RFC 9180) and bhttp-js (RFC 9292). They share no code and no author with pyhpke."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.tools import leave_out

from deniable import windows
from deniable.oblivious import ObliviousTransport
from deniable.wire import new_batch_id
from deniable_collector.oblivious.key_file import KeyFile

from .hops import hops

__all__ = ["hops"]

WEB = Path(__file__).parents[2] / "client" / "web"
SCRIPT = Path(__file__).parent / "hops_interop.mjs"


@pytest.fixture
def node():
    """The beginning of a command line of the other implementation."""
    if shutil.which("node") is None or not (WEB / "node_modules" / "bhttp-js").is_dir():
        leave_out("nodejs npm")
    return ["node", str(SCRIPT), str(WEB)]


@pytest.fixture
def body(registry):
    """A good batch of one report, by the real clock."""
    report = {
        "metric": "browser",
        "scheme": registry["browser"].scheme.fingerprint,
        "window": windows.window_at("day", time.time() - 86_400),
        "columns": 1,
    }
    return json.dumps({"batch": new_batch_id(), "reports": [report]}).encode()


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
