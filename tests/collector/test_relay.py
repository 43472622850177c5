"""The relay in the test's own process, in front of a real server that plays the gateway."""

import asyncio
import socket

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from deniable.protocol.oblivious.signed_keys import PATH, SIGNATURE
from deniable_collector.oblivious.relay import CapsuleRelay
from deniable_collector.oblivious.relay_settings import RelaySettings
from deniable_collector.operation.prometheus import summed

from .conftest import SocketClient

SEALED = {"Content-Type": "message/ohttp-res"}
KEYS = {"Content-Type": "application/ohttp-keys", SIGNATURE: "signed"}
PAGE = "https://app.example"
ODD, AWAY = (503, "gateway-odd", "5"), (503, "gateway-unavailable", "5")


class Hop(SocketClient):
    """A relay and its gateway: what the gateway got, and what it responds with."""

    def __init__(self, environ):
        self.got, self.seconds = [], 0
        self.status, self.headers, self.body = 200, SEALED, b"the response"
        served = web.Application(client_max_size=1 << 24)
        for path in (PATH, "/elsewhere"):
            served.router.add_route("*", path, self.respond)
        self.gateway = TestServer(served, host="127.0.0.1")
        self.environ = {"RATE": "off", **environ}
        super().__init__(None)

    async def _start(self):
        await self.gateway.start_server()
        given = {"RELAY_GATEWAY": f"http://localhost:{self.gateway.port}", **self.environ}
        settings = {f"DENIABLE_{name}": value for name, value in given.items()}
        self.app = CapsuleRelay(RelaySettings.from_env(settings))
        await super()._start()

    async def respond(self, request):
        """The gateway's part."""
        self.got.append((request.method, dict(request.headers), await request.read()))
        await asyncio.sleep(self.seconds)
        body = b"the keys" if request.method == "GET" else self.body
        return web.Response(body=body, status=self.status, headers=self.headers)

    def capsule(self, data=b"the capsule", kind="message/ohttp-req", **options):
        """The response to a capsule."""
        return self.post(PATH, data=data, content_type=kind, **options)

    def close(self):
        self.loop.run_until_complete(self.gateway.close())
        super().close()


@pytest.fixture
def new_hop():
    """Makes relays with these settings, and closes them."""
    opened = []

    def new(**environ):
        opened.append(Hop(environ))
        return opened[-1]

    yield new
    for each in opened:
        each.close()


def problem(response):
    """(status, code, Retry-After) of a request that the relay refuses."""
    assert response.content_type == "application/problem+json"
    kind = response.json["type"].removeprefix("urn:deniable:problem:")
    return response.status_code, kind, response.headers.get("Retry-After")


def counted(status, code=""):
    """How many responses of this status and problem were counted."""
    labels = {"status": str(status), "problem": code}
    return summed().get_sample_value("deniable_requests_total", labels) or 0


