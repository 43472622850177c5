"""From the bytes of a request to one JSON object, within hard limits and never beyond them.

No body may cost much more time than the largest good one. So a compressed body is short before it
grows, and a body is counted before it is parsed: to count a bracket takes a nanosecond, to build
what it opens takes a hundred.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, NoReturn

from deniable_collector.refusals import IntakeError, malformed, too_large, too_many_reports

_GZIP = zlib.MAX_WBITS | 16

_MEMBERS = 5
"""Members of a report, each with a colon."""

_COMMAS = 16
"""Commas for each report that a batch may hold, in a body that is not typed as devices type it."""

_LARGE = 1 << 15
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG = b"0" * 40
"""Digits in a row: to read a number takes time that grows with their square. A body of up to
`_LARGE` bytes cannot hold enough of them to matter."""


def is_compressed(encoding: str) -> bool:
    """Whether a content encoding, in lower case, is any but `identity`."""
    return encoding not in ("", "identity")


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """What was compressed into a body, of at most `limit` bytes; `encoding` is a Content-Encoding
    in lower case.

    Raises:
        IntakeError: it is longer, or not in the encoding that it claims.
    """
    if encoding not in ("gzip", "x-gzip"):
        raise IntakeError("unsupported-encoding", "send the body plain or as gzip")
    inflater = zlib.decompressobj(_GZIP)
    try:
        # One byte beyond the limit is enough to know, and no bomb gets further.
        found = inflater.decompress(body, limit + 1)
    except zlib.error:
        raise _not_gzip() from None
    if len(found) > limit:
        raise too_large(limit)
    if not inflater.eof or inflater.unused_data:
        raise _not_gzip()
    return found


def check_counts(body: bytes, reports: int) -> None:
    """Refuse a body that holds more than a batch of so many reports can: before it is parsed.

    No text of a good report holds a bracket, a colon or 40 digits, so those in texts count too, and
    none needs an escape.

    Raises:
        IntakeError: `too-many-reports` for braces, `malformed-batch` for the rest.
    """
    if len(body) <= reports:
        return
    if body.count(b"\\") > reports:
        raise malformed("the texts of a report need no escapes")
    if body.count(b"{") > 1 + reports:
        raise too_many_reports(reports)
    if body.count(b"[") > 1 + reports or body.count(b":") > 2 + _MEMBERS * reports:
        raise malformed(f"a batch of up to {reports} reports has fewer brackets and colons")
    if len(body) > _LARGE and _LONG in body.translate(_DIGITS):
        raise malformed("the numbers of a batch have fewer digits")


def check_commas(body: bytes, reports: int) -> None:
    """Refuse a body of more values than are worth building, if it is no batch as devices send it.

    Raises:
        IntakeError: `malformed-batch`.
    """
    if body.count(b",") > _COMMAS * reports:
        raise malformed(
            "the reports of so large a batch must all be objects of metric, scheme, window, row "
            "and columns, with texts that need no escapes"
        )


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
        document = None
    if not isinstance(document, dict):
        raise IntakeError("not-json", "the body must be one JSON object in UTF-8")
    return document


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Parsers differ in which of two equal keys they use, so both are refused.
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _not_gzip() -> IntakeError:
    return IntakeError("not-gzip", "the body must be one complete gzip member")
