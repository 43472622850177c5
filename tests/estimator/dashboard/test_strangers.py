"""Strangers who send slowly: they take no thread, they are cut off, and a reader who has
signed in is answered meanwhile."""

import http.client
import socket
from contextlib import ExitStack, suppress
from urllib.parse import urlencode

import pytest
from tests.ports import until

from .conftest import REGISTRY, TOKEN, running_dashboard

pytestmark = pytest.mark.campaign

NETWORK = 60
CROWD = 40
"""More than the dashboard has threads, and fewer than a network may have connections."""

HALF = b"GET / HTTP/1.1\r\nHost: h\r\n"
SLOW = b"POST /login HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\ntok"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where a dashboard with small limits listens."""
    folder = tmp_path_factory.mktemp("strangers")
    (folder / "metrics.toml").write_text(REGISTRY.replace("2027", "2099"))
    limits = {
        "DENIABLE_REQUEST_TIMEOUT": "2",
        "DENIABLE_KEEP_ALIVE": "2",
        "DENIABLE_NETWORK_CONNECTIONS": str(NETWORK),
    }
    with running_dashboard(folder, **limits) as (address, _):
        yield "127.0.0.1", int(address.rpartition(":")[2])


@pytest.fixture
def connect(place):
    """Opens connections from the second network of loopback, which sends something."""
    with ExitStack() as stack:

        def connect(sent):
            one = stack.enter_context(socket.socket())
            one.settimeout(60)
            one.bind(("127.0.2.1", 0))
            one.connect(place)
            one.sendall(sent)
            return one

        yield connect


def signed_in(place):
    """The cookie of a reader."""
    reader = http.client.HTTPConnection(*place, timeout=60)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    reader.request("POST", "/login", urlencode({"token": TOKEN}), form)
    answer = reader.getresponse()
    assert answer.status == 303
    reader.close()
    return {"Cookie": (answer.getheader("Set-Cookie") or "").partition(";")[0]}


def closed(one):
    """All that comes until the server hangs up."""
    got = b""
    with suppress(ConnectionError):
        while piece := one.recv(1 << 16):
            got += piece
    return got


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (HALF, b"HTTP/1.1 408 "),
        (SLOW, b"HTTP/1.1 408 "),
        (HALF + b"\r\n", b"HTTP/1.1 "),
        (b"", b""),
    ],
    ids=["half a header", "half a body", "idle after a page", "idle"],
)
def test_a_reader_is_served_beside_a_crowd(place, connect, sent, told):
    """Of a crowd that sends half of a request, or nothing more, none takes a thread: a page comes
    meanwhile, while all of them are open. Each is told why, and its connection ends."""
    cookie = signed_in(place)
    crowd = [connect(sent) for _ in range(CROWD)]
    reader = http.client.HTTPConnection(*place, timeout=60)
    reader.request("GET", "/plan", headers=cookie)
    page = reader.getresponse()
    assert (page.status, b"</html>" in page.read()) == (200, True)
    reader.close()
    for one in crowd:
        got = closed(one)
        assert got.startswith(told)
        assert bool(got) == bool(told)


def test_a_network_has_so_many_connections(place, connect):
    """Beyond them a network is told to come again; other networks are served, and so is this one
    when some of its connections have gone."""
    crowd = [connect(b"") for _ in range(NETWORK)]
    over = connect(b"")
    answer = closed(over)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"too-many-connections" in answer
    assert signed_in(place)
    for one in crowd:
        one.close()

    def served():
        return closed(connect(HALF + b"Connection: close\r\n\r\n")).startswith(b"HTTP/1.1 401")

    until(served, "there is no room again")


def test_a_body_beyond_its_limit(place):
    """A form that is too long gets the dashboard's own page, and nothing of it is kept."""
    reader = http.client.HTTPConnection(*place, timeout=60)
    form = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
    reader.request("POST", "/login", b"token=" + b"a" * 20_000, form)
    answer = reader.getresponse()
    assert (answer.status, b"<html" in answer.read()) == (413, True)
    reader.close()
