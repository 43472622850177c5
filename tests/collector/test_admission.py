"""Ingest keys, the rate of a network, and origins: the rules alone, and behind a server."""

import gc
import hashlib
import json
import time

import pytest

import deniable
from deniable.protocol import windows
from deniable_collector.refusals import IntakeError
from deniable_collector.serving import admission as rates
from deniable_collector.serving.admission import (
    Admission,
    Cors,
    NetworkRate,
    client_address,
    network_of,
)
from deniable_collector.settings import Settings

KEY, OTHER = "first-key-of-the-app", "second-key-of-the-app="


def admit(admission, address="", authorization="", key="", forwarded=""):
    """Let in a request with these headers, from that address."""
    named = {"authorization": authorization, "x-deniable-key": key, "x-forwarded-for": forwarded}
    headers = {name.encode(): text.encode() for name, text in named.items() if text}
    admission.pace(address, headers)
    admission.check_key(headers)


def hashed(*keys):
    return tuple(hashlib.sha256(key.encode()).digest() for key in keys)


@pytest.mark.parametrize(
    ("peer", "forwarded", "hops", "address"),
    [
        ("192.0.2.1", "", 0, "192.0.2.1"),
        ("192.0.2.1", "203.0.113.1", 0, "192.0.2.1"),
        ("192.0.2.1", "203.0.113.1, 198.51.100.9", 1, "198.51.100.9"),
        ("192.0.2.1", "203.0.113.1, 198.51.100.9", 2, "203.0.113.1"),
        ("192.0.2.1", "203.0.113.1", 2, "192.0.2.1"),
        ("192.0.2.1", "", 1, "192.0.2.1"),
        ("", "2001:db8::7", 1, "2001:db8::7"),
        ("192.0.2.1", "203.0.113.1, ", 1, "192.0.2.1"),
        ("192.0.2.1", " , ", 1, "192.0.2.1"),
    ],
)
def test_only_trusted_hops_are_believed(peer, forwarded, hops, address):
    """Of X-Forwarded-For, what the outermost trusted proxy saw counts, and nothing left of it."""
    assert client_address(peer, forwarded, hops) == address


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.77", bytes((203, 0, 113))),
        ("::ffff:203.0.113.77", bytes((203, 0, 113))),
        ("2001:db8:5:6::7", bytes.fromhex("20010db80005")),
        ("fe80::1%eth0", bytes.fromhex("fe8000000000")),
        ("203.0.113.77:4711", bytes((203, 0, 113))),
        ("[2001:db8:5:6::7]:4711", bytes.fromhex("20010db80005")),
        ("[2001:db8:5:6::7]", bytes.fromhex("20010db80005")),
        ("unknown", b""),
        ("unknown:4711", b""),
        ("", b""),
    ],
)
def test_networks(address, network):
    """An address counts for its /24 or its /48; an IPv4 address in IPv6 for its /24. The port that
    some proxies add changes nothing."""
    assert network_of(address) == network


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def test_a_network_has_its_rate():
    """All addresses of a network share one count, others do not, and the count ends in time."""
    clock = Clock()
    admission = Admission(Settings(rate="3/minute"), clock)
    for last in (1, 2, 3):
        admit(admission, f"203.0.113.{last}", "", "")
    clock.now += 20
    with pytest.raises(IntakeError) as caught:
        admit(admission, "203.0.113.4", "", "")
    assert (caught.value.status, caught.value.code) == (429, "too-many-requests")
    assert caught.value.retry_after == 40
    admit(admission, "203.0.114.1", "", "")
    clock.now += 40
    admit(admission, "203.0.113.4", "", "")


def test_a_proxy_that_nobody_knows_is_told_once(caplog):
    """Where the rate turns away what came through a proxy, and none is trusted, the log says once
    which setting is missing; it names no address, and is silent about other senders."""
    clock = Clock()
    admission = Admission(Settings(rate="1/second"), clock)
    admit(admission, "192.0.2.1", "", "", forwarded="203.0.113.7")
    for forwarded in ("", "203.0.113.7", "203.0.113.8"):
        with pytest.raises(IntakeError):
            admit(admission, "192.0.2.1", "", "", forwarded=forwarded)
    (record,) = caplog.records
    assert record.event == "proxy-unknown"
    assert "DENIABLE_TRUSTED_PROXIES" in record.getMessage()
    assert "113" not in record.getMessage()


