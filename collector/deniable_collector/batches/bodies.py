"""From the bytes of a request to one JSON object, within hard limits and never beyond them."""

from __future__ import annotations

import json
import zlib
from typing import Any, NoReturn, Protocol

from deniable import DeniableError

__all__ = ["IntakeError", "Source", "parse", "read_body", "too_large"]

_PIECE = 1 << 16
_GZIP = zlib.MAX_WBITS | 16


class IntakeError(DeniableError):
    """A request of which nothing can be counted, with the fields of RFC 9457.

    `code` names the problem for programs, `status` is the HTTP status, `title` names the kind
    of problem in words, `detail` says what to do about this one. `retry_after` is the shortest
    wait in seconds, if the same request may succeed later.
    """

    def __init__(
        self, code: str, status: int, title: str, detail: str, retry_after: float | None = None
    ) -> None:
        self.code = code
        self.status = status
        self.title = title
        self.detail = detail
        self.retry_after = retry_after
        super().__init__(detail)


class Source(Protocol):
    """Where a body comes from: the readable half of a binary file."""

    def read(self, size: int, /) -> bytes: ...


def read_body(source: Source, encoding: str, limit: int) -> bytes:
    """The body, decompressed, of at most `limit` bytes before and after.

    Raises:
        IntakeError: the body is longer, or not in the encoding that it claims.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return b"".join(_pieces(source, limit))
    if encoding not in ("gzip", "x-gzip"):
        raise IntakeError(
            "unsupported-encoding",
            415,
            "Unsupported content encoding",
            "send the body plain or as gzip",
        )
    inflater = zlib.decompressobj(_GZIP)
    body = bytearray()
    try:
        for piece in _pieces(source, limit):
            # One byte beyond the limit is enough to know, and no bomb gets further.
            body += inflater.decompress(piece, limit + 1 - len(body))
            if len(body) > limit:
                raise too_large(limit)
            if inflater.unused_data:
                break
    except zlib.error:
        raise _not_gzip() from None
    if not inflater.eof or inflater.unused_data:
        raise _not_gzip()
    return bytes(body)


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object in a body; strict: UTF-8, no repeated keys, no NaN.

    Raises:
        IntakeError: it is not JSON, or not an object.
    """
    try:
        document = json.loads(
            body.decode("utf-8"), object_pairs_hook=_unrepeated, parse_constant=_no_constant
        )
    except (ValueError, RecursionError):
        # The parser's message quotes the body, so it is not passed on.
        raise IntakeError(
            "not-json", 400, "Not JSON", "the body must be one JSON object in UTF-8"
        ) from None
    if not isinstance(document, dict):
        raise IntakeError("not-json", 400, "Not JSON", "the body must be one JSON object in UTF-8")
    return document


def _pieces(source: Source, limit: int) -> list[bytes]:
    pieces: list[bytes] = []
    left = limit + 1
    while left and (piece := source.read(min(_PIECE, left))):
        pieces.append(piece)
        left -= len(piece)
    if not left:
        raise too_large(limit)
    return pieces


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Parsers differ in which of two equal keys they use, so both are refused.
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def too_large(limit: int) -> IntakeError:
    """The body is longer than that."""
    return IntakeError(
        "body-too-large",
        413,
        "Body too large",
        f"a body may hold up to {limit} bytes, decompressed: send several batches",
    )


def _not_gzip() -> IntakeError:
    return IntakeError("not-gzip", 400, "Not gzip", "the body must be one complete gzip member")
