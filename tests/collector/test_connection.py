"""The worker's connections: batches on the short way, and what else comes along with them."""

import asyncio
import gzip
import hashlib
import json
import threading
from unittest.mock import Mock

import pytest

from deniable_collector.refusals import IntakeError
from deniable_collector.serving.connection import MAX_LINES, Connection
from deniable_collector.serving.responses import problem_of
from deniable_collector.settings import Settings

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.fixture
def client(new_client):
    client = new_client()
    client.get("/readyz")
    return client


@pytest.fixture
def batch(new_body):
    """Makes a body of one good report, and asks for it on a connection that stays open."""

    def batch(more=b""):
        body = new_body()
        head = b"POST /v1/reports HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        return b"%s%sContent-Length: %d\r\n\r\n%s" % (head, more, len(body), body)

    return batch


async def answer(reader):
    """Status, header and body of the next answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    status, *lines = head.split("\r\n")[:-2]
    header = dict(line.lower().split(": ", 1) for line in lines)
    body = await reader.readexactly(int(header["content-length"]))
    return int(status.split()[1]), header, json.loads(body)


def talk(client, *pieces, answers, ends=False):
    """So many answers that come back on one connection; and what comes then, if it ends."""

    async def talk():
        reader, writer = await asyncio.open_connection(*client.address)
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.001)
        found = [await answer(reader) for _ in range(answers)]
        if ends:
            found.append(await reader.read())
        writer.close()
        return found

    return client.loop.run_until_complete(talk())


@pytest.mark.parametrize("together", [True, False])
def test_every_batch_takes_the_same_way(client, batch, together):
    """Compressed, in chunks, with a query or with an escaped path: a connection stays open and
    answers each, one behind the other as well, and in their order; each says the date, once."""
    head, _, body = batch().partition(b"\r\n\r\n")
    head = head.rpartition(b"\r\n")[0]
    packed = gzip.compress(batch().partition(b"\r\n\r\n")[2])
    chunks = b"".join(b"1\r\n%c\r\n" % each for each in body) + b"0\r\n\r\n"
    several = [
        head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
        b"%s\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s"
        % (head, len(packed), packed),
        batch().replace(b"/v1/reports", b"/v1/reports?key=a", 1),
        batch().replace(b"/v1/reports", b"/v1/%72eports", 1),
        batch().replace(b"/v1/reports", b"http://h/v1/reports", 1),
        batch(b"Content-Encoding: br\r\n"),
        batch(b"Content-Encoding: identity\r\n"),
        batch(b"Origin: https://a.example\r\n"),
        HEALTH,
    ]
    sent = [b"".join(several)] if together else several
    found = talk(client, *sent, answers=len(several))
    assert [status for status, _, _ in found] == [*[202] * 5, 415, 202, 202, 200]
    assert all("connection" not in header for _, header, _ in found)
    assert all(header["date"].endswith("gmt") for _, header, _ in found)
    assert len({document["batch"] for status, _, document in found if status == 202}) == 7
    assert found[0][2]["batch"].encode() in body
    assert client.held == 0
    assert client.app._tasks == set()


@pytest.mark.parametrize("path", [b"/v1/reports", b"/healthz"])
@pytest.mark.parametrize("lines", [64, 65])
def test_a_trailer_has_as_many_lines_as_a_header(client, batch, path, lines):
    """A trailer of more lines is refused, and none is kept, so they take no memory."""
    head, _, body = batch().partition(b"\r\n\r\n")
    head = head.rpartition(b"\r\n")[0].replace(b"/v1/reports", path)
    trailer = b"Origin: https://a.example\r\n" * lines
    sent = b"%s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n" % (head, len(body), body)
    ((status, header, document),) = talk(client, sent, trailer, b"\r\n", answers=1)
    if lines > MAX_LINES:
        assert (status, document["type"].rpartition(":")[2]) == (431, "header-too-large")
    else:
        assert status == (202 if path == b"/v1/reports" else 405)
        assert "connection" not in header


@pytest.mark.parametrize("path", [b"/v1/reports", b"/healthz"])
def test_http_1_0_knows_no_leave(client, batch, path):
    """A client of HTTP/1.0 would take "100 Continue" for its response."""
    sent = batch(b"Expect: 100-continue\r\n").replace(b"HTTP/1.1", b"HTTP/1.0")
    head, _, body = sent.replace(b"/v1/reports", path).partition(b"\r\n\r\n")
    found = talk(client, head + b"\r\n\r\n", body, answers=1)
    assert found[0][0] == (202 if path == b"/v1/reports" else 405)


def test_a_client_that_waits_for_leave(client, batch):
    """Who asks for leave to send a body gets it when its turn comes, or a refusal and the end."""
    first = batch()
    head, _, body = batch(b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    long = head.replace(b"Content-Length: ", b"Content-Length: 99999")

    async def talk():
        reader, writer = await asyncio.open_connection(*client.address)
        writer.write(first + head + b"\r\n\r\n")
        before = await answer(reader)
        leave = await reader.readuntil(b"\r\n\r\n")
        writer.write(body)
        after = await answer(reader)
        writer.write(first + long + b"\r\n\r\n")
        again, refused = await answer(reader), await answer(reader)
        end = await reader.read()
        writer.close()
        return before, leave, after, again, refused, end

    before, leave, after, again, refused, end = client.loop.run_until_complete(talk())
    assert [each[0] for each in (before, after, again, refused)] == [202, 202, 202, 413]
    assert leave == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert again[2]["duplicate"] == 1
    assert (refused[1]["connection"], end) == ("close", b"")


@pytest.mark.parametrize(
    ("version", "wish"),
    [(b"HTTP/1.0", b"close"), (b"HTTP/1.0", b"keep-alive"), (b"HTTP/1.1", b"close")],
)
def test_a_connection_that_is_to_be_closed(client, batch, version, wish):
    """A client that asks for it, or speaks HTTP/1.0, gets its answer and then the end."""
    close = batch(b"Connection: %s\r\n" % wish).replace(b"HTTP/1.1", version, 1)
    (status, header, _), end = talk(client, close, answers=1, ends=True)
    assert (status, header["connection"], end) == (202, "close", b"")


def test_nothing_is_counted_behind_the_last_answer(client, batch, counted):
    """What comes together with a request whose answer ends the connection, also one that is
    refused at once, is no request: nobody would be told what became of it."""
    refused = batch(b"Connection: keep-alive\r\n").replace(b"application/json", b"text/html")
    sent = refused.replace(b"HTTP/1.1", b"HTTP/1.0") + batch() * 3
    (status, header, _), end = talk(client, sent, answers=1, ends=True)
    assert (status, header["connection"], end) == (415, "close", b"")
    assert counted() == 0
    assert client.held == 0


def test_a_body_that_never_ends_is_forgotten(client, batch):
    """What was held of a request whose client went away is held no longer."""

    async def leave():
        _, writer = await asyncio.open_connection(*client.address)
        writer.write(batch()[:-20])
        while not client.held:
            await asyncio.sleep(0.001)
        writer.close()
        while client.held:
            await asyncio.sleep(0.001)

    client.loop.run_until_complete(asyncio.wait_for(leave(), 30))
    assert talk(client, batch(), answers=1)[0][0] == 202
    assert client.held == 0


def test_nothing_is_kept_of_a_sender_that_is_refused(new_client, batch, monkeypatch):
    """Who may not send takes no room from the others while its body comes, and is told so after
    it; the connection goes on."""
    key = b"first-key-of-the-app"
    client = new_client(ingest_keys=(hashlib.sha256(key).digest(),))
    held = []
    with monkeypatch.context() as patch:
        patch.setattr(client.server, "reserve", held.append)
        whole = batch()
        found = talk(client, whole[:-20], whole[-20:], HEALTH, answers=2)
    assert [status for status, _, _ in found] == [401, 200]
    assert held == []
    assert talk(client, batch(b"X-Deniable-Key: %b\r\n" % key), answers=1)[0][0] == 202


def test_a_client_that_does_not_wait(client, store, batch, counted, monkeypatch):
    """A batch whose client leaves before its commit counts all the same, and what was held of it
    is held no longer."""
    leave, fold = threading.Event(), store.fold
    monkeypatch.setattr(store, "fold", lambda *call: leave.wait(120) and fold(*call))

    async def run():
        _, writer = await asyncio.open_connection(*client.address)
        writer.write(batch())
        while not client.held:
            await asyncio.sleep(0.001)
        writer.close()
        await asyncio.sleep(0.05)
        leave.set()
        while client.held:
            await asyncio.sleep(0.001)

    talk(client, HEALTH, answers=1)
    client.loop.run_until_complete(asyncio.wait_for(run(), 30))
    assert counted() == 1


def test_a_batch_that_grows(new_client, new_id):
    """Of a compressed batch all that it has become is counted while it waits for its commit; where
    there is no room, the connection stays."""
    client = new_client(queue=50_000)
    for size, status, coding in (
        *((20_000, 202, b"gzip"), (200_000, 503, b"gzip")),
        *((60_000, 503, b"identity"), (20_000, 202, b"gzip")),
    ):
        body = json.dumps({"batch": new_id(), "reports": []}).encode() + b" " * size
        sent = gzip.compress(body) if coding == b"gzip" else body
        head = b"POST /v1/reports HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        head += b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (coding, len(sent))
        ((found, header, _),) = talk(client, head + sent, answers=1)
        assert (found, "connection" in header) == (status, False)
        assert client.held == 0


class Watched:
    """A connection by a clock of its own, whose client has `left` bytes to read."""

    def __init__(self):
        self.now, self.left, self.transport, self.server = 100.0, 0, Mock(), Mock()
        self.transport.get_write_buffer_size = lambda: self.left
        self.transport.is_closing.return_value = False
        self.transport.get_extra_info.return_value = None
        self.server.configure_mock(
            settings=Settings(), date=b"", ending=False, most_received=1 << 20
        )
        self.server.enter.return_value = 0
        self.server.loop.time = lambda: self.now
        self.server.handler.configure_mock(**{"problem": problem_of, "admit.return_value": 1 << 20})
        self.connection = Connection(self.server)
        self.connection.connection_made(self.transport)

    def after(self, seconds):
        """What becomes of it so many seconds later, and not a moment before."""
        assert self._look(self.now + seconds - 0.01) == []
        return self._look(self.now + 0.01)

    def _look(self, now):
        self.now = now
        self.transport.reset_mock()
        self.connection.look(now)
        return [name for name, *_ in self.transport.method_calls if name != "is_closing"]


BODY = HEALTH[:-2] + b"Content-Length: 99999\r\n\r\n" + bytes(65_536)


@pytest.mark.parametrize(
    ("sent", "seconds", "told"), [(b"", 15, None), (HEALTH[:9], 30, b" 408 "), (BODY, 32, b" 408 ")]
)
def test_how_long_a_request_is_waited_for(sent, seconds, told):
    """A connection without a request, a header, and a body that comes fast each have their time; a
    request that has begun is told that it was too slow."""
    watched = Watched()
    if sent:
        watched.now += 7
        watched.connection.data_received(sent)
    assert watched.after(seconds)[0] == ("write" if told else "close")
    assert not told or told in watched.transport.write.call_args.args[0]


def test_how_long_a_client_may_read_and_rest():
    """A request that is handled has any time, and the client fifteen seconds from its answer on;
    what it must still read has thirty, and as long again for each MiB or so that it has read."""
    watched = Watched()
    watched.connection.data_received(HEALTH)
    (request,) = watched.server.handler.handle.call_args.args
    assert watched.after(9_999) == []
    request.respond(problem_of(IntakeError("not-json", "")))
    assert watched.after(15) == ["close"]
    watched = Watched()
    watched.connection.data_received(b"no request\r\n\r\n")
    assert watched.after(2) == ["abort"]
    watched = Watched()
    watched.left = 3_000_000
    watched.connection.data_received(b"no request\r\n\r\n")
    watched.left -= 30 << 15
    assert watched.after(30) == []
    watched.left -= (30 << 15) - 1
    assert watched.after(30) == ["abort"]
