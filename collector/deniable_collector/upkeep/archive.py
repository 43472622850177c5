"""Tallies as a file, to move them between stores: exact sums, with the schemes that read them.

The file is gzip over lines of JSON; its format is in docs/reference/store-export.md. `export`
writes it, and `archive_reading.py` reads it, both one line at a time.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeAlias

import msgspec

from deniable import DeniableError, Scheme
from deniable.protocol import windows
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import MAX_CELL, TallyKey
from deniable_collector.stores.summed.sums import SumName, bounds
from deniable_collector.stores.vectors import rows_of, shape_of
from deniable_collector.tally import TallyRow

FORMAT = "deniable-tallies"
VERSION = 1

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_CELL)]
Advance: TypeAlias = Callable[[float], None]
"""Called with the fraction of the work that is done."""


class ArchiveError(DeniableError):
    """The file cannot be used, and nothing of it was added."""


class ArchiveLine(msgspec.Struct, forbid_unknown_fields=True, tag_field="line"):
    """One line of a file."""


class HeadLine(ArchiveLine, tag="head"):
    """The first line."""

    format: str
    version: int
    origin: str


class SchemeLine(ArchiveLine, tag="scheme"):
    """A scheme, whose rows and sums follow."""

    metric: str
    scheme: str
    definition: dict[str, Any]


class RowLine(ArchiveLine, tag="row"):
    """One row of a tally: its reports, and the counts of all of its columns."""

    window: str
    row: _Count
    reports: _Count
    cells: list[_Count]


class SumLine(ArchiveLine, tag="sum"):
    """A sum of windows that were dropped: their kind, the period, and the reports of each window
    for each combination of segments. Its rows follow, each with the name of the sum."""

    kind: str
    period: str
    reports: dict[str, list[_Count]]

    @property
    def name(self) -> SumName:
        return SumName("kept", self.kind, self.period)


class EndLine(ArchiveLine, tag="end"):
    """The last line: rows and reports of windows, and the digest of all lines before."""

    rows: int
    reports: int
    sha256: str


Line: TypeAlias = HeadLine | SchemeLine | RowLine | SumLine | EndLine


@dataclass(frozen=True)
class TallySelection:
    """Selects tallies by metric (empty: all), and by windows that begin at `since` or later and
    had ended by `before` (POSIX seconds)."""

    metrics: frozenset[str] = frozenset()
    since: float | None = None
    before: float | None = None

    def takes(self, metric: str, window: str) -> bool:
        """Whether a tally is selected."""
        return (
            (not self.metrics or metric in self.metrics)
            and (self.since is None or windows.start(window) >= self.since)
            and (self.before is None or windows.end(window) <= self.before)
        )

    def takes_sum(self, metric: str, name: SumName) -> bool:
        """Whether a sum of dropped windows is selected, by its whole period."""
        begin, end = bounds(name.period)
        return (
            (not self.metrics or metric in self.metrics)
            and (self.since is None or begin >= self.since)
            and (self.before is None or end <= self.before)
        )


EVERYTHING = TallySelection()


@dataclass(frozen=True)
class Contents:
    """What a file contains. `digest` is the SHA-256 of all its lines except the last."""

    digest: str
    origin: str
    rows: int
    reports: int
    sums: int
    """Sums of windows that were dropped; their reports are counted apart, because the sums of a
    week, a month and a quarter may have the same reports."""
    schemes: tuple[tuple[str, Scheme], ...] = field(repr=False, compare=False)
    windows: tuple[TallyKey, ...] = field(repr=False, compare=False)
    """The windows that have a tally."""

    @property
    def tallies(self) -> int:
        """How many windows have a tally."""
        return len(self.windows)


def in_order(window: str) -> tuple[float, str]:
    """What the windows of a scheme are sorted by."""
    return windows.start(window), window


_LEVEL = 6


def export(
    store: Store,
    path: Path,
    selection: TallySelection = EVERYTHING,
    *,
    advance: Advance = lambda share: None,
) -> Contents:
    """Write the selected tallies to a file, which exists only when it is complete.

    `advance` is called with the fraction that is done. The same tallies of a store give the same
    digest.

    Raises:
        StoreError: the store cannot be read.
        OSError: the file cannot be written.
    """
    with _written(path) as raw, gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as file:
        return _Writer(file, store.identity()).write(store, selection, advance)


class _Writer:
    def __init__(self, file: gzip.GzipFile, origin: str) -> None:
        self._file = file
        self._origin = origin
        self._hash = hashlib.sha256()
        self._rows = self._reports = self._sums = 0
        self._windows: list[TallyKey] = []

    def write(self, store: Store, selection: TallySelection, advance: Advance) -> Contents:
        plan = []
        for metric, published in sorted(store.schemes().items()):
            for fingerprint, scheme in sorted(published.items()):
                chosen = [
                    window
                    for window in sorted(store.windows(metric, fingerprint), key=in_order)
                    if selection.takes(metric, window)
                ]
                kept = [
                    name
                    for name in store.sums.names(metric, fingerprint)
                    if name.kept and selection.takes_sum(metric, name)
                ]
                if chosen or kept:
                    plan.append((metric, scheme, chosen, kept))
        self._put(HeadLine(FORMAT, VERSION, self._origin))
        total, done = sum(len(chosen) + len(kept) for *_, chosen, kept in plan), 0
        for metric, scheme, chosen, kept in plan:
            self._put(SchemeLine(metric, scheme.fingerprint, scheme.definition()))
            for window in chosen:
                self._write_tally(store, TallyKey(metric, scheme.fingerprint, window))
                done += 1
                advance(done / total)
            for name in kept:
                self._write_sum(store, metric, scheme, name)
                done += 1
                advance(done / total)
        digest = self._hash.hexdigest()
        self._put(EndLine(self._rows, self._reports, digest))
        schemes = tuple((metric, scheme) for metric, scheme, *_ in plan)
        tallies = tuple(self._windows)
        return Contents(
            digest, self._origin, self._rows, self._reports, self._sums, schemes, tallies
        )

    def _write_sum(self, store: Store, metric: str, scheme: Scheme, name: SumName) -> None:
        kept = store.sums.kept_sum(metric, scheme.fingerprint, name)
        self._put(SumLine(name.kind, name.period, kept.reports))
        self._write_rows(str(name), rows_of(shape_of(scheme), kept.counters))
        self._sums += 1

    def _write_tally(self, store: Store, key: TallyKey) -> None:
        tally = store.own_tally(key)
        self._write_rows(key.window, tally.rows)
        self._reports += tally.reports
        self._windows.append(key)

    def _write_rows(self, name: str, rows: Iterable[TallyRow]) -> None:
        for number, row in enumerate(rows):
            if row.reports or row.cells.any():
                self._put(RowLine(name, number, row.reports, row.cells.tolist()))
                self._rows += 1

    def _put(self, line: ArchiveLine) -> None:
        text = msgspec.json.encode(line) + b"\n"
        self._hash.update(text)
        self._file.write(text)


@contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when it is complete and on the disk."""
    descriptor, name = tempfile.mkstemp(".part", f".{path.name}.", path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
