"""The ledger: what this device has spent, per metric and in all, exactly.

A row counts the answers given under one scheme and holds the exact epsilon of each,
rounded up to a float; spending is summed as fractions, so no rounding ever lets one
more answer through. The answers of one device compose by addition, over windows,
schemes and metrics alike.

The whole ledger carries a checksum. Damage must not look like an unspent budget, so a
ledger that disagrees with its checksum ends all reporting from this device.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hearsay.errors import StateError

if TYPE_CHECKING:
    from sqlite3 import Connection

    from hearsay.mechanisms import Mechanism
    from hearsay.registry import Metric, Registry

__all__ = ["TABLES", "Ledger"]

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
"""`epsilon` is a hexadecimal float, which text keeps exactly."""


class Ledger:
    """The ledger as one transaction sees it; it must not outlive that transaction.

    Raises:
        StateError: the ledger disagrees with its checksum.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        query = "SELECT metric, scheme, epsilon, answers FROM ledger"
        self._answers: dict[tuple[str, str, str], int] = {
            (metric, scheme, epsilon): answers
            for metric, scheme, epsilon, answers in connection.execute(query)
        }
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
        empty._answers = {}
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

    def allows(self, metric: Metric, registry: Registry) -> bool:
        """Whether one more answer stays within the metric's lifetime and the registry's."""
        cost = Fraction(_epsilon(metric.scheme.mechanism))
        if self.spent(metric.name) + cost > Fraction(metric.lifetime_epsilon):
            return False
        cap = registry.lifetime_epsilon
        return cap is None or self.spent() + cost <= Fraction(cap)

    def charge(self, metric: Metric) -> None:
        """Count one answer of the metric under its scheme."""
        scheme = metric.scheme
        key = (metric.name, scheme.fingerprint, _epsilon(scheme.mechanism).hex())
        self._answers[key] = self._answers.get(key, 0) + 1
        self._connection.execute(
            "INSERT OR REPLACE INTO ledger (metric, scheme, epsilon, answers) VALUES (?, ?, ?, ?)",
            (*key, self._answers[key]),
        )
        self._connection.execute("UPDATE ledger_checksum SET checksum = ?", (self._checksum(),))

    def _checksum(self) -> str:
        rows = sorted([*key, answers] for key, answers in self._answers.items())
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


@lru_cache(maxsize=256)
def _epsilon(mechanism: Mechanism[Any]) -> float:
    """The mechanism's epsilon; its exact logarithm takes longer than all else here."""
    return mechanism.epsilon
