"""The fast path for JSON batches: typed decoding of what every good device sends.

It returns None for anything unusual; then the strict parser of `bodies` decides, and says what
is wrong. Whatever this decoder accepts, that parser would accept with the same result.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

import msgspec

from deniable.mechanisms import Packing, Row

__all__ = ["TypedBatch", "TypedReport", "decode_typed", "read_columns"]


class TypedReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A report as it is sent; the row is -1 if it was not given."""

    metric: str
    scheme: str
    window: str
    columns: int | str | list[int]
    row: int = -1


class TypedBatch(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A batch as it is sent."""

    batch: str
    reports: list[TypedReport]


_decode = msgspec.json.Decoder(TypedBatch).decode


def decode_typed(body: bytes) -> TypedBatch | None:
    """The batch in a body, or None if it is not one of plain and well-typed JSON.

    The decoder uses the last of two equal keys, but such bodies must be refused. In a body
    without escapes all quotation marks belong to keys and texts, so their number reveals a
    repeated key.
    """
    if b"\\" in body:
        return None
    try:
        batch = _decode(body)
    except (ValueError, RecursionError):
        return None
    quotes = 6
    for report in batch.reports:
        quotes += 14
        if report.row != -1:
            quotes += 2
        if type(report.columns) is str:
            quotes += 2
    return batch if body.count(b'"') == quotes else None


def read_columns(row: Row, packed: int | str | list[int]) -> int | None:
    """The columns as `deniable.wire.unpack_columns` reads them, or None to ask it."""
    if row.packing is Packing.INDEX:
        return packed if type(packed) is int and 0 <= packed < row.width else None
    if type(packed) is not str or row.packing is not Packing.BITMAP:
        return None
    text = packed.encode().translate(_STANDARD)
    try:
        data = a2b_base64(text + b"=" * (-len(text) % 4), strict_mode=True)
    except ValueError:
        return None
    # The decoder ignores stray bits in the last letter, but a set has only one spelling.
    if len(data) != (row.width + 7) // 8 or b2a_base64(data, newline=False).rstrip(b"=") != text:
        return None
    columns = int.from_bytes(data, "little")
    if columns >> row.width or (row.columns is not None and columns.bit_count() != row.columns):
        return None
    return columns


_STANDARD = bytes.maketrans(b"-_+/", b"+/!!")
"""From the URL-safe alphabet to the decoder's; the two letters of the latter become invalid."""
