"""The limits of connections that all servers have, and the problems that name them."""

from __future__ import annotations

import resource
from typing import Final

from deniable_collector.operation.events import tell
from deniable_collector.refusals import IntakeError

ROOM: Final = 64
"""How many connections beyond a limit get an answer at the same time; others are cut off. As many
connections are reserved for the private address."""

PIPELINED: Final = 64
"""How many requests of one connection may wait. What was read at once can contain thousands, each
of which needs a hundred times its bytes of memory."""

PACE: Final = 1 << 15
"""Bytes a second: a client that sends or reads as fast has more time than the limit."""

LINGER_SECONDS: Final = 2.0
"""Seconds for which a refused client may read the reason. Closing at once would reset the
connection, and what the client had not read yet would be lost."""

_CHUNKS = 2048
_CHUNK_BYTES = 256
"""A body may come in so many chunks, and in one more for each so many bytes: each takes a call."""

_SPARE = 3 * ROOM
"""Open files that are needed in addition to the connections."""

_SLACK = 1 << 16


def most_received(max_body: int) -> int:
    """The most bytes of a body that are read. One that is too long is read and forgotten so far,
    as its sender may look for the response only when it has sent all."""
    return 2 * max_body + _SLACK


def too_many_chunks(chunks: int, size: int) -> bool:
    """Whether a body of so many bytes may not have come in so many chunks."""
    return chunks > _CHUNKS + size // _CHUNK_BYTES


def open_files(connections: int) -> None:
    """Raise the limit of open files of this process and its children, if the system allows it.

    Without it, a server that reaches the system's limit (often 1,024) stops accepting.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
        if allowed < wanted:
            tell(
                "warning",
                "few-files",
                f"the system allows {hard} open files, too few for {connections} connections: "
                f"lower DENIABLE_MAX_CONNECTIONS to {max(1, hard - _SPARE)}, or raise the limit",
            )


def too_many_connections(
    of: str = "the server has as many connections as it can serve",
) -> Exception:
    """`of` says of whom there are too many."""
    told = f"{of}: send the request again later, unchanged"
    return IntakeError("too-many-connections", told, retry_after=5.0)


def header_too_large(lines: int, size: int) -> Exception:
    """The header has more lines or bytes than that."""
    return IntakeError(
        "header-too-large",
        f"a header may have up to {lines} lines and {size} bytes, the request line included",
    )


def request_too_large() -> Exception:
    """The request is longer than the largest body, however it is coded."""
    return IntakeError(
        "body-too-large",
        "a request may not be longer than its body's limit allows: send less at once",
    )


def too_slow(seconds: float) -> Exception:
    """The request did not come whole in time."""
    return IntakeError(
        "too-slow",
        f"a request must arrive whole within {seconds:g} seconds, and one more for each "
        f"{PACE >> 10} KiB: send it again, unchanged",
    )


def queue_full() -> Exception:
    """More bytes of bodies wait in this process than DENIABLE_QUEUE allows."""
    told = "the server is busy: send the request again later, unchanged"
    return IntakeError("queue-full", told, retry_after=1.0)
