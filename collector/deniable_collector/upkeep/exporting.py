"""Writes the tallies of a store to a file (`archive.py`), one line at a time."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from deniable import Scheme
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.summed.sums import SumName
from deniable_collector.stores.vectors import rows_of, shape_of
from deniable_collector.upkeep.archive import (
    EVERYTHING,
    FORMAT,
    VERSION,
    Advance,
    ArchiveLine,
    Contents,
    EndLine,
    HeadLine,
    RowLine,
    SchemeLine,
    SumLine,
    TallySelection,
    in_order,
)

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
        for number, row in enumerate(rows_of(shape_of(scheme), kept.counters)):
            if row.reports or row.cells.any():
                self._put(RowLine(str(name), number, row.reports, row.cells.tolist()))
                self._rows += 1
        self._sums += 1

    def _write_tally(self, store: Store, key: TallyKey) -> None:
        tally = store.own_tally(key)
        for number, row in enumerate(tally.rows):
            if row.reports or row.cells.any():
                self._put(RowLine(key.window, number, row.reports, row.cells.tolist()))
                self._rows += 1
        self._reports += tally.reports
        self._windows.append(key)

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
