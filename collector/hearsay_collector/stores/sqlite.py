"""The embedded store: one SQLite file, shared by all threads and processes of a machine.

Write-ahead log with synchronous=FULL: what was acknowledged survives a power cut. A row
of a tally is stored as chunks of packed little-endian 64-bit counters, and a fold is one
BEGIN IMMEDIATE transaction that rewrites the chunks it touches.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hearsay import Scheme
from hearsay.windows import end, start
from hearsay_collector.stores.base import (
    ID_LIFETIME,
    MAX_CELL,
    Commit,
    Increment,
    Store,
    StoreError,
    TallyRowKey,
)
from hearsay_collector.stores.definitions import read_scheme, unpublished
from hearsay_collector.stores.sqlite_file import SqliteFile
from hearsay_collector.tally import Tally, TallyRow, empty_tally

__all__ = ["SqliteStore"]

_CHUNK = 256
"""Cells in a chunk: 2 KiB, so that a chunk fits into a page of 4 KiB without overflow pages."""

_PRUNE = 4
"""Expired ids forgotten for each id remembered: the table shrinks without a long pause."""


class SqliteStore(Store):
    """Tallies in one file. Writers create it; readers of a file that is not there fail.

    Raises:
        StoreError: the file is no store of hearsay, or a newer version wrote it.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = SqliteFile(path)

    def fold(self, commit: Commit, now: float) -> frozenset[str]:
        ids = {bytes.fromhex(batch_id): batch_id for batch_id in commit.ids}
        with self._file.transaction("IMMEDIATE", create=True) as connection:
            seen = frozenset(
                text
                for raw, text in ids.items()
                if connection.execute(
                    "SELECT 1 FROM ids WHERE id = ? AND expires >= ?", (raw, now)
                ).fetchone()
            )
            if seen:
                return seen
            connection.execute(
                "DELETE FROM ids WHERE id IN (SELECT id FROM ids WHERE expires < ? LIMIT ?)",
                (now, _PRUNE * (len(ids) + 1)),
            )
            connection.executemany(
                "INSERT OR REPLACE INTO ids VALUES (?, ?)",
                [(raw, now + ID_LIFETIME) for raw in ids],
            )
            for key, increment in commit.increments.items():
                _add(connection, key, increment)
        return seen

    def publish(self, schemes: Mapping[str, Iterable[Scheme]]) -> None:
        with self._file.transaction("IMMEDIATE", create=True) as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO schemes VALUES (?, ?, ?)",
                [
                    (metric, scheme.fingerprint, scheme.canonical())
                    for metric, each in schemes.items()
                    for scheme in each
                ],
            )

    def schemes(self) -> dict[str, dict[str, Scheme]]:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute("SELECT metric, fingerprint, definition FROM schemes")
            definitions = found.fetchall()
        published: dict[str, dict[str, Scheme]] = {}
        for metric, fingerprint, definition in definitions:
            published.setdefault(metric, {})[fingerprint] = read_scheme(definition)
        return published

    def scheme(self, metric: str, fingerprint: str) -> Scheme:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT definition FROM schemes WHERE metric = ? AND fingerprint = ?",
                (metric, fingerprint),
            ).fetchone()
        if found is None:
            raise unpublished(metric, fingerprint)
        return read_scheme(found[0])

    def windows(self, metric: str, scheme: str) -> list[str]:
        with self._file.transaction("DEFERRED") as connection:
            found = connection.execute(
                "SELECT DISTINCT window FROM tally_rows WHERE metric = ? AND scheme = ?",
                (metric, scheme),
            ).fetchall()
        return sorted((window for (window,) in found), key=start)

    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        labels = tuple(dict.fromkeys(windows))
        rows = self.scheme(metric, scheme).mechanism.rows
        total = empty_tally(metric, scheme, labels, rows)
        reports = [0] * len(rows)
        # One transaction: all windows are read at the same moment.
        with self._file.transaction("DEFERRED") as connection:
            for label in labels:
                for identity, row, count in connection.execute(
                    "SELECT id, row, reports FROM tally_rows"
                    " WHERE metric = ? AND scheme = ? AND window = ?",
                    (metric, scheme, label),
                ).fetchall():
                    reports[row] += count
                    cells = total.rows[row].cells
                    for chunk, packed in connection.execute(
                        "SELECT chunk, cells FROM chunks WHERE tally_row = ?", (identity,)
                    ):
                        counters = np.frombuffer(packed, "<i8")
                        cells[chunk * _CHUNK : chunk * _CHUNK + len(counters)] += counters
        counted = zip(reports, total.rows, strict=True)
        return replace(total, rows=tuple(TallyRow(count, row.cells) for count, row in counted))

    def drop(self, before: float) -> int:
        with self._file.transaction("IMMEDIATE") as connection:
            tallies = connection.execute(
                "SELECT DISTINCT metric, scheme, window FROM tally_rows"
            ).fetchall()
            old = [key for key in tallies if end(key[2]) <= before]
            rows = "tally_rows WHERE metric = ? AND scheme = ? AND window = ?"
            connection.executemany(
                f"DELETE FROM chunks WHERE tally_row IN (SELECT id FROM {rows})", old
            )
            connection.executemany(f"DELETE FROM {rows}", old)
        return len(old)

    def ping(self) -> None:
        with self._file.transaction("IMMEDIATE"):
            pass

    def close(self) -> None:
        self._file.close()


def _add(connection: sqlite3.Connection, key: TallyRowKey, increment: Increment) -> None:
    found = connection.execute(
        "SELECT id, reports FROM tally_rows"
        " WHERE metric = ? AND scheme = ? AND window = ? AND row = ?",
        (*key.tally, key.row),
    ).fetchone()
    reports = increment.reports + (found[1] if found else 0)
    if max(reports, increment.top) > MAX_CELL:
        raise _full(key)
    if found:
        identity = found[0]
        connection.execute("UPDATE tally_rows SET reports = ? WHERE id = ?", (reports, identity))
    else:
        identity = connection.execute(
            "INSERT INTO tally_rows (metric, scheme, window, row, reports) VALUES (?, ?, ?, ?, ?)",
            (*key.tally, key.row, reports),
        ).lastrowid
    columns = np.asarray(increment.columns, np.int64)
    counts = np.asarray(increment.counts, np.int64)
    order = np.argsort(columns)
    columns, counts = columns[order], counts[order]
    touched, firsts = np.unique(columns // _CHUNK, return_index=True)
    for chunk, here in zip(touched.tolist(), _slices(firsts, len(columns)), strict=True):
        found = connection.execute(
            "SELECT cells FROM chunks WHERE tally_row = ? AND chunk = ?", (identity, chunk)
        ).fetchone()
        if found:
            cells = np.frombuffer(found[0], "<i8").copy()
        else:
            cells = np.zeros(min(_CHUNK, increment.width - chunk * _CHUNK), "<i8")
        cells[columns[here] - chunk * _CHUNK] += counts[here]
        if cells.max() > MAX_CELL:
            raise _full(key)
        connection.execute(
            "INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)", (identity, chunk, cells.tobytes())
        )


def _slices(firsts: NDArray[np.intp], stop: int) -> Iterator[slice]:
    return map(slice, firsts.tolist(), [*firsts[1:].tolist(), stop])


def _full(key: TallyRowKey) -> StoreError:
    return StoreError(
        f"a counter of metric {key.tally.metric}, window {key.tally.window} is at its top "
        f"({MAX_CELL}): nothing was added"
    )
