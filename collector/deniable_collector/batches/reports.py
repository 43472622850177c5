"""What a batch and its reports are as JSON, and the columns that a row takes.

One pass of msgspec reads what every good device sends. Of any other body a strict parser says what
is wrong with it, or which of its reports are.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from deniable import WireError
from deniable.protocol.mechanisms import Packing, Row
from deniable.protocol.wire import check_batch_id, unpack_columns
from deniable_collector.batches.bodies import check_commas, check_counts, parse
from deniable_collector.refusals import IntakeError, malformed, too_many_reports

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
