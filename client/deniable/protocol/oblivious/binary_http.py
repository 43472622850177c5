"""HTTP messages as bytes: `message/bhttp` of RFC 9292, as far as a batch and its response need it.

Messages are in the known-length form, which SDKs and gateways write. Zeros behind a message are
padding (RFC 9292, 3.8), so that messages of one size class cannot be told apart.
"""

from __future__ import annotations

import io
import re
from typing import NamedTuple

from deniable.protocol.errors import WireError

Fields = tuple[tuple[bytes, bytes], ...]
"""Header lines in their order: names in lower case, and values."""

_REQUEST, _RESPONSE = 0, 1
SMALLEST = 1 << 10
"""Bytes that every request and every response has at least."""

_MOST_FIELDS = 64
_is_name = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+").fullmatch
_is_value = re.compile(rb"[\t\x20-\x7e\x80-\xff]*").fullmatch


class InnerRequest(NamedTuple):
    """A request: its control data, header and content. A trailer is read and left out."""

    method: bytes
    scheme: bytes
    authority: bytes
    path: bytes
    fields: Fields = ()
    content: bytes = b""

    def encode(self) -> bytes:
        """The message in the known-length form."""
        control = (self.method, self.scheme, self.authority, self.path)
        return b"".join(
            [b"\0", *map(_sized, control), _section(self.fields), _sized(self.content), b"\0"]
        )

    @classmethod
    def decode(cls, message: bytes) -> InnerRequest:
        """Read a message in the known-length form.

        Raises:
            WireError: this is no request.
        """
        stream = io.BytesIO(message)
        if _read_number(stream) != _REQUEST:
            raise _malformed("it is no request")
        method, scheme, authority, path = (_read_sized(stream) for _ in range(4))
        return cls(method, scheme, authority, path, *_rest(stream))

    def header(self, name: bytes) -> bytes:
        """The value of a header; several values are joined by commas, none is empty."""
        return b",".join(value for known, value in self.fields if known == name)


class InnerResponse(NamedTuple):
    """A final response: its status, header and content. A trailer is read and left out."""

    status: int
    fields: Fields = ()
    content: bytes = b""

    def encode(self) -> bytes:
        """The message in the known-length form."""
        parts = [b"\1", _number(self.status), _section(self.fields), _sized(self.content), b"\0"]
        return b"".join(parts)

    @classmethod
    def decode(cls, message: bytes) -> InnerResponse:
        """Read a message in the known-length form.

        Raises:
            WireError: this is no response.
        """
        stream = io.BytesIO(message)
        if _read_number(stream) != _RESPONSE:
            raise _malformed("it is no response")
        status = _read_number(stream)
        if not 200 <= status < 600:
            raise _malformed("its status is none")
        return cls(status, *_rest(stream))

    def header(self, name: bytes) -> bytes:
        """The value of a header; several values are joined by commas, none is empty."""
        return b",".join(value for known, value in self.fields if known == name)


def padded_size(size: int) -> int:
    """The power of two, from SMALLEST on, in which so many bytes fit."""
    return max(SMALLEST, 1 << max(0, size - 1).bit_length())


def padded(message: bytes, size: int) -> bytes:
    """The message with zeros behind it, up to `size` bytes."""
    return message.ljust(size, b"\0")


def _read_number(stream: io.BytesIO) -> int:
    """A variable-length integer (RFC 9000, 16)."""
    first = _take(stream, 1)[0]
    size = 1 << (first >> 6)
    number = first << 8 * (size - 1) | int.from_bytes(_take(stream, size - 1), "big")
    # Without the two bits that say the size.
    return number & (1 << 8 * size - 2) - 1


def _read_sized(stream: io.BytesIO) -> bytes:
    """So many bytes as the number before them says."""
    return _take(stream, _read_number(stream))


def _rest(stream: io.BytesIO) -> tuple[Fields, bytes]:
    """Header and content. Parts at the end that are empty may be cut off."""
    end = stream.getbuffer().nbytes
    header, content, trailer = (
        _read_sized(stream) if stream.tell() < end else b"" for _ in range(3)
    )
    if stream.read().strip(b"\0"):
        raise _malformed("something else than padding follows it")
    _lines(trailer)
    return _lines(header), content


def _lines(section: bytes) -> Fields:
    """The lines of a header or trailer."""
    stream = io.BytesIO(section)
    found: list[tuple[bytes, bytes]] = []
    while stream.tell() < len(section):
        # Before the next one is read: a message has room for many.
        if len(found) == _MOST_FIELDS:
            raise _malformed(f"it has more than {_MOST_FIELDS} header lines")
        name, value = _read_sized(stream), _read_sized(stream)
        if not _is_name(name) or not _is_value(value):
            raise _malformed("a header line is none")
        found.append((name, value))
    return tuple(found)


def _take(stream: io.BytesIO, size: int) -> bytes:
    piece = stream.read(size)
    if len(piece) < size:
        raise _malformed("it is cut off")
    return piece


def _number(value: int) -> bytes:
    for power, size in enumerate((1, 2, 4, 8)):
        if value < 1 << (8 * size - 2):
            return (value | power << (8 * size - 2)).to_bytes(size, "big")
    raise ValueError("a number in a binary message has at most 62 bits")


def _sized(piece: bytes) -> bytes:
    return _number(len(piece)) + piece


def _section(fields: Fields) -> bytes:
    return _sized(b"".join(_sized(name) + _sized(value) for name, value in fields))


def _malformed(why: str) -> WireError:
    return WireError("malformed", f"a binary HTTP message (RFC 9292) was expected, and {why}")
