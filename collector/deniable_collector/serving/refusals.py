"""Why a connection is refused before its request reaches the app."""

from __future__ import annotations

from deniable_collector.batches.bodies import IntakeError

__all__ = ["full", "header_too_large", "not_http", "request_too_large", "too_slow"]


def full() -> IntakeError:
    """The process has as many connections as it can serve."""
    return IntakeError(
        "too-many-connections",
        503,
        "Too many connections",
        "the collector has as many connections as it can serve: send the batch again later, "
        "unchanged",
        retry_after=5.0,
    )


def header_too_large(lines: int, size: int) -> IntakeError:
    """The header has more lines, or more bytes, than allowed."""
    return IntakeError(
        "header-too-large",
        431,
        "Header too large",
        f"a header may have up to {lines} lines and {size} bytes, the request line included",
    )


def request_too_large() -> IntakeError:
    """The request as a whole is longer than any body may be."""
    return IntakeError(
        "body-too-large",
        413,
        "Body too large",
        "a request may not be longer than its body's limit allows: send several batches",
    )


def too_slow(seconds: float) -> IntakeError:
    """The request has not arrived whole in time."""
    return IntakeError(
        "too-slow",
        408,
        "Too slow",
        f"a request must arrive whole within {seconds:g} seconds: send it again, unchanged",
    )


def not_http(
    detail: str = "no request can be read in what came. TLS must end at a proxy in front",
) -> IntakeError:
    """What came is no request; `detail` says why, or what would be one."""
    return IntakeError("not-http", 400, "Not HTTP", f"send HTTP/1.1, as RFC 9112 has it: {detail}")
