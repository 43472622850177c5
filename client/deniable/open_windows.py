"""Open windows: the true value of a metric waits here until its window ends.

Several records of one window become one value, as the metric's `aggregate` says. Whether the
device takes part in a window is decided once for each metric and window, before any value is
stored and whatever it is. If it does not, the value never reaches the disk. With `sample_rate` it
is drawn anew for each window. With `one_in` the device draws one of so many groups with its first
window, and keeps it: the groups take turns, so each window has its own part of the crowd, of the
same expected size, and no device takes part more often than once in so many windows, whatever its
clock does.

The segments of the device are those of the window's first record, and stay for the window. They
are stored in front of the value, and deleted with it.

The first record in a window of a metric with `answer = "at_once"` becomes a report in the same
transaction (`deniable.sealing.seal_first`). Its value never reaches the disk either.

A pair takes part in a window by itself: its own draw is made with the first record of either of
its metrics. A value is kept as long as its metric or one of its pairs takes part.

A value that the metric cannot take is not kept. How many there were is, until the window ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from deniable import windows
from deniable.randomness import PRECISION, Bits

if TYPE_CHECKING:
    from sqlite3 import Connection

    from deniable.ledger import Ledger
    from deniable.metric import Metric
    from deniable.recording import Record
    from deniable.registry import Registry

KEPT_WINDOWS = 400
"""How many windows of a metric are stored; older ones are refused."""

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
CREATE TABLE horizons (metric TEXT PRIMARY KEY, ends REAL NOT NULL);
CREATE TABLE groups (metric TEXT PRIMARY KEY, drawn INTEGER NOT NULL);
CREATE TABLE firsts (metric TEXT PRIMARY KEY, window TEXT NOT NULL);
"""
"""A window is `passed` if the device does not take part in it, and `unanswered` if it ended
without a report. Only an `open` one accepts values, and none that ends before its metric's
horizon does. Of the integer that is drawn for a metric, `one_in` takes the remainder. `refusals`
counts the values that did not fit, for `deniable doctor`, until the window ends: that a value did
not fit says something about it. `firsts` has the first window of each metric that looks back, for
ever: a device with another one would have another memo."""


_PAIR, _END = "\x1f", "\x1e"
"""After each segment, and after the last. No value and no segment holds a control character."""


class _OpenValue(NamedTuple):
    """The value of an open window so far."""

    segments: Mapping[str, str]
    value: str
    records: int

    @property
    def text(self) -> str:
        """Segments and value as they are stored."""
        if not self.segments:
            return self.value
        named = (f"{name}={value}" for name, value in self.segments.items())
        return f"{_PAIR.join(named)}{_END}{self.value}"


def parse_value(stored: str) -> tuple[dict[str, str], str]:
    """The segments and the value of a stored text."""
    named, end, value = stored.rpartition(_END)
    pairs = (each.partition("=") for each in named.split(_PAIR)) if end else ()
    return {name: text for name, _, text in pairs}, value


def keep(
    connection: Connection,
    ledger: Ledger,
    registry: Registry,
    records: Iterable[Record],
    bits: Bits,
    seal_first: Callable[[Record], None],
) -> None:
    """Merge records, in the order given, into the values of their open windows.

    `seal_first` reports the first record of a window that is answered at once, and closes the
    window.
    """
    refused: Counter[tuple[str, str]] = Counter()
    merged: dict[tuple[str, str], _OpenValue | None] = {}
    closed: set[tuple[str, str]] = set()
    for record in records:
        key = (record.metric.name, record.window)
        if record.refused:
            refused[key] += 1
            continue
        if key in closed:
            continue
        if key not in merged:
            if not _is_wanted(connection, ledger, registry, record, bits):
                closed.add(key)
                continue
            found = connection.execute(
                "SELECT value, records FROM open_values WHERE metric = ? AND window = ?", key
            ).fetchone()
            # A value that waits was recorded while the metric was answered at the close of its
            # windows. It was promised to wait until then, so it does.
            if found is None and record.metric.answer == "at_once":
                seal_first(record)
                closed.add(key)
                continue
            merged[key] = None if found is None else _OpenValue(*parse_value(found[0]), found[1])
        merged[key] = _merge(record, merged[key], bits)
    connection.executemany(
        "INSERT OR REPLACE INTO open_values (metric, window, value, records) VALUES (?, ?, ?, ?)",
        [(*key, entry.text, entry.records) for key, entry in merged.items() if entry is not None],
    )
    for (metric, window), count in refused.items():
        connection.execute(
            "INSERT OR IGNORE INTO refusals VALUES (?, ?, ?, 0)",
            (metric, window, windows.end(window)),
        )
        connection.execute(
            "UPDATE refusals SET records = records + ? WHERE metric = ? AND window = ?",
            (count, metric, window),
        )


def close_window(connection: Connection, metric: str, window: str, *, answered: bool) -> None:
    """Close a window for ever: delete its value, and store that it has ended."""
    connection.execute("DELETE FROM open_values WHERE metric = ? AND window = ?", (metric, window))
    connection.execute(
        "UPDATE windows SET state = ? WHERE metric = ? AND window = ?",
        ("answered" if answered else "unanswered", metric, window),
    )
    _prune(connection, metric)


def values(connection: Connection) -> dict[tuple[str, str], str]:
    """The stored texts that wait, by metric and window; `parse_value` takes them apart."""
    rows = connection.execute("SELECT metric, window, value FROM open_values")
    return {(metric, window): value for metric, window, value in rows}


