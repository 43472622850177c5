"""A metric by segments: each tally is read once, and its rows are divided among the segments. Over
time each segment is shown by the finest periods in which it says something.

Tallies add up, so the period is chosen for each segment and not for the metric: days, weeks or
months, whichever is the first in which half of the periods have enough reports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import Metric, Registry, Scheme
from deniable.protocol import windows
from deniable.protocol.mechanisms import FrequencyOracle
from deniable.protocol.mechanisms.number_range import Histogram
from deniable.protocol.segments import LEAST_REPORTS
from deniable_collector.tally import Tally
from deniable_estimator.asking.fetch import Chosen, Question, Selection, select
from deniable_estimator.asking.query import Query, check_where, find_metric, sliced
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.trend import GROUPS, Trend, trend
from deniable_estimator.document.csv_files import Filed, Table
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.basis import Part
from deniable_estimator.kinds.segments import Group, Segmented, name_of
from deniable_estimator.messages import counted, message
from deniable_estimator.planning.crowd_limits import LARGE_SHARE
from deniable_estimator.statistics.detection import reports_to_detect
from deniable_estimator.statistics.expected import reports_for_quantile

_ENOUGH_FOR_MEAN = 400
"""With so many reports a mean is known to a few percent of its range at usual epsilons."""


def not_segmented(metric: Metric) -> str:
    """What to do for segments of a metric that has none."""
    return message(
        "{metric} is not counted by segments: declare them in its registry ([segments.platform], "
        'and segments = ["platform"] in the metric)',
        metric=metric.name,
    )


def check_names(metric: Metric, by: Sequence[str]) -> None:
    """Refuse what is not a segment of the metric.

    Raises:
        EstimateError: it is not, or is named twice.
    """
    known = [each.name for each in metric.segments]
    if not known:
        raise EstimateError(not_segmented(metric))
    if not by or len(set(by)) < len(by) or not set(by) <= set(known):
        raise EstimateError(
            message(
                "{metric} is counted by {known}: choose one or several of them, each once",
                metric=metric.name,
                known=", ".join(known),
            )
        )


def enough_reports(scheme: Scheme) -> int:
    """With how many reports a segment says something: a share of 5% is detected, or the p95 of a
    number has an upper limit."""
    mechanism = scheme.mechanism
    if isinstance(mechanism, FrequencyOracle):
        size = max(2, len(scheme.values))
        return max(LEAST_REPORTS, reports_to_detect(mechanism, size, LARGE_SHARE))
    if isinstance(mechanism, Histogram):
        return max(LEAST_REPORTS, reports_for_quantile(mechanism, 0.95))
    return _ENOUGH_FOR_MEAN


def by_segment(
    reader: Reader,
    registry: Registry,
    query: Query,
    by: Sequence[str],
    *,
    against: Mapping[str, str] | None = None,
    now: float | None = None,
) -> Segmented:
    """The metric's answer for each combination of the segments `by`, with what is the same as in
    `fetch.read`.

    `against` is the combination that the others are compared with; the largest, if not given.

    Raises:
        EstimateError: as `fetch.read`; or `by`, `where` or `against` are no segments of the
            metric.
    """
    return split(select(reader, registry, query), by, against=against, now=now)


def split(
    selection: Selection,
    by: Sequence[str],
    *,
    against: Mapping[str, str] | None = None,
    estimate: Callable[[Question], Answer] = Question.estimate,
    now: float | None = None,
) -> Segmented:
    """The same of a selection of tallies, in the order of the current scheme. Each tally is read
    once; `estimate` may take a question elsewhere.

    Raises:
        EstimateError: `by` or `against` are no segments of the metric, a candidate cannot be
            estimated, or `against` has too few reports.
        StoreUnavailable: the store cannot answer now.
    """
    check_names(selection.metric, by)
    if against is not None:
        _check_against(selection.metric, by, against)
    reader, whole = selection.reader, selection.read()
    found: dict[tuple[str, ...], list[Part]] = {}
    read = []
    unsplit = 0
    for each in selection.own:
        places_of: dict[tuple[str, ...], list[int]] = {}
        for place in each.places:
            labels = each.scheme.combinations[place]
            if set(by) <= labels.keys():
                places_of.setdefault(tuple(labels[segment] for segment in by), []).append(place)
        for key in places_of:
            found.setdefault(key, [])
        if not each.windows:
            continue
        counts = reader.segment_reports(*each.named, each.windows)
        if not places_of:
            unsplit += int(sum(reports[list(each.places)].sum() for reports in counts.values()))
            continue
        tally = reader.tally(*each.named, each.windows)
        read.append((each, tally, counts, places_of))
        for key, places in places_of.items():
            found[key].append(_part(each, tally, counts, places))
    questions = {key: Question(tuple(parts)) for key, parts in found.items()}
    small = {key for key, question in questions.items() if question.n < LEAST_REPORTS}
    rest = Question(
        tuple(
            _part(each, tally, counts, places)
            for each, tally, counts, places_of in read
            if (places := [place for key in places_of if key in small for place in places_of[key]])
        )
    )

    def answer(question: Question) -> Answer:
        return estimate(question).marked(now)

    groups = {
        key: Group(dict(zip(by, key, strict=True)), answer(question))
        for key, question in questions.items()
        if question.n
    }
    large = tuple(each for key, each in groups.items() if key not in small)
    return Segmented(
        tuple(by),
        selection.query.where,
        answer(whole),
        large,
        tuple(each for key, each in groups.items() if key in small),
        answer(rest) if rest.n >= LEAST_REPORTS else None,
        unsplit,
        _reference(large, against),
    )


def _reference(large: Sequence[Group], against: Mapping[str, str] | None) -> Group | None:
    """What the others are compared with: the largest, if nothing else is asked for."""
    compared = large
    if against is not None:
        compared = [each for each in large if dict(each.labels) == dict(against)]
        if not compared:
            raise EstimateError(
                message(
                    "{segment} has fewer than {least} reports here: compare with another segment",
                    segment=name_of(against),
                    least=LEAST_REPORTS,
                )
            )
    return max(compared, key=lambda each: each.answer.n) if len(large) > 1 else None


def _check_against(metric: Metric, by: Sequence[str], against: Mapping[str, str]) -> None:
    check_where(metric, against)
    if set(against) != set(by):
        raise EstimateError(
            message("name a value for each of {segments} to compare with", segments=", ".join(by))
        )


def _part(
    each: Chosen, tally: Tally, reports: Mapping[str, NDArray[np.int64]], places: Sequence[int]
) -> Part:
    """What some combinations have of a tally with these reports in each window."""
    told = {label: int(counts[places].sum()) for label, counts in reports.items()}
    return each.part(sliced(tally, each.scheme, places), told)


@dataclass(frozen=True, eq=False)
class SegmentTrends(Filed):
    """A metric over time by segments."""

    split: Segmented
    """The answer over the whole range."""
    trends: tuple[Trend, ...]
    """That of each of its groups."""

    @property
    def groups(self) -> list[tuple[Group, Trend]]:
        """The segments that have enough reports, each with its trend."""
        return list(zip(self.split.groups, self.trends, strict=True))

    @property
    def notes(self) -> tuple[str, ...]:
        """How to read it."""
        notes = [message("segments are not private: each report states its segment without noise")]
        if len({each.by for each in self.trends}) > 1:
            notes.append(
                message("segments with fewer reports are shown by longer periods than the others")
            )
        if small := self.split.small:
            notes.append(
                counted(
                    "{count} segment with fewer than {least} reports in all is left out: "
                    "{segments}",
                    "{count} segments with fewer than {least} reports in all are left out: "
                    "{segments}",
                    len(small),
                    least=LEAST_REPORTS,
                    segments="; ".join(f"{each.name} ({each.answer.n:,})" for each in small),
                )
            )
        return tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "metric": self.split.metric,
            "by": list(self.split.by),
            "notes": list(self.notes),
            "segments": [
                {"segment": dict(group.labels), **each.to_dict()} for group, each in self.groups
            ],
            "small": [
                {"segment": dict(each.labels), "n": each.answer.n} for each in self.split.small
            ],
        }

    def csv_table(self) -> Table:
        """The lines of each trend, with the segment and its period in front; at the end the name of
        the segment once more, in a column that is called the same for all segments."""
        by = self.split.by
        columns: Sequence[str] = ()
        rows: list[Sequence[Any]] = []
        for group, each in self.groups:
            columns, lines = each.csv_table()
            labels = [group.labels[name] for name in by]
            rows += [(*labels, each.by, *line, group.name) for line in lines]
        return (*by, "by", *columns, "segment"), rows


def period_of(window: windows.Kind, reports: Mapping[str, float], enough: int) -> windows.Kind:
    """The finest period to which windows of this kind add up, and of which half have `enough`
    reports; the longest, if none has."""
    for kind in GROUPS[window]:
        sums: dict[str, float] = {}
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
    moment = time.time() if now is None else now
    metric = find_metric(registry, query.metric)
    enough = enough_reports(metric.scheme)

    def trend_of(group: Group) -> Trend:
        own = period_of(metric.window, group.answer.participation.reports, enough)
        within = replace(query, where={**query.where, **group.labels})
        return trend(reader, registry, within, by=by or own, now=moment)

    split = by_segment(reader, registry, query, segments, now=moment)
    return SegmentTrends(split, tuple(map(trend_of, split.groups)))
