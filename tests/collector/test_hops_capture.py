"""What can be captured on both sides of a relay, between network namespaces of Linux."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.ports import until

from deniable.protocol.wire import new_batch_id
from deniable_collector.oblivious.key_file import KeyFile

pytestmark = pytest.mark.campaign

MAIN = (sys.executable, "-c", "from deniable.cli import main; main()")
DEVICE, NEAR, FAR, GATEWAY = "10.77.1.2", "10.77.1.1", "10.77.2.1", "10.77.2.2"

SNIFF = """
import socket, sys
taken = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
taken.bind((sys.argv[1], 0))
print("ready", flush=True)
with open(sys.argv[2], "wb", buffering=0) as file:
    while True:
        file.write(taken.recv(1 << 16) + b"--frame--")
"""

SEND = """
import json, sys
from deniable.oblivious import ObliviousTransport
from deniable.device.transport import HttpTransport
endpoint, relay, identity, body = sys.argv[1:]
sends = ObliviousTransport(endpoint, relay, identity) if identity else HttpTransport(relay)
reply = sends.send(body.encode())
print(json.dumps([reply.status, reply.body.decode()]))
"""


def ip(*arguments):
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=120)


@pytest.fixture
def net(tmp_path):
    """Three namespaces in a row: a device, a relay, a gateway; `run` starts a command in one."""
    name = f"hops{secrets.token_hex(3)}"
    device, relay, gateway = (f"{name}-{each}" for each in "drg")
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and ip")
    with ExitStack() as last:
        for each in (device, relay, gateway):
            try:
                ip("netns", "add", each)
            except subprocess.CalledProcessError:
                pytest.skip("network namespaces are not allowed here")
            last.callback(ip, "netns", "del", each)
        for one, other, link in ((device, relay, "near"), (relay, gateway, "far")):
            ends = (f"{link}0", f"{link}1")
            pair = (*("type", "veth", "peer"), ends[1])
            ip("link", "add", ends[0], "netns", one, *pair, "netns", other)
        for space, link, address in (
            (device, "near0", DEVICE),
            (relay, "near1", NEAR),
            (relay, "far0", FAR),
            (gateway, "far1", GATEWAY),
        ):
            ip("-n", space, "addr", "add", f"{address}/24", "dev", link)
            ip("-n", space, "link", "set", link, "up")
            ip("-n", space, "link", "set", "lo", "up")

        def run(space, *command, **environ):
            process = subprocess.Popen(
                ["ip", "netns", "exec", f"{name}-{space}", *map(str, command)],
                env={**os.environ, "DENIABLE_WORKERS": "1", **environ},
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                text=True,
            )
            last.callback(process.stdout.close)
            last.callback(process.wait, 60)
            last.callback(process.terminate)
            return process

        yield run


def test_what_each_side_can_capture(net, tmp_path, metrics, report):
    """Beyond the relay there is no address of a device; before it there is no byte of a batch. The
    same capture sees both where there is no relay."""
    (tmp_path / "metrics.toml").write_text(metrics)
    keys = KeyFile.new("x25519")
    keys.write(tmp_path / "keys.json")
    batch = new_batch_id()
    body = json.dumps({"batch": batch, "reports": [report]})
    sniffers = {}
    for space, link in (("r", "near1"), ("g", "far1")):
        sniffers[link] = net(space, sys.executable, "-c", SNIFF, link, tmp_path / link)
        assert sniffers[link].stdout.readline() == "ready\n"
    gateway = net(
        "g",
        *MAIN,
        "collect",
        DENIABLE_BIND=f"{GATEWAY}:8080",
        DENIABLE_STORE="sqlite:///tallies.db",
        DENIABLE_GATEWAY_KEYS="keys.json",
    )
    assert "listening at" in gateway.stdout.readline()
    endpoint = f"http://{GATEWAY}:8080"
    relay = net("r", *MAIN, "relay", DENIABLE_BIND=f"{NEAR}:8081", DENIABLE_RELAY_GATEWAY=endpoint)
    assert "listening at" in relay.stdout.readline()
    python = (sys.executable, "-c", SEND, endpoint)

    def send(space, address, identity):
        process = net(space, *python, address, identity, body)
        (line,) = process.stdout.readlines()
        return json.loads(line)

    status, told = send("d", f"http://{NEAR}:8081", keys.identity)
    assert (status, json.loads(told)["accepted"]) == (202, 1)

    def captured(link, part):
        return part in (tmp_path / link).read_bytes()

    # The answer is the last that passes both.
    for link in ("near1", "far1"):
        until(lambda link=link: captured(link, b"message/ohttp-res"))
    near, far = ((tmp_path / link).read_bytes() for link in ("near1", "far1"))
    parts = [batch, "browser", report["scheme"], report["window"], "columns", "accepted"]
    for part in parts:
        for found in (near, far):
            assert part.encode() not in found
    for address in (DEVICE, NEAR):
        assert socket.inet_aton(address) not in far
        assert address.encode() not in far
    # What the same capture would see: the capsules and, on its own side, the device.
    assert near.count(b"message/ohttp-req") == far.count(b"message/ohttp-req") == 1
    assert socket.inet_aton(DEVICE) in near
    assert socket.inet_aton(FAR) in far
    status, told = send("r", endpoint, "")
    assert (status, json.loads(told)["duplicate"]) == (202, 1)
    for part in parts:
        until(lambda part=part: captured("far1", part.encode()))
    log = Path(tmp_path / "tallies.db").read_bytes()
    assert socket.inet_aton(DEVICE) not in log
    assert DEVICE.encode() not in log
