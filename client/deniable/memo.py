"""Memory: a device's permanent randomized responses, the same in every window and for ever.

A metric with `longitudinal = "memoize"` has one row (its cohort) under each scheme, and one
memo for each cell that its values fall into (see `deniable.mechanisms.Memoizing`). Neither is
stored. Both are drawn anew for each report from a random key of the metric, in a way that
gives the same row and the same memos every time (`deniable.randomness.keyed_bits`).

So the state file does not say which values the device has met, and the same value meets the
same memo whatever happened in between: an opt-out, a restart, another scheme and back. The key
is drawn inside the transaction that seals the first window. Erasing it ends memory for the
metric on this device for good, as the ledger sees to: another key would give a second,
independent memo of the same value, and two memos reveal more than one.

Whoever has both the key and the reports of a device knows the noise, and can name the value.
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
    """One report of a value, by fresh noise on its memo; `mechanism` is the metric's."""
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
    """Whether the metric has its key: one that never answered, or was erased, has none."""
    query = "SELECT 1 FROM memo_keys WHERE metric = ?"
    return connection.execute(query, (metric,)).fetchone() is not None


def erase(connection: Connection) -> None:
    """Destroy all keys: metrics that have answered with memory never do so again."""
    connection.execute("DELETE FROM memo_keys")
