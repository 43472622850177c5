"""The gateway: which relays it knows, what it opens, how it seals a response; and a collector that
is one, in this process."""

import gzip
import json
from functools import partial

import pytest

from deniable import TransportError, oblivious
from deniable.device.transport import Reply
from deniable.oblivious import ObliviousTransport
from deniable.protocol.oblivious.binary_http import InnerRequest, InnerResponse, padded
from deniable.protocol.oblivious.capsules import NoKey, open_request, seal_request
from deniable.protocol.oblivious.signed_keys import PATH
from deniable_collector.oblivious.gateway import key_refused, seal
from deniable_collector.oblivious.key_file import KeyFile
from deniable_collector.serving.responses import HttpResponse

from .test_admission import hashed

COLLECTOR, RELAY = "https://t.acme.example/base/", "https://relay.example"

CAPSULE = "message/ohttp-req"


@pytest.fixture(scope="module")
def key_file():
    return KeyFile.new("x25519")


def request(**changes):
    """A good request, or one with other parts."""
    parts = {"method": b"POST", "scheme": b"https", "authority": b"x", "path": b"/v1/reports"}
    fields = ((b"content-type", b"application/json"),)
    return InnerRequest(**{**parts, "fields": fields, "content": b"a batch", **changes}).encode()


@pytest.mark.parametrize(
    ("body", "size"), [(b"", 1024), (b"x" * 900, 1024), (b"x" * 1024, 2048), (b"x" * 5000, 8192)]
)
@pytest.mark.parametrize("retry_after", [None, 7.0])
def test_a_sealed_response(key_file, body, size, retry_after):
    """The device reads status, type and Retry-After, and nothing else of the header. Outside of the
    seal all responses are alike: 200, and a power of two with a nonce and a tag."""
    sealed = seal_request(key_file.keys[0].configuration, request())
    opened = open_request({key_file.keys[0].id: key_file.keys[0]}, sealed.capsule)
    inner = HttpResponse(429, body, "application/problem+json", retry_after)
    found = seal(opened, inner)
    assert found == HttpResponse(200, found.body, "message/ohttp-res")
    assert len(found.body) == 16 + size + 16
    message = InnerResponse.decode(sealed.open_response(found.body))
    told = {b"content-type": b"application/problem+json"}
    if retry_after:
        told[b"retry-after"] = b"7"
    assert (message.status, dict(message.fields), message.content) == (429, told, body)


KEY_PROBLEM = "https://iana.org/assignments/http-problem-types#ohttp-key"
INNER, SHOWN = "a-key-of-the-app-itself", "a-key-for-the-relay"


@pytest.fixture
def client(new_client, key_file):
    """Makes a client of a collector that is a gateway, with the settings given."""
    return partial(new_client, key_file)


@pytest.fixture
def sealed(key_file):
    """Seals a request for the gateway's first key, as a device does; None seals what is none."""

    def sealed(body, **changes):
        if body is None:
            return seal_request(key_file.keys[0].configuration, b"no request")
        asked = request(content=body, **changes)
        return seal_request(key_file.keys[0].configuration, padded(asked, 1024))

    return sealed


def post(client, capsule, kind=CAPSULE, **headers):
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return client.post(PATH, data=capsule, content_type=kind, headers=named)


def within(sealed, response):
    """Status and document of the response in a capsule."""
    assert (response.status_code, response.content_type) == (200, "message/ohttp-res")
    found = InnerResponse.decode(sealed.open_response(response.data))
    return found.status, json.loads(found.content)


def test_a_batch_in_a_capsule_is_counted_once(new_client, key_file, sealed, new_body, counted):
    """Whether its tally is known or not, in one piece or compressed, a batch is counted once; the
    same capsule again counts nothing. A content type may have parameters and capital letters, and
    the key need not be the newest."""
    client = new_client(key_file.rotated("p256", 1))
    kinds = (CAPSULE, "Message/OHTTP-Req; a=b", f" {CAPSULE}\t")
    packed = ((b"content-type", b"application/json"), (b"content-encoding", b"gzip"))
    capsules = [
        sealed(new_body()),
        sealed(new_body()),
        sealed(gzip.compress(new_body()), fields=packed),
    ]
    for place, (each, kind) in enumerate(zip(capsules, kinds, strict=True), 1):
        for accepted in (1, 0):
            status, document = within(each, post(client, each.capsule, kind))
            assert (status, document["accepted"]) == (202, accepted)
            assert document["duplicate"] == 1 - accepted
        assert counted() == place
    assert client.held == 0
    keys = client.get(PATH)
    assert keys.content_type == "application/ohttp-keys"
    assert keys.headers["Deniable-Signature"]


