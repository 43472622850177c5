"""A metric over time for each segment, each in the finest periods in which it says something.

Tallies add up, so the period is chosen for each segment and not for the metric: days, weeks or
months, whichever is the first in which half of the periods have enough reports.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from deniable import Registry
from deniable.protocol import windows
from deniable.protocol.segments import LEAST_REPORTS
from deniable_estimator.answers.files import Filed, Table
from deniable_estimator.answers.segmented import LabelledSegment, name_of
from deniable_estimator.asking.query import Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.reading import select
from deniable_estimator.asking.segments import check_names, enough_reports, split
from deniable_estimator.asking.trend import GROUPS, Trend, trend
from deniable_estimator.messages import counted, message


@dataclass(frozen=True, eq=False)
class SegmentTrend(LabelledSegment):
    """The trend of one."""

    trend: Trend


@dataclass(frozen=True, eq=False)
class SegmentTrends(Filed):
    """A metric over time by segments."""

    metric: str
    by: tuple[str, ...]
    groups: tuple[SegmentTrend, ...]
    small: tuple[tuple[Mapping[str, str], int], ...]
    """The segments with fewer reports in the whole range than say anything, with their number."""

    @property
    def notes(self) -> tuple[str, ...]:
        """How to read it."""
        notes = [message("segments are not private: each report states its segment without noise")]
        if len({each.trend.by for each in self.groups}) > 1:
            notes.append(
                message("segments with fewer reports are shown by longer periods than the others")
            )
        if self.small:
            notes.append(
                counted(
                    "{count} segment with fewer than {least} reports in all is left out: "
                    "{segments}",
                    "{count} segments with fewer than {least} reports in all are left out: "
                    "{segments}",
                    len(self.small),
                    least=LEAST_REPORTS,
                    segments="; ".join(f"{name_of(each)} ({n:,})" for each, n in self.small),
                )
            )
        return tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "metric": self.metric,
            "by": list(self.by),
            "notes": list(self.notes),
            "segments": [
                {"segment": dict(each.labels), **each.trend.to_dict()} for each in self.groups
            ],
            "small": [{"segment": dict(labels), "n": n} for labels, n in self.small],
        }

    def csv_table(self) -> Table:
        """The lines of each trend, with the segment and its period in front; at the end the name of
        the segment once more, in a column that is called the same for all segments."""
        header: tuple[str, ...] = (*self.by, "by")
        rows: list[Sequence[Any]] = []
        for each in self.groups:
            columns, lines = each.trend.csv_table()
            if len(header) == len(self.by) + 1:
                header = (*header, *columns)
            labels = [each.labels[name] for name in self.by]
            rows += [(*labels, each.trend.by, *line, name_of(each.labels)) for line in lines]
        return (*header, "segment"), rows


def period_of(window: windows.Kind, reports: Mapping[str, int], enough: int) -> windows.Kind:
    """The finest period to which windows of this kind add up, and of which half have `enough`
    reports; the longest, if none has."""
    for kind in GROUPS[window]:
        sums: dict[str, int] = {}
        for label, count in reports.items():
            period = windows.window_at(kind, windows.start(label))
            sums[period] = sums.get(period, 0) + count
        if sums and median(sums.values()) >= enough:
            return kind
    return GROUPS[window][-1]


def trends_by_segment(
    reader: Reader,
    registry: Registry,
    query: Query,
    segments: Sequence[str],
    *,
    by: windows.Kind | None = None,
    now: float | None = None,
) -> SegmentTrends:
    """The trend of each combination of these segments; the other arguments are those of
    `trend.trend`, with the same errors. Without `by`, each has its own period."""
    selection = select(reader, registry, query)
    declared = selection.metric
    check_names(declared, segments)
    moment = time.time() if now is None else now
    enough = enough_reports(declared.scheme)
    groups, small = [], []
    for labels, question in split(selection, segments)[0]:
        if question.n < LEAST_REPORTS:
            if question.n:
                small.append((labels, question.n))
            continue
        reports: dict[str, int] = {}
        for part in question.parts:
            for label, count in part.participation.reports.items():
                reports[label] = reports.get(label, 0) + int(count)
        found = trend(
            *(reader, registry, replace(query, where={**query.where, **labels})),
            by=by or period_of(declared.window, reports, enough),
            now=moment,
        )
        groups.append(SegmentTrend(labels, found))
    return SegmentTrends(query.metric, tuple(segments), tuple(groups), tuple(small))
