"""The server of the collector, the relay and the dashboard, with an app that answers as told."""

import asyncio
import socket
import threading
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from tests.ports import until

from deniable_collector.serving.connection import serve
from deniable_collector.serving.gunicorn_worker import new_event_loop
from deniable_collector.serving.wsgi import WsgiHandler
from deniable_collector.settings import Settings

LIMITS = {"request_timeout": 1, "keep_alive": 1, "max_connections": 100, "network_connections": 10}
LENGTHS = {b"/a": 99, b"": 9}
LARGE = b"x" * (1 << 23)
GET = b"GET %b HTTP/1.1\r\nHost: h\r\n\r\n"


class App:
    """What it was asked; /large has a long body, /wait waits until it may go on."""

    def __init__(self):
        self.environs = []
        self.leave = threading.Event()

    def __call__(self, environ, start_response):
        body = environ["wsgi.input"].read()
        self.environs.append({**environ, "body": body})
        path = environ["PATH_INFO"]
        if path == "/fail":
            raise RuntimeError("marker")
        if path == "/wait":
            self.leave.wait(60)
        header = [("Content-Type", "text/plain"), ("Connection", "X"), ("Server", "X")]
        if path == "/two":
            header.append(("X-A", "b\r\nc"))
        start_response("200 OK", header)
        return [LARGE] if path == "/large" else [path.encode(), body]


class Served:
    """A server in a thread, over which the test talks by sockets."""

    def __init__(self, app, threads=1, most=1, unix="", rate="off", person="", **settings):
        known = Settings(**{**LIMITS, **settings})
        handler = WsgiHandler(app, known, threads, most, LENGTHS, rate, person)
        if unix:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(unix)
            self.listener.listen()
        else:
            self.listener = socket.create_server(("127.0.0.1", 0))
        self.place = self.listener.getsockname()
        self.loop, self.ended = new_event_loop(), asyncio.Event()
        work = serve(handler, [self.listener], self.ended.wait())
        self.thread = threading.Thread(target=self.loop.run_until_complete, args=(work,))
        self.thread.start()

    def connect(self, source="127.0.0.1"):
        one = socket.socket(self.listener.family)
        one.settimeout(60)
        if self.listener.family == socket.AF_INET:
            one.bind((source, 0))
        one.connect(self.place)
        return one

    def end(self):
        """Let it end, as a signal does."""
        self.loop.call_soon_threadsafe(self.ended.set)

    def close(self):
        self.end()
        self.thread.join()
        self.loop.close()


@pytest.fixture
def app():
    return App()


@pytest.fixture
def served(app):
    with closing(Served(app)) as served:
        yield served


def whole(one):
    """All that comes until the server hangs up."""
    got = bytearray()
    while piece := one.recv(1 << 20):
        got += piece
    return bytes(got)


def bodies(got):
    """Status and body of each of several answers."""
    found = []
    while got:
        head, _, rest = got.partition(b"\r\n\r\n")
        lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        length = int(lines[b"content-length"])
        found.append((int(head.split()[1]), rest[:length]))
        got = rest[length:]
    return found


def ask(served, *sent, half=True):
    with closing(served.connect()) as one:
        for each in sent:
            one.sendall(each)
        if half:
            one.shutdown(socket.SHUT_WR)
        return bodies(whole(one))


