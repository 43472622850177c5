"""The outbox: reports to send, in batches whose id and bytes never change.

A report is queued when its window is sealed. Before the first attempt to send it, it joins a
batch. Its random id is stored with the reports of the batch, which never change while they wait.
So every retry, in this process or the next, sends the same bytes under the same id, and the
collector counts them once. The result for each report is kept for the owner of the device to see.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from sqlite3 import Connection
from typing import Literal, NamedTuple

from deniable.protocol import windows
from deniable.protocol.errors import RejectedError
from deniable.protocol.metric import Metric
from deniable.protocol.randomness import Bits
from deniable.protocol.wire import LATEST, SealedReport, encode_batch, new_batch_id

BATCH_REPORTS = 100
"""The most reports in one batch."""

QUEUED_REPORTS = 2_000
"""The most reports that may wait; beyond it the oldest are dropped."""

HISTORY_REPORTS = 1_000
"""How many reports are kept for the owner after they were sent, rejected or dropped."""

JITTER = 10.0
"""Seconds over which a report that is answered at once is spread. The network still learns
roughly when the value was recorded."""

LEASE_SECONDS = 60.0
"""Seconds for which other processes do not touch a batch that one process is sending."""

PASSING = frozenset(("unknown_metric", "unknown_scheme", "window_not_closed"))
"""Temporary reasons for leaving a report out: the collector's registry or clock is behind."""

LONGEST_PAUSE = 86_400.0
"""Seconds. A time further in the future was written under another clock, and is ignored."""

_LARGEST_DEFINITION = 1 << 16

TABLES = """
CREATE TABLE reports (
    id INTEGER PRIMARY KEY,
    metric TEXT NOT NULL,
    scheme TEXT NOT NULL,
    window TEXT NOT NULL,
    row INTEGER NOT NULL,
    columns TEXT NOT NULL,
    ready REAL NOT NULL,
    status TEXT NOT NULL
        CHECK (status IN ('queued', 'sent', 'unanswered', 'rejected', 'dropped')),
    reason TEXT,
    batch TEXT
);
CREATE INDEX reports_by_batch ON reports (batch);
CREATE TABLE pauses (failures INTEGER NOT NULL, until REAL NOT NULL, asked REAL NOT NULL);
CREATE TABLE schemes (
    metric TEXT NOT NULL,
    scheme TEXT NOT NULL,
    description TEXT NOT NULL,
    definition TEXT,
    PRIMARY KEY (metric, scheme)
);
INSERT INTO pauses VALUES (0, 0, 0);
"""
"""A report is due from `ready` on. Those of one batch are due together, and stand in it by their
`id`. `pauses` has one row: failures in a row, when backoff ends, and when Retry-After ends.
Times are POSIX seconds."""


class OutgoingBatch(NamedTuple):
    """What is sent: the same bytes under the same id, until they are acknowledged."""

    id: str
    body: bytes
    failures: int
    """How many attempts at the collector have failed in a row."""


class Entry(NamedTuple):
    """One report as the outbox stores it."""

    report: SealedReport
    status: str
    reason: str | None
    description: str
    definition: str | None
    """The scheme's canonical JSON, unless it is too long to be kept on a device."""


def queue(connection: Connection, report: SealedReport, ready: float) -> None:
    """Queue a report, to be sent from the POSIX time `ready` on."""
    connection.execute(
        "INSERT INTO reports (metric, scheme, window, row, columns, ready, status) "
        "VALUES (?, ?, ?, ?, ?, ?, 'queued')",
        (*report[:4], json.dumps(report.columns), ready),
    )


def describe(connection: Connection, metric: Metric) -> None:
    """Store what a report of this metric and scheme means, for the owner of the device."""
    key = (metric.name, metric.scheme.fingerprint)
    known = connection.execute("SELECT 1 FROM schemes WHERE metric = ? AND scheme = ?", key)
    if known.fetchone() is None:
        definition = metric.scheme.canonical().decode()
        kept = definition if len(definition) <= _LARGEST_DEFINITION else None
        connection.execute(
            "INSERT INTO schemes (metric, scheme, description, definition) VALUES (?, ?, ?, ?)",
            (*key, metric.description, kept),
        )


def take(
    connection: Connection, now: float, bits: Bits, *, urgent: bool = False
) -> OutgoingBatch | None:
    """The next batch to send, leased to the caller; None if none is due at `now`.

    `urgent` ignores `ready` and backoff, but not the collector's Retry-After, and not the wait
    of reports that the collector has left out for now.
    """
    failures, until, asked = connection.execute("SELECT * FROM pauses").fetchone()
    if now < (asked if urgent else until) <= now + LONGEST_PAUSE:
        return None
    due = (urgent, now, now + LONGEST_PAUSE)
    # New reports go before batches that have failed, so that a batch that always fails does
    # not delay the rest. Failed batches take turns: each goes to the end of their queue.
    new = connection.execute(
        "SELECT id FROM reports WHERE status = 'queued' AND batch IS NULL "
        "AND (? AND reason IS NULL OR ready <= ? OR ready > ?) ORDER BY id LIMIT ?",
        (*due, BATCH_REPORTS),
    ).fetchall()
    if new:
        batch_id = new_batch_id(bits)
        connection.executemany(
            "UPDATE reports SET batch = ? WHERE id = ?", [(batch_id, *row) for row in new]
        )
    else:
        found = connection.execute(
            "SELECT batch FROM reports WHERE status = 'queued' AND batch NOT NULL "
            "AND (? OR ready <= ? OR ready > ?) ORDER BY ready, id LIMIT 1",
            due,
        ).fetchone()
        if found is None:
            return None
        (batch_id,) = found
    waits = "WHERE status = 'queued' AND batch = ?"
    rows = connection.execute(
        f"SELECT metric, scheme, window, row, columns FROM reports {waits} ORDER BY id", (batch_id,)
    )
    body = encode_batch(batch_id, [_sealed(*row) for row in rows])
    connection.execute(f"UPDATE reports SET ready = ? {waits}", (now + LEASE_SECONDS, batch_id))
    return OutgoingBatch(batch_id, body, failures)


