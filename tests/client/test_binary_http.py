"""Binary HTTP messages, against the examples of RFC 9292."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import WireError
from deniable.protocol.oblivious import binary_http
from deniable.protocol.oblivious.binary_http import InnerRequest, InnerResponse, padded

KNOWN_REQUEST = bytes.fromhex(
    "0003474554056874747073000a2f68656c6c6f2e747874406c0a757365722d61"
    "67656e74346375726c2f372e31362e33206c69626375726c2f372e31362e3320"
    "4f70656e53534c2f302e392e376c207a6c69622f312e322e3304686f73740f77"
    "77772e6578616d706c652e636f6d0f6163636570742d6c616e67756167650665"
    "6e2c206d690000"
)
OPEN_REQUEST = bytes.fromhex(
    "0203474554056874747073000a2f68656c6c6f2e7478740a757365722d616765"
    "6e74346375726c2f372e31362e33206c69626375726c2f372e31362e33204f70"
    "656e53534c2f302e392e376c207a6c69622f312e322e3304686f73740f777777"
    "2e6578616d706c652e636f6d0f6163636570742d6c616e677561676506656e2c"
    "206d6900000000000000000000000000"
)
OPEN_RESPONSE = bytes.fromhex(
    "0340660772756e6e696e670a22736c65657020313522004067046c696e6b233c"
    "2f7374796c652e6373733e3b2072656c3d7072656c6f61643b2061733d737479"
    "6c65046c696e6b243c2f7363726970742e6a733e3b2072656c3d7072656c6f61"
    "643b2061733d7363726970740040c804646174651d4d6f6e2c203237204a756c"
    "20323030392031323a32383a353320474d540673657276657206417061636865"
    "0d6c6173742d6d6f6469666965641d5765642c203232204a756c203230303920"
    "31393a31353a353620474d5404657461671422333461613338372d642d313536"
    "3865623030220d6163636570742d72616e6765730562797465730e636f6e7465"
    "6e742d6c656e67746802353104766172790f4163636570742d456e636f64696e"
    "670c636f6e74656e742d747970650a746578742f706c61696e003348656c6c6f"
    "20576f726c6421204d7920636f6e74656e7420696e636c756465732061207472"
    "61696c696e672043524c462e0d0a0000"
)
CHUNKED_RESPONSE = bytes.fromhex(
    "0140c8001d5468697320636f6e74656e7420636f6e7461696e732043524c462e"
    "0d0a0d07747261696c65720474657874"
)
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
    """Both forms of the RFC's request are read, and the known-length form is written bit by bit."""
    assert InnerRequest.decode(KNOWN_REQUEST) == InnerRequest.decode(OPEN_REQUEST) == EXAMPLE
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
    assert binary_http._MessageReader(bytes.fromhex(written)).number() == number
    assert binary_http._number(number).hex() == written


def test_headers_that_come_twice():
    """Several values of one name are joined by commas, in their order."""
    twice = EXAMPLE._replace(fields=((b"a", b"1"), (b"b", b"2"), (b"a", b"3")))
    found = InnerRequest.decode(twice.encode())
    assert (found.header(b"a"), found.header(b"b")) == (b"1,3", b"2")


def test_the_most_header_lines():
    """A message has 64 header lines at most, in either form."""
    line = b"\1a\1b"
    for count in (64, 65):
        known = EXAMPLE._replace(fields=((b"a", b"b"),) * count).encode()
        unknown = OPEN_REQUEST[: OPEN_REQUEST.index(b"\nuser-agent")] + line * count + bytes(3)
        for message in (known, unknown):
            if count == 64:
                assert len(InnerRequest.decode(message).fields) == 64
            else:
                with pytest.raises(WireError, match="64 header lines"):
                    InnerRequest.decode(message)


@pytest.mark.parametrize("status", [200, 599])
@pytest.mark.parametrize("before", [(), (100,), (199, 100)])
def test_statuses(status, before):
    """Informational responses, from 100 to 199, may precede a final one, from 200 to 599."""
    informational = b"".join(binary_http._number(each) + b"\0" for each in before)
    message = b"\1" + informational + InnerResponse(status, (), b"text").encode()[1:]
    assert InnerResponse.decode(message) == InnerResponse(status, (), b"text")


@pytest.mark.parametrize(("message", "spare"), [(KNOWN_REQUEST, 2), (OPEN_REQUEST, 12)])
def test_what_may_be_cut_off(message, spare):
    """Empty parts at the end may be cut off, as the RFC says, and no more than those."""
    for cut in range(1, spare + 1):
        assert InnerRequest.decode(message[:-cut]) == EXAMPLE
    with pytest.raises(WireError):
        InnerRequest.decode(message[: -spare - 1])


def test_the_responses_of_rfc_9292():
    """Informational responses and trailers are read and left out."""
    found = InnerResponse.decode(OPEN_RESPONSE)
    assert found.status == 200
    assert found.header(b"server") == b"Apache"
    assert found.header(b"link") == b""
    assert found.content == b"Hello World! My content includes a trailing CRLF.\r\n"
    chunked = InnerResponse.decode(CHUNKED_RESPONSE)
    assert (chunked.status, chunked.fields) == (200, ())
    assert chunked.content == b"This content contains CRLF.\r\n"


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
