"""The memos: this device's permanent responses, drawn once and for ever.

A metric with `longitudinal = "memoize"` has one row (its cohort) for each scheme, and one
memo for each cell that its values have fallen into (see `deniable.mechanisms.Memoizing`).
Both are drawn when they are first needed, inside the transaction that seals the window
and before the report is drawn from them, so a crash or a retry never draws them again.

What is kept says which cells this device has met: a cell is a value's number, its hash or
its Bloom filter, and who can read the file can find the value. That is the price of
memory. Reports never hold a cell; `opt_out` erases all of them, and the ledger goes on
counting: a memo that is drawn anew afterwards reveals as much as another value's would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deniable.randomness import Bits, below

if TYPE_CHECKING:
    from sqlite3 import Connection

    from deniable.ledger import Ledger
    from deniable.mechanisms import Memoizing, Report
    from deniable.metric import Metric

__all__ = ["TABLES", "clear", "recall"]

TABLES = """
CREATE TABLE memo_rows (
    metric TEXT NOT NULL,
    scheme TEXT NOT NULL,
    row INTEGER NOT NULL,
    PRIMARY KEY (metric, scheme)
);
CREATE TABLE memos (
    metric TEXT NOT NULL,
    scheme TEXT NOT NULL,
    cell TEXT NOT NULL,
    memo TEXT NOT NULL,
    PRIMARY KEY (metric, scheme, cell)
);
"""
"""Cells and memos are hexadecimal: a Bloom filter is longer than an integer of SQLite's."""


def recall(
    connection: Connection,
    ledger: Ledger,
    metric: Metric,
    mechanism: Memoizing[Any],
    item: int | str,
    bits: Bits,
) -> Report:
    """One report of a value, by fresh noise on its memo.

    `mechanism` is that of the metric's scheme. A memo that is drawn is counted in the ledger.
    """
    key = (metric.name, metric.scheme.fingerprint)
    row = _row(connection, key, mechanism, bits)
    cell = mechanism.cell(row, item)
    place = (*key, f"{cell:x}")
    found = connection.execute(
        "SELECT memo FROM memos WHERE metric = ? AND scheme = ? AND cell = ?", place
    ).fetchone()
    if found is not None:
        memo = int(found[0], 16)
    else:
        memo = mechanism.memoize(cell, bits)
        connection.execute("INSERT INTO memos VALUES (?, ?, ?, ?)", (*place, f"{memo:x}"))
        ledger.count_cell(metric, mechanism)
    return mechanism.report(row, memo, bits)


def clear(connection: Connection) -> None:
    """Forget all memos and rows."""
    connection.execute("DELETE FROM memos")
    connection.execute("DELETE FROM memo_rows")


def _row(
    connection: Connection, key: tuple[str, str], mechanism: Memoizing[Any], bits: Bits
) -> int:
    """The row that this device stays in."""
    found = connection.execute(
        "SELECT row FROM memo_rows WHERE metric = ? AND scheme = ?", key
    ).fetchone()
    if found is not None:
        return int(found[0])
    row = below(len(mechanism.rows), bits)
    connection.execute("INSERT INTO memo_rows VALUES (?, ?, ?)", (*key, row))
    return row
