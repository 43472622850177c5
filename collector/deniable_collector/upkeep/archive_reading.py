"""Reads a file of tallies (`archive.py`), which may be damaged or hostile, one line at a time."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from deniable import Scheme, SchemeError, WindowError
from deniable.protocol import windows
from deniable.protocol.keep import CALENDARS
from deniable_collector.stores.sums import SumName, period_of
from deniable_collector.upkeep.archive import (
    FORMAT,
    VERSION,
    Advance,
    ArchiveError,
    Contents,
    EndLine,
    HeadLine,
    Line,
    RowLine,
    SchemeLine,
    SumLine,
    in_order,
)

_LONGEST_LINE = 1 << 28
"""The longest line in bytes, which limits the memory that a damaged or hostile file can use."""

_CELLS = 1 << 16
"""The most cells that are added at once, unless a row has more. This is part of the format, because
the groups determine the ids."""

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
    """What is added at once: neighbouring rows of a window, or a sum of dropped windows with all of
    its rows."""

    metric: str
    scheme: Scheme
    name: str | SumName
    sum: SumLine | None
    rows: list[RowLine]

    @property
    def of(self) -> tuple[str, str]:
        """The metric and the scheme by their names."""
        return self.metric, self.scheme.fingerprint

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
        self._begun, self.origin = False, ""

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
        self._begun, self.origin = True, head.origin
        rows = reports = tallies = cells = 0
        sums: set[tuple[str, ...]] = set()
        latest: tuple[str, Scheme] | None = None
        part: ArchivePart | None = None
        last: tuple[Any, ...] = ()
        for line in lines:
            if part is not None and not isinstance(line, RowLine):
                yield part
                part, last = None, ()
            match line:
                case RowLine() if latest is not None:
                    place = self._check_row(latest[1], part, line)
                    if last and place <= last:
                        raise self._damaged()
                    if part is None or part.sum is None:
                        tallies += last[:2] != place[:2]
                        reports += line.reports
                        # A part of another window, or one that is large enough, is complete.
                        if part and (part.name != line.window or cells + len(line.cells) > _CELLS):
                            yield part
                            part = None
                    if part is None:
                        part, cells = ArchivePart(*latest, line.window, None, []), 0
                    part.rows.append(line)
                    cells += len(line.cells)
                    rows += 1
                    last = place
                case SchemeLine() if (line.metric, line.scheme) not in self._schemes:
                    scheme = self._schemes[line.metric, line.scheme] = self._scheme(line)
                    latest = line.metric, scheme
                case SumLine() if latest is not None:
                    self._check_sum(latest[1], line)
                    part = ArchivePart(*latest, line.name, line, [])
                    if (*part.of, str(line.name)) in sums:
                        raise self._damaged()
                    sums.add((*part.of, str(line.name)))
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
                try:
                    text = file.readline(_LONGEST_LINE)
                    line = _decoder.decode(text) if text.endswith(b"\n") else None
                except EOFError:
                    raise self._truncated() from None
                except (gzip.BadGzipFile, zlib.error, msgspec.DecodeError, UnicodeDecodeError):
                    raise self._damaged() from None
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

    def _check_row(
        self, scheme: Scheme, part: ArchivePart | None, line: RowLine
    ) -> tuple[Any, ...]:
        """The place of a row among those of its scheme or its sum, which has one name for all."""
        rows = scheme.rows
        if line.row >= len(rows) or len(line.cells) != rows[line.row].width:
            raise self._damaged()
        if part is not None and part.sum is not None:
            if line.window != str(part.name):
                raise self._damaged()
            return 0.0, "", line.row
        try:
            windows.kind_of(line.window)
            windows.end(line.window)
        except WindowError:
            raise self._damaged() from None
        return *in_order(line.window), line.row

    def _check_sum(self, scheme: Scheme, line: SumLine) -> None:
        groups = len(scheme.combinations)
        try:
            known = line.kind in windows.KINDS and any(
                period_of(calendar, window) == line.period
                for window in list(line.reports)[:1]
                for calendar in CALENDARS[line.kind]
            )
            fine = known and all(
                line.name.covers(window) and len(reports) == groups
                for window, reports in line.reports.items()
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

    def _damaged(self) -> ArchiveError:
        if not self._begun:
            return ArchiveError(f"{self._path} holds no tallies of deniable")
        return ArchiveError(f"{self._path} is damaged: copy or export it again")