def test_bad_capsules_are_refused_in_the_clear(client, sealed, new_body, store):
    """What is no capsule for this gateway is refused as RFC 9458 says, and nothing is counted."""
    client, good = client(), sealed(new_body()).capsule
    for capsule, kind, status, code in (
        (b"", CAPSULE, 400, "urn:deniable:problem:bad-capsule"),
        (good[:40], CAPSULE, 400, "urn:deniable:problem:bad-capsule"),
        (bytes([good[0] ^ 1]) + good[1:], CAPSULE, 400, KEY_PROBLEM),
        (good[:1] + b"\0\x10" + good[3:], CAPSULE, 400, KEY_PROBLEM),
        (good[:-1], CAPSULE, 400, KEY_PROBLEM),
        (good[:60] + bytes([good[60] ^ 1]) + good[61:], CAPSULE, 400, KEY_PROBLEM),
        (good, "text/plain", 415, "urn:deniable:problem:http-415"),
        (b"x" * (2 * (1 << 20) + 1025), CAPSULE, 413, "urn:deniable:problem:body-too-large"),
        (b"\xff" * (2 * (1 << 20) + 1024), CAPSULE, 400, KEY_PROBLEM),
    ):
        found = post(client, capsule, kind)
        assert (found.status_code, found.json["type"]) == (status, code)
        assert found.content_type == "application/problem+json"
    assert {metric for metric, _ in store.schemes()} == {"dark_mode", "browser", "country"}


def test_bad_requests_are_refused_under_seal(client, sealed, new_body):
    """What is wrong inside a capsule is told inside one, so that the relay does not learn it. A
    prefix of the path is not wrong."""
    client = client(max_body=4096)
    packed = ((b"content-type", b"application/json"), (b"content-encoding", b"gzip"))
    for each, status in (
        (sealed(b"no batch"), 400),
        (sealed(None), 400),
        (sealed(new_body(), path=b"/v1/registry"), 404),
        (sealed(new_body(), path=b"/v1/reports?"), 404),
        (sealed(new_body(), fields=((b"expect", b"100-continue"),)), 417),
        (sealed(new_body(), method=b"GET"), 405),
        (sealed(new_body(), fields=((b"content-type", b"text/html"),)), 415),
        (sealed(b"x" * 4096), 400),
        (sealed(b"x" * 4097), 413),
        (sealed(b"x" * 257, fields=packed), 413),
        (sealed(b'{"batch": "' + b"0" * 32 + b'", "reports": [{}]}'), 202),
        (sealed(new_body(), path=b"/behind/a/proxy/v1/reports"), 202),
    ):
        response = post(client, each.capsule)
        assert within(each, response)[0] == status
        assert len(response.data) == 16 + 1024 + 16  # a nonce, a padded response, a tag


def test_rates_and_keys_of_capsules(client, sealed, new_body):
    """A relay has a rate as any network, unless it shows a key. An app's key travels inside the
    capsule, and its refusal comes back under seal."""
    keys = hashed(SHOWN, "another-key-for-a-relay")
    client = client(rate="2/day", relay_keys=keys, ingest_keys=hashed(INNER))
    fields = ((b"content-type", b"application/json"), (b"x-deniable-key", INNER.encode()))
    shown = {"Authorization": f"Bearer {SHOWN}"}
    for _ in range(4):
        good = sealed(new_body(), fields=fields)
        assert within(good, post(client, good.capsule, **shown))[0] == 202
    bad = sealed(new_body())
    status, document = within(bad, post(client, bad.capsule, **shown))
    assert (status, document["type"]) == (401, "urn:deniable:problem:no-ingest-key")
    told = [post(client, sealed(new_body(), fields=fields).capsule) for _ in range(3)]
    assert [each.status_code for each in told] == [200, 200, 429]
    assert told[-1].json["type"] == "urn:deniable:problem:too-many-requests"


class Relay:
    """A relay in this process, and the gateway behind it; either may answer something else."""

    def __init__(self, keys):
        self.keys, self.now, self.asked, self.bodies = keys, 0.0, [], []
        self.headers = {"Deniable-Signature": keys.signature}
        self.told = self.answer = None
        self.inner = InnerResponse(202, ((b"retry-after", b"7"),), b"counted")

    def ask(self, path, body=None, *, headers, largest=0):
        self.asked.append("keys" if body is None else "batch")
        assert path == PATH
        if body is None:
            assert headers == {"Accept": "application/ohttp-keys"}
            return self.told or Reply(200, self.keys.document), self.headers
        assert headers == {"Content-Type": "message/ohttp-req"}
        if self.answer is not None:
            return self.answer, {}
        try:
            opened = open_request({each.id: each for each in self.keys.keys}, body)
        except NoKey as error:
            refused = key_refused(error)
            return Reply(refused.status, refused.body), {}
        self.bodies.append((len(body), InnerRequest.decode(opened.message)))
        return Reply(200, opened.seal_response(self.inner.encode())), {}


