"""The weeks before: each day's tally, from the exact distribution of what such a crowd sends.

To simulate 50,000 devices for 75 days would take an hour. A tally is a sum of independent reports,
so it can be drawn from how many devices had each value. Where devices keep memos, each device of
the crowd has its own, those of the newest day's devices as the SDK computes them, and the noise of
each day is drawn given all memos.

Devices that come, stay, go and come back, with a release that makes fewer come back, are drawn for
weeks, with the memos of all devices. The devices of the newest day take no part: none has a past.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable import Metric, Registry
from deniable.device import ledger
from deniable.protocol import windows
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection
from deniable.protocol.types.pair import Pair
from deniable_collector.stores import Store
from deniable_collector.tally import Tally
from deniable_demo.population import (
    ANNOTATIONS,
    CRASHES,
    DISCOVERED,
    DRIFT,
    GROWTH,
    LEAVING,
    PERCENTILES,
    POPULARITIES,
    RELEASED,
    USAGE,
    Population,
    memo_key,
)
from deniable_estimator.analyses import analysis_of, sample_tally
from deniable_estimator.asking.comparison import days_since
from deniable_estimator.asking.query import Days
from deniable_estimator.development.crowd import fold_tally
from deniable_estimator.kinds.retention.crowd import Life, tallies_of
from deniable_estimator.planning.population import normal_scores
from deniable_estimator.statistics.intervals import FloatArray

DAYS = 75
"""So many days before the newest one have a history."""

USED = 0.85
"""This part of all devices is used on a working day."""

WEEKEND = 0.6
"""So many devices are used on a Saturday or Sunday for each one on a working day."""

LONGER = 1.5
"""Then the app is open so many times longer."""

_DISCOVERED_DAYS = 28
"""The app asks for so long for the strings that are found: they take most of the time to draw."""

_OWN = 300
"""So many of the systems that only one device has stand for all of them."""

Tallies: TypeAlias = Callable[[date, float, int], dict[int, Tally]]
"""Of a day, how far the weeks have passed (0 to 1) and how many devices were used: the tally of
each combination of segments, by its place."""


def write_history(
    store: Store,
    registry: Registry,
    population: Population,
    newest: date,
    rng: np.random.Generator,
    days: Iterable[int],
) -> Iterator[date]:
    """Add the tallies of so many days before `newest`, of about as many devices on a working day as
    the population has, which is used on the newest day. Yields each day that is done."""
    size = round(population.size / USED)
    asked = [
        metric
        for metric in registry
        if metric.name not in {*registry.unasked, LEAVING.metric}  # its windows are weeks
    ]
    drawing = {metric.name: _drawing(metric, population, size, newest, rng) for metric in asked}
    for ago in days:
        day = newest - timedelta(days=ago)
        used = rng.binomial(size, USED * (WEEKEND if _is_weekend(day) else 1))
        evening = datetime.combine(day, time(23), UTC).timestamp()
        for metric in asked:
            if metric.name == DISCOVERED.metric and ago > _DISCOVERED_DAYS:
                continue
            tallies = drawing[metric.name](day, 1 - ago / DAYS, int(used))
            for place, tally in tallies.items():
                fold_tally(store, tally, evening, place)
        yield day


def _drawing(
    metric: Metric, population: Population, size: int, newest: date, rng: np.random.Generator
) -> Tallies:
    """How a metric's tallies are drawn, with a crowd of `size` devices."""
    if isinstance(metric.scheme.mechanism, MemoizedSubsetSelection):
        return _Keeping(metric, metric.scheme.mechanism, population, size, rng).tallies
    released = newest - timedelta(days=complete_days(RELEASED))

    def tallies(day: date, passed: float, used: int) -> dict[int, Tally]:
        found = {}
        for place, part, values, shares in _crowds(metric, day, passed, day >= released):
            answering = rng.binomial(used, part * metric.rate)
            counts = rng.multinomial(answering, shares)
            about = {"metric": metric.name, "window": day.isoformat()}
            found[place] = sample_tally(metric.scheme, counts, rng, values=values, **about)
        return found

    return tallies


