"""What is a request and what is none, as it travels, to a collector that runs."""

import gzip
import json
import socket
from contextlib import closing

import pytest

BATCH = b'{"batch": "%s", "reports": []}' % (b"a" * 32)
PACKED = gzip.compress(BATCH)
POST = b"POST /v1/reports HTTP/1.1"
HOST, JSON = b"Host: h", b"Content-Type: application/json"
CHUNKED = b"Transfer-Encoding: chunked"
LENGTH = b"Content-Length: %d" % len(BATCH)


def request(*lines, start=POST, host=HOST, kind=JSON, length=LENGTH, body=BATCH):
    """A request as it travels; each part may be another, or left out."""
    header = [start, *filter(None, (host, kind)), *lines, *filter(None, (length,))]
    return b"\r\n".join([*header, b"", body])


def chunked(body, *lines, coding=CHUNKED, **parts):
    """One whose body comes in chunks."""
    return request(coding, *lines, length=None, body=body, **parts)


def chunks(*pieces):
    return b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in (*pieces, b""))


GOOD = {
    "plain": request(),
    "chunks": chunked(chunks(BATCH)),
    "many chunks": chunked(chunks(*(BATCH[place : place + 1] for place in range(len(BATCH))))),
    "a chunk's extension": chunked(chunks(BATCH).replace(b"\r\n", b";a=b\r\n", 1)),
    "HTTP/1.0": request(start=b"POST /v1/reports HTTP/1.0"),
    "HTTP/1.0 without a host": request(start=b"POST /v1/reports HTTP/1.0", host=None),
    "an encoding in capitals": request(
        b"Content-Encoding:\tGZIP", length=b"Content-Length: %d" % len(PACKED), body=PACKED
    ),
    "a media type in capitals": request(kind=b"Content-Type:\tApplication/JSON ; charset=utf-8"),
}  # fmt: skip

NOT_HTTP = {
    "no host": request(host=None),
    "two hosts that differ": request(b"Host: i"),
    "a host with a space": request(host=b"Host: a b"),
    "a host of odd bytes": request(host=b"Host: \xff"),
    "HTTP/0.9": request(start=b"POST /v1/reports HTTP/0.9"),
    "no version": request(start=b"POST /v1/reports"),
    "HTTP/2.0": request(start=b"POST /v1/reports HTTP/2.0"),
    "HTTP/2's preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a simple request of HTTP/0.9": b"GET /healthz\r\n\r\n",
    "gzip in a coding": chunked(chunks(BATCH), coding=b"Transfer-Encoding: gzip, chunked"),
    "chunks twice": chunked(chunks(BATCH), coding=b"Transfer-Encoding: chunked, chunked"),
    "an unknown coding": chunked(chunks(BATCH), coding=b"Transfer-Encoding: xchunked"),
    "chunks in HTTP/1.0": chunked(chunks(BATCH), start=b"POST /v1/reports HTTP/1.0"),
    "chunks and a length": chunked(chunks(BATCH), LENGTH),
    "two lengths": request(LENGTH),
    "a length with a sign": request(length=b"Content-Length: +45"),
    "a chunk without a size": chunked(b"zz\r\nabc\r\n0\r\n\r\n"),
    "a chunk with an empty size": chunked(b"\r\nabc\r\n0\r\n\r\n"),
    "a chunk below zero": chunked(b"-5\r\nabcde\r\n0\r\n\r\n"),
    "a chunk with a sign": chunked(b"+5\r\nabcde\r\n0\r\n\r\n"),
    "a chunk without an end": chunked(b"5\r\nabcdeX0\r\n\r\n"),
    "a space behind a size": chunked(chunks(BATCH).replace(b"\r\n", b" \r\n", 1)),
    "a trailer that is none": chunked(chunks(BATCH)[:-2] + b"A b\r\n\r\n"),
    "a line that is folded": request(b"X: a\r\n b"),
    "a space behind a name": request(b"X : a"),
    "a line without a colon": request(b"X"),
    "a bare carriage return": request(b"X: a\rb"),
    "bytes of TLS": b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
}  # fmt: skip

