"""Windows: the true value of a metric waits here until its window ends, and becomes one report.

Several records of one window become one value, as the metric's `aggregate` says. Whether the
device takes part in a window is decided once for each metric and window, before any value is
stored and whatever it is. If it does not, the value never reaches the disk. With `sample_rate` it
is drawn anew for each window. With `one_in` the device draws one of so many groups with its first
window, and keeps it: the groups take turns, so each window has its own part of the crowd, of the
same expected size, and no device takes part more often than once in so many windows, whatever its
clock does.

The segments of the device are those of the window's first record, and stay for the window. They
are stored beside the value, and deleted with it.

The first record in a window of a metric with `answer = "at_once"` becomes a report in the same
transaction. Its value never reaches the disk either.

A pair takes part in a window by itself: its own draw is made with the first record of either of
its metrics. A value is kept as long as its metric or one of its pairs takes part.

A value that the metric cannot take is not kept. How many there were is, until the window ends.

*Sealing*: one transaction checks and charges the ledger, draws and queues the report, which never
changes, and deletes the value. After a crash all of it is done or none, and nothing has left the
device that was not committed. So no window is ever reported twice, and the ledger knows every
report.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from sqlite3 import Connection
from typing import Any, NamedTuple

from deniable.device import outbox
from deniable.device.ledger import Ledger, recall
from deniable.protocol import segments, windows
from deniable.protocol.errors import MetricError
from deniable.protocol.mechanisms import Memoizing
from deniable.protocol.metric import Metric
from deniable.protocol.randomness import PRECISION, Bits
from deniable.protocol.registry import Registry
from deniable.protocol.wire import LATEST, SealedReport, pack_columns

KEPT_WINDOWS = 400
"""How many closed windows of a metric are stored. Once there are so many, windows that end no later
than the oldest of them are refused, so that none that was deleted can open again. No later version
may store more: what an earlier one has deleted would not be refused."""

TABLES = """
CREATE TABLE windows (
    metric TEXT NOT NULL,
    window TEXT NOT NULL,
    ends REAL NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'passed', 'answered', 'unanswered')),
    PRIMARY KEY (metric, window)
);
CREATE TABLE open_values (
    metric TEXT NOT NULL,
    window TEXT NOT NULL,
    value TEXT NOT NULL,
    segments TEXT NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY (metric, window)
);
CREATE TABLE refusals (
    metric TEXT NOT NULL,
    window TEXT NOT NULL,
    ends REAL NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY (metric, window)
);
CREATE TABLE groups (metric TEXT PRIMARY KEY, drawn INTEGER NOT NULL);
CREATE TABLE firsts (metric TEXT PRIMARY KEY, window TEXT NOT NULL);
"""
"""A window is `passed` if the device does not take part in it, and `unanswered` if it ended
without a report. Only an `open` one accepts values. Of the integer that is drawn for a metric,
`one_in` takes the remainder. `refusals` counts the values that did not fit, for `deniable doctor`,
until the window ends: that a value did not fit says something about it. `firsts` has the first
window of each metric that looks back, for ever: a device with another one would have another
memo."""

LONG_ENDED = 2 * 86_400.0
"""A report of a window that ended so many seconds before it is sealed is due at once. Such a device
runs the app on few days, and perhaps briefly: the next run may come when the collector refuses the
report."""

UNDECLARED_SECONDS = 86_400.0
"""Seconds after its window for which the value of an undeclared metric is kept: while an app is
upgraded, a process of the newer version may still report it."""


class Record(NamedTuple):
    """One recorded value. It exists only in memory and in the open window."""

    metric: Metric
    text: str
    window: str
    undeclared: bool = False
    """Whether the value is not declared, so that the text is the metric's `other`."""
    segments: Mapping[str, str] = {}
    """The device's value of each segment of the metric."""
    refused: MetricError | None = None
    """Why the metric cannot take the value; then there is no text. It does not repeat the value."""


class _OpenValue(NamedTuple):
    """The value of an open window so far."""

    value: str
    segments: Mapping[str, str]
    records: int = 1


def _stored(value: str, told: str, records: int) -> _OpenValue:
    return _OpenValue(value, json.loads(told), records)


