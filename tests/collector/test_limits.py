"""The limits of a connection, on real sockets to a real collector."""

import http.client
import json
import resource
import socket
from contextlib import ExitStack, closing, suppress

import pytest
from tests.ports import until

from deniable_collector.serving.connection import PIPELINED
from deniable_collector.serving.gunicorn import open_files
from deniable_collector.settings import ROOM

from .conftest import collecting

HEAD = b"POST /v1/reports HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"


LIMITS = {
    "DENIABLE_MAX_BODY": "64 KiB",
    "DENIABLE_REQUEST_TIMEOUT": "1",
    "DENIABLE_KEEP_ALIVE": "1",
    "DENIABLE_MAX_CONNECTIONS": "20",
}


CONNECTIONS = 20


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    """A collector with small limits."""
    with collecting(tmp_path_factory.mktemp("collector"), **LIMITS) as collector:
        yield collector


@pytest.fixture
def connect(collector):
    """Opens connections to it, and closes them after the test."""
    with ExitStack() as stack:

        def connect(place=collector.place):
            connection = socket.create_connection(place, timeout=60)
            stack.callback(connection.close)
            return connection

        yield connect


@pytest.fixture
def alone(collector, connect, new_body):
    """Waits until the connections of earlier tests are gone."""

    def room():
        with closing(connect()) as first:
            first.sendall(whole(new_body()))
            return answer(first)[0] == 202

    until(room, "there is no room")


def whole(body, *lines):
    """A request as it travels."""
    return HEAD + b"".join(lines) + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def answer(connection):
    """The next answer on a connection: status, header and document."""
    with http.client.HTTPResponse(connection) as response:
        response.begin()
        header = {name.lower(): text for name, text in response.getheaders()}
        return response.status, header, json.load(response)


def refused(connection, status, code):
    """Check that the collector says so in a problem document, and hangs up; its header and it."""
    got, header, document = answer(connection)
    assert (got, document["type"]) == (status, f"urn:deniable:problem:{code}")
    assert header["content-type"] == "application/problem+json"
    assert header["connection"] == "close"
    for name in ("cache-control", "content-security-policy", "x-content-type-options"):
        assert name in header
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b""
    return header, document


@pytest.mark.parametrize(
    "lines",
    [
        b"X-Long: " + b"x" * 16_384 + b"\r\n",
        b"".join(b"X-%d: 1\r\n" % number for number in range(64)),
    ],
)
def test_a_header_too_large(collector, connect, lines):
    """Too many bytes or lines of header are answered 431, however small the rest is."""
    connection = connect()
    connection.sendall(whole(b"{}", lines))
    refused(connection, 431, "header-too-large")


