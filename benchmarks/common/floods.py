"""What somebody sends who means harm: bodies that are made to cost a collector more than good ones
do, and many connections that send or read slowly, or send much ahead.

All bodies obey the default limits of bytes. Each is a function of a batch id, because a body that
may be counted is counted once.
"""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

from deniable import Registry

_SIZE = 1 << 20
_REPORTS = 1000


class Body(NamedTuple):
    """What is sent: `make` gives its bytes for a batch id, compressed where `encoding` is gzip."""

    encoding: str
    make: Callable[[str], bytes]


def hostile(registry: Registry, window: str) -> dict[str, Body]:
    """Bodies that cost as much as somebody could make them."""
    metric = next(iter(registry))
    named = {"metric": metric.name, "scheme": metric.scheme.fingerprint, "window": window}
    empty = b",".join([b"{}"] * ((_SIZE - 60) // 3))
    wrong = _dump({**named, "columns": "x" * 900})
    return {
        "a list of columns without end, gzip": _compressed(
            _dump(named)[:-1] + b',"columns":[' + b",".join([b"1"] * 500_000) + b"]}"
        ),
        "1,000 wrong columns, gzip": _compressed(b",".join([wrong] * _REPORTS)),
        "white space between reports": _plain(b",".join([b"{}" + b" " * 900] * 900)),
        "fractions without end": _plain(b"[%b]" % b",".join([b"0.%b" % (b"1" * 37)] * 15_900)),
        "escapes without end": _plain(b'"%b"' % (b"\\u0061" * 150_000)),
        "a text without end, gzip": _compressed(b'"' + b"a" * (_SIZE - 100) + b'"'),
        "empty reports to the limit of bytes, gzip": _compressed(empty),
    }


def _dump(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _plain(reports: bytes) -> Body:
    return Body("", lambda batch: b'{"batch":"%b","reports":[%b]}' % (batch.encode(), reports))


def _compressed(reports: bytes) -> Body:
    plain = _plain(reports)
    return Body("gzip", lambda batch: gzip.compress(plain.make(batch), 6))


KINDS = (
    "half a header",
    "half a body",
    "an answer read byte by byte",
    "idle after an answer",
    "60 requests at once",
)
_NETWORK = "127.3"
_BYTE_SECONDS = 1.0


def _sent(kind: str, form: str, page: str) -> tuple[bytes, bytes]:
    """What is sent at once, and then in each second; forms go to one path and pages come from
    another."""
    head = b"GET %b HTTP/1.1\r\nHost: h\r\n" % page.encode()
    body = b"POST %b HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n" % form.encode()
    return {
        KINDS[0]: (head, b"X: a\r\n"),
        KINDS[1]: (body, b"a"),
        KINDS[2]: (head + b"\r\n", b""),
        KINDS[3]: (head + b"\r\n", b""),
        KINDS[4]: ((head + b"\r\n") * 60, b""),
    }[kind]


def besiege(
    place: tuple[str, int], kind: str, paths: tuple[str, str], networks: int, seconds: float
) -> int:
    """Hold 200 connections from so many networks; how many the server still has at the end."""
    first, later = _sent(kind, *paths)
    crowd = []
    for network in islice(cycle(range(networks)), 200):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.bind((f"{_NETWORK}.{network}.1", 0))
        one.connect(place)
        one.sendall(first)
        crowd.append(one)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        time.sleep(_BYTE_SECONDS)
        for one in crowd:
            with suppress(OSError):
                one.sendall(later)
                if kind == KINDS[2]:
                    one.recv(1, socket.MSG_DONTWAIT)
    left = still_open(place[1])
    for one in crowd:
        one.close()
    return left


def still_open(port: int) -> int:
    """How many connections of strangers a server at this port has not ended."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    established, stranger = "01", "037F"
    return sum(
        int(row[1][-4:], 16) == port and row[2][4:8] == stranger and row[3] == established
        for row in rows
    )