def hurry(connection: Connection, metrics: Iterable[str], now: float) -> None:
    """Make reports of these metrics due that wait for no more than their jitter."""
    connection.executemany(
        "UPDATE reports SET ready = ? WHERE status = 'queued' AND batch IS NULL "
        "AND reason IS NULL AND metric = ? AND ready > ? AND ready <= ?",
        [(now, metric, now, now + JITTER) for metric in metrics],
    )


def acknowledge(
    connection: Connection, batch_id: str, rejected: Mapping[int, str], retry_at: float
) -> list[RejectedError]:
    """The collector has the batch; `rejected` gives the reason of each index it left out.

    A report that was left out for a temporary reason joins another batch from the POSIX time
    `retry_at` on, unless its window is too old then. Returns an error for each report that was left
    out.
    """
    left_out = []
    rows = connection.execute(
        "SELECT id, metric, window FROM reports WHERE status = 'queued' AND batch = ? ORDER BY id",
        (batch_id,),
    ).fetchall()
    for position, (report, metric, window) in enumerate(rows):
        reason = rejected.get(position)
        if reason is None:
            continue
        waits = reason in PASSING and retry_at <= windows.end(window) + LATEST
        left_out.append(RejectedError(metric, reason, waits=waits))
        fate = ("queued", None) if waits else ("rejected", batch_id)
        connection.execute(
            "UPDATE reports SET status = ?, batch = ?, reason = ?, ready = ? WHERE id = ?",
            (*fate, reason, retry_at, report),
        )
    settle(connection, batch_id, "sent", None)
    return left_out


def settle(
    connection: Connection, batch_id: str, status: Literal["sent", "rejected"], reason: str | None
) -> None:
    """The batch has ended: this is what has become of the reports in it that still wait."""
    connection.execute("UPDATE pauses SET failures = 0, until = 0, asked = 0")
    connection.execute(
        "UPDATE reports SET status = ?, reason = ? WHERE batch = ? AND status = 'queued'",
        (status, reason, batch_id),
    )


def pause(connection: Connection, batch_id: str, until: float, asked: float) -> None:
    """An attempt failed: make none before `until`, and no urgent one before `asked` either."""
    connection.execute(
        "UPDATE pauses SET failures = failures + 1, until = ?, asked = ?", (until, asked)
    )
    connection.execute(
        "UPDATE reports SET ready = ? WHERE status = 'queued' AND batch = ?", (until, batch_id)
    )


def queued(connection: Connection) -> int:
    """How many reports wait to be acknowledged."""
    (count,) = connection.execute("SELECT count(*) FROM reports WHERE status = 'queued'").fetchone()
    return int(count)


def next_attempt(connection: Connection) -> float:
    """The POSIX time from which a batch is due; infinity when nothing waits."""
    (due,) = connection.execute(
        "SELECT max(min(ready), until) FROM reports, pauses WHERE status = 'queued'"
    ).fetchone()
    return math.inf if due is None else float(due)


def trim(connection: Connection) -> int:
    """Keep the outbox and its history within their limits. Returns how many reports were dropped.

    A batch is dropped as a whole: its bytes are fixed, so it cannot shrink.
    """
    surplus = "FROM reports WHERE status = 'queued' ORDER BY id DESC LIMIT -1 OFFSET ?"
    dropped = connection.execute(
        "UPDATE reports SET status = 'dropped', reason = 'outbox_full' WHERE status = 'queued' "
        f"AND (id IN (SELECT id {surplus}) OR batch IN (SELECT batch {surplus}))",
        (QUEUED_REPORTS, QUEUED_REPORTS),
    ).rowcount
    connection.execute(
        "DELETE FROM reports WHERE id IN (SELECT id FROM reports WHERE status != 'queued' "
        "ORDER BY id DESC LIMIT -1 OFFSET ?)",
        (HISTORY_REPORTS,),
    )
    return dropped


def withdraw(connection: Connection) -> None:
    """Delete the reports that were not sent. Those of a batch that was not acknowledged yet may
    have arrived, and stay listed as `unanswered`."""
    connection.execute(
        "UPDATE reports SET status = 'unanswered', reason = NULL "
        "WHERE status = 'queued' AND batch IS NOT NULL"
    )
    connection.execute("DELETE FROM reports WHERE status = 'queued'")


def entries(connection: Connection) -> list[Entry]:
    """Every stored report, the newest first."""
    rows = connection.execute(
        "SELECT metric, scheme, window, row, columns, status, reason, description, definition "
        "FROM reports JOIN schemes USING (metric, scheme) ORDER BY id DESC"
    )
    return [Entry(_sealed(*row[:5]), *row[5:]) for row in rows]


def _sealed(metric: str, scheme: str, window: str, row: int, columns: str) -> SealedReport:
    return SealedReport(metric, scheme, window, row, json.loads(columns))
