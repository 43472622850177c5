"""Answers over time: trends, which are kept until a tally of theirs changes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from deniable import Metric, windows
from deniable_estimator.answers.base import Answer
from deniable_estimator.asking.periods import read_ranges
from deniable_estimator.asking.trend import Points, Progress, Trend, trend
from deniable_estimator.dashboard.ranges import DayRange
from deniable_estimator.dashboard.sources.answers import AnswerSource, Versioned, check_listed
from deniable_estimator.dashboard.sources.lists import day_of
from deniable_estimator.dashboard.versions import (
    digest,
    digest_of_candidates,
)

_COMPARED_DAYS = 7
"""So many days before the first of a trend are looked at too."""


@dataclass(frozen=True)
class TrendSource(AnswerSource):
    """The data of the pages, with trends."""

    def trend(
        self,
        metric: Metric,
        days: DayRange,
        by: windows.Kind,
        candidates: Sequence[str] | None = None,
    ) -> Trend:
        """The metric over the periods of these days.

        Raises:
            StillDecoding, TooManyDecodes: it takes longer than one may wait.
        """
        return self.trend_at(metric, days, by, candidates).answer

    def trend_at(
        self,
        metric: Metric,
        days: DayRange,
        by: windows.Kind,
        candidates: Sequence[str] | None = None,
        *,
        level: float = 0.95,
    ) -> Versioned[Trend]:
        """The trend with its version."""
        check_listed(metric)
        asked = digest_of_candidates(candidates)
        version = self.trend_version(metric, days, by, candidates)
        if self._is_light(metric):
            together = partial(
                read_ranges,
                *(self.reader, self.registry, metric.name),
                candidates=candidates,
                without=days.without,
                level=level,
                now=self.clock(),
                where=dict(days.where),
            )
            found = self.decodes.get(
                digest("trend", version, asked, level),
                lambda: self._trend(metric, days, by, candidates, level, together, None),
            )
            return Versioned(found, _lasting_version(found, version))

        def work(progress: Progress | None = None, known: bool = False) -> Versioned[Trend]:
            def points(ranges: Sequence[tuple[date, date]]) -> Iterator[Answer]:
                for first, last in ranges:
                    within = replace(days, first=first, last=last)
                    yield self._point(
                        *(metric, within, candidates, asked, level, "storey"), known=known
                    ).answer

            found = self._trend(metric, days, by, candidates, level, points, progress)
            return Versioned(found, _lasting_version(found, version))

        return self._run_or_queue(metric, work, "trend", days, asked, by, level)

    def trend_version(
        self,
        metric: Metric,
        days: DayRange,
        by: windows.Kind,
        candidates: Sequence[str] | None = None,
    ) -> bytes:
        """That of the trend: its periods' versions."""
        # The first days are compared with those of the week before.
        reach = days.reaching_back(_COMPARED_DAYS, "day")
        selection = self._select(metric, reach, candidates)
        parts = list(selection.each_version().values())
        # Which periods have ended changes at midnight.
        known = self.today, day_of(lambda: self.seen_until)
        return digest(days.first, days.last, by, known, *parts)

    def _trend(
        self,
        metric: Metric,
        days: DayRange,
        by: windows.Kind,
        candidates: Sequence[str] | None,
        level: float,
        points: Points,
        progress: Progress | None,
    ) -> Trend:
        return trend(
            self.reader,
            self.registry,
            metric.name,
            days.first,
            days.last,
            candidates,
            by=by,
            now=self.seen_until,
            level=level,
            points=points,
            progress=progress,
        )


def _lasting_version(found: Trend, version: bytes) -> bytes:
    """That of a trend, as of an answer."""
    lacking = any(period.unreadable for period in found.periods)
    return secrets.token_bytes(20) if lacking else version
