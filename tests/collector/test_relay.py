"""The relay in the test's own process, in front of a real server that plays the gateway."""

import asyncio
import json
import socket

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from deniable.protocol.oblivious.signed_keys import PATH, SIGNATURE
from deniable_collector.oblivious.relay import CapsuleRelay
from deniable_collector.oblivious.relay_settings import RelaySettings
from deniable_collector.operation.metrics import summed
from deniable_collector.serving.connection import Connection
from deniable_collector.serving.http import HttpServer

CAPSULE = {"content-type": "message/ohttp-req"}
SEALED = {"Content-Type": "message/ohttp-res"}
KEYS = {"Content-Type": "application/ohttp-keys", SIGNATURE: "signed"}
PAGE = "https://app.example"


class Hop:
    """A relay and its gateway: what the gateway got, and what it responds with."""

    def __init__(self):
        self.got = []
        self.status, self.headers, self.body = 200, SEALED, b"the response"
        self.answer = None

    async def respond(self, request):
        """The gateway's part."""
        self.got.append((request.method, dict(request.headers), await request.read()))
        if self.answer is not None:
            return await self.answer(request)
        body = b"the keys" if request.method == "GET" else self.body
        return web.Response(body=body, status=self.status, headers=self.headers)

    async def ask(self, method="POST", body=b"the capsule", path=PATH, **more):
        """(status, header, body) of one request over a socket; None if there is no response."""
        headers = {"host": "relay", **(CAPSULE if method == "POST" else {})}
        headers |= more.get("headers", {})
        pieces = body if isinstance(body, list) else [body]
        pieces = pieces if method == "POST" else []
        if more.get("chunked"):
            headers["transfer-encoding"] = "chunked"
            pieces = [b"%x\r\n%b\r\n" % (len(each), each) for each in (*pieces, b"")]
        elif pieces:
            missing = 1 if more.get("gone") else 0
            headers["content-length"] = sum(map(len, pieces)) + missing
        self.client = more.get("client", "192.0.2.1")
        self.port = more.get("port", 80)
        reader, writer = await asyncio.open_connection(*self.address)
        head = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
        writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode())
        try:
            if "expect" in headers:
                answer = await read_answer(reader, method)
                if answer[0] != 100:
                    return answer
            for each in pieces:
                writer.write(each)
            if more.get("gone"):
                writer.write_eof()
            return await read_answer(reader, method)
        except asyncio.IncompleteReadError:
            return None
        finally:
            writer.close()

    async def problem(self, *arguments, **more):
        """(status, code, Retry-After) of a request that the relay refuses."""
        status, headers, body = await self.ask(*arguments, **more)
        assert headers["content-type"] == "application/problem+json"
        kind = json.loads(body)["type"].removeprefix("urn:deniable:problem:")
        return status, kind, headers.get("retry-after")


class Here(Connection):
    """A connection from where, and to where, the hop says."""

    def __init__(self, hop):
        super().__init__(hop.server)
        self.hop = hop

    def connection_made(self, transport):
        super().connection_made(transport)
        self.peer, self.port = self.hop.client, self.hop.port


