"""What a batch and its reports are as JSON, and the columns that a row takes.

One pass of msgspec reads what every good device sends. Of any other body a strict parser says what
is wrong with it, or which of its reports are.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Sequence
from functools import lru_cache
from re import compile as pattern
from re import escape
from typing import Any, TypeAlias

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from deniable import WireError
from deniable.protocol.mechanisms import Packing, Row
from deniable.protocol.wire import check_batch_id, unpack_columns
from deniable_collector.batches.bodies import check_commas, check_counts, parse
from deniable_collector.refusals import IntakeError, malformed, too_many_reports

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
"""base64url (RFC 4648, section 5): the letter of each number of six bits."""

_STANDARD = bytes.maketrans(b"-_", b"+/")

Columns: TypeAlias = int | bytes
"""A bitmap is its base64url as it was sent, in the one spelling that it has; other columns are as
in `deniable.protocol.mechanisms.Report.columns`."""


class UsualReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A report as devices send it; a row that was not sent is row 0."""

    metric: str
    scheme: str
    window: str
    columns: int | str | list[int]
    row: int | UnsetType = UNSET


class _OddReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """One of which row and columns are not what devices send."""

    metric: str
    scheme: str
    window: str
    columns: Any
    row: Any = UNSET


class SentBatch(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A batch as it is sent. Of one that is not as devices send it, the reports may be others, and
    None stands for what is none."""

    batch: str
    reports: list[UsualReport]


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


def _odd(report: Any) -> _OddReport | None:
    try:
        return msgspec.convert(report, _OddReport)
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
    if row.packing is Packing.LIST:
        return lambda value: unpack_columns(row, value)
    spelt = _bitmap_text(width)

    def read_bitmap(value: Any) -> bytes:
        if type(value) is not str or not spelt(value):
            unpack_columns(row, value)
        letters: bytes = value.encode()
        if columns is not None:
            data = a2b_base64(letters.translate(_STANDARD) + b"==")
            if int.from_bytes(data).bit_count() != columns:
                unpack_columns(row, value)
        return letters

    return read_bitmap


def _bitmap_text(width: int) -> Callable[[str], object]:
    """Matches the texts of bitmaps of that width in the one spelling that each has: no letter has
    bits that belong to no column."""
    size = (width + 7) // 8
    letters = -(-8 * size // 6)
    allowed = int.from_bytes(((1 << width) - 1).to_bytes(size, "little")) << (
        6 * letters - 8 * size
    )
    masks = [allowed >> (6 * place) & 63 for place in reversed(range(letters))]
    # Only the last byte can be incomplete, so only the last two letters can.
    last, end = (
        escape("".join(letter for number, letter in enumerate(_LETTERS) if not number & ~mask))
        for mask in masks[-2:]
    )
    return pattern(f"[A-Za-z0-9_-]{{{letters - 2}}}[{last}][{end}]").fullmatch


def read_bitmaps(texts: Sequence[bytes], size: int) -> NDArray[np.uint8]:
    """The bitmaps of `size` bytes in texts from `reader`; shape (n, size)."""
    # Each text is filled up to whole groups of four letters, so that one call reads all.
    fill = b"A" * (-len(texts[0]) % 4)
    data = a2b_base64((fill.join(texts) + fill).translate(_STANDARD))
    return np.frombuffer(data, np.uint8).reshape(len(texts), -1)[:, :size]
