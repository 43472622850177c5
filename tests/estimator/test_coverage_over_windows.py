"""Intervals over several windows hold the share among all devices as often as they say.

Each test draws whole populations, device by device: its value, the windows in which it reports
(its coin, and its ledger), and the noise of each report. An interval covers if it holds the share
that the population was drawn from. Who reports how often is all that is told of a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable import Registry, Scheme, windows
from deniable.mechanisms import (
    MemoizedSubsetSelection,
)
from deniable_collector.stores.base import Store
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import analysis_of
from deniable_estimator.questions.reading import read

pytestmark = pytest.mark.campaign

DAYS = windows.span("day", date(2026, 1, 5), date(2027, 1, 4))
"""The first is a Monday."""

Reported: TypeAlias = NDArray[np.bool_]
"""Whether a device reports in a window, shape (devices, windows)."""

Held: TypeAlias = NDArray[np.int64]
"""The value of a device in a window, of the same shape."""

Crowd: TypeAlias = Callable[[np.random.Generator], Reported]

Turns: TypeAlias = list[tuple[Scheme, range]]
"""Schemes, and the windows in which each was in force."""


class Collected(Store):
    """What was reported to the metric m: of each scheme the whole, and the reports by window.

    A real store would take most of the time here.
    """

    def __init__(self) -> None:
        self._schemes: dict[str, Scheme] = {}
        self._rows: dict[str, tuple[TallyRow, ...]] = {}
        self._reports: dict[str, dict[str, int]] = {}

    def add(self, scheme: Scheme, rows: tuple[TallyRow, ...], reports: dict[str, int]) -> None:
        assert sum(row.reports for row in rows) == sum(reports.values())
        name = scheme.fingerprint
        self._schemes[name], self._rows[name], self._reports[name] = scheme, rows, reports

    def schemes(self) -> dict[str, dict[str, Scheme]]:
        return {"m": self._schemes}

    def scheme(self, metric: str, fingerprint: str) -> Scheme:
        return self._schemes[fingerprint]

    def windows(self, metric: str, scheme: str) -> list[str]:
        return list(self._reports[scheme])

    def tally(self, metric: str, scheme: str, windows: Iterable[str]) -> Tally:
        labels = tuple(windows)
        assert labels == tuple(self._reports[scheme])
        return Tally(metric, scheme, labels, self._rows[scheme])

    def reports(self, metric: str, scheme: str, windows: Iterable[str]) -> dict[str, int]:
        return self._reports[scheme]

    def version(self, metric: str, scheme: str, windows: Iterable[str]) -> bytes:
        raise NotImplementedError

    def fold(self, *_: Any) -> frozenset[str]:
        raise NotImplementedError

    publish = drop = ping = close = fold  # type: ignore[assignment]


def declared(more: str, cap: float | None = None) -> Registry:
    """A registry with one metric, m."""
    return Registry.parse(
        f"""
        schema = 1
        app = "example"
        {"" if cap is None else f"lifetime_epsilon = {cap}"}
        [metrics.m]
        description = "?"
        owner = "me"
        expires = 2027-06-30
        {more}
        """
    )


def reporting(
    rng: np.random.Generator,
    devices: int,
    windows: int,
    rate: float = 1.0,
    most: int | None = None,
    since: NDArray[np.int64] | None = None,
    until: NDArray[np.int64] | None = None,
) -> Reported:
    """Which devices report in which windows: each tosses its coin until its ledger is spent."""
    reported = rng.random((devices, windows), np.float32) < rate
    window = np.arange(windows)
    if since is not None:
        reported &= window >= since[:, None]
    if until is not None:
        reported &= window < until[:, None]
    if most is not None:
        reported &= np.cumsum(reported, axis=1) <= most
    return reported


def rows_of(
    scheme: Scheme, items: Sequence[Any], held: Held, reported: Reported, rng: np.random.Generator
) -> tuple[TallyRow, ...]:
    """The sum of all reports of devices that hold these values and report in these windows."""
    mechanism, size = scheme.mechanism, len(items)
    if isinstance(mechanism, MemoizedSubsetSelection):
        # A memo for each device and value, and fresh noise on the memo of the value of the day.
        values = np.broadcast_to(np.arange(size), (len(held), size))
        truthful = rng.random(values.shape) < float(mechanism.permanent.p)
        other = (values + rng.integers(1, size, values.shape)) % size
        held = np.take_along_axis(np.where(truthful, values, other), held, axis=1)
        mechanism = mechanism.fresh
    counts = np.bincount(held[reported], minlength=size)
    return analysis_of(mechanism).sample_rows(items, counts, rng)


def collected(
    turns: Turns,
    items: Sequence[Any],
    held: Held,
    reported: Reported,
    rng: np.random.Generator,
) -> Collected:
    """What devices report that hold these values: under each scheme in its windows."""
    store = Collected()
    for scheme, within in turns:
        place = slice(within.start, within.stop)
        rows = rows_of(scheme, items, held[:, place], reported[:, place], rng)
        reports = zip(DAYS[place], reported[:, place].sum(axis=0).tolist(), strict=True)
        store.add(scheme, rows, {day: n for day, n in reports if n})
    return store


def holding(rng: np.random.Generator, shares: Sequence[float], reported: Reported) -> Held:
    """A value for each device, the same in all windows."""
    devices = len(reported)
    held = rng.choice(len(shares), (devices, 1), p=np.array(shares))
    return np.broadcast_to(held, reported.shape)


def covered(
    registry: Registry,
    truth: Sequence[float],
    crowd: Crowd,
    populations: int,
    seed: int,
    turns: Turns | None = None,
    hold: Callable[..., Held] = holding,
) -> NDArray[np.float64]:
    """How often the 95% interval of each value holds its share."""
    rng = np.random.default_rng(seed)
    shares = np.array(truth)
    count = np.zeros(len(shares))
    for _ in range(populations):
        reported = crowd(rng)
        held = hold(rng, truth, reported)
        each = turns or [(registry["m"].scheme, range(reported.shape[1]))]
        found = read(collected(each, each[0][0].items, held, reported, rng), registry, "m")
        count += (found.low <= shares) & (shares <= found.high)
    return count / populations


POPULATIONS = 1000
"""The part of so many intervals that covers has a standard deviation of .0069."""

BOOLEAN, HALVES = 'type = "boolean"', [0.3, 0.7]
FIVE, FALLING = 'type = "category"\nvalues = ["a", "b", "c", "d", "e"]', [0.4, 0.25, 0.2, 0.1, 0.05]

CROWDS: dict[str, tuple[str, list[float], Crowd]] = {
    "every device, 8 windows": (
        f"{BOOLEAN}\nepsilon = 1.0\nlifetime_epsilon = 8.0",
        HALVES,
        lambda rng: reporting(rng, 2000, 8),
    ),
    "little noise, 30 windows": (
        f"{BOOLEAN}\nepsilon = 4.0\nlifetime_epsilon = 120.0",
        HALVES,
        lambda rng: reporting(rng, 1000, 30),
    ),
    "a ledger that ends all": (
        f"{BOOLEAN}\nepsilon = 4.0\nlifetime_epsilon = 32.0\nsample_rate = 0.6",
        HALVES,
        lambda rng: reporting(rng, 1000, 30, 0.6, 8),
    ),
    "a ledger that ends some": (
        f"{BOOLEAN}\nepsilon = 4.0\nlifetime_epsilon = 8.0\nsample_rate = 0.04",
        HALVES,
        lambda rng: reporting(rng, 1500, 30, 0.04, 2),
    ),
    "2% of the devices a day, a year": (
        f"{FIVE}\nepsilon = 1.0\nlifetime_epsilon = 8.0\nsample_rate = 0.02",
        FALLING,
        lambda rng: reporting(rng, 250, 365, 0.02, 8),
    ),
    "a crowd that grows": (
        f"{BOOLEAN}\nepsilon = 4.0\nlifetime_epsilon = 120.0\nsample_rate = 0.7",
        HALVES,
        lambda rng: reporting(rng, 1000, 30, 0.7, since=np.arange(1000) * 30 // 1000),
    ),
    "memory": (
        f'{BOOLEAN}\nepsilon = 2.0\nlifetime_epsilon = 3.0\nlongitudinal = "memoize"',
        HALVES,
        lambda rng: reporting(rng, 1000, 20),
    ),
}
"""The metric, its shares, and who reports when. All devices stay, and so do their values."""


@pytest.mark.parametrize("name", CROWDS)
def test_intervals_cover_the_share_among_all_devices(name: str) -> None:
    """95% intervals over windows cover 95% of the time.

    1,000 populations each, seed 1; the band is 3 standard deviations wide on either side, so
    each of the 11 comparisons (of a boolean, one) leaves it by chance with probability .003.
    Intervals that took all reports for those of different devices covered .29 to .91.
    """
    metric, truth, crowd = CROWDS[name]
    found = covered(declared(metric), truth, crowd, POPULATIONS, 1)
    assert (abs(found - 0.95) <= 0.021).all(), found