async def read_answer(reader, method):
    """(status, header, body) of what comes next; of the header what is not in every response."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *lines = head.split("\r\n")[:-2]
    headers = dict(line.split(": ", 1) for line in lines)
    headers.pop("date", "")
    length = 0 if method == "HEAD" else int(headers.get("content-length", 0))
    return int(status.split()[1]), headers, await reader.readexactly(length)


def run(work, **environ):
    """Run `work(hop)` beside a gateway, with these settings of the relay."""

    async def whole():
        hop, served = Hop(), web.Application(client_max_size=1 << 24)
        for path in (PATH, "/elsewhere"):
            served.router.add_route("*", path, hop.respond)
        async with TestServer(served, host="127.0.0.1") as server:
            given = {"RELAY_GATEWAY": f"http://localhost:{server.port}", "RATE": "off", **environ}
            settings = {f"DENIABLE_{name}": value for name, value in given.items()}
            relay = CapsuleRelay(RelaySettings.from_env(settings))
            hop.server = HttpServer(relay)
            await relay.start(hop.server)
            loop = asyncio.get_running_loop()
            listening = await loop.create_server(lambda: Here(hop), "127.0.0.1", 0)
            hop.address = listening.sockets[0].getsockname()
            try:
                await work(hop)
            finally:
                listening.close()
                await hop.server.close()
                await relay.stop()

    asyncio.run(whole())


def counted(status, code=""):
    """How many responses of this status and problem were counted."""
    labels = {"status": str(status), "problem": code}
    return summed().get_sample_value("deniable_requests_total", labels) or 0


@pytest.mark.parametrize("key", ["", "a-key-of-this-relay"])
def test_a_capsule_and_its_response(key):
    """A capsule goes on with its content type, the relay's key if it has one, and nothing else of
    the request. The response comes back as it is, with the headers of every response."""

    async def work(hop):
        before = counted(200)
        headers = {"cookie": "a=b", "authorization": "Bearer mine", "x-forwarded-for": "192.0.2.9"}
        hop.headers = {**SEALED, "Set-Cookie": "c=d"}
        status, found, body = await hop.ask(body=[b"the ", b"capsule"], headers=headers)
        assert (status, body) == (200, b"the response")
        assert found == {
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
        await hop.ask()
        assert "Cookie" not in hop.got[1][1]

    run(work, **({"RELAY_KEY": key} if key else {}))


def test_problems_of_the_gateway():
    """A problem of the gateway comes back with its status and Retry-After, if that is a number, and
    is counted under one code for all."""

    async def work(hop):
        for status, again, told in (
            (400, None, None),
            (429, "7", "7"),
            (401, None, None),
            (503, "soon", None),
            (503, "-3", None),
            (503, "\N{SUPERSCRIPT TWO}", None),
        ):
            before = counted(status, "gateway")
            hop.status, hop.headers = status, {"Content-Type": "Application/Problem+JSON; a=b"}
            if again:
                hop.headers["Retry-After"] = again
            found, headers, body = await hop.ask()
            assert (found, headers.get("retry-after"), body) == (status, told, b"the response")
            assert headers["content-type"] == "application/problem+json"
            assert ("www-authenticate" in headers) is (status == 401)
            assert counted(status, "gateway") == before + 1

    run(work)


def test_what_is_no_gateway():
    """A response of another type, one that is too long, and a redirect do not get through."""

    async def work(hop):
        hop.headers = {"Content-Type": "text/html"}
        assert await hop.problem() == (503, "gateway-odd", "5")
        hop.status, hop.headers = 302, {"Location": "/elsewhere"}
        assert await hop.problem() == (503, "gateway-odd", "5")
        assert len(hop.got) == 2
        hop.status, hop.headers, hop.body = 200, SEALED, b"x" * 262_144
        assert (await hop.ask())[2] == hop.body
        hop.body += b"x"
        assert await hop.problem() == (503, "gateway-odd", "5")

    run(work)


def test_a_gateway_that_does_not_respond():
    """After DENIABLE_RELAY_TIMEOUT the relay no longer waits."""

    async def work(hop):
        async def respond(request):
            await asyncio.sleep(30)

        hop.answer = respond
        async with asyncio.timeout(20):
            assert await hop.problem() == (503, "gateway-unavailable", "5")

    run(work, RELAY_TIMEOUT="1")


def test_the_gateway_cannot_be_reached():
    """A gateway that does not listen is told as away, without its address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def work(hop):
        for method in ("POST", "GET"):
            assert await hop.problem(method) == (503, "gateway-unavailable", "5")
        assert str(port).encode() not in (await hop.ask())[2]

    run(work, RELAY_GATEWAY=f"http://127.0.0.1:{port}")


def test_other_requests():
    """Only a GET, HEAD or POST of the one path is served, and OPTIONS says so."""

    async def work(hop):
        assert await hop.problem("PUT") == (405, "http-405", None)
        assert (await hop.ask("OPTIONS"))[1]["allow"] == "GET, HEAD, OPTIONS, POST"
        for path in ("/", "/v1/reports", f"{PATH}/"):
            assert await hop.problem("GET", path=path) == (404, "http-404", None)
        assert hop.got == []

    run(work)


