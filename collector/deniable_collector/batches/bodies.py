"""From the bytes of a request to a batch of reports, within hard limits and never beyond them; and
the columns that a row takes.

No body may cost much more time than the largest good one. So a compressed body is short before it
grows, and a body is counted before it is parsed: to count a bracket takes a nanosecond, to build
what it opens takes a hundred.

One pass of msgspec reads what every good device sends. Of any other body a strict parser says what
is wrong with it, or which of its reports are.
"""

from __future__ import annotations

import zlib
from binascii import a2b_base64
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from deniable import WireError
from deniable.protocol.mechanisms import Packing, Row
from deniable.protocol.wire import check_batch_id, strict_json, unpack_columns
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
        document = strict_json(body.decode("utf-8"))
    except (ValueError, RecursionError):
        # The parser's message quotes the body, so it is not passed on.
        document = None
    if not isinstance(document, dict):
        raise IntakeError("not-json", "the body must be one JSON object in UTF-8")
    return document


def _not_gzip() -> IntakeError:
    return IntakeError("not-gzip", "the body must be one complete gzip member")


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_STANDARD = bytes.maketrans(b"-_+/", b"+/!!")
"""The letters of base64url (RFC 4648, section 5), and what makes those of plain base64 of them."""

Columns: TypeAlias = int | bytes
"""One column, or else a bitmap: column j at bit j % 8 of byte j // 8."""


class PostedReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A report; a row that was not sent is row 0. Row and columns may be anything yet."""

    metric: str
    scheme: str
    window: str
    columns: Any
    row: Any = UNSET


class SentBatch(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A batch as it is sent. Of one that is not as devices send it, the reports may be others, and
    None stands for what is none."""

    batch: str
    reports: list[PostedReport]


_decode = msgspec.json.Decoder(SentBatch).decode


def read_batch(body: bytes, most: int) -> SentBatch:
    """The batch in a body, of at most so many reports.

    Raises:
        IntakeError: it is none.
    """
    check_counts(body, most)
    try:
        batch = _decode(body)
    except (ValueError, RecursionError):
        batch = _read_oddly(body, most)
    else:
        # The decoder uses the last of two equal keys, but such bodies must be refused. In one
        # without escapes all quotation marks belong to keys and texts, so their number reveals a
        # repeated key.
        texts = sum([type(each.columns) is str for each in batch.reports])
        rows = len(batch.reports) - [each.row for each in batch.reports].count(UNSET)
        quotes = 6 + 14 * len(batch.reports) + 2 * (rows + texts)
        if body.count(b'"') != quotes or b"\\" in body:
            batch = _read_oddly(body, most)
    try:
        check_batch_id(batch.batch)
    except WireError as error:
        raise IntakeError("bad-batch-id", str(error)) from None
    if len(batch.reports) > most:
        raise too_many_reports(most)
    return batch


def _read_oddly(body: bytes, most: int) -> SentBatch:
    check_commas(body, most)
    document = parse(body)
    if "development" in document:
        raise malformed(
            "the app is in development mode, whose reports only `deniable dev` takes: leave "
            "DENIABLE_DEV and the option `development` out"
        )
    if document.keys() != {"batch", "reports"} or not isinstance(document["reports"], list):
        raise malformed("a batch is an object with a batch id and a list of reports, and no more")
    reports: list[Any] = [*map(_odd, document["reports"])]
    return SentBatch(document["batch"], reports)


def _odd(report: Any) -> PostedReport | None:
    try:
        return msgspec.convert(report, PostedReport)
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def reader(row: Row) -> Callable[[Any], Columns]:
    """Reads the columns of a report for that row, and raises WireError where
    `deniable.protocol.wire.unpack_columns` does."""
    width, columns = row.width, row.columns
    if row.packing is Packing.INDEX:

        def read_index(value: Any) -> int:
            if type(value) is int and 0 <= value < width:
                return value
            return unpack_columns(row, value)

        return read_index
    size = (width + 7) // 8

    def read_slowly(value: Any) -> bytes:
        return unpack_columns(row, value).to_bytes(size, "little")

    if row.packing is Packing.LIST:
        return read_slowly
    letters, pad = (size * 4 + 2) // 3, b"=" * (-size % 3)
    # The decoder ignores the last letter's bits beyond the bytes, but a bitmap has one spelling.
    last_letters, beyond = _LETTERS[:: 1 << (6 * letters - 8 * size)], width - 8 * (size - 1)

    def read_bitmap(value: Any) -> bytes:
        if type(value) is not str or len(value) != letters or value[-1] not in last_letters:
            return read_slowly(value)
        try:
            data = a2b_base64(value.encode().translate(_STANDARD) + pad, strict_mode=True)
        except ValueError:
            return read_slowly(value)
        if data[-1] >> beyond or (
            columns is not None and int.from_bytes(data).bit_count() != columns
        ):
            return read_slowly(value)
        return data

    return read_bitmap