@pytest.mark.parametrize("key", ["", "a-key-of-this-relay"])
def test_a_capsule_and_its_response(new_hop, key):
    """A capsule goes on with its content type, the relay's key if it has one, and nothing else of
    the request. The response comes back as it is, with the headers of every response."""
    hop, before = new_hop(**({"RELAY_KEY": key} if key else {})), counted(200)
    headers = {"Cookie": "a=b", "Authorization": "Bearer mine", "X-Forwarded-For": "192.0.2.9"}
    hop.headers = {**SEALED, "Set-Cookie": "c=d"}
    found = hop.capsule(size=4, headers=headers)
    assert (found.status_code, found.data) == (200, b"the response")
    assert dict(found.headers) == {
        "content-length": "12",
        "content-type": "message/ohttp-res",
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    ((method, got, capsule),) = hop.got
    assert (method, capsule) == ("POST", b"the capsule")
    del got["Host"]
    shown = {"Authorization": f"Bearer {key}"} if key else {}
    assert got == {**shown, "Content-Type": "message/ohttp-req", "Content-Length": "11"}
    assert counted(200) == before + 1
    # No cookie of one exchange reaches the next.
    hop.capsule()
    assert "Cookie" not in hop.got[1][1]


@pytest.mark.parametrize(
    ("status", "again", "told"),
    [
        (400, None, None),
        (429, "7", "7"),
        (401, None, None),
        (503, "soon", None),
        (503, "-3", None),
        (503, "\N{SUPERSCRIPT TWO}", None),
    ],
)
def test_problems_of_the_gateway(new_hop, status, again, told):
    """A problem of the gateway comes back with its status and Retry-After, if that is a number, and
    is counted under one code for all."""
    hop, before = new_hop(), counted(status, "gateway")
    hop.status, hop.headers = status, {"Content-Type": "Application/Problem+JSON; a=b"}
    if again:
        hop.headers["Retry-After"] = again
    found = hop.capsule()
    assert (found.status_code, found.data) == (status, b"the response")
    assert found.headers["Content-Type"] == "application/problem+json"
    assert found.headers.get("Retry-After") == told
    assert ("WWW-Authenticate" in found.headers) is (status == 401)
    assert counted(status, "gateway") == before + 1


def test_what_is_no_gateway(new_hop):
    """A response of another type, one that is too long, and a redirect do not get through."""
    hop = new_hop()
    hop.headers = {"Content-Type": "text/html"}
    assert problem(hop.capsule()) == ODD
    hop.status, hop.headers = 302, {"Location": "/elsewhere"}
    assert problem(hop.capsule()) == ODD
    assert len(hop.got) == 2
    hop.status, hop.headers, hop.body = 200, SEALED, b"x" * 262_144
    assert hop.capsule().data == hop.body
    hop.body += b"x"
    assert problem(hop.capsule()) == ODD


def test_a_gateway_that_does_not_respond(new_hop):
    """After DENIABLE_RELAY_TIMEOUT the relay no longer waits."""
    hop = new_hop(RELAY_TIMEOUT="1")
    hop.seconds = 30
    assert problem(hop.capsule()) == AWAY


def test_the_gateway_cannot_be_reached(new_hop):
    """A gateway that does not listen is told as away, without its address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    hop = new_hop(RELAY_GATEWAY=f"http://127.0.0.1:{port}")
    for found in (hop.capsule(), hop.get(PATH)):
        assert problem(found) == AWAY
        assert str(port) not in found.text


def test_other_requests(new_hop):
    """Only a GET, HEAD or POST of the one path is served, and OPTIONS says so."""
    hop = new_hop()
    assert problem(hop.open(PATH, method="PUT")) == (405, "http-405", None)
    assert hop.open(PATH, method="OPTIONS").headers["Allow"] == "GET, HEAD, OPTIONS, POST"
    for path in ("/", "/v1/reports", f"{PATH}/"):
        assert problem(hop.get(path)) == (404, "http-404", None)
    assert hop.got == []


def test_content_types(new_hop):
    """A capsule comes as such, or as the text of a beacon from a page that may send."""
    hop, page, text = new_hop(CORS_ORIGINS=PAGE), {"Origin": PAGE}, "text/plain"
    for kind, headers, told in (
        ("application/json", {}, (415, "http-415", None)),
        (text, {}, (415, "http-415", None)),
        (text, {"Origin": "https://other.example"}, (403, "origin-not-allowed", None)),
        ("text/plain;charset=latin-1", page, (415, "http-415", None)),
    ):
        assert problem(hop.capsule(kind=kind, headers=headers)) == told
    assert hop.got == []
    for kind, headers in (("Message/OHTTP-Req; a=b", {}), (text, page)):
        assert hop.capsule(kind=kind, headers=headers).status_code == 200
    assert [capsule for _, _, capsule in hop.got] == [b"the capsule"] * 2


def test_what_pages_may_read(new_hop):
    """A listed page may ask and read, also the signature of the keys; others learn only that the
    response differs by origin."""
    hop = new_hop(CORS_ORIGINS=PAGE)
    asked = hop.open(PATH, method="OPTIONS", headers={"Origin": PAGE})
    assert (asked.status_code, asked.data) == (200, b"")
    assert asked.headers["Access-Control-Allow-Methods"] == "POST"
    for found in (asked, hop.capsule(headers={"Origin": PAGE})):
        assert found.headers["Access-Control-Allow-Origin"] == PAGE
    assert found.headers["Access-Control-Expose-Headers"] == f"Retry-After, {SIGNATURE}"
    other = hop.capsule(headers={"Origin": "https://other.example"}).headers
    assert other["Vary"] == "Origin"
    assert not any(name.startswith("access-control") for name, _ in other)


@pytest.mark.parametrize("hops", ["0", "1"])
def test_rates(new_hop, hops, caplog):
    """Each network has its rate: that of the connection, or of what a trusted proxy saw. A refused
    capsule does not go on, and if a proxy is unknown the operator is told."""
    hop = new_hop(RATE="2/day", TRUSTED_PROXIES=hops)
    asks = {"headers": {"X-Forwarded-For": "198.51.100.1"}}
    asks["environ_base"] = {"REMOTE_ADDR": "192.0.2.1"}
    assert [hop.capsule(**asks).status_code for _ in range(2)] == [200, 200]
    status, code, again = problem(hop.capsule(**asks))
    assert (status, code, int(again) > 60) == (429, "too-many-requests", True)
    elsewhere = hop.capsule(**asks | {"environ_base": {"REMOTE_ADDR": "203.0.113.1"}})
    assert elsewhere.status_code == (200 if hops == "0" else 429)
    assert len(hop.got) == (3 if hops == "0" else 2)
    # Other requests count apart.
    assert [hop.get(path).status_code for path in ("/", "/", PATH)] == [404, 404, 429]
    assert ("DENIABLE_TRUSTED_PROXIES is 0" in caplog.text) is (hops == "0")


def test_the_size_of_a_capsule(new_hop):
    """A capsule at the limit goes on; one beyond it is refused, by what its header says or as soon
    as too much has come, and the rest is read so that the response arrives."""
    hop, most = new_hop(MAX_BODY="5000"), 2 * 5000 + 1024
    for headers in ({}, {"Transfer-Encoding": "chunked"}):
        assert hop.capsule(b"x" * most, headers=headers).status_code == 200
        refused = hop.capsule(b"x" * (most + 1), headers=headers, size=most)
        assert problem(refused) == (413, "body-too-large", None)
    assert len(hop.got) == 2
    # The largest body of a collector, a binary batch, does not count here.
    assert most < hop.server.most_received < 100_000


def test_a_full_relay(new_hop):
    """Capsules beyond DENIABLE_QUEUE are refused, and whatever comes of a capsule, it no longer
    waits afterwards."""
    hop, full = new_hop(QUEUE="3000"), (503, "queue-full", "1")
    assert problem(hop.capsule(b"x" * 3001)) == full
    hop.headers = {"Content-Type": "text/html"}
    assert problem(hop.capsule(b"x" * 3000)) == ODD
    hop.headers = SEALED
    for _ in range(3):
        assert hop.capsule(b"x" * 3000).status_code == 200
    # Two that wait at the same time share the room.
    asks = {"method": "POST", "data": b"x" * 2000, "content_type": "message/ohttp-req"}

    async def both():
        return await asyncio.gather(hop.request(PATH, **asks), hop.request(PATH, **asks))

    found = hop.loop.run_until_complete(both())
    assert sorted(each.status_code for each in found) == [200, 503]
    assert problem(hop.capsule(b"x" * 3001)) == full


def test_the_list_of_keys(new_hop):
    """The list comes with its type and signature, to HEAD without a body. The gateway is asked for
    it once a second at most, and for a new one after that."""
    hop, later = new_hop(), 0.0
    clock = hop.loop.time
    hop.loop.time = lambda: clock() + later

    def asked():
        before = len(hop.got)
        hop.status, hop.headers = 200, KEYS
        found = hop.get(PATH)
        assert (found.status_code, found.data) == (200, b"the keys")
        assert found.headers["Deniable-Signature"] == "signed"
        assert found.content_type == "application/ohttp-keys"
        return len(hop.got) - before

    assert asked() == 1
    assert hop.got[0][1]["Accept"] == "application/ohttp-keys"
    head = hop.open(PATH, method="HEAD")
    assert (head.status_code, head.headers["Content-Length"], head.data) == (200, "8", b"")
    for seconds, again in ((0, 0), (1.1, 1), (0, 0)):
        later += seconds
        assert asked() == again


@pytest.mark.parametrize(
    ("status", "headers"), [(200, SEALED), (404, KEYS), (500, KEYS), (204, KEYS)]
)
def test_no_list_of_keys(new_hop, status, headers):
    """What is no list of keys is not told as one, also not as readiness."""
    hop = new_hop()
    hop.status, hop.headers = status, headers
    assert problem(hop.get(PATH)) == problem(hop.get("/readyz")) == ODD
    assert hop.open("/readyz", method="HEAD").status_code == 503


def test_probes(new_hop):
    """Health is the relay's own, readiness the gateway's, and metrics are at the private port
    alone."""
    hop = new_hop(METRICS_BIND="127.0.0.1:9465")
    assert hop.get("/healthz").json == {"status": "ok"}
    assert hop.got == []
    hop.headers = KEYS
    assert hop.get("/readyz").json == {"status": "ready"}
    assert problem(hop.get("/metrics")) == (404, "http-404", None)
    hop.port = 9465
    for path in ("/metrics", "/healthz"):
        assert problem(hop.post(path)) == (405, "http-405", None)
    found = hop.get("/metrics")
    assert (found.status_code, found.mimetype) == (200, "text/plain")
    assert "deniable_relay_held_bytes" in found.text


@pytest.mark.parametrize("port", [-1, 0, 1])
def test_no_metrics_without_a_private_address(new_hop, port):
    """Where no private address is set, nobody reads metrics, also not through a Unix socket, whose
    connections have no port."""
    hop = new_hop()
    hop.port = port
    assert problem(hop.get("/metrics")) == (404, "http-404", None)
