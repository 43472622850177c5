"""Tallies as a file, to move them between stores: exact sums, with the schemes that read them.

The file is gzip over lines of JSON; its format is in docs/reference/store-export.md. `export`
writes it, and `archive_reading.py` reads it, both one line at a time.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

from deniable import DeniableError, Scheme
from deniable.protocol import windows
from deniable_collector.files import written
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import MAX_CELL, TallyKey
from deniable_collector.stores.sums import SumName, bounds
from deniable_collector.stores.vectors import rows_of, shape_of

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

    def takes(self, metric: str, name: str | SumName) -> bool:
        """Whether the tally of a window is selected, or a sum of dropped windows, by its period."""
        begin, end = bounds(name.period if isinstance(name, SumName) else name)
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
    tallies: int
    """How many windows have a tally."""
    schemes: tuple[tuple[str, Scheme], ...] = field(repr=False, compare=False)


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
    chosen = [
        (metric, scheme, names)
        for metric, published in sorted(store.schemes().items())
        for fingerprint, scheme in sorted(published.items())
        if (names := _names(store, metric, fingerprint, selection))
    ]
    total, done = sum(len(names) for *_, names in chosen), 0
    origin, digest = store.identity(), hashlib.sha256()
    rows = reports = sums = 0
    with written(path) as raw, gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as file:

        def put(line: ArchiveLine) -> None:
            text = msgspec.json.encode(line) + b"\n"
            digest.update(text)
            file.write(text)

        put(HeadLine(FORMAT, VERSION, origin))
        for metric, scheme, names in chosen:
            put(SchemeLine(metric, scheme.fingerprint, scheme.definition()))
            for name in names:
                if isinstance(name, SumName):
                    kept = store.sums.kept_sum(metric, scheme.fingerprint, name)
                    put(SumLine(name.kind, name.period, kept.reports))
                    its_rows = tuple(rows_of(shape_of(scheme), kept.counters))
                    sums += 1
                else:
                    tally = store.own_tally(TallyKey(metric, scheme.fingerprint, name))
                    its_rows = tally.rows
                    reports += tally.reports
                for number, row in enumerate(its_rows):
                    if row.reports or row.cells.any():
                        put(RowLine(str(name), number, row.reports, row.cells.tolist()))
                        rows += 1
                done += 1
                advance(done / total)
        sha256 = digest.hexdigest()
        put(EndLine(rows, reports, sha256))
    schemes = tuple((metric, scheme) for metric, scheme, _ in chosen)
    return Contents(sha256, origin, rows, reports, sums, total - sums, schemes)


def _names(
    store: Store, metric: str, scheme: str, selection: TallySelection
) -> list[str | SumName]:
    """The windows that are selected, and the sums of dropped ones, in the order of the file."""
    labels = sorted(store.windows(metric, scheme), key=in_order)
    kept = [name for name in store.sums.names(metric, scheme) if name.kept]
    found: list[str | SumName] = [*labels, *kept]
    return [name for name in found if selection.takes(metric, name)]
