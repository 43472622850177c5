"""The head of a metric's page: what the metric is, how fresh its data are, what it can show."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import date
from typing import Any

from flask import url_for

from deniable import Metric, Registry
from deniable.protocol import windows
from deniable.protocol.lasting import lasting
from deniable.protocol.mechanisms import FrequencyOracle, Memoizing
from deniable.protocol.types.discovery import Discovery
from deniable.protocol.types.number import Number
from deniable.protocol.types.pair import Pair
from deniable.protocol.types.retention import Retention
from deniable_estimator.asking.query import Days
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.ranges import day_at
from deniable_estimator.document.units import cell_words
from deniable_estimator.errors import OnlyLongerError
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.formats import share_text, window
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import counted, joined, message, sentence, spaced
from deniable_estimator.planning.inputs import SERVED_SIZE
from deniable_estimator.statistics.detection import detectable_share

_LISTED = 100
"""So many values are listed in a definition."""
_WORTHWHILE = 0.01
"""The share that people ask for."""


def about(source: DataSource, metric: Metric) -> dict[str, Any]:
    """The head of a metric's page: the first day of the oldest window with reports, which part of
    the devices reports and for how long (None once the metric has expired), how long windows are
    kept, how fresh the newest one is, the first values, and the address of the planner."""
    now = source.clock()
    pair = source.registry.unasked.get(metric.name)  # which devices report in place of the metric
    labels = {each for each in source.labels(metric) if windows.kind_of(each) == metric.window}
    ended = [label for label in labels if windows.end(label) <= now]
    newest = max(ended, default=None)
    oldest = min(labels, default=None)
    since = None if oldest is None else day_at(windows.start(oldest))
    return {
        "since": since,
        "reporting": _reporting(pair or metric, source.registry, since or source.today),
        "kept": _kept(metric),
        "freshness": _freshness(newest, max(labels, default=None), now),
        "listed": _listed(metric),
        "more_values": max(0, len(metric.values) - _LISTED),
        "planner": _planner(source, pair or metric, newest),
    }


def _reporting(metric: Metric, registry: Registry, since: date) -> str | None:
    """Which part of the devices reports. Nobody can count those that have fallen silent, so it
    says what the registry implies for a device that began on that day."""
    told = lasting(registry, since).get(metric.name)
    if told is None:
        return None
    if metric.one_in is not None:
        part = message(
            "In each window one of {count:,} groups of devices, which take turns.",
            count=metric.one_in,
        )
    elif metric.sample_rate < 1:
        part = message(
            "In each window a random {percent}% of the devices.",
            percent=f"{100 * metric.sample_rate:.3g}",
        )
    else:
        part = message("In each window every device that uses the app.")
    if told.silent is None:
        return spaced((part, message("None falls silent before the metric expires.")))
    silent = counted(
        "A device that uses the app in each window falls silent after {count:,} window, so later "
        "windows are of newer devices.",
        "A device that uses the app in each window falls silent after {count:,} windows, so later "
        "windows are of newer devices.",
        told.silent - 1,
    )
    return spaced((part, silent))


def _listed(metric: Metric) -> tuple[str, ...]:
    """The first values of its list; none of a boolean, whose values are no news."""
    listed = metric.values[:_LISTED] if metric.values != ("true", "false") else ()
    return tuple(map(cell_words, listed)) if metric.type.of else listed


_KEPT = {
    "day": (sentence("days for {count} days"), sentence("days for ever")),
    "week": (sentence("weeks for {count} days"), sentence("weeks for ever")),
    "month": (sentence("months for {count} days"), sentence("months for ever")),
    "quarter": (sentence("quarters for {count} days"), sentence("quarters for ever")),
}


def _kept(metric: Metric) -> str | None:
    parts = []
    for calendar, days in metric.keep:
        limited, ever = _KEPT[calendar]
        parts.append(message(ever) if days is None else message(limited, count=days))
    return joined(parts) if parts else None


def visible(metric: Metric, answer: Answer) -> str | None:
    """From which size on a share stands out from the noise of this answer, and whether one percent
    does; None where an answer is no share, or nothing was reported.

    It is the share that is detected with probability .8 by as many reports
    (`planning.crowd_forecast`). Where devices remember their noise, only as many count as
    devices.
    """
    mechanism = metric.scheme.mechanism
    if not (isinstance(answer, Shares) and isinstance(mechanism, FrequencyOracle) and answer.n):
        return None
    reports = answer.devices if isinstance(mechanism, Memoizing) else answer.n
    share = detectable_share(mechanism, max(2, len(answer.values)), reports)
    if share is None:
        return message("No share stands out from the noise of so few reports.")
    told = message("Shares of {share} or more stand out from the noise.", share=share_text(share))
    if share <= _WORTHWHILE:
        return spaced((told, message("So a share of 1% is visible.")))
    return spaced((told, message("So a share of 1% is not visible.")))


def _freshness(newest: str | None, latest: str | None, now: float) -> str:
    """Of the newest complete window, and the latest of all, which may be unfinished."""
    if latest is None:
        return message("nothing reported yet")
    running = message("{window} has reports already, and is unfinished", window=window(latest))
    if newest is None:
        return message("none yet; {running}", running=running)
    hours = math.floor((now - windows.end(newest)) / 3600)
    if hours < 1:
        ended = message("ended less than an hour ago")
    elif hours < 48:
        ended = counted("ended {count} hour ago", "ended {count} hours ago", hours)
    else:
        ended = counted("ended {count} day ago", "ended {count} days ago", hours // 24)
    told = message("{window}, {ended}", window=window(newest), ended=ended)
    return told if latest == newest else joined((told, running))


def _planner(source: DataSource, metric: Metric, newest: str | None) -> str:
    """The address of the planner with the numbers of the metric: the declared number of devices, or
    else as many as the newest complete window had, of which a part was asked."""
    devices = metric.devices
    if devices is None and newest is not None:
        days = Days(windows.first_day(newest), windows.last_day(newest))
        # The window may be dropped, if nothing has come since.
        with suppress(OnlyLongerError):
            devices = round(PageReading(source, metric, days).n / metric.rate)
    return planner_address(metric, devices)


def planner_address(metric: Metric, devices: int | None, share: float | None = None) -> str:
    """The address of the planner with the numbers of a metric and so many devices; with `share`
    for a segment that has this part of them."""
    numbers: dict[str, Any] = {
        "epsilon": f"{metric.epsilon:g}",
        "lifetime_epsilon": f"{max(metric.lifetime_epsilon, metric.epsilon):g}",
        "sample_rate": f"{metric.rate:g}",
    }
    if devices is not None:
        numbers["devices"] = max(1, devices)
    if share is not None:
        numbers["segment_share"] = f"{share:.3g}"
    page, kind = "values", metric.type
    if isinstance(kind, Pair):
        page, (rows, columns) = "pair", (len(part.values) for part in kind.parts)
        numbers |= {"rows": rows, "columns": columns}
    elif isinstance(kind, Number):
        page = "number"
        numbers |= {
            "low": f"{kind.range.start:g}",
            "high": f"{float(kind.range.high):g}",
            "scale": kind.range.scale,
            "ask": "both" if len(kind.ask) > 1 else kind.ask[0],
            "unit": kind.unit,
        }
    elif isinstance(kind, Discovery):
        page = "discovery"
        numbers["max_length"] = kind.max_length
    elif isinstance(kind, Retention):
        page, asks = "retention", "both" if len(kind.asks) > 1 else kind.asks[0]
        numbers |= {"asks": asks, "window": kind.window, "ages": kind.ages or None}
    else:
        size = min(SERVED_SIZE, len(metric.values)) or None
        memoize = "on" if metric.longitudinal == "memoize" else None
        numbers |= {"size": size, "memoize": memoize}
    return url_for(f"planner.{page}", **numbers)
