"""What is asked of single windows: how each looks beside those before it, and which is newest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain

from deniable import Metric, windows
from deniable_estimator.answers.base import Answer
from deniable_estimator.asking.history import LONGEST_HISTORY, History, inspect
from deniable_estimator.asking.looks import Look, look_at_each
from deniable_estimator.asking.reading import Selection, unfinished
from deniable_estimator.dashboard.ranges import DayRange, read_range
from deniable_estimator.dashboard.sources.answers import check_listed
from deniable_estimator.dashboard.sources.trends import TrendSource
from deniable_estimator.dashboard.versions import (
    digest,
    digest_of_candidates,
)


@dataclass(frozen=True)
class DataSource(TrendSource):
    """The data of the pages: all that they ask for."""

    def history(
        self,
        metric: Metric,
        days: DayRange,
        estimate: Answer | None = None,
        candidates: Sequence[str] | None = None,
    ) -> History:
        """What is strange in the windows of these days, each against those before it, and in
        their `estimate`, which is that of these candidates.

        Strings are not decoded for it.
        """
        check_listed(metric)
        reach = days.reaching_back(LONGEST_HISTORY, metric.window)
        selection = self._select(metric, reach, None).apart()
        asked = digest_of_candidates(candidates), estimate is None, days, self.alarm_level
        running = unfinished(selection.labels, self.clock())
        key = digest("history", *selection.version(), running, *asked)

        def work() -> History:
            return inspect(
                metric.name,
                self._looks(selection),
                self.alarm_level,
                shown={label for label in selection.labels if days.touches(label)},
                whole=estimate.verdict.figures if estimate else (),
                unfinished=running,
            )

        return self.decodes.get(key, work)

    def looks(self, metric: Metric, days: DayRange) -> tuple[Look, ...]:
        """What is looked at in each window of these days, the oldest first."""
        return self._looks(self._select(metric, days, None).apart())

    def windowwise(self, metric: Metric, days: DayRange, series: str) -> Iterator[Answer]:
        """The estimate of one string in each window of these days, the oldest first."""
        asked = digest_of_candidates([series])
        for label in self._select(metric, days, [series]).apart().labels:
            first = windows.first_day(label)
            last = windows.last_day(label)
            within = DayRange(first, last)
            yield self._point(metric, within, [series], asked, 0.95, "storey").answer

    def reports(self, metric: Metric, days: DayRange) -> int:
        """How many reports of these days there are."""
        selection = self._select(metric, days, None)
        key = digest("reports", *selection.version())
        return self.decodes.get(key, lambda: selection.read().n)

    def newest(self, metric: Metric) -> str | None:
        """The newest window that holds any report, whatever the range."""
        return max(self.labels(metric), default=None)

    def running(self, metric: Metric) -> DayRange | None:
        """The days so far of the newest window, if it has reports and is not over."""
        newest = self.newest(metric)
        if newest is None or windows.end(newest) <= self.seen_until:
            return None
        first = windows.first_day(newest)
        return DayRange(first, max(first, datetime.fromtimestamp(self.seen_until, UTC).date()))

    def read_days(self, metric: Metric, arguments: Mapping[str, str]) -> DayRange:
        """The days of an address. Where it names none, and the latest complete windows have no
        reports, those of the window that runs: the first day of an app that reports at once.

        Raises:
            RangeError: it asks for days that cannot be shown.
        """
        days = read_range(arguments, self.seen_until, metric.window, metric)
        if any(arguments.get(name) for name in ("since", "from", "to")):
            return days
        running = self.running(metric)
        if running is None or any(map(days.touches, self.labels(metric))):
            return days
        return replace(running, without=days.without)

    def labels(self, metric: Metric) -> list[str]:
        """The windows that hold reports of a metric, or of the pair that answers for it."""
        pair = self.registry.unasked.get(metric.name)
        return [
            label
            for name in (metric.name, *((pair.name,) if pair else ()))
            for scheme in self.reader.schemes().get(name, {})
            for label in self.reader.all_windows(name, scheme)
        ]

    def _looks(self, selection: Selection) -> tuple[Look, ...]:
        """What is looked at in each window. Those that have not changed are known; the others are
        read and looked at together."""
        versions = selection.each_version()
        keys = {label: digest("look", *each) for label, each in versions.items()}
        found: dict[str, tuple[Look, ...]] = {
            label: self.decodes.known(key) for label, key in keys.items()
        }
        unknown = [label for label, seen in found.items() if seen is None]
        for first in range(0, len(unknown), selection.at_once):
            labels = unknown[first : first + selection.at_once]
            looks = look_at_each(labels, selection.read_each(labels))
            for label, seen in zip(labels, looks, strict=True):
                found[label] = () if seen is None else (seen,)
                self.decodes.keep(keys[label], found[label])
        return tuple(chain.from_iterable(found.values()))
