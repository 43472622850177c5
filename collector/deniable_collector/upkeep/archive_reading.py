"""Reads a file of tallies (`archive.py`), which may be damaged or hostile, one line at a time."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from deniable import Scheme, SchemeError, WindowError
from deniable.protocol import windows
from deniable.protocol.keep import CALENDARS
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.summed.sums import period_of
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

_decoder = msgspec.json.Decoder(Line)


def check(path: Path, *, advance: Advance = lambda share: None) -> Contents:
    """Read a whole file and return what it contains.

    Raises:
        ArchiveError: it is damaged, truncated, or not a file that this version can read.
        OSError: it cannot be opened.
    """
    return _ArchiveReader(path, advance).check()


def rows(
    path: Path, *, advance: Advance = lambda share: None
) -> Iterator[tuple[str, str, RowLine]]:
    """All rows of windows in a file that was checked, each with its metric and scheme."""
    return _ArchiveReader(path, advance).rows()


def sums(path: Path) -> Iterator[tuple[str, str, SumLine, list[RowLine]]]:
    """All sums of dropped windows in a file that was checked, each with its metric, its scheme
    and its rows."""
    return _ArchiveReader(path, lambda share: None).sums()


class _ArchiveReader:
    """Reads a file once, for `check` or for `rows`."""

    def __init__(self, path: Path, advance: Advance) -> None:
        self._path = path
        self._advance = advance
        self._hash = hashlib.sha256()

    def check(self) -> Contents:
        lines = self._lines()
        head = next(lines, None)
        if not isinstance(head, HeadLine) or head.format != FORMAT:
            raise ArchiveError(f"{self._path} holds no tallies of deniable")
        if head.version != VERSION:
            raise ArchiveError(f"{self._path} was written by another version of deniable")
        schemes: list[tuple[str, Scheme]] = []
        rows = reports = 0
        tallies: list[TallyKey] = []
        last: tuple[Any, ...] = ()
        named = set()
        current: SumLine | None = None
        found: set[tuple[str, ...]] = set()
        for line in lines:
            if isinstance(line, SchemeLine):
                schemes.append((line.metric, self._scheme(line)))
                if (line.metric, line.scheme) in named:
                    raise self._damaged()
                named.add((line.metric, line.scheme))
                last, current = (), None
            elif isinstance(line, SumLine):
                if not schemes:
                    raise self._damaged()
                self._check_sum(schemes[-1][1], line)
                key = (schemes[-1][0], schemes[-1][1].fingerprint, str(line.name))
                if key in found:
                    raise self._damaged()
                found.add(key)
                last, current = (), line
            elif isinstance(line, RowLine):
                self._check_row(schemes, line, str(current.name) if current else None)
                # The rows of a sum have one name, in place of windows.
                window = in_order(line.window) if current is None else (0.0, "")
                if last and (*window, line.row) <= last:
                    raise self._damaged()
                if current is None:
                    if last[:2] != window:
                        metric, scheme = schemes[-1]
                        tallies.append(TallyKey(metric, scheme.fingerprint, line.window))
                    reports += line.reports
                last = (*window, line.row)
                rows += 1
            elif isinstance(line, EndLine):
                if next(lines, None) is not None:
                    raise self._damaged()
                self._check_end(line, rows, reports)
                digest = line.sha256
                return Contents(
                    digest, head.origin, rows, reports, len(found), tuple(schemes), tuple(tallies)
                )
            else:
                raise self._damaged()
        raise self._truncated()

    def rows(self) -> Iterator[tuple[str, str, RowLine]]:
        metric = scheme = ""
        for line in self._lines():
            if isinstance(line, SchemeLine):
                metric, scheme = line.metric, line.scheme
            elif isinstance(line, RowLine) and not line.window.startswith("kept-"):
                yield metric, scheme, line

    def sums(self) -> Iterator[tuple[str, str, SumLine, list[RowLine]]]:
        metric = scheme = ""
        current: tuple[SumLine, list[RowLine]] | None = None
        for line in self._lines():
            if current is not None and not isinstance(line, RowLine):
                yield metric, scheme, *current
                current = None
            if isinstance(line, SchemeLine):
                metric, scheme = line.metric, line.scheme
            elif isinstance(line, SumLine):
                current = line, []
            elif current is not None and isinstance(line, RowLine):
                current[1].append(line)

    def _lines(self) -> Iterator[Line]:
        size = max(1, self._path.stat().st_size)
        first = True
        with self._path.open("rb") as raw, gzip.GzipFile(fileobj=raw, mode="rb") as file:
            while text := self._line(file, first):
                if not text.endswith(b"\n"):
                    raise self._truncated()
                try:
                    line = _decoder.decode(text)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    if first:
                        raise ArchiveError(f"{self._path} holds no tallies of deniable") from None
                    raise self._damaged() from None
                if not isinstance(line, EndLine):
                    self._hash.update(text)
                yield line
                first = False
                self._advance(raw.tell() / size)

    def _line(self, file: gzip.GzipFile, first: bool) -> bytes:
        try:
            return file.readline(_LONGEST_LINE)
        except EOFError:
            raise self._truncated() from None
        except (gzip.BadGzipFile, zlib.error):
            if first:
                raise ArchiveError(f"{self._path} holds no tallies of deniable") from None
            raise self._damaged() from None

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
        self, schemes: list[tuple[str, Scheme]], line: RowLine, name: str | None
    ) -> None:
        if not schemes:
            raise self._damaged()
        rows = schemes[-1][1].rows
        try:
            if name is None:
                windows.kind_of(line.window)
                windows.end(line.window)
            elif line.window != name:
                raise self._damaged()
        except WindowError:
            raise self._damaged() from None
        if line.row >= len(rows) or len(line.cells) != rows[line.row].width:
            raise self._damaged()

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
        return ArchiveError(f"{self._path} is damaged: copy or export it again")
