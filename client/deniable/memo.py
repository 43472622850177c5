"""Memos: a device's permanent randomized responses, the same in every window and for ever.

A metric with `longitudinal = "memoize"` has one row (its cohort) under each scheme, and one
memo for each entry that its values fall into (see `deniable.mechanisms.Memoizing`). Neither is
stored. Both are computed for each report from a random key of the metric, so that row and
memos are the same every time (`deniable.randomness.keyed_bits`).

So the state file does not say which values the device has had, and a value always has the same
memo, whatever happened in between: an opt-out, a restart, another scheme and back. The key is
drawn in the transaction that seals the first window. When it is erased, the metric never
reports with memos again on this device; the ledger enforces this. Another key would give a
second, independent memo of the same value, and two memos reveal more than one.

Whoever has both the key and the reports of a device can compute the noise, and so the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deniable.randomness import KEY_BYTES, Bits, below, keyed_bits

if TYPE_CHECKING:
    from sqlite3 import Connection

    from deniable.mechanisms import Memoizing, Report
    from deniable.metric import Metric

__all__ = ["TABLES", "draw", "erase", "has_key", "recall"]

TABLES = "CREATE TABLE memo_keys (metric TEXT PRIMARY KEY, key BLOB NOT NULL)"


def recall(
    connection: Connection, metric: Metric, mechanism: Memoizing[Any], item: int | str, bits: Bits
) -> Report:
    """One report of a value: fresh noise on its memo. `mechanism` is the metric's."""
    found = connection.execute(
        "SELECT key FROM memo_keys WHERE metric = ?", (metric.name,)
    ).fetchone()
    if found is not None:
        (key,) = found
    else:
        key = bits(8 * KEY_BYTES).to_bytes(KEY_BYTES, "little")
        connection.execute("INSERT INTO memo_keys VALUES (?, ?)", (metric.name, key))
    row, memo = draw(key, metric.scheme.fingerprint, mechanism, item)
    return mechanism.report(row, memo, bits)


def draw(
    key: bytes, fingerprint: str, mechanism: Memoizing[Any], item: int | str
) -> tuple[int, int]:
    """The row of a device, and its memo of a value, under the scheme of that fingerprint."""
    row = below(len(mechanism.rows), keyed_bits(key, f"{fingerprint} row"))
    cell = mechanism.cell(row, item)
    return row, mechanism.memoize(cell, keyed_bits(key, f"{fingerprint} memo {row} {cell:x}"))


def has_key(connection: Connection, metric: str) -> bool:
    """Whether the metric has its key; it has none before its first report and after an erasure."""
    query = "SELECT 1 FROM memo_keys WHERE metric = ?"
    return connection.execute(query, (metric,)).fetchone() is not None


def erase(connection: Connection) -> None:
    """Delete all keys: metrics that have reported with memos never do so again."""
    connection.execute("DELETE FROM memo_keys")
