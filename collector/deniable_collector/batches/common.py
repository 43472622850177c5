"""A cache of validated reports, because many devices send identical ones.

A report with one column of a short list is the same for thousands of devices. Its JSON text is the
key of the cache, so most reports cost one look-up and are not even decoded. Of others that begin
like an earlier one, with metric, scheme, window and row, only the columns are read.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable

import msgspec

from deniable.mechanisms import Packing
from deniable_collector.batches.catalogue import Catalogue
from deniable_collector.batches.folding import Accepted, RowPlace
from deniable_collector.batches.typed import TypedReport, decode_report

_MOST = 1 << 14
"""Cached reports, of about 400 bytes each; when there are more, the cache is emptied."""

_LONGEST = 256
"""Bytes of what is cached of a report; a longer one is mostly white space."""

_COLUMNS = b'"columns":'


class _NotCached(Exception):
    """This report cannot be found here."""


class _Beginning(msgspec.Struct, frozen=True):
    """What a report says before its columns: its place, what reads them, and whether many devices
    send the same."""

    place: RowPlace
    read: Callable[[bytes], int | bytes | None]
    repeats: bool


class _Known(dict[bytes, Accepted]):
    """Reports, and heads of reports, that may be counted from `opens` to `closes` (POSIX
    seconds)."""

    opens = -math.inf
    closes = math.inf

    def __init__(self) -> None:
        self.heads: dict[bytes, _Beginning] = {}


class CommonReports:
    """Finds what reports add to; safe to use from several threads."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known = _Known()
        self._lock = threading.Lock()

    def find(self, reports: Iterable[bytes], now: float) -> tuple[Accepted, ...] | None:
        """What each report of a `TypedBatch` adds to at `now`; None if one is bad, or its tally is
        not cached."""
        known = self._known
        if not known.opens <= now <= known.closes or max(len(known), len(known.heads)) >= _MOST:
            # Some of their windows have closed, or a clock was set back.
            known = self._known = _Known()
        cached, look_up = known.get, self._look_up
        try:
            return tuple([cached(text) or look_up(known, text, now) for text in reports])
        except _NotCached:
            return None

    def _look_up(self, known: _Known, text: bytes, now: float) -> Accepted:
        """A report that is not cached.

        Raises:
            _NotCached: it is bad, or its tally is not cached.
        """
        begin, _, tail = text.rpartition(_COLUMNS)
        head = known.heads.get(begin) or self._begin(known, begin, now)
        columns = None if head is None else head.read(tail)
        if head is not None and columns is None and b":" not in tail:
            # They come last, and are wrong: to decode them would only take time.
            raise _NotCached
        if head is None or columns is None:
            report = decode_report(text)
            head = self._open(report, known, now)
            columns = None if report is None else head.read(msgspec.json.encode(report.columns))
            if columns is None:
                raise _NotCached
        accepted = head.place, columns
        if head.repeats and len(text) <= _LONGEST:
            known[text] = accepted
        return accepted

    def _begin(self, known: _Known, begin: bytes, now: float) -> _Beginning | None:
        """What the beginning of a report says, if it is one; it is cached then."""
        try:
            head = self._open(decode_report(begin + _COLUMNS + b"0"), known, now)
        except _NotCached:
            return None
        if len(begin) <= _LONGEST:
            known.heads[begin] = head
        return head

    def _open(self, report: TypedReport | None, known: _Known, now: float) -> _Beginning:
        if report is None:
            raise _NotCached
        tally = self._catalogue.remembered(report.metric, report.scheme, report.window, now)
        row = 0 if report.row == -1 else report.row
        if tally is None or not 0 <= row < len(tally.rows):
            raise _NotCached
        with self._lock:
            known.opens = max(known.opens, tally.opens)
            known.closes = min(known.closes, tally.closes)
        # Of bitmaps hardly two are equal.
        repeats = tally.rows[row].packing is Packing.INDEX
        return _Beginning(tally.places[row], tally.readers[row], repeats)