class OpenWindows:
    """The windows of a device in one transaction, which it must not outlive."""

    def __init__(self, connection: Connection, registry: Registry, bits: Bits) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._ledger = Ledger(connection)
        self._registry = registry
        self._bits = bits

    def keep(self, records: Iterable[Record], soon: Callable[[], float]) -> None:
        """Merge records, in the order given, into the values of their open windows.

        The first record of a window that is answered at once is reported, and closes the window.
        `soon` gives the POSIX time from which such reports may be sent.
        """
        refused: Counter[tuple[str, str]] = Counter()
        merged: dict[tuple[str, str], _OpenValue | None] = {}  # None: the window takes no value
        for record in records:
            key = (record.metric.name, record.window)
            if record.refused:
                refused[key] += 1
            elif key not in merged:
                merged[key] = self._begin(record, soon)
            elif (entry := merged[key]) is not None:
                merged[key] = self._merge(record, entry)
        self._connection.executemany(
            "INSERT OR REPLACE INTO open_values VALUES (?, ?, ?, ?, ?)",
            [
                (*key, each.value, json.dumps(each.segments), each.records)
                for key, each in merged.items()
                if each is not None
            ],
        )
        self._connection.executemany(
            "INSERT INTO refusals VALUES (?, ?, ?, ?) "
            "ON CONFLICT (metric, window) DO UPDATE SET records = records + excluded.records",
            [(*key, windows.end(key[1]), count) for key, count in refused.items()],
        )

    def _begin(self, record: Record, soon: Callable[[], float]) -> _OpenValue | None:
        """The window's value after the first of these records; None if it takes none, or is
        answered at once."""
        metric, window, told = record.metric, record.window, record.segments
        if not self._is_wanted(record):
            return None
        query = "SELECT value, segments, records FROM open_values WHERE metric = ? AND window = ?"
        found = self._row(query, metric.name, window)
        # A value that waits was recorded while the metric was answered at the close of its
        # windows. It was promised to wait until then, so it does.
        if found is not None:
            return self._merge(record, _stored(*found))
        if metric.answer != "at_once":
            return _OpenValue(metric.type.begin(metric.aggregate, record.text), told)
        text = self._look_back(metric, window) if metric.type.looks_back else record.text
        self._answer(metric, window, None if text is None else _OpenValue(text, told), soon)
        return None

    def seal(self, now: float, ready: float) -> None:
        """Close every window that has ended by `now`; its report may be sent from `ready` on, or at
        once if it ended long ago. What was refused in it is no longer counted.

        Both are POSIX times in seconds.
        """
        self._execute("DELETE FROM refusals WHERE ends <= ?", (now,))
        ended = self._execute(
            "SELECT metric, window, ends FROM windows WHERE state = 'open' AND ends <= ? "
            "ORDER BY ends, metric",
            (now,),
        ).fetchall()
        if not ended:
            return
        rows = self._execute("SELECT * FROM open_values")
        waiting = {(name, window): _stored(*found) for name, window, *found in rows}
        for name, window, ends in ended:
            metric = self._registry.metrics.get(name)
            if metric is not None:
                # In development mode `now` is infinite.
                long_ended = ends + LONG_ENDED <= now
                due = (lambda: min(now, ready)) if long_ended else (lambda: ready)
                self._answer(metric, window, _value(metric, window, waiting), due)
            # A metric that is no longer declared is not reported; its value is deleted in the end.
            elif self._is_over(name, window, now):
                self._close(name, window, answered=False)
        for name, window in waiting:
            # What a pair alone has kept: neither metric need have taken part in the window.
            if self._is_over(name, window, now):
                self._drop(name, window)

    def _is_over(self, metric: str, window: str, now: float) -> bool:
        """Whether the window's value is not needed any more."""
        late = 0 if metric in self._registry.metrics else UNDECLARED_SECONDS
        return now >= windows.end(window) + late

    def _answer(
        self, metric: Metric, window: str, found: _OpenValue | None, ready: Callable[[], float]
    ) -> None:
        """Report the value of a window, if it has one and the ledger allows the report, and close
        the window."""
        answered = (
            found is not None
            and self._ledger.allows(metric, self._registry)
            and self._report(metric, window, found, ready())
        )
        self._close(metric.name, window, answered=answered)

    def _report(self, metric: Metric, window: str, found: _OpenValue, ready: float) -> bool:
        """Randomize the value, queue the report, charge the ledger; False if there is no report."""
        # Of a device that was off for long the collector would refuse it, and it would be charged.
        if windows.start(window) >= metric.ends or ready > windows.end(window) + LATEST:
            return False
        try:
            item = metric.item(found.value)
        except KeyError:
            return False
        combination = segments.place(metric.segments, found.segments)
        if combination is None:
            return False
        mechanism = metric.scheme.mechanism
        if isinstance(mechanism, Memoizing):
            report = recall(self._connection, metric, mechanism, item, self._bits)
        else:
            report = mechanism.randomize(item, self._bits)
        columns = pack_columns(mechanism.rows[report.row], report)
        row = combination * len(mechanism.rows) + report.row
        sealed = SealedReport(metric.name, metric.scheme.fingerprint, window, row, columns)
        outbox.queue(self._connection, sealed, ready)
        outbox.describe(self._connection, metric)
        self._ledger.charge(metric)
        return True

    def _close(self, metric: str, window: str, *, answered: bool) -> None:
        """Close a window for ever: delete its value, and store that it has ended."""
        self._drop(metric, window)
        self._execute(
            "UPDATE windows SET state = ? WHERE metric = ? AND window = ?",
            ("answered" if answered else "unanswered", metric, window),
        )
        self._prune(metric)

    def _row(self, query: str, *values: object) -> Any:
        """The first row that a query finds, or None."""
        return self._execute(query, values).fetchone()

    def _drop(self, metric: str, window: str) -> None:
        self._execute("DELETE FROM open_values WHERE metric = ? AND window = ?", (metric, window))

    def _is_wanted(self, record: Record) -> bool:
        """Whether the metric or one of its pairs accepts values of the window."""
        metric, window = record.metric, record.window
        takers = [] if metric.name in self._registry.unasked else [metric]
        pairs = self._registry.pairs.get(metric.name, ())
        takers += [pair for pair in pairs if windows.start(window) < pair.ends]
        # All of them draw, so that whether one takes part says nothing about another.
        drawn = [self._is_open(each, window) for each in takers]
        return any(drawn)

    def _is_open(self, metric: Metric, window: str) -> bool:
        """Whether the metric takes part in the window; for a new window that is decided here."""
        found = self._row(
            "SELECT state FROM windows WHERE metric = ? AND window = ?", metric.name, window
        )
        if found is not None:
            return bool(found[0] == "open")
        ends = windows.end(window)
        closed, oldest = self._row(
            "SELECT count(*), min(ends) FROM windows WHERE metric = ? AND state != 'open'",
            metric.name,
        )
        if closed >= KEPT_WINDOWS and ends <= oldest:
            return False
        if not self._ledger.allows(metric, self._registry):
            return False
        takes_part = self._takes_part(metric, window)
        self._execute(
            "INSERT INTO windows (metric, window, ends, state) VALUES (?, ?, ?, ?)",
            (metric.name, window, ends, "open" if takes_part else "passed"),
        )
        if metric.type.looks_back:
            self._remember(metric, window)
        if not takes_part:
            self._prune(metric.name)
        return takes_part

    def _takes_part(self, metric: Metric, window: str) -> bool:
        """Whether the device takes part in a new window of the metric. The remainder of 53 bits is
        uniform to one part in 10**11 at most."""
        if metric.one_in is None:
            return self._bits(PRECISION) < Fraction(metric.sample_rate) * (1 << PRECISION)
        found = self._row("SELECT drawn FROM groups WHERE metric = ?", metric.name)
        if found is None:
            found = (self._bits(PRECISION),)
            self._execute("INSERT INTO groups VALUES (?, ?)", (metric.name, *found))
        return (windows.number(window) - int(found[0])) % metric.one_in == 0

    def _merge(self, record: Record, entry: _OpenValue) -> _OpenValue:
        """The window's value after one more record, and how many records it stands for."""
        metric, records = record.metric, entry.records + 1
        value = metric.type.merge(metric.aggregate, entry.value, record.text, records, self._bits)
        # A metric may get its segments inside a window, when the app is upgraded.
        return _OpenValue(value, entry.segments or record.segments, records)

    def _look_back(self, metric: Metric, window: str) -> str | None:
        """The text that a device reports in a window of a metric that looks back; None if nothing,
        as the clock shows a time before its first window.

        Each window in which the app was used has its row, whether the device takes part or not.
        """
        self._remember(metric, window)  # the row may be of a time when it had another type
        (first,) = self._row("SELECT window FROM firsts WHERE metric = ?", metric.name)
        begins = windows.start(window)
        before = windows.start(windows.shifted(window, -1))
        query = "SELECT 1 FROM windows WHERE metric = ? AND ends > ? AND ends <= ?"
        found = self._row(query, metric.name, before, begins)
        return metric.type.look_back(window, first, found is not None)

    def _remember(self, metric: Metric, window: str) -> None:
        """Store the device's first window, if it has none."""
        self._execute("INSERT OR IGNORE INTO firsts VALUES (?, ?)", (metric.name, window))

    def _prune(self, metric: str) -> None:
        """Delete the oldest closed windows. Those that are kept say which ones are refused."""
        self._execute(
            "DELETE FROM windows WHERE rowid IN (SELECT rowid FROM windows WHERE metric = ? "
            "AND state != 'open' ORDER BY ends DESC, window LIMIT -1 OFFSET ?)",
            (metric, KEPT_WINDOWS),
        )


def _value(
    metric: Metric, window: str, stored: Mapping[tuple[str, str], _OpenValue]
) -> _OpenValue | None:
    """The value of a window that has ended, if it has one. Of a pair it is the one that two others
    make."""
    if not metric.type.of:
        return stored.get((metric.name, window))
    parts = [stored.get((name, window)) for name in metric.type.of]
    joined = metric.type.joined([part and part.value for part in parts])
    return None if joined is None else _OpenValue(joined, {})


def waiting(connection: Connection) -> int:
    """How many values wait for their window to end."""
    (count,) = connection.execute("SELECT count(*) FROM open_values").fetchone()
    return int(count)


def refusals(connection: Connection, now: float) -> dict[str, int]:
    """How many values did not fit in the windows that are open at a POSIX time, by metric."""
    rows = connection.execute(
        "SELECT metric, sum(records) FROM refusals WHERE ends > ? GROUP BY metric", (now,)
    )
    return dict(rows)
