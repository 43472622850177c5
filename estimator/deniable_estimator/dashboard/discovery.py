"""What a discovery metric found, for the pages and the read API: kept by the version of its
tallies, and found in the background, as that takes seconds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace

from deniable import Metric, ValueListError, windows
from deniable_estimator.answers.finds import Find, Finds
from deniable_estimator.asking.discoveries import closed_lists, trend_of_finds
from deniable_estimator.asking.reading import Selection, select, unfinished
from deniable_estimator.asking.trend import Progress, Trend
from deniable_estimator.dashboard.calculations import found_strings
from deniable_estimator.dashboard.ranges import DayRange, RangeError
from deniable_estimator.dashboard.sources import DataSource
from deniable_estimator.dashboard.sources.answers import Versioned
from deniable_estimator.dashboard.versions import digest
from deniable_estimator.isolation import isolated
from deniable_estimator.messages import message


def finds_at(
    source: DataSource,
    metric: Metric,
    days: DayRange,
    *,
    level: float = 0.95,
    minimum_share: float | None = None,
) -> Versioned[Finds]:
    """The strings that were found in these days, each with the lists that follow it.

    Raises:
        EstimateError: it is no discovery metric.
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    selection = _selection(source, metric, days)
    running = unfinished(selection.labels, source.clock())
    version = digest(*selection.version(), running)
    key = digest("finds", version, level, minimum_share)
    asked = (days, source.behind, level, minimum_share)
    job = digest("finding", metric.name, metric.scheme.fingerprint, *asked)

    def work(progress: Progress) -> Versioned[Finds]:
        def found() -> Finds:
            question = selection.read()
            given = (question, metric, level, minimum_share)
            return source.workers.run(found_strings, *given).marked(running)

        return Versioned(source.decodes.get(key, found), version)

    known: Finds | None = source.decodes.known(key)
    if known is not None:
        source.decodes.forget(job)
        made = Versioned(known, version)
    else:
        made = source.decodes.job(job, work, source.patience, source.who)
    lists, lists_version = _lists(source)
    return Versioned(made.answer.followed_in(lists), digest(made.version, lists_version))


def trend_of_find(
    source: DataSource, metric: Metric, days: DayRange, by: windows.Kind, finds: Finds, find: Find
) -> Versioned[Trend]:
    """How common one of the finds was in each period.

    Raises:
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    selection = _selection(source, metric, days)
    running = unfinished(selection.labels, source.clock())
    version = digest(*selection.version(), running, source.today)
    asked = (by, find.head, find.cut, finds.level)
    key = digest("trend of a find", version, source.behind, *asked)
    one = replace(finds, finds=(find,))

    def work(progress: Progress) -> Versioned[Trend]:
        def found() -> Trend:
            return trend_of_finds(
                source.reader,
                source.registry,
                one,
                days.first,
                days.last,
                by=by,
                now=source.seen_until,
                without=days.without,
                progress=progress,
            )

        return Versioned(source.decodes.get(key, found), version)

    known: Trend | None = source.decodes.known(key)
    if known is not None:
        return Versioned(known, version)
    job = digest("trend of a find", metric.name, days, source.behind, *asked)
    return source.decodes.job(job, work, source.patience, source.who)


def name_of_find(find: Find) -> str:
    """What addresses, charts and files of a trend call it: one that is cut ends in dots."""
    return find.text + ("\N{HORIZONTAL ELLIPSIS}" if find.cut else "")


def find_named(finds: Finds, name: str, listed: Callable[[Find], str] = name_of_find) -> Find:
    """The find of that name.

    Raises:
        RangeError: there is none.
    """
    for each in finds.finds:
        if listed(each) == name:
            return each
    raise RangeError(
        message(
            "“{text}” was not found in these days. Choose one of the strings that were.",
            text=isolated(name[:100]),
        ),
        "find",
    )


def _selection(source: DataSource, metric: Metric, days: DayRange) -> Selection:
    asked = (metric.name, days.first, days.last, None, days.without)
    return select(source.reader, source.registry, *asked)


def _lists(source: DataSource) -> tuple[dict[str, Collection[str]], bytes]:
    """The lists that are followed already, by metric, with their version: those of the registry,
    and those of the operator. A list with a mistake follows nothing."""
    lists: dict[str, Collection[str]] = dict(closed_lists(source.registry))
    versions = []
    for each in source.registry:
        if each.needs_candidates:
            with suppress(ValueListError):
                versions.append((each.name, source.list_version(each)))
                lists[each.name] = frozenset(source.candidates(each) or ())
    return lists, digest(*sorted(lists), *versions)
