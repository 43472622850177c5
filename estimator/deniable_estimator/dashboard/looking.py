"""What pages ask of single windows: how each looks beside those before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from deniable import Metric
from deniable.protocol import windows
from deniable_estimator.answers.base import Answer
from deniable_estimator.asking.history import LONGEST_HISTORY, History, Look, inspect, looks_in
from deniable_estimator.asking.listed import digest_of_candidates
from deniable_estimator.asking.reading import Selection, unfinished
from deniable_estimator.asking.results import Turn, digest
from deniable_estimator.dashboard.data import DataSource, check_listed
from deniable_estimator.dashboard.ranges import DayRange


def history_of(
    source: DataSource,
    metric: Metric,
    days: DayRange,
    estimate: Answer | None = None,
    candidates: Sequence[str] | None = None,
) -> History:
    """What is strange in the windows of these days, each against those before it, and in their
    `estimate`, which is that of these candidates.

    Strings are not decoded for it.
    """
    check_listed(metric)
    reach = days.reaching_back(LONGEST_HISTORY, metric.window)
    selection = source.select(metric, reach).apart()
    running = unfinished(selection.labels, source.clock())
    asked = digest_of_candidates(candidates), estimate is None, days, source.alarm_level
    return source.results.get(
        digest("history", source.version_of(selection), *asked),
        lambda: inspect(
            metric.name,
            _looks(source, selection),
            source.alarm_level,
            shown={label for label in selection.labels if days.touches(label)},
            whole=estimate.verdict.figures if estimate else (),
            unfinished=running,
        ),
    )


def looks_of(source: DataSource, metric: Metric, days: DayRange) -> tuple[Look, ...]:
    """What is looked at in each window of these days, the oldest first."""
    return _looks(source, source.select(metric, days).apart())


def windowwise(source: DataSource, metric: Metric, days: DayRange, series: str) -> Iterator[Answer]:
    """The estimate of one string in each window of these days, the oldest first."""
    turn, asked = Turn(source.results), digest_of_candidates([series])
    for label in source.select(metric, days, [series]).apart().labels:
        within = DayRange(windows.first_day(label), windows.last_day(label))
        yield source.point(turn, metric, within, [series], asked, 0.95, "storey").answer


def _looks(source: DataSource, selection: Selection) -> tuple[Look, ...]:
    """What is looked at in each window. Those that have not changed are known; the others are read
    and looked at together."""
    keys = {label: digest("look", *each) for label, each in selection.each_version().items()}
    found: dict[str, tuple[Look, ...]] = {
        label: source.results.known(key) for label, key in keys.items()
    }
    unknown = [label for label, seen in found.items() if seen is None]
    for label, seen in looks_in(selection, unknown):
        found[label] = () if seen is None else (seen,)
        source.results.keep(keys[label], found[label])
    return tuple(chain.from_iterable(found.values()))
