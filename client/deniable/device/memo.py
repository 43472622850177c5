"""Memos: a device's permanent randomized responses, the same in every window and for ever.

A metric with `longitudinal = "memoize"` has one row (its cohort) under each scheme, and one
memo for each entry that its values fall into (see `deniable.protocol.mechanisms.Memoizing`).
Neither is stored. Both are computed for each report from a random key of the metric, so that row
and memos are the same every time (`deniable.protocol.randomness.keyed_bits`).

So the state file does not say which values the device has had, and a value always has the same
memo, whatever happened in between: an opt-out, a restart, another scheme and back. When the key
is erased, the metric never reports with memos again on this device; the ledger enforces this.
Another key would give a second, independent memo of the same value, and two memos reveal more
than one.

For the same reason the keys are drawn when the state is made, before the first value is kept: all
copies of a state, from a backup or of an image of the machine, have the same memos.

Whoever has both the key and the reports of a device can compute the noise, and so the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deniable.protocol.randomness import KEY_BYTES, Bits, below, keyed_bits

if TYPE_CHECKING:
    from sqlite3 import Connection

    from deniable.protocol.mechanisms import Memoizing, Report
    from deniable.protocol.metric import Metric
    from deniable.protocol.registry import Registry

TABLES = "CREATE TABLE memo_keys (metric TEXT PRIMARY KEY, key BLOB NOT NULL)"


def draw_keys(connection: Connection, registry: Registry, bits: Bits) -> None:
    """Draw the key of each metric with memos that has none, unless its key was erased after a
    report."""
    found = connection.execute("SELECT metric FROM memo_keys UNION SELECT metric FROM ledger_memos")
    known = {name for (name,) in found}
    for metric in registry:
        if metric.longitudinal == "memoize" and metric.name not in known:
            key = bits(8 * KEY_BYTES).to_bytes(KEY_BYTES, "little")
            connection.execute("INSERT INTO memo_keys VALUES (?, ?)", (metric.name, key))


def recall(
    connection: Connection, metric: Metric, mechanism: Memoizing[Any], item: int | str, bits: Bits
) -> Report:
    """One report of a value: fresh noise on its memo. `mechanism` is the metric's."""
    (key,) = connection.execute(
        "SELECT key FROM memo_keys WHERE metric = ?", (metric.name,)
    ).fetchone()
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
    """Whether the metric has its key, which an erasure deletes."""
    query = "SELECT 1 FROM memo_keys WHERE metric = ?"
    return connection.execute(query, (metric,)).fetchone() is not None


def erase(connection: Connection) -> None:
    """Delete all keys: metrics that have reported with memos never do so again."""
    connection.execute("DELETE FROM memo_keys")
