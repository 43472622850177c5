"""Sealing: when a window has ended, its value becomes one report, once and for all.

The ledger is asked and charged, the report is drawn and queued, and the value is
forgotten in one transaction: a crash leaves all of it done or none of it, and what was
not committed has not left the device. So no window is ever answered twice, and nothing
is sent that the ledger does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable import memo, open_windows, outbox, windows
from deniable.mechanisms import Memoizing
from deniable.wire import Answer, pack_columns

if TYPE_CHECKING:
    from sqlite3 import Connection

    from deniable.ledger import Ledger
    from deniable.metric import Metric
    from deniable.randomness import Bits
    from deniable.registry import Registry

__all__ = ["UNDECLARED_SECONDS", "seal"]

UNDECLARED_SECONDS = 86_400.0
"""How long after its window a value is kept whose metric this registry does not declare: while an
app is upgraded, a process of the newer version may still answer."""


def seal(
    connection: Connection,
    ledger: Ledger,
    registry: Registry,
    now: float,
    ready: float,
    bits: Bits,
) -> int:
    """Close every window that has ended by `now`; its report may be sent from `ready` on.

    Both are POSIX times in seconds. Returns how many windows were answered.
    """
    ended = connection.execute(
        "SELECT metric, window, value FROM windows LEFT JOIN open_values USING (metric, window) "
        "WHERE state = 'open' AND ends <= ? ORDER BY ends, metric",
        (now,),
    ).fetchall()
    answers = 0
    for name, window, value in ended:
        metric = registry.metrics.get(name)
        if metric is None and now < windows.end(window) + UNDECLARED_SECONDS:
            continue
        answered = False
        if metric is not None and value is not None and ledger.allows(metric, registry):
            answered = _answer(connection, ledger, metric, window, value, ready, bits)
        # A metric that is no longer declared is not answered: its value goes in the end.
        open_windows.settle(connection, name, window, answered=answered)
        answers += answered
    return answers


def _answer(
    connection: Connection,
    ledger: Ledger,
    metric: Metric,
    window: str,
    value: str,
    ready: float,
    bits: Bits,
) -> bool:
    """Randomize the value, queue the report, charge the ledger; False where none is due."""
    if windows.start(window) >= windows.end(metric.expires.isoformat()):
        return False
    try:
        item = metric.item(value)
    except KeyError:
        return False
    mechanism = metric.scheme.mechanism
    if isinstance(mechanism, Memoizing):
        report = memo.recall(connection, metric, mechanism, item, bits)
    else:
        report = mechanism.randomize(item, bits)
    columns = pack_columns(mechanism.rows[report.row], report)
    answer = Answer(metric.name, metric.scheme.fingerprint, window, report.row, columns)
    outbox.queue(connection, answer, ready)
    outbox.describe(connection, metric)
    ledger.charge(metric)
    return True
