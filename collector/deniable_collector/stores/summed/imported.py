"""The memory of imports: in which form windows of another store came, as tallies or in sums.

A kept sum and the days that it was made of are different tallies. So the ids of imports, which are
made of the content, do not tell that both bring the same reports. This memory does.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from deniable.protocol import windows
from deniable.protocol.keep import CALENDARS
from deniable_collector.stores.summed.sums import bounds, period_of

TALLY = "tally"
"""The form of a window that came as a tally of its own."""


class Imported(NamedTuple):
    """One window of another store and how it came: as a TALLY, or as a part of a kept sum of the
    calendar `form`, which was added under the id `batch`."""

    source: str
    form: str
    batch: str
    window: str

    def ended(self, before: float) -> bool:
        """Whether nothing that was dropped up to `before` (POSIX seconds) can leave a part of this
        window in a sum: its longest period had ended."""
        kind = windows.kind_of(self.window)
        periods = [period_of(calendar, self.window) for calendar in CALENDARS[kind]]
        ends = [bounds(each)[1] for each in periods]
        return max([windows.end(self.window), *ends]) <= before


def source_of(origin: str) -> str:
    """A short name for the origin of a file, which may be any text; empty if it has none."""
    return origin and sha256(origin.encode()).hexdigest()[:16]


def brought_before(new: Iterable[Imported], known: Iterable[Imported]) -> Imported | None:
    """What of an import would count a window twice, if anything: the window came before from the
    same store, as a tally and now in a sum, or the other way round, or in another sum of the same
    calendar. What came in the same form is recognized by its id. A month and its quarter may both
    be there: readers take one of them.
    """
    there: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for each in known:
        there.setdefault((each.source, each.window), set()).add((each.form, each.batch))
    for each in new:
        forms = there.get((each.source, each.window), set())
        if (each.form, each.batch) in forms:
            continue
        for form, _ in forms:
            if form == each.form or TALLY in (form, each.form):
                return each
    return None
