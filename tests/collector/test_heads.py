"""Headers that came before in the same bytes are taken as the parser takes them."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from uvicorn.config import Config
from uvicorn.server import ServerState

from deniable_collector.app import create_app
from deniable_collector.asgi import Collector
from deniable_collector.batches.batch import Receipt
from deniable_collector.connection import Connection
from deniable_collector.serving import heads
from deniable_collector.serving.heads import Expected, Heads, RequestHead
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store

JSON = Expected(1_000)


def header(*lines: bytes, path: bytes = b"/v1/reports", version: bytes = b"1.1") -> bytes:
    return b"\r\n".join([b"POST %b HTTP/%b" % (path, version), *lines, b"", b""])


PLAIN = header(b"Host: h", b"Content-Type: application/json", b"Content-Length: 4")
READ = RequestHead(
    b"/v1/reports",
    b"",
    {b"host": b"h", b"content-type": b"application/json", b"content-length": b"4"},
)


def test_a_header_is_found_with_a_whole_body_alone():
    """A known header counts only where its body follows, whole and with nothing behind it."""
    known = Heads()
    assert known.find(PLAIN + b"abcd") is None
    known.keep(PLAIN + b"abcd", READ, JSON)
    found = known.find(PLAIN + b"efgh")
    assert found is not None
    assert (found.head, found.length, found.expected) == (READ, 4, JSON)
    for other in (b"abc", b"abcde", b"abcd" + PLAIN + b"abcd", b""):
        assert known.find(PLAIN + other) is None
    assert known.find(PLAIN.replace(b"Host: h", b"Host: H") + b"abcd") is None


def test_headers_that_may_name_a_sender_are_not_kept():
    """A header with lines that few senders share, or a long one, is left to the parser."""
    known = Heads()
    for name in (b"x-forwarded-for", b"forwarded", b"cookie", b"referer", b"x-anything"):
        line = b"%b: 192.0.2.1" % name
        known.keep(header(line), RequestHead(b"/v1/reports", b"", {name: b"192.0.2.1"}), JSON)
    agent = b"a" * heads._LONGEST
    piece = header(b"User-Agent: " + agent)
    known.keep(piece, RequestHead(b"/v1/reports", b"", {b"user-agent": agent}), JSON)
    assert not known._known


def test_so_many_headers_are_kept_and_no_more(monkeypatch):
    """The headers that are kept need bounded memory, whatever is sent."""
    monkeypatch.setattr(heads, "_MOST", 3)
    known = Heads()
    for number in range(10):
        piece = header(b"User-Agent: %d" % number)
        known.keep(piece, RequestHead(b"/v1/reports", b"", {b"user-agent": b"%d" % number}), JSON)
        assert len(known._known) <= 3
        assert known.find(piece) is not None


class Transport(asyncio.Transport):
    """Keeps what was written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 5), "sockname": ("127.0.0.1", 80)})
        self.written: list[bytes] = []
        self.closing = False

    def is_closing(self):
        return self.closing

    def write(self, data):
        self.written.append(bytes(data))

    def close(self):
        self.closing = True

    abort = close

    def can_write_eof(self):
        return False

    def pause_reading(self):
        pass

    resume_reading = pause_reading


def conversation(collector, state, pieces, turns):
    """What the collector is given and what comes back. After each piece as many of the waiting
    batches are answered as `turns` say."""
    given, waiting = [], []

    def handle_fast(expected, body, done, respond):
        given.append((expected, body))
        waiting.append(done)
        return True

    collector.handle_fast = handle_fast
    config = Config(collector, http=Connection, proxy_headers=False, log_config=None)
    config.load()
    transport = Transport()
    connection = Connection(config=config, server_state=state, app_state={})
    connection.connection_made(transport)
    for number, piece in enumerate(pieces):
        if transport.closing:
            break
        connection.data_received(piece)
        for _ in range(turns[number % len(turns)]):
            if waiting:
                waiting.pop(0)(Receipt("a" * 32, len(given), 0, ()))
    while waiting:
        waiting.pop(0)(Receipt("a" * 32, len(given), 0, ()))
    closing = transport.closing
    connection.connection_lost(None)
    return given, b"".join(transport.written), closing, collector._held


LINES = (
    b"Content-Type: application/json",
    b"content-type: text/plain",
    b"User-Agent: a",
    b"Connection: close",
    b"Connection: keep-alive",
    b"X-Forwarded-For: 192.0.2.1",
    b"Origin: https://a.example",
    b"Content-Encoding: gzip",
    b"Expect: 100-continue",
    b"Host: other",
    b"Upgrade: websocket",
    b"Bad Name: a",
)


@st.composite
def requests(draw):
    """A request, mostly as devices send it; some that are strange, and some that are none."""
    lines = [b"Host: h", *draw(st.lists(st.sampled_from(LINES), max_size=2))]
    if draw(st.integers(0, 3)):
        lines = [b"Host: h", LINES[0]]
    body = draw(st.sampled_from([b"", b"{}", b'{"a":1}', PLAIN + b"abcd"]))
    told = len(body) + draw(st.sampled_from([0, 0, 0, 0, 0, 1, -1]))
    if draw(st.integers(0, 9)):
        lines.append(b"Content-Length: %d" % max(0, told))
    else:
        lines.append(b"Transfer-Encoding: chunked")
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    path = draw(st.sampled_from([b"/v1/reports"] * 8 + [b"/v1/reports?key=a", b"/v1/%72eports"]))
    version = draw(st.sampled_from([b"1.1"] * 9 + [b"1.0"]))
    before = draw(st.sampled_from([b""] * 9 + [b"\r\n\r\n"]))
    return before + header(*lines, path=path, version=version) + body


@st.composite
def pieces(draw):
    """Requests as they arrive: one by one, several at once, or cut somewhere."""
    few = draw(st.lists(requests(), min_size=1, max_size=3))
    found = []
    for each in draw(st.lists(st.sampled_from(few), min_size=1, max_size=8)):
        how = draw(st.integers(0, 7))
        if how == 0 and found:
            found[-1] += each
        elif how == 1:
            place = draw(st.integers(1, len(each) - 1))
            found += [each[:place], each[place:]]
        else:
            found.append(each)
    return found


@pytest.fixture
def collector(registry, tmp_path):
    with closing(open_store(f"sqlite:///{tmp_path / 'store.db'}")) as store:
        given = Settings(rate="off", max_body=64)
        yield Collector(create_app(given, store, registry), given)


@settings(
    deadline=None,
    max_examples=120,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(pieces(), st.lists(st.integers(0, 2), min_size=1, max_size=4))
def test_a_conversation_is_the_same_with_and_without_memory(collector, sent, turns):
    """Whatever comes, in whatever pieces, and whenever it is answered: the collector is given the
    same bodies, and each client the same bytes, whether headers are remembered or not."""

    async def both():
        state = ServerState()
        collector.heads = Heads()
        collector.heads.keep = lambda *call: None
        plain = conversation(collector, state, sent, turns)
        collector.heads = Heads()
        # Twice: the second time, what was kept the first time is known from the beginning.
        return plain, *(conversation(collector, state, sent, turns) for _ in range(2))

    plain, first, second = asyncio.run(both())
    assert first == plain
    assert second == plain
