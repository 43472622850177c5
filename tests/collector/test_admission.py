"""Ingest keys, the rate of a network, and the origins of pages, which send JSON, or text without
asking first: the rules alone, and behind a server."""

import gc
import hashlib
import json
import time

import pytest
from tests.registries import tables

import deniable
from deniable.protocol import windows
from deniable_collector.refusals import IntakeError
from deniable_collector.serving import admission as module
from deniable_collector.serving.admission import (
    Admission,
    Cors,
    NetworkRate,
    client_address,
    network_of,
)
from deniable_collector.settings import Settings

from .conftest import Clock

KEY, OTHER = "first-key-of-the-app", "second-key-of-the-app="
TEXT, JSON = "text/plain;charset=UTF-8", "application/json"
OURS, THEIRS = "https://app.example", "https://evil.example"


def admit(admission, address, forwarded=""):
    """Let in a request from that address, that came through a proxy if it says so."""
    admission.pace(address, {b"x-forwarded-for": forwarded.encode()} if forwarded else {})


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


def test_a_network_has_its_rate():
    """All addresses of a network share one count, others do not, and the count ends in time."""
    clock = Clock()
    admission = Admission(Settings(rate="3/minute"), clock)
    for last in (1, 2, 3):
        admit(admission, f"203.0.113.{last}")
    clock.now += 20
    with pytest.raises(IntakeError) as caught:
        admit(admission, "203.0.113.4")
    assert (caught.value.status, caught.value.code) == (429, "too-many-requests")
    assert caught.value.retry_after == 40
    admit(admission, "203.0.114.1")
    clock.now += 40
    admit(admission, "203.0.113.4")


def test_a_proxy_that_nobody_knows_is_told_once(caplog):
    """Where the rate turns away what came through a proxy, and none is trusted, the log says once
    which setting is missing; it names no address, and is silent about other senders."""
    clock = Clock()
    admission = Admission(Settings(rate="1/second"), clock)
    admit(admission, "192.0.2.1", "203.0.113.7")
    for forwarded in ("", "203.0.113.7", "203.0.113.8"):
        with pytest.raises(IntakeError):
            admit(admission, "192.0.2.1", forwarded)
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
    admit(admission, address)
    held = [*vars(admission._rate).values()]
    text = repr([held, [gc.get_referents(each) for each in held]])
    network = network_of(address)
    for trace in (address, "203.0.113", network.hex(), repr(network)[2:-1]):
        assert trace not in text
    secret, counts = admission._rate._secret, dict(admission._rate._counts)
    assert list(counts.values()) == [1]
    clock.now += 60
    admit(admission, "198.51.100.1")
    assert admission._rate._secret != secret
    assert not counts.keys() & admission._rate._counts.keys()


def test_any_origin():
    """With *, every page may read answers, and never with credentials."""
    anyone, headers = Cors(("*",)), {b"origin": b"https://evil.example"}
    assert dict(anyone.lines(b"POST", headers))[b"access-control-allow-origin"] == b"*"
    preflight = dict(anyone.lines(b"OPTIONS", headers))
    assert b"x-deniable-key" in preflight[b"access-control-allow-headers"]
    assert not any(b"credentials" in name for name in preflight)


def post(client, body, **options):
    return client.post("/v1/reports", data=body, content_type=JSON, **options)


def send(client, body, content_type=TEXT, **headers):
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return client.post("/v1/reports", data=body, content_type=content_type, headers=named)


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
    client = new_client(cors_origins=(OURS,))
    ours, theirs = {"Origin": OURS}, {"Origin": THEIRS}
    preflight = client.open("/v1/reports", method="OPTIONS", headers=ours)
    assert preflight.status_code == 200
    assert preflight.headers["Access-Control-Allow-Methods"] == "POST"
    assert preflight.headers["Access-Control-Max-Age"] == "86400"
    # Only the first batch waits for the store's schemes.
    for body, status in ((new_body(), 202), (new_body(), 202), (b"not a batch", 400)):
        for headers, allowed in ((ours, OURS), (theirs, None)):
            answer = post(client, body, headers=headers)
            assert (answer.status_code, answer.headers["Vary"]) == (status, "Origin")
            assert answer.headers.get("Access-Control-Allow-Origin") == allowed
    for method, path, asks in (("OPTIONS", "/v1/reports", theirs), ("GET", "/v1/registry", ours)):
        headers = client.open(path, method=method, headers=asks).headers
        assert not any(name.startswith("Access-Control") for name, _ in headers)


def test_pages_of_other_origins_may_send_no_text(new_client, new_body, counted):
    """Text of a page whose origin is not listed is refused, and nothing of it counted, whatever it
    claims; of a listed one, of the collector's own, and of no page at all it is counted."""
    client = new_client(cors_origins=(OURS,))
    for headers in (
        {"Origin": THEIRS},
        {"Origin": "null"},
        {"Origin": THEIRS, "Sec-Fetch-Site": "same-site"},
        {"Origin": THEIRS, "Sec-Fetch-Site": "cross-site"},
        {"Origin": f"{OURS}, {THEIRS}"},
        {"Origin": f"{OURS}.evil.example"},
    ):
        refused = send(client, new_body(), **headers)
        assert refused.status_code == 403
        assert refused.json["type"] == "urn:deniable:problem:origin-not-allowed"
        assert headers["Origin"] not in refused.text
        assert "Access-Control-Allow-Origin" not in refused.headers
    good = [{"Origin": OURS}, {"Origin": THEIRS, "Sec-Fetch-Site": "same-origin"}, {}]
    for headers in good:
        answer = send(client, new_body(), **headers)
        assert (answer.status_code, answer.json["accepted"]) == (202, 1)
        allowed = OURS if headers.get("Origin") == OURS else None
        assert answer.headers.get("Access-Control-Allow-Origin") == allowed
    assert counted() == len(good)


