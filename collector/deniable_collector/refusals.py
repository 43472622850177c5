"""Why a request is refused: each problem document (RFC 9457) of a collector, a gateway or a relay.

`PROBLEMS` is the only place with the status and the meaning of a code; the OpenAPI description is
made of it (`openapi`).
"""

from __future__ import annotations

from typing import NamedTuple

from deniable import DeniableError
from deniable.protocol.coded_message import counted


class ProblemKind(NamedTuple):
    """What a code stands for: the HTTP status, the kind of problem in words, and what it means."""

    status: int
    title: str
    meaning: str


_AGAIN = "Send the batch again after `Retry-After` seconds, unchanged."

PROBLEMS = {
    "not-json": ProblemKind(
        400, "Not JSON", "The body is not one JSON object in UTF-8 without repeated keys."
    ),
    "not-gzip": ProblemKind(
        400, "Not gzip", "The body is not the one whole gzip member that it claims to be."
    ),
    "bad-batch-id": ProblemKind(
        400, "Bad batch id", "`batch` is not 32 lower-case hexadecimal digits."
    ),
    "malformed-batch": ProblemKind(400, "Malformed batch", "The body is no batch."),
    "not-http": ProblemKind(
        400, "Not HTTP", "What came is not HTTP/1.1 with one Host and no coding but chunks."
    ),
    "no-ingest-key": ProblemKind(
        401, "No ingest key", "The operator asks for an ingest key, and this is none of them."
    ),
    "origin-not-allowed": ProblemKind(
        403,
        "Origin not allowed",
        "A body of text/plain came from a web page whose origin the operator has not named.",
    ),
    "http-404": ProblemKind(404, "Not Found", "There is nothing at this path."),
    "http-405": ProblemKind(
        405, "Method Not Allowed", "This path does not take this method: see the `Allow` header."
    ),
    "too-slow": ProblemKind(
        408, "Too slow", "The request did not arrive in time. Send it again, unchanged."
    ),
    "body-too-large": ProblemKind(
        413, "Body too large", "The body is longer than its limit. Send several batches."
    ),
    "too-many-reports": ProblemKind(
        413,
        "Too many reports",
        "The batch holds more reports than its limit. Send several batches.",
    ),
    "too-many-metrics": ProblemKind(
        413,
        "Too many metrics",
        "The batch names more than 100 metrics. Send several batches.",
    ),
    "http-415": ProblemKind(
        415, "Unsupported Media Type", "The body's media type is none of those below."
    ),
    "unsupported-encoding": ProblemKind(
        415, "Unsupported content encoding", "The body is encoded by something else than gzip."
    ),
    "too-many-requests": ProblemKind(
        429, "Too many requests", f"The network has sent too many requests. {_AGAIN}"
    ),
    "header-too-large": ProblemKind(
        431, "Header too large", "The header has more than 64 lines or 16 KiB."
    ),
    "store-refused": ProblemKind(
        500,
        "Store refused",
        "The store refused the batch. The operator finds the reason in the log.",
    ),
    "internal": ProblemKind(
        500, "Internal error", "The collector has a bug. The batch may be sent again."
    ),
    "store-unavailable": ProblemKind(503, "Store unavailable", f"The store is away. {_AGAIN}"),
    "queue-full": ProblemKind(503, "Queue full", f"Too many bodies wait. {_AGAIN}"),
    "too-many-connections": ProblemKind(
        503,
        "Too many connections",
        "The collector serves as many connections as it can. Come again after `Retry-After` "
        "seconds.",
    ),
}
"""What a collector answers, in the order of the statuses."""

_TWO_HOPS = {
    "bad-capsule": ProblemKind(400, "Bad capsule", "What came is no capsule, or holds no request."),
    "http-417": ProblemKind(417, "Expectation Failed", "A capsule expects nothing."),
    "gateway-odd": ProblemKind(503, "No gateway", "Something else than a gateway responded."),
    "gateway-unavailable": ProblemKind(
        503, "Gateway unavailable", "The gateway cannot be reached."
    ),
}
"""What a gateway and a relay answer besides (docs/how-to/two-hops.md)."""


class IntakeError(DeniableError):
    """A request of which nothing can be counted.

    `code` names the problem for programs; `status` and `title` follow from it. The message says
    what to do about this one. `retry_after` is the shortest wait in seconds, if the same request
    may succeed later.
    """

    def __init__(self, code: str, detail: str, retry_after: float | None = None) -> None:
        self.code = code
        self.status, self.title, _ = PROBLEMS.get(code) or _TWO_HOPS[code]
        self.retry_after = retry_after
        super().__init__(detail)


def malformed(detail: str) -> IntakeError:
    """The body is no batch."""
    return IntakeError("malformed-batch", detail)


def too_many_reports(limit: int) -> IntakeError:
    """The batch holds more reports than that."""
    return IntakeError(
        "too-many-reports",
        f"a batch may hold up to {counted(limit, 'report')}: send several batches",
    )


def too_large(limit: int, *, compressed: bool = False) -> IntakeError:
    """The body is longer than that, decompressed or as it came."""
    return IntakeError(
        "body-too-large",
        f"a compressed body may hold up to {limit} bytes: send it plain, or several batches"
        if compressed
        else f"a body may hold up to {limit} bytes, decompressed: send several batches",
    )


def not_http(
    detail: str = "no request can be read in what came. TLS must end at a proxy in front",
) -> IntakeError:
    """What came is no request; `detail` says why, or what would be one."""
    return IntakeError("not-http", f"send HTTP/1.1, as RFC 9112 has it: {detail}")
