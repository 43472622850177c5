"""Tallies as a file, to move them between stores: exact sums, with the schemes that read them.

The file is gzip over lines of JSON; its format is in docs/reference/store-export.md. `export`
writes it, and `ArchiveReader` reads it, both one line at a time; what it reads may be damaged or
hostile.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec

from deniable import DeniableError, Scheme, SchemeError, WindowError
from deniable.protocol import windows
from deniable.protocol.coded_message import counted
from deniable.protocol.keep import CALENDARS
from deniable.whole_files import written
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import MAX_CELL
from deniable_collector.stores.sums import SumName, bounds, period_of
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
    """Selects tallies by metric (empty: all), and by windows that ended after `since` and had ended
    by `before` (POSIX seconds): each window is in one of several files that follow each other."""

    metrics: frozenset[str] = frozenset()
    since: float | None = None
    before: float | None = None

    def takes(self, metric: str, period: str) -> bool:
        """Whether the tally of a window is selected, or a sum of dropped windows of a period."""
        _, end = bounds(period)
        return (
            (not self.metrics or metric in self.metrics)
            and (self.since is None or end > self.since)
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
        (of[0], scheme, names)
        for of, scheme in sorted(store.schemes().items())
        if (names := _names(store, *of, selection))
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
            of = metric, scheme.fingerprint
            put(SchemeLine(*of, scheme.definition()))
            for name in names:
                if isinstance(name, SumName):
                    of_windows, counters = store.sums.kept_sum(of, name)
                    put(SumLine(name.kind, name.period, of_windows))
                    its_rows = tuple(rows_of(shape_of(scheme), counters))
                    sums += 1
                else:
                    tally = store.own_tallies(*of, [name])[name]
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
    labels = [
        label
        for label in sorted(store.windows(metric, scheme), key=in_order)
        if selection.takes(metric, label)
    ]
    sums = store.sums.names((metric, scheme))
    kept = [name for name in sums if name.kept and selection.takes(metric, name.period)]
    return [*labels, *kept]


_LONGEST_LINE = 1 << 28
"""The longest line in bytes, which limits the memory that a damaged or hostile file can use."""

_decoder = msgspec.json.Decoder(Line)


def check(path: Path, *, advance: Advance = lambda share: None) -> Contents:
    """Read a whole file and return what it contains.

    Raises:
        ArchiveError: it is damaged, truncated, or not a file that this version can read.
        OSError: it cannot be opened.
    """
    reader = ArchiveReader(path, advance)
    for _ in reader.parts():
        pass
    return reader.contents


class ArchivePart(NamedTuple):
    """What is added at once: a window, or a sum of dropped windows, with all of its rows."""

    metric: str
    scheme: Scheme
    name: str
    """Of the window or the sum."""
    sum: SumLine | None
    rows: list[RowLine]

    @property
    def of(self) -> tuple[str, str]:
        """The metric and the scheme by their names."""
        return self.metric, self.scheme.fingerprint

    @property
    def period(self) -> str:
        """The window, or the period of the sum."""
        return self.name if self.sum is None else self.sum.period

    def batch_id(self, origin: str) -> str:
        """The id of the batch in which it is added, by its content."""
        lines = self.rows if self.sum is None else [self.sum, *self.rows]
        content = msgspec.json.encode((origin, *self.of, lines))
        return hashlib.sha256(content).hexdigest()[:32]


class ArchiveReader:
    """Reads a file, and checks each of its lines."""

    contents: Contents
    """What was read, when all has been."""

    def __init__(self, path: Path, advance: Advance = lambda share: None) -> None:
        self._path = path
        self._advance = advance
        self._hash = hashlib.sha256()
        self._schemes: dict[tuple[str, str], Scheme] = {}
        self.origin = ""
        self._number = 0
        """Of the line that was read last."""

    def parts(self) -> Iterator[ArchivePart]:
        """Everything in the file. Nothing of it is sure before all was read.

        Raises:
            ArchiveError: as `check` does.
        """
        lines = self._lines()
        head = next(lines, None)
        if not isinstance(head, HeadLine) or head.format != FORMAT:
            raise self._damaged()
        if head.version != VERSION:
            raise ArchiveError(f"{self._path} was written by another version of deniable")
        self.origin = head.origin
        rows = reports = tallies = 0
        sums: set[tuple[str, ...]] = set()
        latest: tuple[str, Scheme] | None = None
        part: ArchivePart | None = None
        last: tuple[Any, ...] = ()
        for line in lines:
            if part is not None and not (isinstance(line, RowLine) and line.window == part.name):
                yield part
                part = None
            match line:
                case RowLine() if latest is not None:
                    if part is None:
                        last = self._check_window(line.window, last)
                        part = ArchivePart(*latest, line.window, None, [])
                        tallies += 1
                    self._check_row(part, line)
                    reports += line.reports if part.sum is None else 0
                    part.rows.append(line)
                    rows += 1
                case SchemeLine() if (line.metric, line.scheme) not in self._schemes:
                    scheme = self._schemes[line.metric, line.scheme] = self._scheme(line)
                    latest, last = (line.metric, scheme), ()
                case SumLine() if latest is not None:
                    self._check_sum(latest[1], line)
                    # No window follows.
                    part, last = ArchivePart(*latest, str(line.name), line, []), (inf,)
                    if (*part.of, part.name) in sums:
                        raise self._damaged()
                    sums.add((*part.of, part.name))
                case EndLine() if next(lines, None) is None:
                    self._check_end(line, rows, reports)
                    schemes = tuple((metric, each) for (metric, _), each in self._schemes.items())
                    self.contents = Contents(
                        line.sha256, head.origin, rows, reports, len(sums), tallies, schemes
                    )
                    return
                case _:
                    raise self._damaged()
        raise self._truncated()

    def _lines(self) -> Iterator[Line]:
        size = max(1, self._path.stat().st_size)
        with self._path.open("rb") as raw, gzip.GzipFile(fileobj=raw, mode="rb") as file:
            while True:
                self._number += 1
                try:
                    text = file.readline(_LONGEST_LINE)
                    line = _decoder.decode(text) if text.endswith(b"\n") else None
                except EOFError:
                    raise self._truncated() from None
                except (
                    gzip.BadGzipFile,
                    zlib.error,
                    msgspec.DecodeError,
                    UnicodeDecodeError,
                ) as error:
                    told = str(error) if isinstance(error, msgspec.ValidationError) else ""
                    raise self._damaged(told) from None
                if not text:
                    return
                if line is None:
                    raise self._truncated()
                if not isinstance(line, EndLine):
                    self._hash.update(text)
                yield line
                self._advance(raw.tell() / size)

    def _scheme(self, line: SchemeLine) -> Scheme:
        try:
            scheme = Scheme.from_definition(line.definition)
        except (SchemeError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ArchiveError(
                f"scheme {line.scheme} of metric {line.metric} cannot be read ({error!r}): another "
                "version of deniable may have written it"
            ) from None
        if scheme.fingerprint != line.scheme:
            raise ArchiveError(
                f"scheme {line.scheme} of metric {line.metric} is defined as {scheme.fingerprint}: "
                f"{self._path} was changed"
            )
        return scheme

    def _check_window(self, window: str, last: tuple[Any, ...]) -> tuple[Any, ...]:
        """The place of a window, which is behind the last one of its scheme."""
        try:
            windows.end(window)
            place = in_order(window)
        except WindowError:
            raise self._damaged("window") from None
        if place <= last:
            raise self._damaged("window")
        return place

    def _check_row(self, part: ArchivePart, line: RowLine) -> None:
        rows, last = part.scheme.rows, part.rows[-1].row if part.rows else -1
        if not last < line.row < len(rows) or len(line.cells) != rows[line.row].width:
            raise self._damaged("row")
        if line.cells and max(line.cells) > line.reports:
            told = f"cells: {max(line.cells)} of {counted(line.reports, 'report')}"
            raise self._damaged(told)

    def _check_sum(self, scheme: Scheme, line: SumLine) -> None:
        try:
            fine = (
                line.kind in windows.KINDS
                and line.name.calendar in CALENDARS[line.kind]
                and bool(line.reports)
                and all(
                    windows.kind_of(window) == line.kind
                    and period_of(line.name.calendar, window) == line.period
                    and len(reports) == len(scheme.combinations)
                    for window, reports in line.reports.items()
                )
            )
        except WindowError:
            fine = False
        if not fine:
            raise self._damaged()

    def _check_end(self, line: EndLine, rows: int, reports: int) -> None:
        if line.sha256 != self._hash.hexdigest():
            raise ArchiveError(
                f"{self._path} does not match its checksum: it was damaged or changed on its way"
            )
        if (line.rows, line.reports) != (rows, reports):
            raise self._damaged()

    def _truncated(self) -> ArchiveError:
        return ArchiveError(f"{self._path} ends too early: copy or export it again")

    def _damaged(self, why: str = "") -> ArchiveError:
        """The error for the line that was read last; `why` names its field."""
        if self._number == 1:
            return ArchiveError(f"{self._path} holds no tallies of deniable")
        where = f"line {self._number}" + (why and f" ({why})")
        return ArchiveError(f"{self._path} is damaged in {where}: copy or export it again")