def drop(connection: Connection, keys: Iterable[tuple[str, str]]) -> None:
    """Delete the values of these metrics and windows."""
    connection.executemany("DELETE FROM open_values WHERE metric = ? AND window = ?", keys)


def look_back(connection: Connection, metric: Metric, window: str) -> str | None:
    """The text that a device reports in a window of a metric that looks back; None if nothing, as
    the clock shows a time before its first window.

    Each window in which the app was used has its row, whether the device takes part or not.
    """
    _remember(connection, metric, window)  # the row may be of a time when it had another type
    (first,) = connection.execute(
        "SELECT window FROM firsts WHERE metric = ?", (metric.name,)
    ).fetchone()
    begins = windows.start(window)
    before = windows.start(windows.shifted(window, -1))
    found = connection.execute(
        "SELECT 1 FROM windows WHERE metric = ? AND ends > ? AND ends <= ?",
        (metric.name, before, begins),
    ).fetchone()
    return metric.type.look_back(window, first, found is not None)


def _remember(connection: Connection, metric: Metric, window: str) -> None:
    """Store the device's first window, if it has none."""
    connection.execute("INSERT OR IGNORE INTO firsts VALUES (?, ?)", (metric.name, window))


def forget_firsts(connection: Connection) -> None:
    """Delete the first windows: without its memos, a metric that looks back is not reported."""
    connection.execute("DELETE FROM firsts")


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


def forget_refusals(connection: Connection, now: float) -> None:
    """Delete the counts of the windows that have ended."""
    connection.execute("DELETE FROM refusals WHERE ends <= ?", (now,))


def clear(connection: Connection) -> None:
    """Delete all open values, and how many did not fit. Their windows stay open, and are not drawn
    again."""
    connection.execute("DELETE FROM open_values")
    connection.execute("DELETE FROM refusals")


def _is_wanted(
    connection: Connection, ledger: Ledger, registry: Registry, record: Record, bits: Bits
) -> bool:
    """Whether the metric or one of its pairs accepts values of the window."""
    metric, window = record.metric, record.window
    takers = [] if metric.name in registry.unasked else [metric]
    begins = windows.start(window)
    takers += [
        pair
        for pair in registry.pairs.get(metric.name, ())
        if begins < windows.end(pair.expires.isoformat())
    ]
    # All of them draw, so that whether one takes part says nothing about another.
    drawn = [_is_open(connection, ledger, registry, each, window, bits) for each in takers]
    return any(drawn)


def _is_open(
    connection: Connection,
    ledger: Ledger,
    registry: Registry,
    metric: Metric,
    window: str,
    bits: Bits,
) -> bool:
    """Whether the metric takes part in the window; for a new window that is decided here."""
    found = connection.execute(
        "SELECT state FROM windows WHERE metric = ? AND window = ?", (metric.name, window)
    ).fetchone()
    if found is not None:
        return bool(found[0] == "open")
    ends = windows.end(window)
    horizon = connection.execute(
        "SELECT ends FROM horizons WHERE metric = ?", (metric.name,)
    ).fetchone()
    if horizon is not None and ends <= horizon[0]:
        return False
    if not ledger.allows(metric, registry):
        return False
    takes_part = _takes_part(connection, metric, window, bits)
    connection.execute(
        "INSERT INTO windows (metric, window, ends, state) VALUES (?, ?, ?, ?)",
        (metric.name, window, ends, "open" if takes_part else "passed"),
    )
    if metric.type.looks_back:
        _remember(connection, metric, window)
    if not takes_part:
        _prune(connection, metric.name)
    return takes_part


def _takes_part(connection: Connection, metric: Metric, window: str, bits: Bits) -> bool:
    """Whether the device takes part in a new window of the metric. The remainder of 53 bits is
    uniform to one part in 10**11 at most."""
    if metric.one_in is None:
        return bits(PRECISION) < Fraction(metric.sample_rate) * (1 << PRECISION)
    found = connection.execute(
        "SELECT drawn FROM groups WHERE metric = ?", (metric.name,)
    ).fetchone()
    if found is None:
        found = (bits(PRECISION),)
        connection.execute("INSERT INTO groups VALUES (?, ?)", (metric.name, *found))
    return (windows.number(window) - int(found[0])) % metric.one_in == 0


def _merge(record: Record, entry: _OpenValue | None, bits: Bits) -> _OpenValue:
    """The window's value after one more record, and how many records it stands for."""
    metric, segments = record.metric, record.segments or {}
    if entry is None:
        return _OpenValue(segments, metric.type.begin(metric.aggregate, record.text), 1)
    records = entry.records + 1
    value = metric.type.merge(metric.aggregate, entry.value, record.text, records, bits)
    # A metric may get its segments inside a window, when the app is upgraded.
    return _OpenValue(entry.segments or segments, value, records)


def _prune(connection: Connection, metric: str) -> None:
    """Delete the oldest closed windows, and refuse windows of that age from now on."""
    oldest = connection.execute(
        "SELECT window, ends FROM windows WHERE metric = ? AND state != 'open' "
        "ORDER BY ends DESC, window LIMIT -1 OFFSET ?",
        (metric, KEPT_WINDOWS),
    ).fetchall()
    for window, ends in oldest:
        connection.execute("DELETE FROM windows WHERE metric = ? AND window = ?", (metric, window))
        # An upsert that keeps the newest horizon, written so that old SQLite releases accept it.
        connection.execute("INSERT OR IGNORE INTO horizons VALUES (?, ?)", (metric, ends))
        connection.execute(
            "UPDATE horizons SET ends = max(ends, ?) WHERE metric = ?", (ends, metric)
        )
