"""The fast path for JSON batches: typed decoding of what every good device sends.

It returns None for anything unusual; then the strict parser of `bodies` decides, and says what
is wrong. Whatever this decoder accepts, that parser would accept with the same result.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Sequence
from functools import lru_cache
from re import compile as pattern
from re import escape

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable import WireError
from deniable.mechanisms import Packing, Row
from deniable.wire import check_batch_id, unpack_columns

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
"""base64url (RFC 4648, section 5): the letter of each number of six bits."""

_STANDARD = bytes.maketrans(b"-_", b"+/")

_begin_as_devices_write = pattern(rb'\{"batch":"([0-9a-f]{32})","reports":\[\{').match
_BETWEEN, _END = b"},{", b"}]}"

_LONGEST_NUMBER = 32
"""Bytes of a column in a list, with the comma and white space, up to which the fast path reads."""


class TypedReport(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    gc=False,
    kw_only=True,
    omit_defaults=True,
):
    """A report as it is sent; the row is -1 if it was not given."""

    metric: str
    scheme: str
    window: str
    row: int = -1
    columns: int | str | list[int]


class TypedBatch(msgspec.Struct, gc=False):
    """A batch as it is sent: its id, and the JSON of each report without its braces, not decoded
    yet."""

    batch: str
    reports: list[bytes]


class _Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    batch: str
    reports: list[TypedReport]


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_report = msgspec.json.Decoder(TypedReport).decode
_decode_number = msgspec.json.Decoder(int).decode
_decode_numbers = msgspec.json.Decoder(list[int]).decode
_encode = msgspec.json.encode


def decode_batch(body: bytes) -> TypedBatch | None:
    """The batch in a body, if each of its reports is one for `decode_report`; or None.

    Devices send batches without white space. Such a body is cut where one report ends and the next
    begins. If each piece is an object's inside, then the body is a list of just these objects.
    Other bodies are decoded, and their reports encoded again as devices write them.
    """
    if b"\\" in body:
        return None
    usual = _begin_as_devices_write(body)
    if usual is not None and body.endswith(_END):
        pieces = body[usual.end() : -len(_END)]
        return TypedBatch(usual[1].decode(), pieces.split(_BETWEEN))
    try:
        envelope = _decode_envelope(body)
        check_batch_id(envelope.batch)
    except (ValueError, RecursionError, WireError):
        return None
    # The decoder uses the last of two equal keys, but such bodies must be refused. In one without
    # escapes all quotation marks belong to keys and texts, so their number reveals a repeated key.
    if body.count(b'"') != 6 + sum(map(_quotes, envelope.reports)):
        return None
    return TypedBatch(envelope.batch, [_encode(each)[1:-1] for each in envelope.reports])


def decode_report(text: bytes) -> TypedReport | None:
    """The report with this inside, or None if it is not a well-typed one without repeated keys."""
    if b"\\" in text:
        return None
    try:
        report = _decode_report(b"{%b}" % text)
    except (ValueError, RecursionError):
        return None
    return report if text.count(b'"') == _quotes(report) else None


def _quotes(report: TypedReport) -> int:
    return 14 + 2 * (report.row != -1) + 2 * (type(report.columns) is str)


@lru_cache(maxsize=1024)
def reader(row: Row) -> Callable[[bytes], int | bytes | None]:
    """Reads the JSON text of columns of that row: as `Accepted.columns`, or None if
    `deniable.wire.unpack_columns` would refuse them."""
    if row.packing is not Packing.BITMAP:
        decode = _decode_number if row.packing is Packing.INDEX else _decode_numbers
        longest = _LONGEST_NUMBER * (row.columns or 1)

        def read(text: bytes) -> int | None:
            try:
                # So long a text would take long, to be refused.
                return unpack_columns(row, decode(text)) if len(text) <= longest else None
            except (ValueError, WireError):
                return None

        return read
    spelt, columns = _bitmap_text(row.width), row.columns

    def read_bitmap(text: bytes) -> bytes | None:
        if spelt(text) is None:
            return None
        letters = text[1:-1]
        if columns is not None:
            data = a2b_base64(letters.translate(_STANDARD) + b"==")
            if int.from_bytes(data).bit_count() != columns:
                return None
        return letters

    return read_bitmap


def _bitmap_text(width: int) -> Callable[[bytes], object]:
    """Matches the JSON texts of bitmaps of that width in the one spelling that each has: no letter
    has bits that belong to no column."""
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
    return pattern(f'"[A-Za-z0-9_-]{{{letters - 2}}}[{last}][{end}]"'.encode()).fullmatch


def read_bitmaps(texts: Sequence[bytes], size: int) -> NDArray[np.uint8]:
    """The bitmaps of `size` bytes in texts from `reader`; shape (n, size)."""
    # Each text is filled up to whole groups of four letters, so that one call reads all.
    fill = b"A" * (-len(texts[0]) % 4)
    data = a2b_base64((fill.join(texts) + fill).translate(_STANDARD))
    return np.frombuffer(data, np.uint8).reshape(len(texts), -1)[:, :size]
