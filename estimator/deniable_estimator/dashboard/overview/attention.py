"""Which metrics need attention, why, and where to look: the strip on top of the overview.

What is random is told as surely as `deniable watch` tells it (`judging/changes.py`): over all
values and metrics of one overview, at most 1 in 20 changes may be expected where nothing changed.
An alarm has the level of a metric's page, shared by all metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from deniable import Metric
from deniable_estimator.answers.base import Answer
from deniable_estimator.dashboard import words
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.overview.judged import RULES
from deniable_estimator.dashboard.overview.summary import MetricSummary, answer_notes
from deniable_estimator.dashboard.ranges import DayRange
from deniable_estimator.judging.findings import FindingKind, MetricFinding, standing
from deniable_estimator.messages import message

ORDER: tuple[FindingKind, ...] = ("anomaly", "change", "stale", "expires", "few")
"""The codes of the reasons, the most pressing first."""


@dataclass(frozen=True, slots=True)
class AttentionReason:
    """Why a metric needs attention."""

    code: FindingKind
    text: str
    query: Mapping[str, str]
    """The days of its page that show it."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Its numbers, for programs."""


def reasons_of(
    metric: Metric, latest: MetricSummary | None, now: float
) -> tuple[AttentionReason, ...]:
    """The reasons why a metric needs attention, the most pressing first. `latest` is its summary
    of the latest days, if it is known."""
    found = []
    if latest and latest.alarm:
        found.append(AttentionReason("anomaly", latest.alarm, latest.days.query))
    told = standing(metric, latest.newest if latest else None, RULES, now)
    found += [_reason(each) for each in (*(latest.findings if latest else ()), *told)]
    return tuple(sorted(found, key=lambda each: ORDER.index(each.code)))


def _reason(finding: MetricFinding) -> AttentionReason:
    query = {}
    if finding.first is not None and finding.last is not None:
        query = DayRange(finding.first, finding.last).query
    return AttentionReason(finding.kind, finding.text, query, finding.facts)


def standing_notes(metric: Metric, newest: str | None, now: float) -> Iterator[str]:
    """That a metric expires, or is silent, as its card and its page say it."""
    for each in standing(metric, newest, RULES, now):
        if each.kind == "expires":
            template = words.EXPIRED if each.facts["days"] < 0 else words.EXPIRES
            yield message(template, day=metric.expires)
        else:
            yield message(words.SILENT, window=each.facts["newest"])


def attention(source: DataSource, metric: Metric, estimate: Answer | None) -> list[str]:
    """What needs somebody's attention, on the metric's page."""
    notes = list(standing_notes(metric, source.newest(metric), source.seen_until))
    return [*notes, *answer_notes(source, metric, estimate)]
