"""A cache of validated reports, because many devices send identical ones.

A report with one column of a short list is the same for thousands of devices. The whole report
is the key of the cache, so most reports cost one look-up.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable

from deniable import WireError
from deniable.mechanisms import Packing
from deniable.wire import unpack_columns
from deniable_collector.batches.catalogue import Catalogue
from deniable_collector.batches.folding import Accepted
from deniable_collector.batches.typed import TypedReport, read_columns

__all__ = ["CommonReports"]

_MOST = 1 << 14
"""Cached reports, of about 400 bytes each; when there are more, the cache is emptied."""


class _Known(dict[TypedReport, Accepted]):
    """Reports that may be counted from `opens` to `closes` (POSIX seconds)."""

    opens = -math.inf
    closes = math.inf


class CommonReports:
    """Finds what reports add to; safe to use from several threads."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known = _Known()
        self._lock = threading.Lock()

    def find(self, reports: Iterable[TypedReport], now: float) -> tuple[Accepted, ...] | None:
        """What each report adds to at `now`; None if one is bad, or its tally is not cached."""
        known = self._known
        if not known.opens <= now <= known.closes or len(known) >= _MOST:
            # Some of their windows have closed, or a clock was set back.
            known = self._known = _Known()
        found = []
        for report in reports:
            # Only a number is worth remembering, and quick to look for.
            accepted = known.get(report) if type(report.columns) is int else None
            accepted = accepted or self._look_up(known, report, now)
            if accepted is None:
                return None
            found.append(accepted)
        return tuple(found)

    def _look_up(self, known: _Known, report: TypedReport, now: float) -> Accepted | None:
        place = self._catalogue.remembered(report.metric, report.scheme, report.window, now)
        row = 0 if report.row == -1 else report.row
        if place is None or not 0 <= row < len(place.rows):
            return None
        layout, packed = place.rows[row], report.columns
        columns = read_columns(layout, packed)
        if columns is None:
            try:
                columns = unpack_columns(layout, packed)
            except WireError:
                return None
        accepted = Accepted(place.keys[row], layout, columns)
        if layout.packing is Packing.INDEX:
            with self._lock:
                known.opens = max(known.opens, place.opens)
                known.closes = min(known.closes, place.closes)
                known[report] = accepted
        return accepted
