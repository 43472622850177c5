"""The overview: a card for each metric, found by search, owner and tag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from deniable import Metric, Registry, ValueListError, windows
from deniable.forecast import forecast
from deniable_estimator.answers.base import Answer
from deniable_estimator.dashboard import words
from deniable_estimator.dashboard.alarms import alarm_of
from deniable_estimator.dashboard.decodes import StillDecoding, TooManyDecodes
from deniable_estimator.dashboard.kinds import kind_of
from deniable_estimator.dashboard.kinds.base import Kind
from deniable_estimator.dashboard.privacy import even_guess
from deniable_estimator.dashboard.ranges import DayRange, read_range
from deniable_estimator.dashboard.source import PAGE_PATIENCE, DataSource
from deniable_estimator.dashboard.words import freshness
from deniable_estimator.messages import message
from deniable_estimator.questions.reading import LENGTHS

__all__ = ["Card", "Filters", "attention", "cards", "metric_card", "read_filters"]

_SOON_DAYS = 30
_STALE_WINDOWS = 3
"""After so many windows without reports, a card warns that something may be wrong."""


@dataclass(frozen=True)
class Card:
    """One metric on the overview."""

    metric: Metric
    days: DayRange
    estimate: Answer | None
    alarm: str | None
    """Why its shares are not to be relied on."""
    kind: Kind[Any] | None
    """How it is drawn; None without reports."""
    chart: Any
    decoding: bool
    """Its strings are still being decoded."""
    freshness: str | None
    notes: list[str]
    guess: str
    """Out of 100: the most often that a 50/50 guess is right after one report."""


@dataclass(frozen=True, slots=True)
class Filters:
    """The search and filters, and the choices."""

    search: str
    owner: str
    tag: str
    owners: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def active(self) -> bool:
        return bool(self.search or self.owner or self.tag)

    def admit(self, metric: Metric) -> bool:
        """Whether every word of the search is in the metric's name, description, owner or
        tags, and owner and tag are those chosen."""
        text = " ".join((metric.name, metric.description, metric.owner, *metric.tags)).casefold()
        return (
            all(word in text for word in self.search.casefold().split())
            and self.owner in ("", metric.owner)
            and (not self.tag or self.tag in metric.tags)
        )


def read_filters(arguments: Mapping[str, str], registry: Registry) -> Filters:
    """The filters of an address."""
    return Filters(
        search=arguments.get("q", "").strip(),
        owner=arguments.get("owner", ""),
        tag=arguments.get("tag", ""),
        owners=tuple(sorted({metric.owner for metric in registry})),
        tags=tuple(sorted({tag for metric in registry for tag in metric.tags})),
    )


def metric_card(source: DataSource, metric: Metric, days: DayRange) -> Card:
    """The card of a metric over these days. Strings are those that the operator has listed."""
    estimate, decoding, mistakes = None, False, []
    try:
        estimate = source.estimate(metric, days, source.candidates(metric))
    except (StillDecoding, TooManyDecodes):
        decoding = True
    except ValueListError as error:
        mistakes.append(message("{mistake}.", mistake=str(error)))
    newest = source.newest(metric)
    kind = kind_of(estimate) if estimate and estimate.n else None
    return Card(
        metric=metric,
        days=days,
        estimate=estimate,
        alarm=_alarm(source, metric, days, estimate),
        kind=kind,
        chart=kind.card(estimate) if kind else None,
        decoding=decoding,
        freshness=freshness(newest, source.clock()) if newest else None,
        notes=[*mistakes, *attention(source, metric, estimate)],
        guess=even_guess(metric),
    )


def cards(source: DataSource, filters: Filters) -> list[Card]:
    """The cards of the metrics that are looked for, over their latest complete windows."""
    now = source.clock()
    metrics = [metric for metric in source.registry if filters.admit(metric)]
    # However many of them have strings to decode, the page waits no longer than any other does.
    strings = sum(metric.needs_candidates for metric in metrics)
    quick = replace(source, patience=PAGE_PATIENCE / max(1, strings))
    return [metric_card(quick, metric, read_range({}, now, metric.window)) for metric in metrics]


def _alarm(
    source: DataSource, metric: Metric, days: DayRange, estimate: Answer | None
) -> str | None:
    if alarm := alarm_of(source, metric, days, estimate):
        return alarm.text
    return kind_of(estimate).unsound(estimate) if estimate is not None else None


def attention(source: DataSource, metric: Metric, estimate: Answer | None) -> list[str]:
    """What needs somebody's attention, on the card and on the metric's page."""
    notes: list[str] = []
    newest = source.newest(metric)
    left = (metric.expires - source.today).days
    if left < 0:
        notes.append(message(words.EXPIRED, day=metric.expires))
    elif left < _SOON_DAYS:
        notes.append(message(words.EXPIRES, day=metric.expires))
    if newest is not None and left >= 0:
        silence = timedelta(seconds=source.clock() - windows.end(newest))
        if silence > _STALE_WINDOWS * LENGTHS[metric.window]:
            notes.append(message(words.SILENT, window=newest))
    if estimate is not None:
        notes += kind_of(estimate).attention(estimate)
    if warning := forecast(metric):
        notes.append(message(words.FEW_DEVICES, warning=warning))
    return notes
