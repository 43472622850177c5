"""How single windows look beside those before them, and what a page says when some look dishonest:
which ones, why, and how to leave them out.
"""

from __future__ import annotations

from collections.abc import Iterator

from deniable.protocol import windows
from deniable_estimator.asking.fetch import Selection
from deniable_estimator.asking.history import (
    LONGEST_HISTORY,
    History,
    Look,
    inspect_asked,
    looks_in,
)
from deniable_estimator.asking.query import Days
from deniable_estimator.asking.results import Turn, key_of
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.metric_view import PageReading, check_listed
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.formats import window
from deniable_estimator.messages import listed


def alarm_of(reading: PageReading, estimate: Answer | None = None) -> History | None:
    """What `history_of` says of these days, if they raise an alarm."""
    found = history_of(reading, estimate)
    return found if found.strange else None


def windows_left_out(days: Days) -> str | None:
    """Which windows of these days are left out, for people; None if none is."""
    labels = [each for each in days.without if days.touches(each)]
    return listed(map(window, sorted(labels, key=windows.start))) if labels else None


def history_of(reading: PageReading, estimate: Answer | None = None) -> History:
    """What is strange in the windows of these days, each against those before it, and in their
    `estimate`.

    Strings are not decoded for it.
    """
    source, metric = reading.source, reading.metric
    check_listed(metric)
    reach = reading.days.reaching_back(LONGEST_HISTORY, metric.window)
    selection = reading.asking(None).select(reach).apart()
    now, whole = source.clock(), estimate.verdict.figures if estimate else ()
    asked = reading.strings, estimate is None, reading.days, source.alarm_level
    return source.results.get(
        key_of("history", source.version_of(selection), *asked),
        lambda: inspect_asked(selection, _looks(source, selection), source.alarm_level, whole, now),
    )


def looks_of(reading: PageReading) -> tuple[Look, ...]:
    """What is looked at in each window of these days, the oldest first."""
    return _looks(reading.source, reading.select().apart())


def windowwise(reading: PageReading) -> Iterator[Answer]:
    """The estimate of each window of these days, the oldest first."""
    turn = Turn(reading.source.results)
    for label in reading.select().apart().labels:
        within = Days(windows.first_day(label), windows.last_day(label))
        yield reading.over(within).point(turn).answer


def _looks(source: DataSource, selection: Selection) -> tuple[Look, ...]:
    """What is looked at in each window. Those that have not changed are known; the others are read
    and looked at together."""
    keys = {label: key_of("look", *each) for label, each in selection.each_version().items()}
    found: dict[str, Look] = {label: source.results.known(key) for label, key in keys.items()}
    unknown = [label for label, seen in found.items() if seen is None]
    for each in looks_in(selection, unknown):
        found[each.label] = each
        source.results.keep(keys[each.label], each)
    return tuple(found.values())