def server_connections(served):
    """The server's ends of connections, by the other ends' ports."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row for row in rows if int(row[1][-4:], 16) == served.place[1] and row[3] == "01"]


def test_requests_of_a_connection_are_answered_in_their_order(served):
    """Also where one before has a long answer, or fails."""
    found = ask(served, *(GET % path for path in (b"/1", b"/large", b"/fail", b"/two", b"/2")))
    assert [status for status, _ in found] == [200, 200, 500, 500, 200]
    assert [body for _, body in found[:2]] == [b"/1", LARGE]
    assert b"marker" not in b"".join(body for _, body in found[2:])
    assert found[-1][1] == b"/2"


@pytest.mark.parametrize(
    "after", [b"\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"GET /\r\n\r\n", b"abc\r\n"]
)
def test_what_came_whole_is_answered_before_what_is_no_request(served, app, after):
    """Bytes that do not parse after a whole request cost it nothing: both are answered, in their
    order, and the connection ends."""
    app.leave.set()
    found = ask(served, GET % b"/wait" + GET % b"/1" + after, half=False)
    assert [status for status, _ in found] == [200, 200, 400]


def test_a_request_without_a_length_has_no_body(served, app):
    """A POST that says nothing of a body is answered; bytes behind it are no request."""
    found = ask(served, b"POST /a HTTP/1.1\r\nHost: h\r\n\r\nabc\r\n", half=False)
    assert [status for status, _ in found] == [200, 400]
    assert app.environs[0]["CONTENT_LENGTH"] == "0"


def test_what_an_app_is_told(served, app):
    """The request as it came: forwarded headers are the app's to believe, one with an underscore
    is dropped, lines of one name are joined, and a body in chunks is whole."""
    sent = (
        b"POST http://h/a%20b?c=%20 HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nX-A: 2\r\nX_A: 3\r\n"
        b"Cookie: a=b\r\nCookie: c=d\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n"
        b"Content-Type: text/plain\r\nContent-Type: text/html\r\n"
        b"Transfer-Encoding: chunked \r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-B: trailer\r\n\r\n"
    )
    assert ask(served, sent) == [(200, b"/a babcde")]
    (environ,) = app.environs
    named = {name for name in environ if name.startswith("HTTP_")}
    assert named == {"HTTP_HOST", "HTTP_X_A", "HTTP_COOKIE", "HTTP_X_FORWARDED_FOR",
                     "HTTP_X_FORWARDED_PROTO"}  # fmt: skip
    assert (environ["HTTP_X_A"], environ["HTTP_COOKIE"]) == ("1,2", "a=b; c=d")
    assert environ["CONTENT_TYPE"] == "text/plain,text/html"
    assert (environ["body"], environ["CONTENT_LENGTH"]) == (b"abcde", "5")
    assert (environ["QUERY_STRING"], environ["wsgi.url_scheme"]) == ("c=%20", "http")
    assert (environ["REMOTE_ADDR"], environ["SERVER_NAME"]) == ("127.0.0.1", "127.0.0.1")
    assert environ["SERVER_PORT"] == str(served.place[1])


def test_a_body_beyond_its_limit_is_not_kept(served, app):
    """The app learns its length and nothing of it; the next request is served."""
    sent = b"POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n0123456789"
    chunked = b"POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + (
        b"6\r\n012345\r\n" * 2 + b"0\r\n\r\n"
    )
    assert ask(served, sent, chunked, GET % b"/1") == [(200, b"/b"), (200, b"/b"), (200, b"/1")]
    assert [each["CONTENT_LENGTH"] for each in app.environs] == ["10", "12", "0"]


def test_who_reads_nothing_is_cut_off(served):
    """A client that does not read its answer takes no thread, of which there is one, and loses its
    connection when the time is over."""
    with closing(served.connect()) as one:
        one.sendall(GET % b"/large" * 3)
        assert ask(served, GET % b"/1") == [(200, b"/1")]
        until(lambda: not server_connections(served), "it is still connected")
        with suppress(ConnectionError):
            assert len(whole(one)) < 3 * len(LARGE)


def test_a_network_leaves_room_for_others(app):
    """A network has so many connections and no more, until one of them ends; behind a trusted
    proxy, whose connections are those of many, there is no such limit."""

    def status_for(source):
        with closing(served.connect(source)) as one:
            one.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            return whole(one).split()[1]

    for proxies, status in ((0, b"503"), (1, b"200")):
        with closing(Served(app, trusted_proxies=proxies)) as served:
            crowd = [served.connect() for _ in range(LIMITS["network_connections"])]
            assert status_for("127.0.0.1") == status
            assert status_for("127.0.1.1") == b"200"
            crowd.pop().close()
            until(lambda: status_for("127.0.0.1") == b"200", "no other may come in its place")
            for each in crowd:
                each.close()


@pytest.mark.parametrize(
    ("other", "more"),
    [
        ("127.0.1.1", b""),
        ("127.0.0.2", b"Cookie: a=b\r\n"),
        ("127.0.0.1", b"Authorization: a\r\n"),
        ("127.0.0.1", b"X-User: ann\r\n"),
    ],
)
def test_one_sender_leaves_threads_to_others(app, other, more):
    """Of three threads one sender has two, however many requests of it wait; another network, and
    in the same one another session, token or person, is answered meanwhile. All are answered in
    the end."""
    with closing(Served(app, 3, most=2, person="X-User")) as served, ExitStack() as stack:
        crowd = [stack.enter_context(closing(served.connect())) for _ in range(5)]
        for each in crowd:
            each.sendall(GET % b"/wait")
        until(lambda: len(app.environs) == 2, "they do not run")
        with closing(served.connect(other)) as one:
            one.sendall((GET % b"/1")[:-2] + more + b"Connection: close\r\n\r\n")
            assert bodies(whole(one)) == [(200, b"/1")]
        assert len(app.environs) == 3
        app.leave.set()
        for each in crowd:
            each.shutdown(socket.SHUT_WR)
            assert bodies(whole(each)) == [(200, b"/wait")]


def test_a_network_may_ask_so_often(app):
    """Beyond its rate a network is told when to come again, and its connection ends, whatever else
    came at once; other networks are answered."""
    with closing(Served(app, rate="3/day")) as served:
        found = ask(served, GET % b"/1" * 9, half=False)
        assert [status for status, _ in found] == [200, 200, 200, 429]
        assert b"too-many-requests" in found[-1][1]
        with closing(served.connect("127.0.1.1")) as one:
            one.sendall(GET % b"/1")
            one.shutdown(socket.SHUT_WR)
            assert bodies(whole(one)) == [(200, b"/1")]
    assert len(app.environs) == 4


def test_a_server_that_ends_answers_what_has_come(app):
    """What is being handled and what waits behind it is answered; a half request is not waited
    for."""
    with closing(Served(app)) as served, closing(served.connect()) as one:
        with closing(served.connect()) as half:
            half.sendall((GET % b"/1")[:10])
            one.sendall(GET % b"/wait" + GET % b"/1")
            until(lambda: app.environs, "nothing has come")
            served.end()
            end = half.recv(1)
        app.leave.set()
        assert end == b""
        assert bodies(whole(one)) == [(200, b"/wait"), (200, b"/1")]


def test_a_unix_socket(app, tmp_path):
    """It has no address and no port."""
    with closing(Served(app, unix=str(tmp_path / "socket"))) as served:
        assert ask(served, GET % b"/1") == [(200, b"/1")]
    assert (app.environs[0]["REMOTE_ADDR"], app.environs[0]["SERVER_PORT"]) == ("", "0")


def test_a_unix_socket_is_not_the_private_address(app, tmp_path):
    """Where there is no private address, connections of a Unix socket have the limit of all."""
    with (
        closing(Served(app, unix=str(tmp_path / "socket"), max_connections=1)) as served,
        closing(served.connect()),
        closing(served.connect()) as over,
    ):
        assert over.recv(1 << 16).startswith(b"HTTP/1.1 503 ")
