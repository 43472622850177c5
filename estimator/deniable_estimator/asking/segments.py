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

from deniable import Metric, Registry, Scheme
from deniable.protocol import windows
from deniable.protocol.mechanisms import FrequencyOracle
from deniable.protocol.mechanisms.number_range import Histogram
from deniable.protocol.segments import LEAST_REPORTS
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.basis import Part
from deniable_estimator.answers.csv_files import Filed, Table
from deniable_estimator.answers.segmented import (
    Group,
    LabelledSegment,
    Segmented,
    name_of,
    segmented,
)
from deniable_estimator.asking.fetch import Question, Selection, select, unfinished
from deniable_estimator.asking.query import Query, find_metric, sliced
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.trend import GROUPS, Trend, trend
from deniable_estimator.errors import EstimateError
from deniable_estimator.forecasting.detection import LARGE_SHARE, reports_to_detect
from deniable_estimator.forecasting.number_forecast import reports_for_quantile
from deniable_estimator.messages import counted, message
from deniable_estimator.statistics.participation import Participation

UNIONS = {"day": (1, 7, 28), "week": (1, 4), "month": (1,)}
"""The newest windows that a segment is estimated from, if they have enough reports; else all."""

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


def split(
    selection: Selection, by: Sequence[str], *, recent: bool = False
) -> tuple[list[tuple[dict[str, str], Question]], int]:
    """The question of each combination of these segments, in the order of the current scheme, and
    how many reports tell none of them.

    With `recent`, a segment's question is over its newest windows of `UNIONS` that have enough
    reports. Otherwise all are over the same windows, and each tally is read once.

    Raises:
        StoreUnavailable: the store cannot answer now.
    """
    reader, name = selection.reader, selection.metric.name
    found: dict[tuple[str, ...], list[Part]] = {}
    unsplit = 0
    for each in selection.chosen:
        scheme, fingerprint = each.scheme, each.scheme.fingerprint
        groups: dict[tuple[str, ...], list[int]] = {}
        for place in each.places:
            labels = scheme.combinations[place]
            if set(by) <= labels.keys():
                groups.setdefault(tuple(labels[segment] for segment in by), []).append(place)
        if not (each.published and each.windows):
            for key in groups:
                found.setdefault(key, [])
            continue
        counts = reader.segment_reports(name, fingerprint, each.windows)
        if not groups:
            unsplit += int(sum(reports[list(each.places)].sum() for reports in counts.values()))
            continue
        whole = {each.windows: selection.tally(each, each.windows)}
        for key, places in groups.items():
            chosen = each.windows
            if recent:
                # Of dropped windows the newest cannot be had alone.
                apart = [label for label in counts if label not in each.dropped]
                own = {label: int(counts[label][places].sum()) for label in apart or counts}
                chosen = _newest(selection.metric, scheme, own)
                if chosen not in whole:
                    whole[chosen] = selection.tally(each, chosen)
            reports = {label: int(counts[label][places].sum()) for label in chosen}
            participation = selection.participation(each, reports)
            tally = sliced(whole[chosen], scheme, places)
            part = Part(tally, scheme, each.candidates, participation, selection.metric.type.unit)
            found.setdefault(key, []).append(part)
    return [
        (dict(zip(by, key, strict=True)), Question(tuple(parts))) for key, parts in found.items()
    ], unsplit


def _newest(metric: Metric, scheme: Scheme, reports: Mapping[str, int]) -> tuple[str, ...]:
    """The newest windows with enough reports: one, then more of them, then all."""
    labels, enough = tuple(reports), enough_reports(scheme)
    for count in UNIONS[metric.window]:
        if sum(reports[label] for label in labels[-count:]) >= enough:
            return labels[-count:]
    return labels


