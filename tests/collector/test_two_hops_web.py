"""The bundle of web pages for two hops, in Node, through a real relay to a real gateway."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.tools import leave_out

from deniable import Registry, compiled, windows
from deniable.oblivious.signed_keys import PATH
from deniable.wire import new_batch_id
from deniable_collector.oblivious.key_file import KeyFile

from .hops import hops

__all__ = ["hops", "metrics"]

WEB = Path(__file__).parents[2] / "client" / "web"
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def metrics() -> str:
    """A registry with one metric that answers at once."""
    return METRICS


METRICS = """
schema = 1
app = "example"
[metrics.now]
type = "boolean"
description = "It answers at once."
owner = "tests@acme.example"
expires = 2999-12-31
epsilon = 1.0
lifetime_epsilon = 8.0
answer = "at_once"
aggregate = "first"
"""


def test_a_page_reports_in_two_hops(hops, metrics, tmp_path):
    """WebCrypto seals what pyhpke opens, and the other way round: a page's report is acknowledged
    with either kind of key. With another identity nothing is sent, and a page that names one server
    as both is none: it does not fail, and reports nothing."""
    if shutil.which("node") is None or not (WEB / "node_modules").is_dir():
        leave_out("nodejs npm")
    other = KeyFile.new("p256")
    other.write(tmp_path / "keys.json")
    gateway = hops.start_gateway(DENIABLE_GATEWAY_KEYS=str(tmp_path / "keys.json"))
    relay = hops.start_relay(gateway.address)
    (tmp_path / "metrics.json").write_text(
        compiled.to_text(compiled.to_document(Registry.parse(metrics)))
    )
    cases = [
        [hops.gateway.address, hops.relay.address, hops.keys.identity],
        [gateway.address, relay.address, other.identity],
        [gateway.address, relay.address, hops.keys.identity],
        [gateway.address, gateway.address, other.identity],
        [gateway.address, "http://relay.example.net", other.identity],
    ]
    done = subprocess.run(
        [
            *("node", HERE / "hops_page.mjs", WEB, tmp_path, tmp_path / "metrics.json"),
            json.dumps(cases),
        ],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [[True, "sent"], [True, "sent"], [False, "queued"], *[[False, "failed"]] * 2]
    assert json.loads(done.stdout) == found


def test_pages_of_named_origins_may_use_a_relay(hops):
    """A relay answers a browser's preflight, and lets a page read the signature of the keys."""
    relay = hops.start_relay(DENIABLE_CORS_ORIGINS="https://app.example")
    parts = urlsplit(relay.address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    found = {}
    for method, origin in (
        ("OPTIONS", "https://app.example"),
        ("GET", "https://app.example"),
        ("GET", "https://other.example"),
    ):
        connection.request(method, PATH, headers={"Origin": origin})
        with connection.getresponse() as response:
            response.read()
            found[method, origin] = response.headers
    connection.close()
    asked = found["OPTIONS", "https://app.example"]
    assert asked["Access-Control-Allow-Methods"] == "POST"
    assert "content-type" in asked["Access-Control-Allow-Headers"]
    keys = found["GET", "https://app.example"]
    assert keys["Access-Control-Allow-Origin"] == "https://app.example"
    assert "Deniable-Signature" in keys["Access-Control-Expose-Headers"]
    assert found["GET", "https://other.example"]["Access-Control-Allow-Origin"] is None


def test_beacons_of_pages(hops, new_body):
    """A beacon comes as text, which browsers ask no leave for: a relay takes it only of pages that
    may send. The batch counts once, also if the page's next visit sends it again."""
    relay = hops.start_relay(DENIABLE_CORS_ORIGINS="https://app.example")
    parts = urlsplit(relay.address)
    before = hops.counted("now")
    body = new_body()
    found = {}
    for kind, origin in (
        ("text/plain", "https://other.example"),
        ("text/plain", "null"),
        ("text/plain", ""),
        ("text/plain;charset=latin-1", "https://app.example"),
        ("application/json", "https://app.example"),
        ("text/plain", "https://app.example"),
        ("message/ohttp-req", "https://app.example"),
    ):
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        headers = {"Content-Type": kind, **({"Origin": origin} if origin else {})}
        connection.request("POST", PATH, hops.seal(body).capsule, headers)
        with connection.getresponse() as response:
            content = response.read()
            found[kind, origin] = response.status
            if response.status != 200:
                code = "origin-not-allowed" if response.status == 403 else "http-415"
                assert json.loads(content)["type"] == f"urn:deniable:problem:{code}"
        connection.close()
    assert list(found.values()) == [403, 403, 415, 415, 415, 200, 200]
    assert hops.counted("now") - before == 1


@pytest.fixture
def new_body():
    """Makes good batches of one report of the metric."""
    scheme = Registry.parse(METRICS)["now"].scheme.fingerprint

    def new_body():
        window = windows.window_at("day", time.time() - 86_400)
        report = {"metric": "now", "scheme": scheme, "window": window, "columns": 1}
        return json.dumps({"batch": new_batch_id(), "reports": [report]}).encode()

    return new_body
