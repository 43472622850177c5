"""The gateway alone: which relays it knows, what it opens, and how it seals a response."""

from __future__ import annotations

import json

import pytest

from deniable.oblivious.binary_http import InnerRequest, InnerResponse
from deniable.oblivious.capsules import NoKey, seal_request
from deniable_collector.oblivious.gateway import Gateway, key_refused
from deniable_collector.oblivious.key_file import KeyFile
from deniable_collector.operation.metrics import summed
from deniable_collector.refusals import IntakeError
from deniable_collector.serving.responses import HttpResponse
from deniable_collector.settings import Settings

CAPSULE = "message/ohttp-req"


@pytest.fixture(scope="module")
def key_file():
    return KeyFile.new("x25519")


@pytest.fixture
def gateway(key_file):
    return Gateway(Settings(), key_file)


@pytest.fixture
def exchange(gateway, key_file):
    """Sends a message of binary HTTP through a capsule; what the gateway opened, and a function
    that reads its response."""

    def exchange(message):
        sealed = seal_request(key_file.keys[0].configuration, message)
        opened = gateway.open(CAPSULE, sealed.capsule)
        return opened, sealed.open_response

    return exchange


def request(**changes):
    """A good request, or one with other parts."""
    parts = {"method": b"POST", "scheme": b"https", "authority": b"x", "path": b"/v1/reports"}
    fields = changes.pop("fields", ((b"content-type", b"application/json"),))
    return InnerRequest(**{**parts, **changes}, fields=fields, content=b"a batch").encode()


@pytest.mark.parametrize(
    ("authorization", "known"),
    [
        ("Bearer the-first-key-of-ours", True),
        ("bearer   the-second-key-of-ours ", True),
        ("Bearer the-first-key-of-our", False),
        ("Bearer ", False),
        ("Basic the-first-key-of-ours", False),
        ("the-first-key-of-ours", False),
        ("Bearer \N{SNOWMAN}", False),
        ("", False),
    ],
)
def test_relays_that_are_known(key_file, authorization, known):
    """A relay is known by any of the keys, as a bearer token; without keys none is."""
    keys = "the-first-key-of-ours,the-second-key-of-ours"
    settings = Settings.from_env({"DENIABLE_RELAY_KEYS": keys})
    assert Gateway(settings, key_file).admits(authorization) is known
    assert Gateway(Settings(), key_file).admits(authorization) is False


def test_the_limit_of_a_capsule(key_file):
    """A capsule may have twice the largest batch, as padding may double it, and 1,024 bytes."""
    settings = Settings.from_env({"DENIABLE_MAX_BODY": "5000"})
    assert Gateway(settings, key_file).max_capsule == 2 * 5000 + 1024


def test_what_is_told_of_keys(gateway, key_file):
    """The gateway tells the list of its file with its signature, and no secret."""
    assert (gateway.keys, gateway.signature) == (key_file.document, key_file.signature)
    assert key_file.keys[0].secret not in gateway.keys


@pytest.mark.parametrize("kind", [CAPSULE, "Message/OHTTP-Req; a=b", f" {CAPSULE}\t"])
def test_a_capsule_is_opened(gateway, key_file, kind):
    """A capsule's content type may have parameters and capital letters; a key of the file opens it,
    also one that is not the newest."""
    older = key_file.keys[0].configuration
    rotated = Gateway(Settings(), key_file.rotated("p256", 1))
    for each in (gateway, rotated):
        assert each.open(kind, seal_request(older, b"within").capsule).message == b"within"


@pytest.mark.parametrize("kind", ["", "application/json", "message/ohttp-res"])
def test_other_content_types(gateway, key_file, kind):
    """What is no capsule by its content type is not opened."""
    capsule = seal_request(key_file.keys[0].configuration, b"within").capsule
    with pytest.raises(IntakeError, match="message/ohttp-req") as raised:
        gateway.open(kind, capsule)
    assert (raised.value.code, raised.value.status) == ("http-415", 415)


def test_what_is_no_capsule(gateway, key_file):
    """A capsule that is cut off is refused as none, one for an unknown key by the key."""
    capsule = seal_request(key_file.keys[0].configuration, b"within").capsule
    with pytest.raises(IntakeError, match="cut off") as raised:
        gateway.open(CAPSULE, capsule[:20])
    assert (raised.value.code, raised.value.status) == ("bad-capsule", 400)
    with pytest.raises(NoKey):
        gateway.open(CAPSULE, bytes([capsule[0] ^ 1]) + capsule[1:])


@pytest.mark.parametrize(
    ("message", "code", "status"),
    [
        (b"no message", "bad-capsule", 400),
        (request(fields=((b"expect", b"100-continue"),)), "http-417", 417),
        (request(path=b"/v1/registry"), "http-404", 404),
        (request(path=b"/v1/reports/"), "http-404", 404),
        (request(path=b"/v1/reports?key=a"), "http-404", 404),
        (request(path=b"?/v1/reports"), "http-404", 404),
        (request(method=b"GET"), "http-405", 405),
        (request(method=b"post"), "http-405", 405),
    ],
)
def test_requests_that_are_refused(gateway, exchange, message, code, status):
    """Only a POST to the reports is read out of a capsule; each refusal has its code."""
    with pytest.raises(IntakeError) as raised:
        gateway.read(exchange(message)[0])
    assert (raised.value.code, raised.value.status) == (code, status)


@pytest.mark.parametrize("path", [b"/v1/reports", b"/behind/a/proxy/v1/reports"])
def test_the_request_in_a_capsule(gateway, exchange, path):
    """A batch is read with its header and without its padding, also below a prefix of the path."""
    found = gateway.read(exchange(request(path=path) + bytes(500))[0])
    assert found.content == b"a batch"
    assert found.header(b"content-type") == b"application/json"


@pytest.mark.parametrize(
    ("body", "size"), [(b"", 1024), (b"x" * 900, 1024), (b"x" * 1024, 2048), (b"x" * 5000, 8192)]
)
@pytest.mark.parametrize("retry_after", [None, 7.0])
def test_a_sealed_response(gateway, exchange, body, size, retry_after):
    """The device reads status, type and Retry-After, and nothing else of the header. Outside of the
    seal all responses are alike: 200, and a power of two with a nonce and a tag."""
    opened, read = exchange(request())
    inner = HttpResponse(429, body, "application/problem+json", retry_after)
    found = gateway.seal(opened, inner)
    assert found == HttpResponse(200, found.body, "message/ohttp-res")
    assert len(found.body) == 16 + size + 16
    message = InnerResponse.decode(read(found.body))
    told = {b"content-type": b"application/problem+json"}
    if retry_after:
        told[b"retry-after"] = b"7"
    assert (message.status, dict(message.fields), message.content) == (429, told, body)


def test_a_refused_key():
    """The problem of RFC 9458 for a key says in the clear that the keys must be read again, and is
    counted."""
    named = ("deniable_requests_total", {"status": "400", "problem": "ohttp-key"})
    before = summed().get_sample_value(*named) or 0
    found = key_refused(NoKey("key identifier unknown"))
    assert found == HttpResponse(400, found.body, "application/problem+json")
    assert json.loads(found.body) == {
        "type": "https://iana.org/assignments/http-problem-types#ohttp-key",
        "title": "key identifier unknown",
        "status": 400,
    }
    assert summed().get_sample_value(*named) == before + 1
