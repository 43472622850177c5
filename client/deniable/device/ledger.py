"""The ledger: what this device has spent, per metric and in all, exactly.

A row of the `ledger` table counts the reports under one scheme and has the exact epsilon of
each, rounded up to a float. Epsilons are added as fractions, so rounding never allows an extra
report. The epsilons of all reports of a device add up, over windows, schemes and metrics.

*Without memos* a report is allowed while the sum over the metric's reports stays within its
`lifetime_epsilon`, whatever its values were and whenever they changed.

*With memos* (see `deniable.protocol.mechanisms.Memoizing`) any number of reports of one value
reveal no more than its memo. Another scheme has another memo of the same value. So each scheme
under which the device ever reported is charged the epsilon of its memos once, and reports without
memos are added. A report is allowed while this sum stays within `lifetime_epsilon`, and while the
key of the memos exists: a second key would make second memos.

The registry's own `lifetime_epsilon` caps the sum over all metrics. Here a report from a memo
costs the epsilon of its fresh noise, given the memos; this sum bounds any history, times of
change included.

*Memos* are a device's permanent randomized responses: the same in every window and for
ever.

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

from fractions import Fraction
from sqlite3 import Connection
from typing import Any

from deniable.protocol.mechanisms import Memoizing, Report
from deniable.protocol.metric import Metric
from deniable.protocol.randomness import KEY_BYTES, Bits, below, keyed_bits
from deniable.protocol.registry import Registry

TABLES = """
CREATE TABLE ledger (
    metric TEXT NOT NULL,
    scheme TEXT NOT NULL,
    epsilon TEXT NOT NULL,
    memo TEXT,
    answers INTEGER NOT NULL,
    PRIMARY KEY (metric, scheme, epsilon)
);
CREATE TABLE memo_keys (metric TEXT PRIMARY KEY, key BLOB NOT NULL)
"""
"""`epsilon` is of a report, and `memo` the epsilon of its scheme's memos, if it has any. Both are
hexadecimal floats, which text stores exactly."""


class Ledger:
    """The ledger as one transaction sees it; it must not outlive that transaction."""

    def __init__(self, connection: Connection) -> None:
        self._execute = connection.execute

    def spent(self, metric: str | None = None) -> Fraction:
        """The exact sum of the epsilons of all reports: of one metric, or of all."""
        query = "SELECT epsilon, answers FROM ledger WHERE metric = ifnull(?, metric)"
        return self._sum(query, metric)

    def reports(self) -> dict[str, int]:
        """How many reports there were for each metric that was ever reported, by name."""
        query = "SELECT metric, sum(answers) FROM ledger GROUP BY metric ORDER BY metric"
        return dict(self._execute(query))

    def left(self, metric: Metric, registry: Registry) -> int | None:
        """How many more reports `allows` will allow if no other metric is reported; None if there
        is no limit."""
        mechanism, rests = metric.scheme.mechanism, []
        if not isinstance(mechanism, Memoizing):
            rests.append(Fraction(metric.lifetime_epsilon) - self.spent(metric.name))
        elif not self._has_room(metric, mechanism):
            return 0
        if registry.lifetime_epsilon is not None:
            rests.append(Fraction(registry.lifetime_epsilon) - self.spent())
        return max(0, min(rests) // Fraction(mechanism.cost)) if rests else None

    def allows(self, metric: Metric, registry: Registry) -> bool:
        """Whether one more report stays within the metric's lifetime and the registry's."""
        return self.left(metric, registry) != 0

    def charge(self, metric: Metric) -> None:
        """Count one report of the metric under its scheme, and its memos if it has any."""
        mechanism = metric.scheme.mechanism
        memo = mechanism.lifetime_epsilon.hex() if isinstance(mechanism, Memoizing) else None
        self._execute(
            "INSERT INTO ledger VALUES (?, ?, ?, ?, 1) "
            "ON CONFLICT (metric, scheme, epsilon) DO UPDATE SET answers = answers + 1",
            (metric.name, metric.scheme.fingerprint, mechanism.cost.hex(), memo),
        )

    def memos(self, metric: str) -> Fraction:
        """The exact sum of the epsilons of a metric's memos: one for each scheme that had any."""
        return self._sum("SELECT memo, 1 FROM ledger WHERE metric = ? AND memo NOT NULL", metric)

    def _has_room(self, metric: Metric, mechanism: Memoizing[Any]) -> bool:
        """Whether the memos of the metric, and the reports without, stay within its own lifetime
        epsilon, and the key of the memos exists."""
        memos = self.memos(metric.name)
        if memos and not self._has("memo_keys WHERE metric = ?", metric.name):
            return False  # an erasure has deleted it
        key = metric.name, metric.scheme.fingerprint
        if not self._has("ledger WHERE metric = ? AND scheme = ?", *key):
            memos += Fraction(mechanism.lifetime_epsilon)
        query = "SELECT epsilon, answers FROM ledger WHERE metric = ? AND memo IS NULL"
        return memos + self._sum(query, metric.name) <= Fraction(metric.lifetime_epsilon)

    def _has(self, rows: str, *values: str) -> bool:
        return self._execute(f"SELECT 1 FROM {rows}", values).fetchone() is not None

    def _sum(self, query: str, metric: str | None) -> Fraction:
        """The exact sum of the epsilons that a query finds, each so many times."""
        found = self._execute(query, (metric,))
        return sum((times * Fraction(float.fromhex(each)) for each, times in found), Fraction(0))


def draw_keys(connection: Connection, registry: Registry, bits: Bits) -> None:
    """Draw the key of each metric with memos that has none, unless its key was erased after a
    report."""
    found = connection.execute(
        "SELECT metric FROM memo_keys UNION SELECT metric FROM ledger WHERE memo NOT NULL"
    )
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