def test_content_types():
    """A capsule comes as such, or as the text of a beacon from a page that may send."""

    async def work(hop):
        for kind, status in (("Message/OHTTP-Req; a=b", 200), ("application/json", 415)):
            assert (await hop.ask(headers={"content-type": kind}))[0] == status
        text = {"content-type": "text/plain"}
        assert await hop.problem(headers=text) == (415, "http-415", None)
        other = {**text, "origin": "https://other.example"}
        assert await hop.problem(headers=other) == (403, "origin-not-allowed", None)
        assert (await hop.ask(headers={**text, "origin": PAGE}))[0] == 200
        latin = {"content-type": "text/plain;charset=latin-1", "origin": PAGE}
        assert await hop.problem(headers=latin) == (415, "http-415", None)
        assert [capsule for _, _, capsule in hop.got] == [b"the capsule"] * 2

    run(work, CORS_ORIGINS=PAGE)


def test_what_pages_may_read():
    """A listed page may ask and read, also the signature of the keys; others learn only that the
    response differs by origin."""

    async def work(hop):
        status, headers, body = await hop.ask("OPTIONS", headers={"origin": PAGE})
        assert (status, body, headers["allow"]) == (200, b"", "GET, HEAD, OPTIONS, POST")
        assert headers["access-control-allow-origin"] == PAGE
        assert headers["access-control-allow-methods"] == "POST"
        _, headers, _ = await hop.ask(headers={"origin": PAGE})
        assert headers["access-control-allow-origin"] == PAGE
        assert headers["access-control-expose-headers"] == f"Retry-After, {SIGNATURE}"
        _, headers, _ = await hop.ask(headers={"origin": "https://other.example"})
        assert headers["vary"] == "Origin"
        assert not any(name.startswith("access-control") for name in headers)

    run(work, CORS_ORIGINS=PAGE)


@pytest.mark.parametrize("hops", ["0", "1"])
def test_rates(hops, caplog):
    """Each network has its rate: that of the connection, or of what a trusted proxy saw. A refused
    capsule does not go on, and if a proxy is unknown the operator is told."""

    async def work(hop):
        forwarded = {"x-forwarded-for": "198.51.100.1"}
        assert [(await hop.ask(headers=forwarded))[0] for _ in range(2)] == [200, 200]
        status, code, again = await hop.problem(headers=forwarded)
        assert (status, code, int(again) > 60) == (429, "too-many-requests", True)
        elsewhere = {"client": "203.0.113.1", "headers": forwarded}
        assert (await hop.ask(**elsewhere))[0] == (200 if hops == "0" else 429)
        assert len(hop.got) == (3 if hops == "0" else 2)

        # Other requests count apart.
        asked = [(await hop.ask("GET", path=path))[0] for path in ("/", "/", "/v1/oblivious")]
        assert asked == [404, 404, 429]

    run(work, RATE="2/day", TRUSTED_PROXIES=hops)
    assert ("DENIABLE_TRUSTED_PROXIES is 0" in caplog.text) is (hops == "0")


def test_the_size_of_a_capsule():
    """A capsule at the limit goes on; one beyond it is refused, by what its header says or as soon
    as too much has come, and the rest is read so that the response arrives."""
    most = 2 * 5000 + 1024

    async def work(hop):
        assert (await hop.ask(body=b"x" * most))[0] == 200
        refused = (413, "body-too-large", None)
        assert await hop.problem(body=[b"x" * most, b"x"]) == refused
        assert (await hop.ask(body=b"x" * most, chunked=True))[0] == 200
        assert await hop.problem(body=[b"x" * most, b"x", b"y"], chunked=True) == refused
        assert len(hop.got) == 2
        # The largest body of a collector, a binary batch, does not count here.
        assert most < hop.server.most_received < 100_000

    run(work, MAX_BODY="5000")


