"""Intervals over several windows hold the share among all devices, not among their reports.

Each test draws whole populations, device by device: a value for each from fixed shares, the
windows in which it reports (its coin, and its ledger), and a report of its own each time. An
interval covers if it holds the share that the population was drawn from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable import Registry, Scheme, windows
from deniable.mechanisms import (
    MemoizedSubsetSelection,
    SubsetSelection,
)
from deniable_collector.stores.base import Store
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.decoders import subset_selection
from deniable_estimator.reading import read
from deniable_estimator.sampling import SAMPLERS

DAYS = windows.span("day", date(2026, 1, 5), date(2027, 1, 4))
"""The first is a Monday."""

Answered = NDArray[np.bool_]


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
        {"" if cap is None else f"lifetime_epsilon = {cap}"}
        [metrics.m]
        description = "?"
        owner = "me"
        expires = 2027-06-30
        {more}
        """
    )


def answering(
    rng: np.random.Generator,
    devices: int,
    windows: int,
    rate: float = 1.0,
    most: int | None = None,
    since: NDArray[np.int64] | None = None,
    until: NDArray[np.int64] | None = None,
) -> Answered:
    """Which devices report in which windows: each tosses its coin until its ledger is spent."""
    answered = rng.random((devices, windows), np.float32) < rate
    window = np.arange(windows)
    if since is not None:
        answered &= window >= since[:, None]
    if until is not None:
        answered &= window < until[:, None]
    if most is not None:
        answered &= np.cumsum(answered, axis=1) <= most
    return answered


