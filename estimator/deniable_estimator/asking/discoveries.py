"""Reads from a store which strings a discovery metric found, and how common each was over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from deniable import Metric, Registry
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery, denied
from deniable_estimator.analyses.discovery.prior import Prior
from deniable_estimator.asking.fetch import Question, select
from deniable_estimator.asking.listed import listed_strings
from deniable_estimator.asking.query import Days, Query, find_metric
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.trend import Progress, Trend, trend
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.discovery.finds import Finds, find_strings, shares_of
from deniable_estimator.messages import message


def discover(
    reader: Reader,
    registry: Registry,
    query: Query,
    *,
    minimum_share: float | None = None,
    prior: Prior | None = None,
    folder: Path | None = None,
    now: float | None = None,
    progress: Progress = lambda done, of: None,
) -> Finds:
    """The strings that a discovery metric found.

    Args:
        minimum_share: a larger one than the registry's; it cannot be smaller.
        prior: what text looks like; the shipped one if not given.
        folder: that of the operator's lists of strings.
        progress: is told how many of how many rows are done.

    Raises:
        MetricError: the registry declares no such metric.
        EstimateError: it is no discovery metric.
        ValueListError: a list cannot be read or has a mistake.
        StoreUnavailable: the store cannot answer now.
    """
    lists = followed_lists(registry, folder)
    found = finds_of(
        select(reader, registry, query).read(),
        find_metric(registry, query.metric),
        minimum_share=minimum_share,
        prior=prior,
        progress=progress,
    )
    return found.followed_in(lists).marked(now)


def finds_of(
    question: Question,
    metric: Metric,
    *,
    level: float = 0.95,
    minimum_share: float | None = None,
    prior: Prior | None = None,
    progress: Progress = lambda done, of: None,
) -> Finds:
    """The same from data that is read already, which needs no store.

    Raises:
        EstimateError: it is no discovery metric, or has too many reports.
    """
    kind = metric.type
    if not isinstance(kind, Discovery):
        raise EstimateError(
            message(
                "{metric} is a {type} metric, which discovers nothing: ask `deniable estimate`",
                metric=metric.name,
                type=kind.name,
            )
        )
    return find_strings(
        question.parts,
        minimum_share=max(kind.minimum_share, minimum_share or 0.0),
        denies=partial(denied, patterns=kind.deny),
        level=level,
        prior=prior,
        progress=progress,
    )


def followed_lists(registry: Registry, folder: Path | None = None) -> dict[str, frozenset[str]]:
    """The strings that are followed already: the values of each category, and the operator's lists
    in that folder.

    Raises:
        ValueListError: a list cannot be read or has a mistake.
    """
    lists = {each.name: each.values for each in registry if each.type.name == "category"}
    listed = {each.name: listed_strings(each, folder) for each in registry}
    lists |= {name: tuple(texts) for name, texts in listed.items() if texts is not None}
    return {name: frozenset(texts) for name, texts in lists.items()}


def trend_of_finds(
    reader: Reader,
    registry: Registry,
    query: Query,
    finds: Finds,
    *,
    by: windows.Kind | None = None,
    now: float | None = None,
    progress: Progress = lambda done, of: None,
) -> Trend:
    """How common the finds were in each period: the tally of each is asked for the same strings.

    They were found in the sum of the windows, so in each of them their rows are as little chosen
    as in the sum.

    Raises:
        as `deniable_estimator.asking.trend.trend`.
    """

    def points(ranges: Sequence[Days]) -> Iterator[Answer | None]:
        for days in ranges:
            chosen = select(reader, registry, replace(query, days=days))
            yield shares_of(chosen.read().parts, finds.finds, finds.level)

    return trend(
        *(reader, registry, query),
        by=by,
        now=now,
        level=finds.level,
        points=points,
        progress=progress,
    )
