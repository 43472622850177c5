"""The wire format: how reports become a batch of JSON, and how one is read back.

A batch is an object with a random `batch` id and its `reports`. A report names its
`metric`, `scheme` and `window`, its `row` (left out when 0), and its `columns`: a
number where the row is packed as an index, a sorted list of numbers for a list, and
URL-safe base64 without padding for a bitmap. `client/vectors/wire.json` holds valid
and invalid examples. A batch of development mode has a mark in front, which only `deniable dev`
takes.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from deniable.protocol.coded_message import counted
from deniable.protocol.errors import WireError
from deniable.protocol.mechanisms import Packing, Report, Row
from deniable.protocol.randomness import Bits, system_bits

LATEST = 6 * 86_400.0
"""Seconds after its end for which collectors take the reports of a window."""

BATCH_ID_BITS = 128
_BATCH_ID = re.compile(rf"[0-9a-f]{{{BATCH_ID_BITS // 4}}}")

PackedColumns: TypeAlias = int | str | list[int]


class SealedReport(NamedTuple):
    """One report with the tally that it belongs to, as it is sent; `columns` are packed."""

    metric: str
    scheme: str
    window: str
    row: int
    columns: PackedColumns


def new_batch_id(bits: Bits = system_bits) -> str:
    """A fresh random id: 32 lower-case hex digits."""
    return f"{bits(BATCH_ID_BITS):0{BATCH_ID_BITS // 4}x}"


def strict_json(text: str | bytes) -> Any:
    """What JSON says to every reader: of a key that stands twice, others may take the other one.

    Raises:
        ValueError, RecursionError: it is not JSON, or an object repeats a key.
    """
    return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse)


def check_batch_id(text: object) -> str:
    """The batch id, if it is one.

    Raises:
        WireError: `bad_batch_id`.
    """
    if not isinstance(text, str) or not _BATCH_ID.fullmatch(text):
        raise WireError("bad_batch_id", f"batch must be {BATCH_ID_BITS // 4} lower-case hex digits")
    return text


def pack_columns(row: Row, report: Report) -> PackedColumns:
    """A report's columns as they are in JSON."""
    if row.packing is Packing.INDEX:
        return report.columns
    if row.packing is Packing.LIST:
        return list(positions(report.columns))
    return _to_base64(report.columns.to_bytes(row.report_bytes, "little"))


def unpack_columns(row: Row, packed: Any) -> int:
    """The columns that `pack_columns` packed, as `Report.columns` holds them.

    Raises:
        WireError: `bad_columns`: another packing, a column outside the row, or not
            exactly as many columns as the mechanism sets.
    """
    if row.packing is Packing.INDEX:
        return _column(row, packed)
    if row.packing is Packing.LIST:
        columns = _from_list(row, packed)
    else:
        columns = _from_bitmap(row, packed)
    if row.columns is not None and columns.bit_count() != row.columns:
        raise WireError(
            "bad_columns", f"columns must name exactly {counted(row.columns, 'column')}"
        )
    return columns


def encode_batch(batch_id: str, sealed: Iterable[SealedReport]) -> bytes:
    """The body of POST /v1/reports."""
    reports = []
    for each in sealed:
        report = each._asdict()
        if each.row == 0:
            del report["row"]
        reports.append(report)
    return json.dumps({"batch": batch_id, "reports": reports}, separators=(",", ":")).encode()


_DEVELOPMENT = b'{"development":true,'


def mark_development(body: bytes) -> bytes:
    """The body of a batch with the mark of development mode, as its first member. A collector that
    is no `deniable dev` refuses it, because a batch has no such member."""
    return _DEVELOPMENT + body.removeprefix(b"{")


def is_development(body: bytes) -> bool:
    """Whether a body begins with the mark, exactly as `mark_development` writes it."""
    return body.startswith(_DEVELOPMENT)


def unmarked(body: bytes) -> bytes:
    """The body without the mark that it begins with."""
    return b"{" + body.removeprefix(_DEVELOPMENT)


def _column(row: Row, packed: Any) -> int:
    if type(packed) is not int or not 0 <= packed < row.width:
        raise WireError("bad_columns", f"columns must be a number from 0 to {row.width - 1}")
    return packed


def _from_list(row: Row, packed: Any) -> int:
    # The length is checked first, so that work on hostile input is bounded.
    if not isinstance(packed, list) or len(packed) != row.columns:
        raise WireError("bad_columns", f"columns must be a list of {row.columns} numbers")
    columns = 0
    for each in packed:
        columns |= 1 << _column(row, each)
    return columns


def _from_bitmap(row: Row, packed: Any) -> int:
    letters = (row.report_bytes * 4 + 2) // 3
    if isinstance(packed, str) and len(packed) == letters:
        try:
            data = base64.urlsafe_b64decode(packed + "=" * (-letters % 4))
        except ValueError:
            data = b""
        columns = int.from_bytes(data, "little")
        # The decoder ignores foreign letters and stray bits, but a set has only one spelling.
        if _to_base64(data) == packed and not columns >> row.width:
            return columns
    raise WireError(
        "bad_columns",
        f"columns must be a bitmap of {row.width} bits: {letters} letters of URL-safe base64",
    )


def _to_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def positions(bitmap: int) -> Iterable[int]:
    """The places of the bits that are set, rising."""
    while bitmap:
        lowest = bitmap & -bitmap
        yield lowest.bit_length() - 1
        bitmap ^= lowest


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("an object repeats a key")
    return document


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
