"""A relay's metrics and probes, and bodies and gateways that are slow or have no end."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from tests.ports import free_port

from .hops import hops
from .test_metrics import fetch, scrape, value
from .test_two_hops import ask, new_body

pytestmark = pytest.mark.campaign

__all__ = ["hops", "new_body"]

PAGE = Path(__file__).parents[2] / "docs" / "two-hops.md"


@pytest.fixture
def relay(hops):
    """A relay of two processes with a private address, which is told beside it."""
    private = f"127.0.0.1:{free_port()}"
    started = hops.start_relay(DENIABLE_WORKERS="2", DENIABLE_METRICS_BIND=private)
    return started.address, f"http://{private}"


def test_what_is_counted(hops, relay, new_body):
    """Each response counts once, by status and by the code of what the relay refused. The text has
    no address, and no label that a sender could choose."""
    address, private = relay
    capsule = hops.seal(new_body()).capsule
    for _ in range(5):
        assert ask(address, body=capsule)[0] == 200
    assert ask(address, body=capsule[:-1] + b"?")[0] == 400
    assert ask(address, body=capsule, headers={"Content-Type": "<script>"})[0] == 415
    assert ask(address, body=b"x" * ((2 << 20) + 10_000))[0] == 413
    assert ask(address, "GET")[0] == 200
    assert ask(address, path="/<script>")[0] == 404
    samples, families = scrape(private)
    requests = "deniable_requests_total"
    assert value(samples, requests, status="200", problem="") == 6
    assert value(samples, requests, status="400", problem="gateway") == 1
    assert value(samples, requests, status="415", problem="http-415") == 1
    assert value(samples, requests, status="413", problem="body-too-large") == 1
    assert value(samples, requests, status="404", problem="http-404") == 1
    assert value(samples, "deniable_relay_gateway_seconds_count") == 6
    assert value(samples, "deniable_relay_held_bytes") == 0
    status, text = fetch(f"{private}/metrics")
    assert status == 200
    assert re.search(rb"127\.0\.0\.1|script|ohttp-gateway|x{9}", text) is None
    labels = {name for _, given in samples for name, _ in given}
    assert labels <= {"status", "problem", "le", "version", "python"}
    page = PAGE.read_text(encoding="utf-8")
    assert set(families) == set(
        re.findall(r"\| `(deniable_\w+?)(?:_total)?(?:\{[a-z,]+\})?` \|", page)
    )


def test_only_the_private_address_has_metrics(relay):
    """The public address has no metrics, whatever a request's headers claim, but has the probes."""
    address, private = relay
    port = private.rpartition(":")[2]
    for headers in ({}, {"Host": f"127.0.0.1:{port}", "X-Forwarded-Port": port}):
        assert ask(address, "GET", headers=headers, path="/metrics")[0] == 404
    for each in relay:
        assert ask(each, "GET", headers={}, path="/healthz")[0] == 200
        assert ask(each, "GET", headers={}, path="/readyz")[0] == 200
    assert ask(private, "POST", path="/metrics")[0] == 404


def test_readiness_is_the_gateways(hops):
    """A relay whose gateway is away is healthy and not ready, and says why without its address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        away = f"http://127.0.0.1:{taken.getsockname()[1]}"
    relay = hops.start_relay(away)
    assert ask(relay.address, "GET", headers={}, path="/healthz")[0] == 200
    status, headers, body = ask(relay.address, "GET", headers={}, path="/readyz")
    assert status == 503
    assert headers["Retry-After"] == "5"
    assert b'"urn:deniable:problem:gateway-unavailable"' in body
    assert b"127.0.0.1" not in body