def test_a_full_relay():
    """Capsules beyond DENIABLE_QUEUE are refused, and whatever comes of a capsule, it no longer
    waits afterwards."""

    async def work(hop):
        assert await hop.problem(body=b"x" * 3001) == (503, "queue-full", "1")
        assert await hop.ask(body=[b"x" * 2000, b""], gone=True) is None
        hop.headers = {"Content-Type": "text/html"}
        assert (await hop.problem(body=b"x" * 3000))[1] == "gateway-odd"
        hop.headers = SEALED
        for _ in range(3):
            assert (await hop.ask(body=b"x" * 3000))[0] == 200
        # Two that wait at the same time share the room.
        found = await asyncio.gather(*(hop.ask(body=b"x" * 2000) for _ in range(2)))
        assert sorted(status for status, _, _ in found) == [200, 503]
        assert await hop.problem(body=b"x" * 3001) == (503, "queue-full", "1")

    run(work, QUEUE="3000")


def test_the_list_of_keys():
    """The list comes with its type and signature, to HEAD without a body. The gateway is asked for
    it once a minute; after it has refused a capsule again, but once a second at most."""

    async def work(hop):
        loop = asyncio.get_running_loop()
        clock, later = loop.time, 0.0
        loop.time = lambda: clock() + later

        async def asked():
            before = len(hop.got)
            hop.status, hop.headers = 200, KEYS
            found = await hop.ask("GET")
            assert (found[0], found[2], found[1]["deniable-signature".lower()]) == (
                *(200, b"the keys"),
                "signed",
            )
            assert found[1]["content-type"] == "application/ohttp-keys"
            return len(hop.got) - before

        assert await asked() == 1
        assert hop.got[0][1]["Accept"] == "application/ohttp-keys"
        status, headers, body = await hop.ask("HEAD")
        assert (status, headers["content-length"], body) == (200, "8", b"")
        later += 59
        assert await asked() == 0
        later += 1.5
        assert await asked() == 1
        later += 2
        for status, wait, again in ((500, 0, 0), (400, 0, 1), (499, 0, 0), (499, 1.1, 1)):
            later += wait
            hop.status, hop.headers = status, {"Content-Type": "application/problem+json"}
            await hop.ask()
            assert await asked() == again

    run(work)


@pytest.mark.parametrize(
    ("status", "headers"), [(200, SEALED), (404, KEYS), (500, KEYS), (204, KEYS)]
)
def test_no_list_of_keys(status, headers):
    """What is no list of keys is not told as one, also not as readiness."""

    async def work(hop):
        hop.status, hop.headers = status, headers
        assert await hop.problem("GET") == (503, "gateway-odd", "5")
        assert await hop.problem("GET", path="/readyz") == (503, "gateway-odd", "5")
        assert (await hop.ask("HEAD", path="/readyz"))[0] == 503

    run(work)


def test_probes():
    """Health is the relay's own, readiness the gateway's, and metrics are at the private port
    alone."""

    async def work(hop):
        assert (await hop.ask("GET", path="/healthz"))[::2] == (200, b'{"status": "ok"}')
        assert hop.got == []
        hop.headers = KEYS
        assert (await hop.ask("GET", path="/readyz"))[::2] == (200, b'{"status": "ready"}')
        assert await hop.problem("GET", path="/metrics", port=9464) == (404, "http-404", None)
        assert await hop.problem("POST", path="/metrics", port=9465) == (405, "http-405", None)
        assert await hop.problem("POST", path="/healthz") == (405, "http-405", None)
        status, headers, body = await hop.ask("GET", path="/metrics", port=9465)
        assert (status, headers["content-type"][:10]) == (200, "text/plain")
        assert b"deniable_relay_held_bytes" in body

    run(work, METRICS_BIND="127.0.0.1:9465")


@pytest.mark.parametrize("port", [-1, 0, 1])
def test_no_metrics_without_a_private_address(port):
    """Where no private address is set, nobody reads metrics, also not through a Unix socket, whose
    connections have no port."""

    async def work(hop):
        assert await hop.problem("GET", path="/metrics", port=port) == (404, "http-404", None)

    run(work)
