"""What a discovery has found so far, for the live page. Finding takes about a second, so it runs in
the background, and what was found is shown for some seconds before it runs again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from deniable import Metric
from deniable_estimator.answers.finds import Finds
from deniable_estimator.answers.units import SHARES
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.discovery import finds_at, name_of_find
from deniable_estimator.dashboard.ranges import DayRange

EVERY = 3.0
"""So many seconds pass before the strings of a metric are looked for again."""


@dataclass(frozen=True)
class LatestFind:
    """What is known now of a metric's strings."""

    n: int
    """The reports of these days."""
    found: Finds | None
    """What was found last, maybe in fewer reports; None if nothing was looked for yet."""
    waiting: bool
    """Whether there are reports that it does not count yet."""

    def lines(self, most: int) -> tuple[list[tuple[str, str, str]], int]:
        """The commonest strings, each with its share and interval; and how many more there are."""
        finds = self.found.finds if self.found else ()
        lines = []
        for each in finds[:most]:
            spread = (each.high - each.low) / 2
            interval = SHARES.interval(each.low, each.high, spread)
            lines.append((name_of_find(each), SHARES.full(each.share, spread), interval))
        return lines, max(0, len(finds) - most)


@dataclass
class LatestFinds:
    """The latest finds of each metric."""

    clock: Callable[[], float] = time.monotonic
    _kept: dict[str, tuple[str, DayRange, float, Finds]] = field(default_factory=dict)
    """Metric -> its scheme, the days, when it was found, and what."""

    def look(self, source: DataSource, metric: Metric, days: DayRange) -> LatestFind:
        """What is known; it is looked for in the background, if it is time.

        Raises:
            EstimateError: there are too many reports.
        """
        n = source.reports(metric, days)
        scheme = metric.scheme.fingerprint
        kept = self._kept.get(metric.name)
        found = kept[3] if kept and kept[:2] == (scheme, days) else None
        if not n or (found is not None and found.n == n):
            return LatestFind(n, found, False)
        if kept is not None and found is not None and self.clock() - kept[2] < EVERY:
            return LatestFind(n, found, True)
        try:
            found = finds_at(source, metric, days).answer
        except (StillDecoding, TooManyDecodes):
            return LatestFind(n, found, True)
        self._kept[metric.name] = (scheme, days, self.clock(), found)
        return LatestFind(n, found, found.n != n)
