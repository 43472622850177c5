"""What a discovery metric found, for the pages and the read API: kept by the version of its
tallies, and found in the background, as that takes seconds."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial

from deniable import ValueListError
from deniable.protocol import windows
from deniable_estimator.asking.discoveries import finds_of, followed_lists, trend_of_finds
from deniable_estimator.asking.results import Versioned, digest
from deniable_estimator.asking.trend import Trend
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.ranges import RangeError
from deniable_estimator.kinds.discovery.finds import Find, Finds
from deniable_estimator.messages import isolated, message


def finds_at(reading: PageReading, minimum_share: float | None = None) -> Versioned[Finds]:
    """The strings that were found in these days, each with the lists that follow it.

    Raises:
        EstimateError: it is no discovery metric.
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    source, metric, selection = reading.source, reading.metric, reading.select()
    version, now = source.version_of(selection), source.clock()
    asked = reading.level, minimum_share

    def found() -> Finds:
        given = selection.read(), metric
        find = partial(finds_of, *given, level=reading.level, minimum_share=minimum_share)
        return source.workers.run(find).marked(now)

    made = source.fetch(
        lambda turn: Versioned(turn.get(digest("finds", version, *asked), found), version),
        *("finding", metric.name, metric.scheme.fingerprint, reading.days, *asked),
    )
    lists, lists_version = _lists(source)
    return Versioned(made.answer.followed_in(lists), digest(made.version, lists_version))


def trend_of_find(
    reading: PageReading, by: windows.Kind, finds: Finds, find: Find
) -> Versioned[Trend]:
    """How common one of the finds was in each period.

    Raises:
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    source = reading.source
    version = digest(reading.version, source.today)
    asked = "trend of a find", by, find.head, find.cut, finds.level
    key, one = digest(*asked, version, source.behind), replace(finds, finds=(find,))

    found = partial(
        trend_of_finds,
        *(source.reader, source.registry, reading.query, one),
        by=by,
        now=source.seen_until,
    )
    return source.fetch(
        lambda turn: Versioned(turn.get(key, partial(found, progress=turn.progress)), version),
        *(*asked, reading.metric.name, reading.days),
    )


def find_named(finds: Finds, name: str) -> Find:
    """The find of that name.

    Raises:
        RangeError: there is none.
    """
    for each in finds.finds:
        if each.name == name:
            return each
    raise RangeError(
        message(
            "“{text}” was not found in these days. Choose one of the strings that were.",
            text=isolated(name[:100]),
        ),
        "find",
    )


def _lists(source: DataSource) -> tuple[dict[str, Collection[str]], bytes]:
    """The lists that are followed already, by metric, with their version: those of the registry,
    and those of the operator. A list with a mistake follows nothing."""
    lists: dict[str, Collection[str]] = {**followed_lists(source.registry)}
    versions = []
    for each in source.registry:
        if each.needs_candidates:
            with suppress(ValueListError):
                versions.append((each.name, source.list_version(each)))
                lists[each.name] = frozenset(source.candidates(each) or ())
    return lists, digest(*sorted(lists), *versions)
