"""Tallies as a file, to move them between stores: exact sums, with the schemes that read them.

The file is gzip over lines of JSON, written and read one line at a time; its format is in
docs/operating-stores.md.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeAlias

import msgspec

from deniable import DeniableError, Scheme, SchemeError, WindowError, windows
from deniable_collector.stores.base import (
    MAX_CELL,
    Store,
    TallyKey,
)

__all__ = [
    "EVERYTHING",
    "FORMAT",
    "VERSION",
    "Advance",
    "ArchiveError",
    "Contents",
    "RowLine",
    "TallySelection",
    "check",
    "export",
    "rows",
]

FORMAT = "deniable-tallies"
VERSION = 1

_LONGEST_LINE = 1 << 28
"""The longest line in bytes, which limits the memory that a damaged or hostile file can use."""

_LEVEL = 6

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_CELL)]
Advance: TypeAlias = Callable[[float], None]
"""Called with the fraction of the work that is done."""


class ArchiveError(DeniableError):
    """The file cannot be used, and nothing of it was added."""


class _ArchiveLine(msgspec.Struct, forbid_unknown_fields=True, tag_field="line"):
    pass


class _HeadLine(_ArchiveLine, tag="head"):
    format: str
    version: int
    origin: str


class _SchemeLine(_ArchiveLine, tag="scheme"):
    metric: str
    scheme: str
    definition: dict[str, Any]


class RowLine(_ArchiveLine, tag="row"):
    """One row of a tally: its reports, and the counts of all of its columns."""

    window: str
    row: _Count
    reports: _Count
    cells: list[_Count]


class _EndLine(_ArchiveLine, tag="end"):
    rows: int
    reports: int
    sha256: str


_decoder = msgspec.json.Decoder(_HeadLine | _SchemeLine | RowLine | _EndLine)


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


EVERYTHING = TallySelection()


@dataclass(frozen=True)
class Contents:
    """What a file contains. `digest` is the SHA-256 of all its lines except the last."""

    digest: str
    origin: str
    rows: int
    reports: int
    tallies: int
    schemes: tuple[tuple[str, Scheme], ...] = field(repr=False, compare=False)


def export(
    store: Store,
    path: Path,
    selection: TallySelection = EVERYTHING,
    *,
    origin: str = "",
    advance: Advance = lambda share: None,
) -> Contents:
    """Write the selected tallies to a file, which exists only when it is complete.

    `advance` is called with the fraction that is done. The same tallies and `origin` give the
    same digest.

    Raises:
        StoreError: the store cannot be read.
        OSError: the file cannot be written.
    """
    with _written(path) as raw, gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as file:
        return _Writer(file, origin).write(store, selection, advance)


def check(path: Path, *, advance: Advance = lambda share: None) -> Contents:
    """Read a whole file and return what it contains.

    Raises:
        ArchiveError: it is damaged, truncated, or not a file that this version can read.
        OSError: it cannot be opened.
    """
    return _Reader(path, advance).check()


def rows(
    path: Path, *, advance: Advance = lambda share: None
) -> Iterator[tuple[str, str, RowLine]]:
    """All rows of a file that was checked, each with its metric and scheme."""
    return _Reader(path, advance).rows()


class _Writer:
    def __init__(self, file: gzip.GzipFile, origin: str) -> None:
        self._file = file
        self._origin = origin
        self._hash = hashlib.sha256()
        self._rows = self._reports = self._tallies = 0

    def write(self, store: Store, selection: TallySelection, advance: Advance) -> Contents:
        self._put(_HeadLine(FORMAT, VERSION, self._origin))
        plan = [
            (metric, scheme, chosen)
            for metric, published in sorted(store.schemes().items())
            for fingerprint, scheme in sorted(published.items())
            if (
                chosen := [
                    window
                    for window in sorted(store.windows(metric, fingerprint), key=_order)
                    if selection.takes(metric, window)
                ]
            )
        ]
        total, done = sum(len(chosen) for _, _, chosen in plan), 0
        for metric, scheme, chosen in plan:
            self._put(_SchemeLine(metric, scheme.fingerprint, scheme.definition()))
            for window in chosen:
                self._write_tally(store, TallyKey(metric, scheme.fingerprint, window))
                done += 1
                advance(done / total)
        digest = self._hash.hexdigest()
        self._put(_EndLine(self._rows, self._reports, digest))
        schemes = tuple((metric, scheme) for metric, scheme, _ in plan)
        return Contents(digest, self._origin, self._rows, self._reports, self._tallies, schemes)

    def _write_tally(self, store: Store, key: TallyKey) -> None:
        tally = store.tally(key.metric, key.scheme, [key.window])
        for number, row in enumerate(tally.rows):
            if row.reports or row.cells.any():
                self._put(RowLine(key.window, number, row.reports, row.cells.tolist()))
                self._rows += 1
        self._reports += tally.reports
        self._tallies += 1

    def _put(self, line: _ArchiveLine) -> None:
        text = msgspec.json.encode(line) + b"\n"
        self._hash.update(text)
        self._file.write(text)


class _Reader:
    """Reads a file once, for `check` or for `rows`."""

    def __init__(self, path: Path, advance: Advance) -> None:
        self._path = path
        self._advance = advance
        self._hash = hashlib.sha256()

    def check(self) -> Contents:
        lines = self._lines()
        head = next(lines, None)
        if not isinstance(head, _HeadLine) or head.format != FORMAT:
            raise ArchiveError(f"{self._path} holds no tallies of deniable")
        if head.version > VERSION:
            raise ArchiveError(
                f"{self._path} was written by a newer version of deniable: upgrade this one"
            )
        schemes: list[tuple[str, Scheme]] = []
        rows = reports = tallies = 0
        last: tuple[Any, ...] = ()
        named = set()
        for line in lines:
            if isinstance(line, _SchemeLine):
                schemes.append((line.metric, self._scheme(line)))
                if (line.metric, line.scheme) in named:
                    raise self._damaged()
                named.add((line.metric, line.scheme))
                last = ()
            elif isinstance(line, RowLine):
                self._check_row(schemes, line)
                place = (*_order(line.window), line.row)
                if last and place <= last:
                    raise self._damaged()
                tallies += last[:2] != place[:2]
                last = place
                rows += 1
                reports += line.reports
            elif isinstance(line, _EndLine):
                if next(lines, None) is not None:
                    raise self._damaged()
                self._check_end(line, rows, reports)
                digest = line.sha256
                return Contents(digest, head.origin, rows, reports, tallies, tuple(schemes))
            else:
                raise self._damaged()
        raise self._truncated()

    def rows(self) -> Iterator[tuple[str, str, RowLine]]:
        metric = scheme = ""
        for line in self._lines():
            if isinstance(line, _SchemeLine):
                metric, scheme = line.metric, line.scheme
            elif isinstance(line, RowLine):
                yield metric, scheme, line

    def _lines(self) -> Iterator[_HeadLine | _SchemeLine | RowLine | _EndLine]:
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
                if not isinstance(line, _EndLine):
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

    def _scheme(self, line: _SchemeLine) -> Scheme:
        try:
            scheme = Scheme.from_definition(line.definition)
        except (SchemeError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ArchiveError(
                f"scheme {line.scheme} of metric {line.metric} cannot be read ({error!r}): it may "
                "need a newer version of deniable"
            ) from None
        if scheme.fingerprint != line.scheme:
            raise ArchiveError(
                f"scheme {line.scheme} of metric {line.metric} is defined as {scheme.fingerprint}: "
                f"{self._path} was changed"
            )
        return scheme

    def _check_row(self, schemes: list[tuple[str, Scheme]], line: RowLine) -> None:
        if not schemes:
            raise self._damaged()
        rows = schemes[-1][1].rows
        try:
            windows.kind_of(line.window)
            windows.end(line.window)
        except WindowError:
            raise self._damaged() from None
        if line.row >= len(rows) or len(line.cells) != rows[line.row].width:
            raise self._damaged()

    def _check_end(self, line: _EndLine, rows: int, reports: int) -> None:
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


def _order(window: str) -> tuple[float, str]:
    return windows.start(window), window


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