@pytest.fixture
def relay(key_file, monkeypatch):
    made = Relay(key_file)
    monkeypatch.setattr(oblivious, "HttpTransport", lambda address, timeout: made)
    return made


@pytest.fixture
def sender(relay):
    return ObliviousTransport(
        COLLECTOR, RELAY, relay.keys.identity, ingest_key="k" * 20, clock=lambda: relay.now
    )


def test_a_batch_in_two_hops(relay, sender):
    """The gateway reads what was sent, the device what it responds; the keys are read once a day;
    batches of like content have one size."""
    assert sender.send(b'{"reports": []}') == Reply(202, b"counted", "7")
    assert sender.send(b'{"reports": [  ]}').status == 202
    assert relay.asked == ["keys", "batch", "batch"]
    (size, request), (other, _) = relay.bodies
    assert size == other
    assert (request.method, request.scheme, request.authority, request.path, request.content) == (
        *(b"POST", b"https", b"t.acme.example", b"/base/v1/reports"),
        b'{"reports": []}',
    )
    assert request.header(b"content-type") == b"application/json"
    assert request.header(b"authorization") == b"Bearer " + b"k" * 20
    for now, asked in ((86_399.0, 1), (86_400.0, 2), (86_401.0, 2)):
        relay.now = now
        relay.inner = InnerResponse(202)
        assert sender.send(b"{}") == Reply(202, b"", None)
        assert relay.asked.count("keys") == asked


def test_the_gateway_has_another_key(relay, sender):
    """A batch that was sealed for an old key is sealed anew, once; if no other key is told, it
    waits, and nothing else is sent."""
    sender.send(b"{}")
    before = relay.keys
    relay.keys = before.rotated("x25519", 0)
    relay.headers = {"Deniable-Signature": relay.keys.signature}
    assert sender.send(b"{}").status == 202
    assert relay.asked == ["keys", "batch", "batch", "keys", "batch"]
    relay.told = Reply(200, relay.keys.document)
    relay.keys = before.rotated("p256", 0)
    relay.asked.clear()
    with pytest.raises(TransportError, match="status 400"):
        sender.send(b"{}")
    assert relay.asked == ["batch", "keys"]


NO_ANSWERS = [
    ("told", Reply(404, b"<html>")),
    ("told", Reply(503, b"", "30")),
    ("told", Reply(200, b"junk")),
    ("headers", {}),
    ("headers", {"Deniable-Signature": "\xe9"}),
    ("answer", Reply(503, b'{"type": "urn:deniable:problem:store-unavailable"}', "5")),
    ("answer", Reply(400, b"[]")),
    ("answer", Reply(400, b"{}")),
    ("answer", Reply(499, b"no JSON")),
    ("answer", Reply(500, b'{"type": "%s"}')),
    ("answer", Reply(200, b"no capsule")),
]


def test_what_is_no_answer_of_the_gateway(key_file, monkeypatch, stays):
    """A batch waits, whatever a relay says: never is it given up; `no-answers.txt` has the words,
    how long it waits, and whether somebody else responded than a gateway."""
    lines = []
    for part, value in NO_ANSWERS:
        relay = Relay(key_file)
        monkeypatch.setattr(oblivious, "HttpTransport", lambda *_, relay=relay, **__: relay)
        setattr(relay, part, value)
        with pytest.raises(TransportError) as raised:
            ObliviousTransport(COLLECTOR, RELAY, key_file.identity).send(b"{}")
        error = raised.value
        assert not error.final
        assert relay.asked.count("batch") == (part == "answer")
        lines.append(f"{part} {value}: {error} ({error.retry_after}, foreign: {error.foreign})")
    stays("no-answers.txt", lines)


def test_a_relay_of_our_own_is_none(key_file):
    """Relay and collector are two servers; another port makes another one. An identity and a key
    with mistakes are refused at once."""
    own, identity = "https://t.acme.example", key_file.identity
    assert ObliviousTransport(COLLECTOR, f"{own}:8443", identity)
    for bad in ((COLLECTOR, own, identity), (COLLECTOR, RELAY, "x"), ("t.acme", RELAY, identity)):
        with pytest.raises(ValueError):  # noqa: PT011  (each has a message of its own)
            ObliviousTransport(*bad)
    with pytest.raises(ValueError, match="key"):
        ObliviousTransport(COLLECTOR, RELAY, identity, ingest_key="a b\n")