def test_no_address_is_kept():
    """After a request, nothing that the limiter holds contains the address or its network, and
    the secret of its hash goes with the counts."""
    clock = Clock()
    admission = Admission(Settings(rate="3/minute"), clock)
    address = "203.0.113.77"
    admit(admission, address, "", "")
    held = [*vars(admission._rate).values()]
    text = repr([held, [gc.get_referents(each) for each in held]])
    network = network_of(address)
    for trace in (address, "203.0.113", network.hex(), repr(network)[2:-1]):
        assert trace not in text
    secret, counts = admission._rate._secret, dict(admission._rate._counts)
    assert list(counts.values()) == [1]
    clock.now += 60
    admit(admission, "198.51.100.1", "", "")
    assert admission._rate._secret != secret
    assert not counts.keys() & admission._rate._counts.keys()


def test_keys():
    """Any of the keys lets in, in either header; nothing else does, and nothing is repeated."""
    admission = Admission(Settings(ingest_keys=hashed(KEY, OTHER)))
    admit(admission, "", f"Bearer {KEY}", "")
    admit(admission, "", f"bearer {OTHER}", "")
    admit(admission, "", "", OTHER)
    for authorization, key in (
        ("", ""),
        (KEY, ""),
        (f"Basic {KEY}", ""),
        (f"Bearer {KEY}x", ""),
        (f"Bearer {KEY},Bearer {KEY}", ""),
        (f"Bearer {KEY}", "wrong-key-of-the-app"),
        ("", hashed(KEY)[0].hex()),
        ("Bearer ключ \U0001f511", "ключ"),
    ):
        with pytest.raises(IntakeError) as caught:
            admit(admission, "", authorization, key)
        assert (caught.value.status, caught.value.code) == (401, "no-ingest-key")
        assert key not in str(caught.value) or not key


def test_any_origin():
    """With *, every page may read answers, and never with credentials."""
    anyone, headers = Cors(("*",)), {b"origin": b"https://evil.example"}
    assert dict(anyone.lines(b"POST", headers))[b"access-control-allow-origin"] == b"*"
    preflight = dict(anyone.lines(b"OPTIONS", headers))
    assert b"x-deniable-key" in preflight[b"access-control-allow-headers"]
    assert not any(b"credentials" in name for name in preflight)


def post(client, body, **options):
    return client.post("/v1/reports", data=body, content_type="application/json", **options)


def test_a_collector_with_keys(new_client, new_body):
    """Without a key: 401, a challenge, and nothing counted; with one: 202. The rest stays open."""
    client = new_client(ingest_keys=hashed(KEY))
    body = new_body()
    for headers in ({}, {"X-Deniable-Key": "wrong-key-of-the-app"}):
        refused = post(client, body, headers=headers)
        assert (refused.status_code, refused.content_type) == (401, "application/problem+json")
        assert refused.json["type"] == "urn:deniable:problem:no-ingest-key"
        assert refused.headers["WWW-Authenticate"] == 'Bearer realm="deniable"'
        assert refused.headers["X-Content-Type-Options"] == "nosniff"
    assert post(client, body, headers={"Authorization": f"Bearer {KEY}"}).json["accepted"] == 1
    assert post(client, new_body(), headers={"X-Deniable-Key": KEY}).json["accepted"] == 1
    assert client.get("/v1/registry").status_code == client.get("/healthz").status_code == 200


def test_the_rate_limits_how_fast_keys_are_guessed(new_client, new_body):
    """Beyond the rate no key is looked at."""
    client = new_client(ingest_keys=hashed(KEY), rate="2/day")
    assert [post(client, new_body()).status_code for _ in range(3)] == [401, 401, 429]