NO_TYPE = {
    "no media type": request(kind=None),
    "an odd byte behind it": request(kind=JSON + b"\xff"),
    "a space that is none": request(kind=JSON + b"\xa0"),
    "a line's end that is none": request(kind=b"Content-Type: \x85application/json"),
    "an odd byte in a parameter": request(kind=JSON + b"; charset=\xff"),
    "two media types": request(kind=JSON + b", text/plain"),
    "two codings of the content": request(*[b"Content-Encoding: identity"] * 2),
}  # fmt: skip


@pytest.fixture
def tell(running):
    """Sends bytes, and returns all that comes back until the server hangs up."""

    def tell(sent, half=False):
        got = b""
        with closing(socket.create_connection(running.place, timeout=60)) as connection:
            connection.sendall(sent)
            if half:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                got += piece
        return got

    return tell


def read(answer):
    """Status, header and document of one answer and no other."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    header = dict(line.lower().split(": ", 1) for line in lines)
    return int(status.split()[1]), header, json.loads(body)


@pytest.mark.parametrize("sent", GOOD.values(), ids=GOOD)
def test_what_is_a_request_is_served(tell, sent):
    """A good request is answered, however it is spelt; and though the client has said that it sends
    no more, so that no device repeats it for ever."""
    status, _, document = read(tell(sent, half=True))
    assert (status, document.get("batch")) == (202, "a" * 32)


@pytest.mark.parametrize("sent", NOT_HTTP.values(), ids=NOT_HTTP)
def test_what_is_no_request_is_refused(running, tell, sent):
    """It gets 400, as a problem that repeats nothing of what was sent, and the end of the
    connection; and takes no line of the log, which a flood of them would fill."""
    before = running.log
    status, header, document = read(tell(sent, half=b"chunk" in sent))
    assert (status, document["type"]) == (400, "urn:deniable:problem:not-http")
    assert header["content-type"] == "application/problem+json"
    assert header["cache-control"] == "no-store"
    assert document["status"] == 400
    assert "xchunked" not in str(document)
    assert "upgrade" not in document["detail"]
    assert running.log == before


@pytest.mark.parametrize("sent", NO_TYPE.values(), ids=NO_TYPE)
def test_a_media_type_is_ascii(tell, sent):
    """A media type or a coding with a byte that is no ASCII is unknown: 415."""
    status, header, document = read(tell(sent, half=True))
    assert (status, header["content-type"]) == (415, "application/problem+json")
    assert document["type"].endswith((":http-415", ":unsupported-encoding"))


def test_a_cut_body_is_not_counted(tell):
    """A body that ends before its length is not read as if it were whole, nor given up for good:
    there is no answer, or one upon which a device waits."""
    cut = request(length=b"Content-Length: 100")
    got = tell(cut, half=True)
    assert not got or read(got)[2]["type"] == "urn:deniable:problem:not-http"


def test_several_requests_before_a_half_close(tell):
    """All requests that came whole are answered, in their order, and then the connection ends; one
    that is cut has no answer, or is told so."""
    other = request(body=BATCH.replace(b"a" * 32, b"b" * 32))
    health = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
    got = tell(request() + health + other + other[:-5], half=True)
    places = [got.find(each) for each in (b"a" * 32, b'"status": "ok"', b"b" * 32)]
    assert -1 not in places
    assert places == sorted(places)
    assert got.count(b"HTTP/1.1 202") == 2


def test_a_flood_of_chunks_is_refused(tell):
    """A body in chunks of a few bytes each, every one of which takes a call, is refused long before
    it has come; one in chunks of some hundred bytes is a body."""
    for size, number, status in ((300, 3_000, 202), (1, 1_000, 202), (1, 30_000, 400)):
        spaces = [b" " * size] * number
        sent = chunked(chunks(BATCH, *spaces), b"Connection: close")
        assert read(tell(sent))[0] == status