def rows_of(
    scheme: Scheme,
    items: Sequence[Any],
    held: NDArray[np.int64],
    times: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[TallyRow, ...]:
    """The sum of all reports of devices that hold these values and report so many times."""
    mechanism = scheme.mechanism
    if isinstance(mechanism, MemoizedSubsetSelection):
        truthful = rng.random(len(held)) < float(mechanism.permanent.p)
        other = (held + rng.integers(1, mechanism.size, len(held))) % mechanism.size
        memos = np.where(truthful, held, other)
        counts = np.bincount(memos, times, len(items)).astype(np.int64)
        return subset_selection.sample_rows(mechanism.fresh, items, counts, rng)
    counts = np.bincount(held, times, len(items)).astype(np.int64)
    return SAMPLERS[mechanism.name](mechanism, items, counts, rng)


def collected(
    turns: Sequence[tuple[Scheme, range]],
    items: Sequence[Any],
    held: NDArray[np.int64],
    answered: Answered,
    rng: np.random.Generator,
) -> Collected:
    """What devices report that hold these values: under each scheme in its windows."""
    store = Collected()
    for scheme, place in turns:
        here = answered[:, place.start : place.stop]
        rows = rows_of(scheme, items, held, here.sum(axis=1), rng)
        reports = dict(zip(DAYS[place.start : place.stop], here.sum(axis=0).tolist(), strict=True))
        store.add(scheme, rows, {day: n for day, n in reports.items() if n})
    return store


def covered(
    registry: Registry,
    truth: Sequence[float],
    crowd: Callable[[np.random.Generator], Answered],
    *,
    populations: int,
    seed: int,
    turns: Sequence[tuple[Scheme, range]] | None = None,
    strings: list[str] | None = None,
) -> NDArray[np.float64]:
    """How often the 95 % interval of each value holds its share."""
    rng = np.random.default_rng(seed)
    shares = np.array(truth)
    held_by = np.zeros(len(shares))
    for _ in range(populations):
        answered = crowd(rng)
        held = rng.choice(len(shares), len(answered), p=shares)
        each = turns or [(registry["m"].scheme, range(answered.shape[1]))]
        items = strings or each[0][0].items
        found = read(collected(each, items, held, answered, rng), registry, "m", candidates=strings)
        held_by += (found.low <= shares) & (shares <= found.high)
    return held_by / populations


BOOLEAN = 'type = "boolean"'
FIVE = 'type = "category"\nvalues = ["a", "b", "c", "d", "e"]'
FALLING = [0.4, 0.25, 0.2, 0.1, 0.05]

CROWDS: dict[str, tuple[str, list[float], Callable[[np.random.Generator], Answered]]] = {
    "every device, 8 windows": (
        f"{BOOLEAN}\nepsilon = 1.0\nlifetime_epsilon = 8.0",
        [0.3, 0.7],
        lambda rng: answering(rng, 2000, 8),
    ),
    "little noise, 30 windows": (
        f"{BOOLEAN}\nepsilon = 4.0\nlifetime_epsilon = 120.0",
        [0.3, 0.7],
        lambda rng: answering(rng, 1000, 30),
    ),
    "a ledger that ends them": (
        f"{BOOLEAN}\nepsilon = 4.0\nlifetime_epsilon = 32.0\nsample_rate = 0.6",
        [0.3, 0.7],
        lambda rng: answering(rng, 1000, 30, 0.6, 8),
    ),
    "a ledger that ends some": (
        f"{BOOLEAN}\nepsilon = 4.0\nlifetime_epsilon = 8.0\nsample_rate = 0.04",
        [0.3, 0.7],
        lambda rng: answering(rng, 2000, 30, 0.04, 2),
    ),
    "the README's metric, a year": (
        f"{FIVE}\nepsilon = 1.0\nlifetime_epsilon = 8.0\nsample_rate = 0.02",
        FALLING,
        lambda rng: answering(rng, 500, 365, 0.02, 8),
    ),
    "a crowd that grows": (
        f"{BOOLEAN}\nepsilon = 4.0\nlifetime_epsilon = 120.0\nsample_rate = 0.7",
        [0.3, 0.7],
        lambda rng: answering(rng, 1000, 30, 0.7, since=np.arange(1000) * 30 // 1000),
    ),
    "memory": (
        f'{BOOLEAN}\nepsilon = 2.0\nlifetime_epsilon = 3.0\nlongitudinal = "memoize"',
        [0.3, 0.7],
        lambda rng: answering(rng, 1000, 20),
    ),
}


@pytest.mark.parametrize("name", CROWDS)
def test_intervals_cover_the_share_among_all_devices(name: str) -> None:
    """95 % intervals over windows cover 95 % of the time where devices and values stay.

    2,000 populations each, seed 1. The share covered of one value has a standard deviation
    of .0049, so each of the 14 comparisons leaves the band by chance with probability .002.
    Intervals that took reports for independent ones covered .26 to .90.
    """
    metric, truth, crowd = CROWDS[name]
    found = covered(declared(metric), truth, crowd, populations=2000, seed=1)
    assert (found >= 0.935).all(), found
    assert (found <= 0.965).all(), found


def alternating(*schemes: Scheme, windows: int) -> list[tuple[Scheme, range]]:
    """One scheme after the other, so many windows each."""
    return [
        (scheme, range(place * windows, (place + 1) * windows))
        for place, scheme in enumerate(schemes)
    ]


def scheme_of(mechanism: Any, kind: str = "boolean") -> Scheme:
    values = {"boolean": ("true", "false"), "category": tuple("abcde"), "string": None}[kind]
    return Scheme(kind, mechanism, values)


IN_TURN: dict[str, list[Scheme]] = {
    "fresh": [scheme_of(SubsetSelection.design(2, each)) for each in (4.0, 3.0)],
    "memory": [scheme_of(MemoizedSubsetSelection.design(2, each, 6.0, k=1)) for each in (4.0, 3.0)],
    "fresh, then memory": [
        scheme_of(SubsetSelection.design(2, 3.0)),
        scheme_of(MemoizedSubsetSelection.design(2, 3.0, 5.0, k=1)),
    ],
}


@pytest.mark.parametrize("name", IN_TURN)
def test_schemes_that_the_same_devices_used_in_turn(name: str) -> None:
    """Two schemes in ten windows each: the people are the same, though all noise is new.

    1,000 devices, 2,000 populations, seed 2; the band as above, alpha .002 for each of 6
    comparisons. Variances that are added as if other devices had used each scheme give .88
    and less.
    """
    schemes = IN_TURN[name]
    memory = 'longitudinal = "memoize"' if name != "fresh" else ""
    lifetime = 6.0 if memory else 200.0
    registry = declared(f"{BOOLEAN}\nepsilon = 4.0\nlifetime_epsilon = {lifetime}\n{memory}")
    found = covered(
        registry,
        [0.3, 0.7],
        lambda rng: answering(rng, 1000, 20),
        populations=2000,
        seed=2,
        turns=alternating(*schemes, windows=10),
    )
    assert (found >= 0.935).all(), found
    assert (found <= 0.965).all(), found