def test_a_rate_of_all_other_requests(new_client, new_body):
    """A network may ask for documents, and for what there is not, as often as it may send batches;
    each counts alone. Another network may still ask."""
    client = new_client(rate="2/day")
    asked = ("/v1/registry", "/nothing", "/healthz", "/v1/openapi.json")
    assert [client.get(path).status_code for path in asked] == [200, 404, 429, 429]
    refused = client.get("/v1/registry")
    assert refused.json["type"] == "urn:deniable:problem:too-many-requests"
    assert int(refused.headers["Retry-After"]) > 0
    assert [post(client, new_body()).status_code for _ in range(3)] == [202, 202, 429]
    elsewhere = client.get("/v1/registry", environ_base={"REMOTE_ADDR": "203.0.113.7"})
    assert elsewhere.status_code == 200


def test_pages_of_listed_origins_may_send(new_client, new_body):
    """Preflight and answer, good or bad, carry the permission for a listed origin alone; no
    other route does."""
    client = new_client(cors_origins=("https://app.example",))
    ours, theirs = {"Origin": "https://app.example"}, {"Origin": "https://evil.example"}
    preflight = client.open("/v1/reports", method="OPTIONS", headers=ours)
    assert preflight.status_code == 200
    assert preflight.headers["Access-Control-Allow-Methods"] == "POST"
    assert preflight.headers["Access-Control-Max-Age"] == "86400"
    for body in (new_body(), b"not a batch"):
        answer = post(client, body, headers=ours)
        assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert answer.headers["Vary"] == "Origin"
        assert "Access-Control-Allow-Origin" not in post(client, body, headers=theirs).headers
    for method, path in (("OPTIONS", "/v1/reports"), ("GET", "/v1/registry")):
        headers = client.open(path, method=method, headers=theirs).headers
        assert not any(name.startswith("Access-Control") for name, _ in headers)
    registry = client.get("/v1/registry", headers=ours)
    assert "Access-Control-Allow-Origin" not in registry.headers


def test_too_many_metrics(serve, store, metrics, new_id):
    """A batch of more metrics than allowed is refused whole; as many are taken."""
    text = metrics + "".join(
        f'[metrics.m{number}]\ntype = "boolean"\ndescription = "A question."\n'
        "epsilon = 1.0\nlifetime_epsilon = 8.0\n"
        for number in range(102)
    )
    registry = deniable.Registry.parse(text)
    client = serve(registry, store)
    window = windows.window_at("day", time.time() - 86_400)
    reports = [
        {"metric": f"m{number}", "scheme": registry[f"m{number}"].scheme.fingerprint,
         "window": window, "columns": 1}
        for number in range(101)
    ]  # fmt: skip
    refused = post(client, json.dumps({"batch": new_id(), "reports": reports}).encode())
    assert refused.status_code == 413
    assert refused.json["type"] == "urn:deniable:problem:too-many-metrics"
    taken = {"batch": new_id(), "reports": reports[1:] + reports[1:]}
    for _ in range(2):
        # The second time, the tallies are known.
        taken["batch"] = new_id()
        assert post(client, json.dumps(taken).encode()).json["accepted"] == 200


def test_memory_of_networks_is_bounded(monkeypatch):
    """However many networks are counted, no more than a fixed number is remembered, none by its
    address."""
    monkeypatch.setattr(rates, "_MOST_NETWORKS", 8)
    rate = NetworkRate("3/minute")
    for number in range(100):
        rate.hit(f"203.0.{number}.5")
    assert 0 < len(rate._counts) <= 8
    assert not any(b"203.0" in key for key in rate._counts)


def test_a_rate_behind_a_proxy(new_client, new_body):
    """With a trusted proxy, its clients' networks have a rate each."""
    client = new_client(rate="1/day", trusted_proxies=1)
    seen = [
        post(
            client, new_body(), headers={"X-Forwarded-For": f"198.51.100.1, {address}"}
        ).status_code
        for address in ("203.0.113.7", "203.0.113.8", "203.0.114.7", "2001:db8::1")
    ]
    assert seen == [202, 429, 202, 202]
