"""The short way to read a batch of JSON: typed decoding of what every good device sends.

It takes no decision of its own. It answers None to whatever is unusual, and the strict
parser of `bodies` then says what is wrong; what it does take, that parser would take alike.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64

import msgspec

from deniable.mechanisms import Packing, Row

__all__ = ["TypedBatch", "TypedReport", "decode_typed", "read_columns"]


class TypedReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A report as it travels; -1 stands for a row that was not given."""

    metric: str
    scheme: str
    window: str
    columns: int | str | list[int]
    row: int = -1


class TypedBatch(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A batch as it travels."""

    batch: str
    reports: list[TypedReport]


_decode = msgspec.json.Decoder(TypedBatch).decode


def decode_typed(body: bytes) -> TypedBatch | None:
    """The batch in a body, or None if it is not one of plain and well-typed JSON.

    The decoder takes the last of two equal keys, which readers must not be free to differ
    in. Without escapes the quotation marks in a body are those of its keys and texts alone,
    so a key more than the batch holds shows in their number.
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
    # The decoder forgives stray bits in the last letter; one set has one spelling.
    if len(data) != (row.width + 7) // 8 or b2a_base64(data, newline=False).rstrip(b"=") != text:
        return None
    columns = int.from_bytes(data, "little")
    if columns >> row.width or (row.columns is not None and columns.bit_count() != row.columns):
        return None
    return columns


_STANDARD = bytes.maketrans(b"-_+/", b"+/!!")
"""From the URL-safe alphabet to the one that the decoder knows, whose own two are foreign."""
