"""Two hops with real servers: a device's transport, a relay, and a collector that is a gateway."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import signal
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deniable import Client, TransportError, windows
from deniable.oblivious import ObliviousTransport
from deniable.oblivious.binary_http import InnerResponse
from deniable.replies import read_reply
from deniable.wire import new_batch_id
from deniable_collector.oblivious.key_file import KeyFile

from .hops import CAPSULE, PATH, answering, hops, told

__all__ = ["hops"]

KEY_PROBLEM = "https://iana.org/assignments/http-problem-types#ohttp-key"


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


@pytest.fixture
def new_body(registry):
    """Makes good batches of one report, by the real clock."""
    report = {
        "metric": "browser",
        "scheme": registry["browser"].scheme.fingerprint,
        "window": windows.window_at("day", time.time() - 86_400),
        "columns": 1,
    }
    return lambda: json.dumps({"batch": new_batch_id(), "reports": [report]}).encode()


def test_a_batch_is_counted_once(hops, more, new_body):
    """A batch through both hops is acknowledged as ever; sent again, it counts no second time."""
    transport, body = hops.transport(), new_body()
    first, again = transport.send(body), transport.send(body)
    assert (first.status, told(first)["accepted"]) == (202, 1)
    assert (again.status, told(again)["duplicate"]) == (202, 1)
    batch = json.loads(body)["batch"]
    assert read_reply(first, batch, time.time) == {}
    assert more() == 1


def test_replayed_capsules(hops, more, new_body):
    """The same capsule, many times and at once, is counted once."""
    sealed = hops.seal(new_body())
    found = []

    def replay():
        found.append(ask(hops.relay.address, body=sealed.capsule))

    threads = [threading.Thread(target=replay) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    inner = [InnerResponse.decode(sealed.open_response(body)) for _, _, body in found]
    assert [each.status for each in inner] == [202] * 8
    assert sum(json.loads(each.content)["accepted"] for each in inner) == 1
    assert more() == 1


def test_a_client_reports_in_two_hops(hops, more, registry, tmp_path):
    """The SDK's client sends through the relay as it sends directly."""
    now = [time.time() - 2 * 86_400]
    client = Client(
        registry,
        state_dir=tmp_path / "state",
        transport=hops.transport(),
        clock=lambda: now[0],
        background=False,
        development=False,
    )
    client.record("browser", "firefox")
    client.flush()
    now[0] = time.time()
    assert client.flush()
    client.close()
    assert more() == 1


def test_bad_capsules_are_refused_in_the_clear(hops, more, new_body):
    """What is no capsule for this gateway is refused as RFC 9458 says, and nothing is counted."""
    good = hops.seal(new_body()).capsule
    number = good[0]
    for capsule, status, kind in (
        (b"", 400, "urn:deniable:problem:bad-capsule"),
        (good[:6], 400, "urn:deniable:problem:bad-capsule"),
        (good[:40], 400, "urn:deniable:problem:bad-capsule"),
        (bytes([number ^ 1]) + good[1:], 400, KEY_PROBLEM),
        (good[:1] + b"\0\x10" + good[3:], 400, KEY_PROBLEM),
        (good[:-1], 400, KEY_PROBLEM),
        (good[:60] + bytes([good[60] ^ 1]) + good[61:], 400, KEY_PROBLEM),
    ):
        for address in (hops.gateway.address, hops.relay.address):
            found, headers, body = ask(address, body=capsule)
            assert (found, json.loads(body)["type"]) == (status, kind)
            assert headers["Content-Type"] == "application/problem+json"
    assert more() == 0


def test_bad_requests_are_refused_under_seal(hops, more, new_body):
    """What is wrong inside a capsule is told inside one, so that the relay does not learn it."""
    for sealed, status in (
        (hops.seal(b"no batch"), 400),
        (hops.seal(new_body(), path=b"/v1/registry"), 404),
        (hops.seal(new_body(), path=b"/metrics"), 404),
        (hops.seal(new_body(), method=b"GET"), 405),
        (hops.seal(b'{"batch": "' + b"0" * 32 + b'", "reports": [{}]}'), 202),
    ):
        found, headers, body = ask(hops.relay.address, body=sealed.capsule)
        assert (found, headers["Content-Type"]) == (200, "message/ohttp-res")
        assert InnerResponse.decode(sealed.open_response(body)).status == status
        assert len(body) == 16 + 1024 + 16  # a nonce, a padded response, a tag
    assert more() == 0


def test_other_paths_and_methods(hops):
    """A relay forwards capsules from its one path, tells keys and its health, and no more."""
    address = hops.relay.address
    assert ask(address, body=b"x", headers={"Content-Type": "application/json"})[0] == 415
    assert ask(address, "PUT", b"x")[0] == 405
    assert ask(address, body=b"x", path="/v1/reports")[0] == 404
    assert ask(address, "GET", path="http://127.0.0.1:1/x")[0] == 404
    assert ask(address, "GET", path="/healthz")[0] == 200
    assert ask(address, "GET", path="/metrics")[0] == 404
    assert ask(hops.gateway.address, body=b"x", headers={"Content-Type": "text/plain"})[0] == 415


def test_too_large_a_capsule(hops):
    """A capsule beyond the limit is refused by relay and gateway alike; one at the limit is not."""
    most = 2 * (1 << 20) + 1024
    for address in (hops.relay.address, hops.gateway.address):
        assert ask(address, body=b"x" * (most + 1))[0] == 413
        assert ask(address, body=b"\xff" * most)[0] == 400


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


