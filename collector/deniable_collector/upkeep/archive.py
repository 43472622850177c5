"""Tallies as a file, to move them between stores: exact sums, with the schemes that read them.

The file is gzip over lines of JSON; its format is in docs/reference/store-export.md. `exporting.py`
writes it, `archive_reading.py` reads it, both one line at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

import msgspec

from deniable import DeniableError, Scheme
from deniable.protocol import windows
from deniable_collector.stores.commits import MAX_CELL, TallyKey
from deniable_collector.stores.summed.calendars import bounds
from deniable_collector.stores.summed.sums import SumName

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
