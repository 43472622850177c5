"""Many connections that send or read slowly, or send much ahead."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path

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
