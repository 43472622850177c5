"""Which segment of a metric moved most since something happened."""

from __future__ import annotations

from collections.abc import Sequence

from deniable import Metric
from deniable_estimator.answers.segmented import Segmented
from deniable_estimator.asking.comparison import compare
from deniable_estimator.asking.since import chosen_series
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.ranges import DayRange, before
from deniable_estimator.dashboard.words import series_name
from deniable_estimator.isolation import isolated
from deniable_estimator.messages import counted, message


def moved_most(
    source: DataSource,
    metric: Metric,
    days: DayRange,
    found: Segmented,
    candidates: Sequence[str] | None,
) -> str | None:
    """The segment and the series that stand out furthest from the noise of their change, in a
    sentence; None where the days were not asked by what happened before them.

    Segments share 1 minus the level, and so do the series of each (Bonferroni): on average at most
    one page in 20 names a segment where none changed.

    Raises:
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    if not days.since or not found.groups:
        return None
    earlier = before(days, metric.window)
    alpha = (1 - found.level) / len(found.groups)
    segmented = source.segmented_at(
        metric, earlier, found.by, None, candidates, level=found.level
    ).answer
    old = {each.key: each.answer for each in segmented.groups}
    changes = []
    for group in found.groups:
        if group.key in old:
            told = compare(old[group.key], group.answer, adjust="bonferroni", alpha=alpha)
            place, _ = chosen_series(told)
            if told.changed[place]:
                score = abs(float(told.difference[place] / told.std_error[place]))
                changes.append((score, group.name, told, place))
    moment = isolated(days.since)
    if not changes:
        return message("Since {moment}: no segment changed by more than noise.", moment=moment)
    _, name, told, place = max(changes, key=lambda each: each[0])
    return counted(
        "Since {moment}, {count} segment changed beyond noise, {segment}: {series} {change}.",
        "Since {moment}, {count} segments changed beyond noise, most clearly {segment}: {series} "
        "{change}.",
        len(changes),
        moment=moment,
        segment=isolated(name),
        series=series_name(told.after, told.values[place]),
        change=told.describe(place),
    )
