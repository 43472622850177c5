"""Keeps the summaries of the overview, and brings those up to date whose tallies have changed.

A page of 500 metrics that calculated them all would take half a minute. So each summary is kept
among the results, with the version of the tallies that it rests on. A page asks the store once
which versions there are, and what has changed is calculated by a job in the background, what the
page shows first. The page waits for that a little, and otherwise shows the summaries that there
are.

The versions are those of the windows that still take reports. Older windows change only when an
operator imports or drops tallies, so a summary is also made anew once it is `_OLD` seconds old.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache
from time import monotonic, thread_time

from deniable.protocol import windows
from deniable_collector.stores.commits import ID_RETENTION
from deniable_collector.stores.errors import StoreError
from deniable_estimator.asking.fetch import note_asked
from deniable_estimator.asking.query import Days
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes
from deniable_estimator.dashboard.data import PAGE_PATIENCE, DataSource
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.overview.summary import MetricSummary, summarize
from deniable_estimator.dashboard.ranges import read_range

_SIZE = 9_000
"""Bytes of a summary, about."""

_OLD = 600.0
"""Seconds after which a summary is made anew although nothing has changed that a page looks at."""

_ROUND = b"summaries"
"""The name of the job: there is one round at a time."""

_RESTS = b"summaries rest until"

_REST = 4.0
"""After a round of calculations that took more CPU than a page waits, the next one begins after so
many times as long: while reports arrive, they take a fifth of a core at most. What cannot be shown
yet is not kept waiting."""

_FRESH = 50
"""After so many summaries a round looks anew at which schemes and windows there are."""

_OPEN_DAYS = int(ID_RETENTION // 86_400)
"""A window that ended longer ago takes no report any more."""

_days_text = lru_cache(maxsize=64)(repr)


def latest_days(source: DataSource, kind: windows.Kind) -> Days:
    """The days that the overview shows of metrics with such windows unless others are asked
    for."""
    return read_range({}, source.seen_until, kind)


def summary_key(asked: PageReading) -> bytes:
    """The key of the summary of a metric over some days."""
    about = asked.metric.name, asked.metric.scheme.fingerprint, _days_text(asked.days)
    return f"summary {about} {asked.source.behind}".encode()


def known_summary(asked: PageReading) -> MetricSummary | None:
    """The summary that is kept, however old; None if there is none."""
    kept: MetricSummary | None = asked.source.results.known(summary_key(asked))
    return kept


def bring(
    source: DataSource, asked: Sequence[PageReading], patience: float
) -> tuple[int, int, bool]:
    """Bring summaries up to date, the first of them first, and wait up to `patience` seconds.

    Returns how many are not up to date after that, how many of these cannot be shown yet, and
    whether any was made meanwhile.

    Raises:
        StoreUnavailable: the store cannot answer now.
    """
    current = _versions(source, asked)
    deadline = monotonic() + patience
    old, changed = _outdated(source, asked, current)
    again, ended = False, False

    def work(progress: object) -> None:
        nonlocal ended
        ended = True
        _make(source, old, current)

    # A page may wait for the round of another one before its own begins.
    while old and not ended and (_blank(old) or monotonic() >= _rests_until(source)):
        again, left = True, max(0.0, deadline - monotonic())
        try:
            source.results.job(_ROUND, work, left if changed else 0.0, "overview")
        except (StillDecoding, TooManyDecodes):
            ended = True
        except StoreError:
            # Of another page's round, which may have failed a while ago, nothing is told.
            if ended:
                raise
        old, changed = _outdated(source, asked, current)
    # What is kept was read by others: the page lacks the windows that its summaries lack.
    for each in asked:
        note_asked(source.reader, source.registry, each.metric, each.days)
    return len(changed), _blank(old), again


def _rests_until(source: DataSource) -> float:
    return source.results.known(_RESTS) or 0.0


def _outdated(
    source: DataSource, asked: Sequence[PageReading], current: Mapping[str, object]
) -> tuple[list[PageReading], list[PageReading]]:
    """What is to be calculated, and of it what has changed or is not known."""
    now, old, changed = monotonic(), [], []
    for each in asked:
        kept = known_summary(each)
        if kept is None or kept.version != current[each.metric.name]:
            changed.append(each)
            old.append(each)
        elif kept.decoding or now - kept.made > _OLD:
            old.append(each)
    return old, changed


def _blank(asked: Sequence[PageReading]) -> int:
    """How many of them cannot be shown yet."""
    found = map(known_summary, asked)
    return sum(each is None or each.decoding for each in found)


def _make(source: DataSource, old: Sequence[PageReading], current: Mapping[str, object]) -> None:
    """A round: make these summaries."""
    family = max(1, len(source.registry.metrics))
    strings = sum(each.metric.needs_candidates for each in old)
    # However many of them have strings to decode, the round waits no longer than a page does.
    quick = replace(source, patience=PAGE_PATIENCE / max(1, strings))
    started = thread_time()
    for place, each in enumerate(old):
        if place % _FRESH == 0:
            quick = replace(quick, reader=source.reader.renewed())
        latest = each.days == latest_days(source, each.metric.window)
        found = summarize(replace(each, source=quick), family, latest=latest)
        before = known_summary(each)
        # What is known but out of date says more than that it is being calculated.
        if not found.decoding or before is None or before.decoding:
            kept = replace(found, version=current[each.metric.name], made=monotonic())
            source.results.keep(summary_key(each), kept, _SIZE)
    if (took := thread_time() - started) > PAGE_PATIENCE:
        source.results.keep(_RESTS, monotonic() + _REST * took)


def _versions(source: DataSource, asked: Sequence[PageReading]) -> dict[str, object]:
    """metric -> what differs when its summary does: the versions of the windows that still take
    reports, the day, and the operator's list of strings."""
    today = source.today
    labels = {kind: _open_windows(kind, today) for kind in ("day", "week", "month")}
    # A metric that is not reported by itself changes with its pair.
    pairs = source.registry.unasked
    told = [*(each.metric for each in asked), *pairs.values()]
    found = source.reader.versions({each.name: labels[each.window] for each in told})
    return {
        each.metric.name: (
            found.get(each.metric.name),
            found.get(pairs[each.metric.name].name) if each.metric.name in pairs else None,
            today,
            source.list_version(each.metric) if each.metric.needs_candidates else None,
        )
        for each in asked
    }


def _open_windows(kind: windows.Kind, today: date) -> list[str]:
    """The windows that may still take reports; the clocks of devices run ahead by a day at most."""
    return windows.span(kind, today - timedelta(_OPEN_DAYS), today + timedelta(1))