@pytest.mark.parametrize("listed", [(), (OURS,)])
def test_a_refused_origin_is_logged_once(new_client, new_body, monkeypatch, caplog, listed):
    """The operator reads which pages were turned away, as they ask and as they send text: each
    origin once, and only so many. What is no origin of a page is not repeated."""
    monkeypatch.setattr(module, "_told", set())
    client = new_client(cors_origins=listed)
    evil = [f"https://{number}.example" for number in range(30)]
    with caplog.at_level("WARNING", "deniable_collector"):
        for origin in (
            *listed,
            THEIRS,
            THEIRS,
            "null",
            "https://a.example/a?secret",
            "x" * 300,
            *evil,
        ):
            send(client, new_body(), Origin=origin)
            client.open("/v1/reports", method="OPTIONS", headers={"Origin": origin})
        client.open("/v1/reports", method="OPTIONS", headers={"Origin": evil[0]})
    told = [
        record.fields["origin"] for record in caplog.records if record.event == "origin-refused"
    ]
    assert told == [THEIRS, *evil[:19]]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("text/plain", 202),
        (' Text/Plain ; a=latin-1; Charset = "UTF8" ', 202),
        ("text/plain;charset=latin-1", 415),
        ("text/plain;charset=utf-8;charset=latin-1", 415),
        ("text/html;charset=utf-8", 415),
        ("text/plain,application/json", 415),
    ],
)
def test_text_is_utf_8(new_client, new_body, kind, status):
    """Text has its media type, and no other charset than UTF-8, or none."""
    assert send(new_client(), new_body(), kind).status_code == status


PLUS = "key+of/the-app.example=="
WRONG = "wrong-key-of-the-app"


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ("", {"Authorization": f"Bearer {KEY}"}, 202),
        ("", {"Authorization": f"bearer {OTHER}"}, 202),
        ("", {"X-Deniable-Key": OTHER}, 202),
        ("", {"Authorization": f"Bearer   {OTHER}"}, 202),
        ("", {"Authorization": KEY}, 401),
        ("", {"Authorization": f"Basic {KEY}"}, 401),
        ("", {"Authorization": f"Bearer {KEY}x"}, 401),
        ("", {"Authorization": f"Bearer {KEY},Bearer {KEY}"}, 401),
        ("", {"Authorization": f"Bearer {KEY}", "X-Deniable-Key": WRONG}, 401),
        ("", {"X-Deniable-Key": hashed(KEY)[0].hex()}, 401),
        ("", {"Authorization": "Bearer ключ \U0001f511", "X-Deniable-Key": "ключ"}, 401),
        (f"key={KEY}", {}, 202),
        (f"a=b&key={KEY}", {}, 202),
        (f"key={PLUS}", {}, 202),
        ("key=key%2Bof%2Fthe-app.example%3D%3D", {}, 202),
        (f"key={WRONG}", {}, 401),
        ("", {}, 401),
        ("key=", {}, 401),
        (f"Key={KEY}", {}, 401),
        (f"key={KEY}&key={KEY}", {}, 401),
        (f"key={WRONG}&key={KEY}", {}, 401),
        (f"key={KEY}", {"Authorization": f"Bearer {WRONG}"}, 401),
        (f"key={KEY}", {"Authorization": "Basic YTpi"}, 401),
        (f"key={KEY}", {"X-Deniable-Key": WRONG}, 401),
        (f"key={WRONG}", {"Authorization": f"Bearer {KEY}"}, 202),
        (f"key={WRONG}", {"X-Deniable-Key": KEY}, 202),
        ("key=%FF%00%zz", {}, 401),
    ],
)
def test_keys(new_client, new_body, query, headers, status):
    """Any of the keys lets in, in either header, or in the query where no header has one, exactly
    once. Without one nothing is counted, and no answer repeats a key; the rest stays open."""
    client = new_client(ingest_keys=hashed(KEY, PLUS, OTHER))
    for content_type in (TEXT, JSON):
        answer = client.post(f"/v1/reports?{query}", data=new_body(), content_type=content_type,
                             headers=headers)  # fmt: skip
        assert answer.status_code == status
        assert not any(each in answer.text for each in (KEY, OTHER, WRONG, "ключ"))
        if status == 401:
            assert answer.json["type"] == "urn:deniable:problem:no-ingest-key"
            assert answer.headers["WWW-Authenticate"] == 'Bearer realm="deniable"'
    assert client.get("/v1/registry").status_code == client.get("/healthz").status_code == 200


def test_too_many_metrics(serve, store, metrics, new_id):
    """A batch of more metrics than allowed is refused whole; as many are taken."""
    more = tables(**{f"m{number}": {"type": "boolean"} for number in range(102)})
    registry = deniable.Registry.parse(metrics + more)
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
    monkeypatch.setattr(module, "_MOST_NETWORKS", 8)
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
