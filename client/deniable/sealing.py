"""Sealing: the value of a window becomes one report, which never changes.

That happens when the window has ended, or, if its metric is answered at once, with the window's
first record.

One transaction checks and charges the ledger, draws and queues the report, and deletes the
value. After a crash all of it is done or none, and nothing has left the device that was not
committed. So no window is ever reported twice, and the ledger knows every report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from deniable import memo, open_windows, outbox, segments, windows
from deniable.mechanisms import Memoizing
from deniable.wire import SealedReport, pack_columns

if TYPE_CHECKING:
    from sqlite3 import Connection

    from deniable.ledger import Ledger
    from deniable.metric import Metric
    from deniable.randomness import Bits
    from deniable.recording import Record
    from deniable.registry import Registry

UNDECLARED_SECONDS = 86_400.0
"""Seconds after its window for which the value of an undeclared metric is kept: while an app is
upgraded, a process of the newer version may still report it."""


def seal(
    connection: Connection,
    ledger: Ledger,
    registry: Registry,
    now: float,
    ready: float,
    bits: Bits,
) -> int:
    """Close every window that has ended by `now`; its report may be sent from `ready` on.

    Both are POSIX times in seconds. Returns how many windows were reported.
    """
    ended = connection.execute(
        "SELECT metric, window FROM windows WHERE state = 'open' AND ends <= ? "
        "ORDER BY ends, metric",
        (now,),
    ).fetchall()
    if not ended:
        return 0
    values = open_windows.values(connection)
    reports = 0
    for name, window in ended:
        metric = registry.metrics.get(name)
        if metric is None and now < windows.end(window) + UNDECLARED_SECONDS:
            continue
        answered = False
        value = None if metric is None else _value(metric, window, values)
        if metric is not None and value is not None and ledger.allows(metric, registry):
            given, text = open_windows.parse_value(value)
            answered = _report(connection, ledger, metric, window, text, given, ready, bits)
        # A metric that is no longer declared is not reported; its value is deleted in the end.
        open_windows.close_window(connection, name, window, answered=answered)
        reports += answered
    open_windows.drop(
        connection,
        # What a pair alone has kept: neither metric need have taken part in the window.
        [
            (name, window)
            for name, window in values
            if now >= windows.end(window) + (0 if name in registry.metrics else UNDECLARED_SECONDS)
        ],
    )
    return reports


def _value(metric: Metric, window: str, values: Mapping[tuple[str, str], str]) -> str | None:
    """The value of a window that has ended: of a pair, the one that two others make."""
    if metric.type.of:
        stored = (values.get((name, window)) for name in metric.type.of)
        return metric.type.joined(
            [None if each is None else open_windows.parse_value(each)[1] for each in stored]
        )
    return values.get((metric.name, window))


def seal_first(
    connection: Connection,
    ledger: Ledger,
    registry: Registry,
    record: Record,
    ready: Callable[[], float],
    bits: Bits,
) -> None:
    """Report the first record of an open window at once, and close the window.

    `ready` gives the POSIX time from which the report may be sent. If the ledger does not allow
    the report, the window is closed without one.
    """
    metric, window = record.metric, record.window
    text: str | None = record.text
    if metric.type.looks_back:
        text = open_windows.look_back(connection, metric, window)
    answered = (
        text is not None
        and ledger.allows(metric, registry)
        and _report(connection, ledger, metric, window, text, record.segments or {}, ready(), bits)
    )
    open_windows.close_window(connection, metric.name, window, answered=answered)


def _report(
    connection: Connection,
    ledger: Ledger,
    metric: Metric,
    window: str,
    value: str,
    given: Mapping[str, str],
    ready: float,
    bits: Bits,
) -> bool:
    """Randomize the value, queue the report, charge the ledger; False if there is no report."""
    if windows.start(window) >= windows.end(metric.expires.isoformat()):
        return False
    try:
        item = metric.item(value)
    except KeyError:
        return False
    combination = segments.place(metric.segments, given)
    if combination is None:
        return False
    mechanism = metric.scheme.mechanism
    if isinstance(mechanism, Memoizing):
        report = memo.recall(connection, metric, mechanism, item, bits)
    else:
        report = mechanism.randomize(item, bits)
    columns = pack_columns(mechanism.rows[report.row], report)
    row = combination * len(mechanism.rows) + report.row
    sealed = SealedReport(metric.name, metric.scheme.fingerprint, window, row, columns)
    outbox.queue(connection, sealed, ready)
    outbox.describe(connection, metric)
    ledger.charge(metric)
    return True