def test_the_relay_away(hops, more, new_body):
    """While the relay is down, batches wait on the device, and are counted once afterwards."""
    transport, bodies = hops.transport(), [new_body() for _ in range(5)]
    assert transport.send(bodies[0]).status == 202
    hops.relay.kill()
    for body in bodies:
        with pytest.raises(TransportError):
            transport.send(body)
    hops.relay.start()
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
        time.sleep(1.1)  # the relay asks the gateway for keys once a second at most
        found = [told(transport.send(each))["accepted"] for each in (first, under_way, last)]
        assert found == [0, 0 if keep else 1, 1]
    assert more() == 6


def test_a_file_of_keys_with_a_mistake(hops):
    """A damaged file does not end a running gateway: the keys that were read before serve on."""
    good = hops.path.read_text()

    def mistakes():
        return json.loads(ask(hops.gateway.address, "GET", path="/readyz")[2]).get("mistakes", [])

    hops.path.write_text("no keys")
    reload(hops, mistakes)
    assert "keys.json is no file of a gateway's keys" in mistakes()[0]
    assert str(hops.path.parent) not in mistakes()[0]
    assert ask(hops.gateway.address, "GET")[0] == 200
    hops.path.write_text(good)
    reload(hops, lambda: not mistakes())


def test_a_relay_with_keys_of_its_own(hops, tmp_path, new_body):
    """A relay that puts its own key into the list is found out before anything is sent to it."""
    other = KeyFile.new("x25519")
    transport = ObliviousTransport("https://t.acme.example", hops.relay.address, other.identity)
    with pytest.raises(TransportError, match="not signed by the gateway"):
        transport.send(new_body())


def test_rates_and_keys(hops, new_body):
    """The relay limits each network. The gateway limits a relay as any network, unless it shows a
    key. An app's key travels inside the capsule, and its refusal comes back under seal."""
    key, inner = "a-key-for-the-relay", "a-key-of-the-app-itself"
    strict = hops.start_gateway(
        DENIABLE_RATE="3/day",
        DENIABLE_RELAY_KEYS=f"{key},another-key-of-ours",
        DENIABLE_INGEST_KEYS=inner,
    )
    known = hops.start_relay(strict.address, DENIABLE_RELAY_KEY=key, DENIABLE_RATE="7/day")
    transport = hops.transport(known, ingest_key=inner)
    assert [transport.send(new_body()).status for _ in range(5)] == [202] * 5
    reply = hops.transport(known).send(new_body())
    assert (reply.status, told(reply)["type"]) == (401, "urn:deniable:problem:no-ingest-key")
    assert transport.send(new_body()).status == 202
    with pytest.raises(TransportError, match="too-many-requests") as raised:
        transport.send(new_body())
    assert raised.value.retry_after > 60
    sealed = [hops.seal(new_body()).capsule for _ in range(4)]
    assert [ask(strict.address, body=each)[0] for each in sealed] == [200, 200, 200, 429]


class Odd(http.server.BaseHTTPRequestHandler):
    """A server that is no gateway."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", "who=you")
        self.end_headers()
        self.wfile.write(b"<script>alert(1)</script>")

    do_GET = do_POST

    def log_message(self, *_):
        pass


def test_a_relay_in_front_of_something_else(hops):
    """What is no gateway's response does not get through a relay, and its cookies neither."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        relay = hops.start_relay(f"http://127.0.0.1:{server.server_port}")
        status, headers, body = ask(relay.address, body=b"x" * 100)
        server.shutdown()
    assert (status, headers["Retry-After"], headers["Set-Cookie"]) == (503, "5", None)
    assert b"script" not in body
    assert json.loads(body)["type"] == "urn:deniable:problem:gateway-odd"


def test_the_relay_passes_nothing_on(hops):
    """The gateway gets a capsule and its type from the relay: no other header, no address."""
    response = (
        b"HTTP/1.1 503 No\r\nContent-Type: application/problem+json\r\n"
        b"Retry-After: 77\r\nSet-Cookie: a=b\r\nX-Odd: 1\r\nContent-Length: 2\r\n\r\n{}"
    )
    with answering(response) as (gateway, seen):
        relay = hops.start_relay(f"http://{gateway}")
        marked = {
            **CAPSULE,
            "Cookie": "marker",
            "User-Agent": "marker",
            "X-Forwarded-For": "203.0.113.9",
            "Authorization": "Bearer marker",
            "Referer": "https://marker.example/",
            "Accept-Language": "marker",
            "X-Marker": "marker",
        }
        status, headers, body = ask(
            relay.address, body=b"the capsule", headers=marked, path=f"{PATH}?marker"
        )
    assert (status, headers["Retry-After"], body) == (503, "77", b"{}")
    assert (headers["Set-Cookie"], headers["X-Odd"]) == (None, None)
    head, _, capsule = seen[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == f"POST {PATH} HTTP/1.1"
    named = sorted(line.partition(":")[0].lower() for line in lines[1:])
    assert named == ["content-length", "content-type", "host"]
    assert b"marker" not in head
    assert b"203.0.113.9" not in head
    assert capsule == b"the capsule"


def test_no_log_names_anybody(hops, new_body):
    """Whatever is sent to a relay or a gateway, no log has an address, a header or a body."""
    hops.transport().send(new_body())
    ask(hops.relay.address, body=b"marker", headers={**CAPSULE, "X-Marker": "marker"})
    ask(hops.relay.address, "GET", path="/marker")
    log = hops.relay.log.replace("GATEWAY=http://127.0.0.1", "")  # the relay's own setting
    assert "deniable relay" in log
    assert "marker" not in log
    assert "127.0.0.1" not in log
