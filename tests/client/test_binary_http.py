"""Binary HTTP messages, against the examples of RFC 9292."""

import json
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import WireError
from deniable.protocol.oblivious import binary_http
from deniable.protocol.oblivious.binary_http import InnerRequest, InnerResponse, padded

_EXAMPLES = json.loads(Path(__file__).with_name("rfc9292.json").read_text())
KNOWN_REQUEST = bytes.fromhex(_EXAMPLES["known_request"])
OPEN_REQUEST = bytes.fromhex(_EXAMPLES["open_request"])
CHUNKED_RESPONSE = bytes.fromhex(_EXAMPLES["chunked_response"])
EXAMPLE = InnerRequest(
    b"GET",
    b"https",
    b"",
    b"/hello.txt",
    (
        (b"user-agent", b"curl/7.16.3 libcurl/7.16.3 OpenSSL/0.9.7l zlib/1.2.3"),
        (b"host", b"www.example.com"),
        (b"accept-language", b"en, mi"),
    ),
)

names = st.text("abcxyz019-", min_size=1, max_size=20).map(str.encode)
values = st.text("".join(map(chr, range(32, 127))), max_size=40).map(str.encode)
fields = st.lists(st.tuples(names, values), max_size=10).map(tuple)
requests = st.builds(
    InnerRequest,
    st.sampled_from([b"GET", b"POST"]),
    st.sampled_from([b"https", b"http"]),
    values,
    values,
    fields,
    st.binary(max_size=2_000),
)


def test_the_request_of_rfc_9292():
    """The RFC's request is read and written bit by bit."""
    assert InnerRequest.decode(KNOWN_REQUEST) == EXAMPLE
    assert EXAMPLE.encode() == KNOWN_REQUEST
    assert EXAMPLE.header(b"host") == b"www.example.com"
    assert EXAMPLE.header(b"cookie") == b""


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("c2197c5eff14e88c", 151_288_809_941_952_652),  # these four are RFC 9000's, A.1
        ("9d7f3e7d", 494_878_333),
        ("7bbd", 15_293),
        ("25", 37),
        ("3f", 63),
        ("4040", 64),
        ("7fff", 16_383),
        ("80004000", 16_384),
        ("bfffffff", (1 << 30) - 1),
        ("c000000040000000", 1 << 30),
        ("ffffffffffffffff", (1 << 62) - 1),
    ],
)
def test_numbers_of_rfc_9000(written, number):
    """Numbers are read and written in the fewest bytes, up to 62 bits, as RFC 9000 says."""
    assert binary_http._read_number(BytesIO(bytes.fromhex(written))) == number
    assert binary_http._number(number).hex() == written


def test_headers_that_come_twice():
    """Several values of one name are joined by commas, in their order."""
    twice = EXAMPLE._replace(fields=((b"a", b"1"), (b"b", b"2"), (b"a", b"3")))
    found = InnerRequest.decode(twice.encode())
    assert (found.header(b"a"), found.header(b"b")) == (b"1,3", b"2")


def test_the_most_header_lines():
    """A message has 64 header lines at most."""
    lines = ((b"a", b"b"),) * 64
    assert InnerRequest.decode(EXAMPLE._replace(fields=lines).encode()).fields == lines
    with pytest.raises(WireError, match="64 header lines"):
        InnerRequest.decode(EXAMPLE._replace(fields=(*lines, lines[0])).encode())


@pytest.mark.parametrize("status", [200, 599])
def test_statuses(status):
    """A final response has a status from 200 to 599."""
    message = InnerResponse(status, (), b"text").encode()
    assert InnerResponse.decode(message) == InnerResponse(status, (), b"text")


def test_what_may_be_cut_off():
    """Empty parts at the end may be cut off, as the RFC says, and no more than those."""
    for cut in (1, 2):
        assert InnerRequest.decode(KNOWN_REQUEST[:-cut]) == EXAMPLE
    with pytest.raises(WireError):
        InnerRequest.decode(KNOWN_REQUEST[:-3])


def test_the_response_of_rfc_9292():
    """A trailer is read and left out."""
    found = InnerResponse.decode(CHUNKED_RESPONSE)
    assert (found.status, found.fields) == (200, ())
    assert found.content == b"This content contains CRLF.\r\n"
    with pytest.raises(WireError, match="header line"):
        InnerResponse.decode(CHUNKED_RESPONSE.replace(b"trailer", b"Trailer"))


@given(requests, st.integers(0, 3000))
def test_requests_come_back(request, more):
    """What was written is read again, whatever padding follows it."""
    message = request.encode()
    assert InnerRequest.decode(padded(message, len(message) + more)) == request


@given(st.integers(200, 599), fields, st.binary(max_size=2_000))
def test_responses_come_back(status, fields, content):
    """What was written is read again."""
    response = InnerResponse(status, fields, content)
    assert InnerResponse.decode(response.encode()) == response


@given(st.binary(max_size=200))
def test_noise(message):
    """Any bytes are a message or a WireError, never another error."""
    for kind in (InnerRequest, InnerResponse):
        with suppress(WireError):
            assert kind.decode(message).content in message


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01\x40\xc8",  # a response
        OPEN_REQUEST,  # the other form
        KNOWN_REQUEST + b"\0\0x",  # something behind the padding
        KNOWN_REQUEST.replace(b"host", b"Host"),  # a name with a capital
        KNOWN_REQUEST.replace(b"en, mi", b"en,\nmi"),  # a line break in a value
        b"\0\xff\xff\xff\xff\xff\xff\xff\xff",  # longer than anything
        InnerRequest(b"GET", b"", b"", b"/", ((b"a", b"b"),) * 65).encode(),
    ],
)
def test_what_is_no_request(message):
    """Bytes that are no request are refused."""
    with pytest.raises(WireError):
        InnerRequest.decode(message)


def test_a_status_that_is_none():
    """A response has a final status."""
    for message in (b"\x01\x40\x64", b"\x01\x07", b"\x01\x42\x58", b"\x01\x40\x63\0\x40\xc8"):
        with pytest.raises(WireError):
            InnerResponse.decode(message)