def by_segment(
    reader: Reader,
    registry: Registry,
    query: Query,
    by: Sequence[str],
    *,
    against: Mapping[str, str] | None = None,
    recent: bool = False,
    now: float | None = None,
) -> Segmented:
    """The metric's answer for each combination of the segments `by`, with what is the same as in
    `reading.read`.

    `against` is the combination that the others are
    compared with; the largest, if not given. With `recent`, each segment is over its newest
    windows that have enough reports, and nothing is compared.

    Raises:
        EstimateError: as `reading.read`; or `by`, `where` or `against` are no segments of the
            metric.
    """
    selection = select(reader, registry, query)
    return split_question(selection, by, against=against, recent=recent).answer(now=now)


@dataclass(frozen=True, eq=False)
class SplitQuestion:
    """All data of an answer by segments; only the calculation is left."""

    by: tuple[str, ...]
    where: Mapping[str, str]
    total: Question
    groups: tuple[tuple[dict[str, str], Question], ...]
    unsplit: int
    against: Mapping[str, str] | None
    recent: bool

    def answer(self, *, level: float = 0.95, now: float | None = None) -> Segmented:
        """The answer.

        Raises:
            EstimateError: a candidate cannot be estimated, or `against` has too few reports.
        """
        moment = time.time() if now is None else now

        def answer(question: Question) -> Answer:
            found = question.estimate(level=level)
            return found.marked(unfinished(found.windows, moment))

        reported = [(labels, each) for labels, each in self.groups if each.n]
        groups = [Group(labels, answer(each)) for labels, each in reported]
        small = [each for _, each in reported if each.n < LEAST_REPORTS]
        rest = answer(_merged(small)) if small and not self.recent else None
        return segmented(
            self.by,
            self.where,
            answer(self.total),
            groups,
            rest,
            self.unsplit,
            against=self.against,
            together=not self.recent,
        )


def split_question(
    selection: Selection,
    by: Sequence[str],
    *,
    against: Mapping[str, str] | None = None,
    recent: bool = False,
) -> SplitQuestion:
    """The data of a selection of tallies by segments.

    Raises:
        EstimateError: `by` or `against` are no segments of the metric.
        StoreUnavailable: the store cannot answer now.
    """
    check_names(selection.metric, by)
    if against is not None:
        _check_against(selection.metric, by, against)
    groups, unsplit = split(selection, by, recent=recent)
    given = selection.where, selection.read(), tuple(groups), unsplit, against, recent
    return SplitQuestion(tuple(by), *given)


def _check_against(metric: Metric, by: Sequence[str], against: Mapping[str, str]) -> None:
    declared = {each.name: each.values for each in metric.segments}
    for name, value in against.items():
        if name not in by or value not in declared[name]:
            raise EstimateError(
                message(
                    "{segment}={value} is not one of the segments that are compared",
                    segment=name,
                    value=value,
                )
            )
    if set(against) != set(by):
        raise EstimateError(
            message("name a value for each of {segments} to compare with", segments=", ".join(by))
        )


def _merged(questions: Sequence[Question]) -> Question:
    """The question of several segments together."""
    parts: dict[str, list[Part]] = {}
    for question in questions:
        for part in question.parts:
            parts.setdefault(part.scheme.fingerprint, []).append(part)
    merged = []
    for each in parts.values():
        first = each[0]
        tally = replace(
            first.tally,
            rows=tuple(
                sum(rows[1:], rows[0])
                for rows in zip(*(part.tally.rows for part in each), strict=True)
            ),
        )
        reports = {
            label: int(np.sum([part.participation.reports[label] for part in each]))
            for label in first.participation.reports
        }
        participation: Participation = replace(first.participation, reports=reports)
        merged.append(replace(first, tally=tally, participation=participation))
    return Question(tuple(merged))


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

    @classmethod
    def of(cls, found: Segmented, trend_of: Callable[[Group], Trend]) -> SegmentTrends:
        """Those of an answer by segments, each as a function finds it."""
        groups = tuple(SegmentTrend(each.labels, trend_of(each)) for each in found.groups)
        small = tuple((each.labels, each.answer.n) for each in found.small)
        return cls(found.metric, found.by, groups, small)

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

    return SegmentTrends.of(by_segment(reader, registry, query, segments, now=moment), trend_of)
