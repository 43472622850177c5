"""The ledger: what this device has spent, per metric and in all, exactly.

A row counts the answers given under one scheme and holds the exact epsilon of each,
rounded up to a float; spending is summed as fractions, so no rounding ever lets one
more answer through. The answers of one device compose by addition, over windows,
schemes and metrics alike.

An answer from a memo costs the epsilon of its fresh noise given the memos: the sum of
these bounds any history, times of change included (see `deniable.mechanisms.Memoizing`).
It counts towards the cap of the registry. A metric's own `lifetime_epsilon` is then the
bound of one memo, which no number of answers uses up; how many memos were ever drawn is
counted beside the answers, and the count outlives the memos.

The whole ledger carries a checksum. Damage must not look like an unspent budget, so a
ledger that disagrees with its checksum ends all reporting from this device.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from deniable.errors import StateError
from deniable.mechanisms import Mechanism, Memoizing

if TYPE_CHECKING:
    from sqlite3 import Connection

    from deniable.metric import Metric
    from deniable.registry import Registry

__all__ = ["MEMO_TABLES", "TABLES", "Ledger"]

TABLES = """
CREATE TABLE ledger (
    metric TEXT NOT NULL,
    scheme TEXT NOT NULL,
    epsilon TEXT NOT NULL,
    answers INTEGER NOT NULL,
    PRIMARY KEY (metric, scheme, epsilon)
);
CREATE TABLE ledger_checksum (checksum TEXT NOT NULL);
"""

MEMO_TABLES = """
CREATE TABLE ledger_cells (
    metric TEXT NOT NULL,
    scheme TEXT NOT NULL,
    epsilon TEXT NOT NULL,
    cells INTEGER NOT NULL,
    PRIMARY KEY (metric, scheme, epsilon)
);
"""
"""`epsilon`, here of an answer and there of a memo, is a hexadecimal float, which text
keeps exactly."""

_Counts: TypeAlias = dict[tuple[str, str, str], int]
"""(metric, scheme, epsilon) -> how many."""


class Ledger:
    """The ledger as one transaction sees it; it must not outlive that transaction.

    Raises:
        StateError: the ledger disagrees with its checksum.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._answers = self._read("SELECT metric, scheme, epsilon, answers FROM ledger")
        self._cells = self._read("SELECT metric, scheme, epsilon, cells FROM ledger_cells")
        stored = connection.execute("SELECT checksum FROM ledger_checksum").fetchall()
        if stored != [(self._checksum(),)]:
            raise StateError(
                "the ledger is damaged, so what was spent is unknown: nothing is reported "
                "from this device until its state directory is removed"
            )

    @staticmethod
    def create(connection: Connection) -> None:
        """Begin an empty ledger."""
        empty = Ledger.__new__(Ledger)
        empty._answers, empty._cells = {}, {}
        connection.execute("INSERT INTO ledger_checksum VALUES (?)", (empty._checksum(),))

    def spent(self, metric: str | None = None) -> Fraction:
        """The exact sum of the epsilons of all answers: of one metric, or of all."""
        return sum(
            (
                answers * Fraction(float.fromhex(epsilon))
                for (name, _, epsilon), answers in self._answers.items()
                if metric is None or name == metric
            ),
            Fraction(0),
        )

    def cells(self, metric: str | None = None) -> int:
        """How many memos were ever drawn: of one metric, or of all."""
        return sum(
            cells for (name, _, _), cells in self._cells.items() if metric is None or name == metric
        )

    def metrics(self) -> list[str]:
        """The metrics that were ever answered, by name."""
        return sorted({name for name, _, _ in self._answers})

    def answers(self, metric: str) -> int:
        """How many answers were given to a metric."""
        return sum(answers for (name, _, _), answers in self._answers.items() if name == metric)

    def left(self, metric: Metric, registry: Registry) -> int | None:
        """How many more answers `allows` will allow if no other metric is answered; None where
        no number ends them."""
        rests = []
        if metric.longitudinal == "fresh":
            rests.append(Fraction(metric.lifetime_epsilon) - self.spent(metric.name))
        if registry.lifetime_epsilon is not None:
            rests.append(Fraction(registry.lifetime_epsilon) - self.spent())
        if not rests:
            return None
        return max(0, min(rests) // Fraction(_cost(metric.scheme.mechanism)))

    def allows(self, metric: Metric, registry: Registry) -> bool:
        """Whether one more answer stays within the metric's lifetime and the registry's."""
        cost = Fraction(_cost(metric.scheme.mechanism))
        if metric.longitudinal == "fresh" and (
            self.spent(metric.name) + cost > Fraction(metric.lifetime_epsilon)
        ):
            return False
        cap = registry.lifetime_epsilon
        return cap is None or self.spent() + cost <= Fraction(cap)

    def charge(self, metric: Metric) -> None:
        """Count one answer of the metric under its scheme."""
        scheme = metric.scheme
        key = (metric.name, scheme.fingerprint, _cost(scheme.mechanism).hex())
        self._add("ledger", self._answers, key)

    def count_cell(self, metric: Metric, mechanism: Memoizing[Any]) -> None:
        """Count one memo of the metric under its scheme, whose mechanism is given."""
        key = (metric.name, metric.scheme.fingerprint, mechanism.lifetime_epsilon.hex())
        self._add("ledger_cells", self._cells, key)

    def _read(self, query: str) -> _Counts:
        return {
            (metric, scheme, epsilon): count
            for metric, scheme, epsilon, count in self._connection.execute(query)
        }

    def _add(self, table: str, counts: _Counts, key: tuple[str, str, str]) -> None:
        counts[key] = counts.get(key, 0) + 1
        self._connection.execute(
            f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?)", (*key, counts[key])
        )
        self._connection.execute("UPDATE ledger_checksum SET checksum = ?", (self._checksum(),))

    def _checksum(self) -> str:
        rows: list[list[str | int]] = sorted([*key, count] for key, count in self._answers.items())
        # Marked, so that a row cannot be moved from one table to the other; and without
        # memos the checksum is that of a ledger which never had any.
        rows += sorted(["cells", *key, count] for key, count in self._cells.items())
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


@lru_cache(maxsize=256)
def _cost(mechanism: Mechanism[Any]) -> float:
    """What one answer may reveal, whatever the device has answered before.

    Kept, since an exact logarithm takes longer than all else here.
    """
    return mechanism.fresh_epsilon if isinstance(mechanism, Memoizing) else mechanism.epsilon
