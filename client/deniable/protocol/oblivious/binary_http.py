"""HTTP messages as bytes: `message/bhttp` of RFC 9292, as far as a batch and its response need it.

Messages are written in the known-length form, and read in both forms. Zeros behind a message are
padding (RFC 9292, 3.8), so that messages of one size class cannot be told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from deniable.protocol.errors import WireError

Fields = tuple[tuple[bytes, bytes], ...]
"""Header lines in their order: names in lower case, and values."""

_KNOWN_REQUEST, _KNOWN_RESPONSE, _OPEN_REQUEST, _OPEN_RESPONSE = range(4)
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
        """Read a message in either form.

        Raises:
            WireError: this is no request.
        """
        reader = _MessageReader(message)
        form = reader.number()
        if form not in (_KNOWN_REQUEST, _OPEN_REQUEST):
            raise _malformed("it is no request")
        method, scheme, authority, path = (reader.sized() for _ in range(4))
        fields, content = reader.rest(known=form == _KNOWN_REQUEST)
        return cls(method, scheme, authority, path, fields, content)

    def header(self, name: bytes) -> bytes:
        """The value of a header; several values are joined by commas, none is empty."""
        return b",".join(value for known, value in self.fields if known == name)


class InnerResponse(NamedTuple):
    """A final response. Informational responses before it and a trailer are read and left out."""

    status: int
    fields: Fields = ()
    content: bytes = b""

    def encode(self) -> bytes:
        """The message in the known-length form."""
        parts = [b"\1", _number(self.status), _section(self.fields), _sized(self.content), b"\0"]
        return b"".join(parts)

    @classmethod
    def decode(cls, message: bytes) -> InnerResponse:
        """Read a message in either form.

        Raises:
            WireError: this is no response.
        """
        reader = _MessageReader(message)
        form = reader.number()
        if form not in (_KNOWN_RESPONSE, _OPEN_RESPONSE):
            raise _malformed("it is no response")
        known = form == _KNOWN_RESPONSE
        while 100 <= (status := reader.number()) < 200:
            reader.fields(known=known)
        if not 200 <= status < 600:
            raise _malformed("its status is none")
        fields, content = reader.rest(known=known)
        return cls(status, fields, content)

    def header(self, name: bytes) -> bytes:
        """The value of a header; several values are joined by commas, none is empty."""
        return b",".join(value for known, value in self.fields if known == name)


def padded_size(size: int) -> int:
    """The power of two, from SMALLEST on, in which so many bytes fit."""
    return max(SMALLEST, 1 << max(0, size - 1).bit_length())


def padded(message: bytes, size: int) -> bytes:
    """The message with zeros behind it, up to `size` bytes."""
    return message.ljust(size, b"\0")


class _MessageReader:
    """Reads a message from its beginning."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._place = 0

    def number(self) -> int:
        """A variable-length integer (RFC 9000, 16)."""
        first = self._take(1)[0]
        if first < 0x40:
            return first
        size = 1 << (first >> 6)
        more = self._take(size - 1)
        number = first << 8 * (size - 1) | int.from_bytes(more, "big")
        # Without the two bits that say the size.
        return number & (1 << 8 * size - 2) - 1

    def sized(self) -> bytes:
        """So many bytes as the number before them says."""
        return self._take(self.number())

    def fields(self, *, known: bool) -> Fields:
        """A section of header or trailer lines."""
        found: list[tuple[bytes, bytes]] = []
        for line in self._lines(known=known):
            # Before the next one is read: a message has room for many.
            if len(found) == _MOST_FIELDS:
                raise _malformed(f"it has more than {_MOST_FIELDS} header lines")
            found.append(line)
        return tuple(found)

    def _lines(self, *, known: bool) -> Iterator[tuple[bytes, bytes]]:
        if known:
            inside = _MessageReader(self.sized())
            while not inside._ended:
                yield inside._line(inside.number())
        else:
            while size := self.number():
                yield self._line(size)

    def rest(self, *, known: bool) -> tuple[Fields, bytes]:
        """Header, content and trailer; those that are empty may be cut off at the end."""
        fields = () if self._ended else self.fields(known=known)
        content = b""
        if not self._ended:
            content = self.sized() if known else self._chunks()
        if not self._ended:
            self.fields(known=known)
        left = len(self._message) - self._place
        if not self._message.endswith(bytes(left)):
            raise _malformed("something else than padding follows it")
        return fields, content

    def _chunks(self) -> bytes:
        chunks = []
        while size := self.number():
            chunks.append(self._take(size))
        return b"".join(chunks)

    def _line(self, size: int) -> tuple[bytes, bytes]:
        name, value = self._take(size), self.sized()
        if not _is_name(name) or not _is_value(value):
            raise _malformed("a header line is none")
        return name, value

    @property
    def _ended(self) -> bool:
        return self._place >= len(self._message)

    def _take(self, size: int) -> bytes:
        end = self._place + size
        if end > len(self._message):
            raise _malformed("it is cut off")
        piece, self._place = self._message[self._place : end], end
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
