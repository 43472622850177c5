"""Headers of requests that came before in the same bytes, with what the parser made of them.

Devices with the same SDK, relays and pools of connections send one header thousands of times, with
few lengths. What a parser makes of the same bytes is always the same, so it is asked once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

_END = b"\r\n\r\n"

_LONGEST: Final = 1 << 10
"""Bytes of a header that is kept; a longer one is of a browser, with much that is its own."""

_MOST: Final = 1 << 10
"""Headers that are kept; when there are more, all of them are forgotten."""

_SHARED = frozenset(
    b"host content-length content-type user-agent connection accept accept-encoding "
    b"authorization x-deniable-key origin".split()
)
"""Names of lines that many senders have in common. A header with any other is not kept: it may name
one of them, as X-Forwarded-For does."""


class Expected(NamedTuple):
    """What the header of a request says about its body: the most bytes that it may have as it is
    sent, its encoding ("": it is not compressed), and the Content-Type if it is a capsule."""

    limit: int
    encoding: str = ""
    capsule_type: str | None = None


class RequestHead(NamedTuple):
    """A header as the parser read it: names in lower case, lines of one name joined by commas."""

    path: bytes
    query: bytes
    found: Mapping[bytes, bytes]


class KnownHead(msgspec.Struct, frozen=True):
    """A header that came before: as it was read, the length of its body, and what that must be."""

    head: RequestHead
    length: int
    expected: Expected


class Heads:
    """The headers that one process has met lately; used from one event loop."""

    def __init__(self) -> None:
        self._known: dict[bytes, KnownHead] = {}

    def find(self, piece: bytes) -> KnownHead | None:
        """The header, if these bytes are one whole request with a known one; its body is at their
        end."""
        end = piece.find(_END) + len(_END)
        known = self._known.get(piece[:end])
        return known if known is not None and len(piece) == end + known.length else None

    def keep(self, piece: bytes, head: RequestHead, expected: Expected) -> None:
        """Remember the header with which this piece begins.

        `piece` is what the parser read of a connection that was at rest, and `head` belongs to
        the last request in it, whose body has ended in it too. Then this was one request and no
        more if, and only if, the end of its first header and its length make up the piece.
        """
        end = piece.find(_END) + len(_END)
        if end > _LONGEST or not head.found.keys() <= _SHARED:
            return
        length = int(head.found.get(b"content-length", b"0"))
        if len(piece) != end + length:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[piece[:end]] = KnownHead(head, length, expected)
