"""What a collector's reply to a batch means.

The batch is counted (202), refused for good (a problem document of the collector about the batch),
or must be sent again (everything else). A wrong path, a proxy's 403 or an HTML page says nothing
about the batch, so it waits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from deniable.errors import TransportError

_PROBLEM = "urn:deniable:problem:"
_FINAL = frozenset(
    (
        "not-json",
        "not-gzip",
        "bad-batch-id",
        "malformed-batch",
        "body-too-large",
        "too-many-reports",
        "too-many-metrics",
    )
)
"""The collector's problem codes that sending the same bytes again cannot avoid
(docs/reference/protocol.md)."""


class Reply(NamedTuple):
    """A collector's reply: HTTP status, body, and the Retry-After header where there is one."""

    status: int
    body: bytes = b""
    retry_after: str | None = None


def read_reply(reply: Reply, batch_id: str, now: Callable[[], float]) -> dict[int, str]:
    """The reports that a 202 left out: index in the batch -> reason.

    Raises:
        TransportError: the batch is not counted; `final` if it never will be.
    """
    if reply.status == 202:
        try:
            document = json.loads(reply.body)
            if document["batch"] == batch_id:
                return {int(each["index"]): _code(each["reason"]) for each in document["rejected"]}
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            pass
    problem = problem_code(reply.body)
    if problem is None:
        raise TransportError(
            f"a response with status {reply.status} came that is not a collector's, so reports "
            "wait: check the endpoint, and the proxies in front of it",
            retry_after=retry_seconds(reply.retry_after, now()),
            foreign=True,
        )
    final = problem in _FINAL
    raise TransportError(
        f"the collector responded with {problem} (status {reply.status})",
        retry_after=None if final else retry_seconds(reply.retry_after, now()),
        final=final,
    )


def _code(reason: str) -> str:
    """A reason that is safe to show in logs and lists, which a server must not write into."""
    return reason if re.fullmatch(r"[a-z_]{1,64}", reason) else "unknown_reason"


def problem_code(body: bytes) -> str | None:
    """The code of a problem document of the collector; None for anything else."""
    try:
        kind = json.loads(body)["type"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    found = re.fullmatch(rf"{_PROBLEM}([a-z0-9-]{{1,64}})", kind) if isinstance(kind, str) else None
    return None if found is None else found[1]


def retry_seconds(header: str | None, now: float) -> float | None:
    """The wait in seconds that a Retry-After asks for (RFC 9110, 10.2.3); None if it asks none."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None