Crowd: TypeAlias = tuple[int, float, list[str], FloatArray]
"""The place of a combination of segments, the part of all devices that are in it, their values, and
the share of each value."""


def _crowds(metric: Metric, day: date, passed: float, released: bool) -> list[Crowd]:
    """What devices record of a metric that keeps no memos."""
    if metric.name == CRASHES.metric:
        every = sum(percent for percent, _ in CRASHES.percent.values())
        return [
            (place, percent / every, ["true", "false"], np.array([share, 1 - share]))
            for place, (group, (percent, now)) in enumerate(CRASHES.percent.items())
            for share in [(now if released else CRASHES.before.get(group, now)) / 100]
        ]
    if isinstance(metric.type, Pair):
        longer = LONGER if _is_weekend(day) else 1.0
        return [(0, 1.0, list(metric.values), _usage_cells(metric.type, longer))]
    if metric.name == DISCOVERED.metric:
        return [(0, 1.0, *_systems())]
    numbers = grown_numbers(passed)
    weights = np.full(len(numbers), 1 / len(numbers))
    return [(0, 1.0, [metric.normalize(each) for each in numbers.tolist()], weights)]


def grown_numbers(passed: float) -> FloatArray:
    """Numbers of the metric that grows, all equally frequent; `passed` is 1 on the newest day."""
    (found,) = (each for each in PERCENTILES if each.metric == GROWTH.metric)
    numbers = found.numbers(normal_scores()[5::10])
    middle = float(np.median(numbers))
    stretch = GROWTH.before + (1 - GROWTH.before) * passed
    grown: FloatArray = np.where(numbers > middle, middle * (numbers / middle) ** stretch, numbers)
    return grown


def _usage_cells(pair: Pair, longer: float) -> FloatArray:
    """The share of each cell of plan and minutes."""
    cells = []
    every = sum(devices for devices, _ in USAGE.typical.values())
    first, second = pair.parts
    for plan in first.values:
        devices, median = USAGE.typical[plan]
        normal = NormalDist(np.log(median * longer), USAGE.sigma)
        reached = [0.0, *(normal.cdf(np.log(edge)) for edge in second.edges), 1.0]
        cells += [devices / every * (high - low) for low, high in pairwise(reached)]
    return np.array(cells)


def _systems() -> tuple[list[str], FloatArray]:
    """The systems that are found; of those that are different for each device, some."""
    named, shares = list(DISCOVERED.percent), np.array(list(DISCOVERED.percent.values())) / 100
    own = [f"{DISCOVERED.own}{number}" for number in range(_OWN)]
    rest = (1 - shares.sum()) / _OWN
    return [*named, *own], np.append(shares, np.full(_OWN, rest))