@pytest.mark.parametrize(
    ("begin", "status", "code"),
    [
        (b"X-Endless: ", 431, "header-too-large"),
        (b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Endless: ", 413, "body-too-large"),
    ],
    ids=["header", "trailer"],
)
def test_what_has_no_end(collector, connect, begin, status, code):
    """A header that goes on for ever ends at the limit, and so does what comes beside a body, long
    before its time is over, and not in the collector's memory."""
    connection = connect()
    connection.sendall(HEAD + begin)
    with suppress(TimeoutError):
        connection.settimeout(0.5)
        connection.sendall(b"x" * 300_000)
    connection.settimeout(30)
    refused(connection, status, code)


@pytest.mark.parametrize("part", [HEAD, whole(b"{}")[:-1]], ids=["header", "body"])
def test_a_request_that_trickles(collector, connect, part):
    """A header or a body that does not come whole in time is answered 408, even though
    something arrives all the time; and the collector goes on serving others."""
    connection = connect()
    connection.sendall(part[:-20])
    rest = iter(part[-20:])
    connection.settimeout(0.2)
    while True:
        with suppress(TimeoutError):
            if connection.recv(1, socket.MSG_PEEK):
                break
        byte = next(rest, None)
        if byte is not None:
            connection.sendall(bytes((byte,)))
    connection.settimeout(30)
    refused(connection, 408, "too-slow")


def test_silence_is_closed(collector, connect, new_body):
    """A connection that says nothing is closed, before its first request and after one."""
    silent, idle = connect(), connect()
    idle.sendall(whole(new_body()))
    assert answer(idle)[0] == 202
    assert idle.recv(1) == silent.recv(1) == b""


def test_too_many_connections(alone, connect, new_body):
    """Beyond the limit: 503 with the time to come back, and far beyond it connections are cut off
    without a word. When some have gone, there is room."""
    crowd = [connect() for _ in range(CONNECTIONS + 3 * ROOM)]
    for each in crowd[: CONNECTIONS - 1]:
        each.sendall(whole(new_body()))
    answers = []
    for each in crowd[CONNECTIONS:]:
        try:
            answers.append(each.recv(1 << 16))
        except ConnectionError:
            answers.append(b"")
    assert b"" in answers
    told = [each for each in answers if each]
    assert len(told) >= ROOM - CONNECTIONS
    for each in told:
        assert each.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 5\r\n" in each
        assert b"too-many-connections" in each
    for each in crowd:
        each.close()

    def served():
        with closing(connect()) as good:
            good.sendall(whole(new_body()))
            return answer(good)[0] == 202

    until(served, "there is no room again")


@pytest.mark.parametrize("close", [b"", b"Connection: close\r\n"])
@pytest.mark.parametrize("size", [150_000, 1_000_000])
@pytest.mark.parametrize(("path", "status"), [(b"reports", 413), (b"nothing", 404)])
def test_a_refusal_reaches_who_sends_on(collector, connect, close, size, path, status):
    """A client whose body is refused before it has come, and that reads the answer after it has
    sent all, gets the answer and no broken connection. Beyond what a request may hold at all, the
    answer is 413."""
    connection = connect()
    connection.sendall(
        b"POST /v1/%s HTTP/1.1\r\nHost: h\r\n%sContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % (path, close, size)
    )
    for _ in range(10):
        connection.sendall(b" " * (size // 10))
    got, header, document = answer(connection)
    assert got == document["status"] == (status if size < 190_000 else 413)
    assert ("connection" in header) == (bool(close) or size > 190_000)


def test_probes_have_room_of_their_own(collector, alone, connect):
    """While clients take every connection and more, probes and figures at the private address
    are answered; and that has room for so many and no more."""
    private = "127.0.0.1", int(collector.environ["DENIABLE_METRICS_BIND"].rpartition(":")[2])
    for _ in range(CONNECTIONS + 2 * ROOM):
        connect()
    for path in (b"/healthz", b"/readyz", b"/metrics"):
        with closing(connect(private)) as probe:
            probe.sendall(b"GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" % path)
            assert probe.recv(1 << 16).startswith(b"HTTP/1.1 200 OK")
            while probe.recv(1 << 16):
                pass
    crowd = [connect(private) for _ in range(ROOM + 1)]
    assert crowd[-1].recv(1 << 16).startswith(b"HTTP/1.1 503 ")


def test_too_many_pipelined_requests(collector, connect):
    """Requests sent far ahead of their answers end the connection, before they fill the memory;
    a fair number is answered."""
    asked = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
    last = asked.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")

    def answers(requests):
        connection, got = connect(), b""
        with suppress(ConnectionError):
            connection.sendall(requests)
            while piece := connection.recv(1 << 16):
                got += piece
        return got.count(b"HTTP/1.1 200 OK")

    assert answers(asked * (PIPELINED - 1) + last) == PIPELINED
    assert answers(asked * 3 * PIPELINED + last) <= PIPELINED


def test_an_upgrade_is_not_offered(collector, connect, new_body):
    """A request that asks for another protocol is served by this one, or refused if it has a
    body, which the parser would pass over."""
    connection, upgrade = connect(), b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n" + upgrade + b"\r\n")
    assert answer(connection)[2] == {"status": "ok"}
    connection = connect()
    connection.sendall(whole(new_body(), upgrade))
    assert "upgrade" in refused(connection, 400, "not-http")[1]["detail"]


def test_files_for_all_connections(monkeypatch, caplog):
    """The limit of open files is raised as far as it may be, and if that is too little, it is
    said what to do."""
    set_to = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: set_to.append(limits))
    open_files(50)
    assert set_to == []
    open_files(1000)
    assert set_to == [(1000 + 3 * ROOM, 4096)]
    assert caplog.text == ""
    open_files(10_000)
    assert set_to[1:] == [(4096, 4096)]
    assert "lower DENIABLE_MAX_CONNECTIONS to 3904" in caplog.text
