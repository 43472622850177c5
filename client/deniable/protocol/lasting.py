"""For how long a device reports: until its metric expires, or until a budget is spent before."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, NamedTuple

from deniable.protocol import windows
from deniable.protocol.checks import MAX_ONE_IN
from deniable.protocol.errors import SchemeError
from deniable.protocol.mechanisms import AUTO, MAX_MEMO_EPSILON, Memoizing
from deniable.protocol.metric import Metric
from deniable.protocol.registry import Registry

_ON = {"day": "on", "week": "in", "month": "in"}
_DAYS = {"day": 1.0, "week": 7.0, "month": 365.2425 / 12}


_LONGEST = 7_305
"""Days after which nobody asks what is left of the registry's budget: twenty years."""


class Lasting(NamedTuple):
    """What a device does that begins on a day and uses the app every day."""

    window: windows.Kind
    windows: int
    """From that of the first day to that of the metric's last."""
    reports: int
    """How many it sends, rounded; chance decides in which windows."""
    silent: int | None
    """The window, counted from 1, from which on it sends nothing more; None if it reports until
    the metric expires."""
    capped: bool = False
    """Whether it is the registry's own `lifetime_epsilon` that is spent first."""

    @property
    def text(self) -> str:
        """In one line."""
        of = f"{self.windows:,} {self.window}s" if self.windows != 1 else f"1 {self.window}"
        if self.silent is not None:
            return f"a device falls silent {_ON[self.window]} {self.window} {self.silent:,} of {of}"
        return f"a device reports {_ON[self.window]} {self.reports:,} of {of}"


def today() -> date:
    """The day (UTC) that the clock shows."""
    return datetime.fromtimestamp(time.time(), UTC).date()


def lasting(registry: Registry, first: date) -> dict[str, Lasting]:
    """That of each metric that devices report, and that has not expired, by its name; of a device
    that begins on that day.

    Each metric spends its own `lifetime_epsilon`, and all together spend the registry's. Draws
    (`sample_rate`) are counted at their expectation.
    """
    asked = [
        each for each in registry if each.name not in registry.unasked and each.expires >= first
    ]
    left = {each.name: _windows(each, first) for each in asked}
    ends = {} if registry.lifetime_epsilon is None else _capped(asked, left, registry)
    found = {}
    for metric in asked:
        count, most = left[metric.name], _allowed(metric)
        rate = Fraction(repr(metric.sample_rate)) / (metric.one_in or 1)
        own = None if most is None else math.floor(most / rate) + 1
        by_cap = ends.get(metric.name)
        capped = by_cap is not None and (own is None or by_cap < own)
        silent = by_cap if capped else own
        if silent is not None and silent > count:
            silent, capped = None, False
        reporting = count if silent is None else silent - 1
        found[metric.name] = Lasting(metric.window, count, round(rate * reporting), silent, capped)
    return found


def _capped(asked: list[Metric], left: dict[str, int], registry: Registry) -> dict[str, int]:
    """The window from which on the registry's budget has no room for a report of a metric, for
    those that come so far. The ledger asks for each report, so metrics of small cost go on longer.
    """
    cap, spent, ends = registry.lifetime_epsilon or math.inf, 0.0, {}
    sent = dict.fromkeys(left, 0.0)
    days = max((math.ceil(left[each.name] * _DAYS[each.window]) for each in asked), default=0)
    going = [(each, each.scheme.mechanism.cost, _allowed(each) or math.inf) for each in asked]
    for day in range(min(days, _LONGEST)):
        for metric, cost, most in going:
            length = _DAYS[metric.window]
            window = math.floor(day / length)
            begins = window > math.floor((day - 1) / length) and window < left[metric.name]
            if not begins or metric.name in ends or sent[metric.name] >= most:
                continue
            if spent + cost > cap:
                ends[metric.name] = window + 1
                continue
            spent += metric.rate * cost
            sent[metric.name] += metric.rate
    return ends


def groups(told: Lasting, rate: float) -> int | None:
    """The `one_in` with which a device that falls silent reports until its metric expires; None if
    it would have to be larger than it may be."""
    assert told.silent is not None
    allowed = max(1, math.floor((told.silent - 1) * rate + 1e-9))
    count = math.ceil(told.windows / allowed)
    # Else a device would always have the same day of the week.
    count += told.window == "day" and count % 7 == 0
    return count if 2 <= count <= MAX_ONE_IN else None


def remedies(
    metric: Metric, registry: Registry, first: date
) -> Iterator[tuple[str, Metric, Lasting]]:
    """The lines of which each lets a silent metric's devices report until it expires, and the
    metric with them, and what a device does then: memos, a longer window, turns."""
    told = lasting(registry, first)[metric.name]
    joined = bool(metric.type.of) or metric.name in registry.pairs
    options: list[tuple[str, dict[str, Any]]] = []
    if metric.longitudinal == "fresh" and not joined:
        large = metric.lifetime_epsilon > MAX_MEMO_EPSILON
        memo = min(2 * metric.epsilon, MAX_MEMO_EPSILON) if large else None
        more = "" if memo is None else f"\nmemo_epsilon = {memo:g}"
        changed: dict[str, Any] = {
            "longitudinal": "memoize",
            "memo_epsilon": memo,
            "mechanism": AUTO,
        }
        options.append((f'longitudinal = "memoize"{more}', changed))
    if not joined and not metric.keep:
        longer = windows.KINDS[windows.KINDS.index(metric.window) + 1 :]
        options += [(f'window = "{kind}"', {"window": kind}) for kind in longer]
    if count := groups(told, metric.rate):
        options.append((f"one_in = {count}", {"one_in": count, "sample_rate": 1.0}))
    windowed = False
    for line, changed in options:
        if "window" in changed and windowed:
            continue
        made = dataclasses.replace(metric, **changed, compiled=None)
        try:
            made.scheme  # noqa: B018  (builds the mechanism, if the metric can have it)
        except SchemeError:
            continue
        with_it = dataclasses.replace(registry, metrics={**registry.metrics, metric.name: made})
        then = lasting(with_it, first)[metric.name]
        if then.silent is None:
            windowed |= "window" in changed
            yield line, made, then


def _windows(metric: Metric, begin: date) -> int:
    first, last = (
        windows.number(windows.window_of(metric.window, day)) for day in (begin, metric.expires)
    )
    return last - first + 1


def _allowed(metric: Metric) -> int | None:
    """How many reports the metric's own budget allows; None with memos, which are any number."""
    if isinstance(metric.scheme.mechanism, Memoizing):
        return None
    return Fraction(metric.lifetime_epsilon) // Fraction(metric.scheme.mechanism.epsilon)