class _Keeping:
    """A crowd in which each device keeps the noise of its value, and some change their value. The
    first of its devices are those of the newest day, with their values and their keys."""

    def __init__(
        self,
        metric: Metric,
        mechanism: MemoizedSubsetSelection,
        population: Population,
        size: int,
        rng: np.random.Generator,
    ) -> None:
        self._metric, self._mechanism, self._rng = metric, mechanism, rng
        self._keys = [memo_key(secret, metric.name) for secret in population.secrets]
        shares = _shares(metric)
        places = {value: place for place, value in enumerate(metric.values)}
        known = [places[metric.normalize(each)] for each in population.values[metric.name]]
        others = rng.choice(len(shares), size - population.size, p=shares)
        self._values = np.append(known, others)
        self._changing = np.array([], np.int64)
        if metric.name == DRIFT.metric:
            # Those that have changed on the newest day, in the order in which they do.
            first, second = (metric.values.index(each) for each in (DRIFT.before, DRIFT.after))
            changed = rng.permutation(np.flatnonzero(self._values == second))
            self._changing = changed[: round(size * DRIFT.percent / 100)]
            self._values[self._changing] = first
            self._second = second
        self._changed = 0
        self._memos = self._memoized(np.arange(size))

    def tallies(self, day: date, passed: float, used: int) -> dict[int, Tally]:
        """The tally of one day."""
        moved = self._changing[self._changed : round(passed * len(self._changing))]
        if len(moved):
            self._values[moved] = self._second
            self._memos[moved] = self._memoized(moved)
            self._changed += len(moved)
        rng, metric = self._rng, self._metric
        answering = rng.random(len(self._memos)) < used / len(self._memos) * metric.rate
        counts = np.bincount(self._memos[answering], minlength=self._mechanism.size)
        fresh = analysis_of(self._mechanism.fresh)
        rows = fresh.sample_rows(range(self._mechanism.size), counts, rng)
        return {0: Tally(metric.name, metric.scheme.fingerprint, (day.isoformat(),), rows)}

    def _memoized(self, devices: NDArray[np.int64]) -> NDArray[np.int64]:
        """The permanent round of these devices: the value itself with its probability, or any of
        the others; of the newest day's devices as it follows from their keys."""
        size, rng, values = self._mechanism.size, self._rng, self._values[devices]
        kept = rng.random(len(values)) < float(self._mechanism.permanent.p)
        others = rng.integers(1, size, len(values))
        memos: NDArray[np.int64] = np.where(kept, values, (values + others) % size)
        scheme = self._metric.scheme.fingerprint
        for place in np.flatnonzero(devices < len(self._keys)).tolist():
            key, value = self._keys[devices[place]], int(values[place])
            _, memos[place] = ledger.draw(key, scheme, self._mechanism, value)
        return memos


def _shares(metric: Metric) -> FloatArray:
    """The share of each value of a metric on the newest day."""
    (found,) = (each for each in POPULARITIES if each.metric == metric.name)
    percent = {"other": 100 - sum(found.percent.values()), **found.percent}
    shares: FloatArray = np.array([percent.get(value, 0.0) for value in metric.values])
    shares /= shares.sum()
    return shares


def complete_days(happened: str) -> int:
    """How many days, up to the newest one, came after this."""
    (ago,) = (ago for ago, text in ANNOTATIONS.items() if text == happened)
    return ago - 1


def _is_weekend(day: date) -> bool:
    return day.weekday() >= 5


_WEEKS = 20


def write_weeks(
    store: Store, registry: Registry, devices: int, newest: date, rng: np.random.Generator
) -> None:
    """Add the tallies of the last complete weeks, with about `devices` devices active in each."""
    metric = registry[LEAVING.metric]
    last = _last_week(newest)
    labels = windows.span("week", last - timedelta(weeks=_WEEKS - 1), last)
    released = windows.number(windows.window_of("week", _released(newest)))
    steady = Life.steady(devices, back=LEAVING.before, stays=LEAVING.stays)
    # The cohorts of the release's week and of later ones come back in the week after.
    lives = [
        replace(steady, back=LEAVING.after) if windows.number(label) > released else steady
        for label in labels
    ]
    for tally, _ in tallies_of(metric, labels, lives, rng, older=devices - steady.new):
        (label,) = tally.windows
        fold_tally(store, tally, windows.end(label) - 1)


def weeks_since(newest: date) -> Days:
    """The complete weeks since the release, and as many before it."""
    return days_since(LEAVING.release, _released(newest), "week", _last_week(newest), {})


def _released(newest: date) -> date:
    (ago,) = (ago for ago, text in ANNOTATIONS.items() if text == LEAVING.release)
    return newest + timedelta(days=1) - timedelta(days=ago)


def _last_week(newest: date) -> date:
    """The last day of the newest complete week."""
    return windows.last_complete("week", windows.midnight(newest + timedelta(days=1)))
