"""Intervals over several windows in which the same devices report: how often do they cover?

Each population is drawn device by device: a value from the shares, the windows in which it
reports (its coin, its ledger, and when it comes and leaves), and new noise for each report. An
interval covers if it holds the share that the population was drawn from. "As independent", the
baseline, takes every report for that of another device, and every scheme for one of other devices,
on the same tallies. "Width" is the mean width over the one that the estimates' own scatter needs.
Where devices and values stay, 94 to 96% should be covered; where they do not, 94% or more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.tables import Cell, Goal, Measured, Table, run
from deniable import Scheme
from deniable.protocol.mechanisms import (
    CohortLocalHashing,
    HashedProjectiveGeometry,
    MemoizedSubsetSelection,
    SubsetSelection,
)
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.answers.shares import Shares, estimate
from deniable_estimator.answers.shares_of_many import combine
from deniable_estimator.statistics.participation import Participation

Z = 1.959964
STRINGS = [f"string {number}" for number in range(6)]


@dataclass(frozen=True)
class Crowd:
    """Who reports when. Devices are there from `since` to `until`, at most `most` times."""

    devices: int
    windows: int
    rate: float = 1.0
    most: int | None = None
    since: NDArray[np.int64] | None = None
    until: NDArray[np.int64] | None = None
    changing: float = 0.0
    """The part of the windows in which a device draws a new value."""

    def reported(self, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Whether a device reports in a window: shape (devices, windows)."""
        window = np.arange(self.windows)
        found = rng.random((self.devices, self.windows), np.float32) < self.rate
        if self.since is not None:
            found &= window >= self.since[:, None]
        if self.until is not None:
            found &= window < self.until[:, None]
        if self.most is not None:
            found &= np.cumsum(found, axis=1) <= self.most
        return found

    def held(self, rng: np.random.Generator, shares: NDArray[np.float64]) -> NDArray[np.int64]:
        """The value of each device in each window."""
        shape = (self.devices, self.windows)
        if not self.changing:
            return np.broadcast_to(rng.choice(len(shares), (self.devices, 1), p=shares), shape)
        held = rng.choice(len(shares), shape, p=shares)
        for window in range(1, self.windows):
            keeps = rng.random(self.devices) >= self.changing
            held[keeps, window] = held[keeps, window - 1]
        return held


@dataclass(frozen=True)
class Case:
    """A row of the table."""

    name: str
    crowd: Crowd
    mechanisms: Sequence[Any]
    """Each is in force for as many windows as the others, in turn."""
    shares: Sequence[float]
    budget: float | None = None
    exact: bool = True
    repeat: float = 1.0
    """The part of all populations that is drawn: strings take longer."""


def parts_of(
    case: Case, rng: np.random.Generator
) -> list[tuple[Tally, Scheme, list[str] | None, Participation]]:
    """One population: what was collected under each scheme, and who may have repeated."""
    crowd, size = case.crowd, len(case.shares)
    reported, held = crowd.reported(rng), crowd.held(rng, np.array(case.shares))
    each = crowd.windows // len(case.mechanisms)
    found = []
    for turn, mechanism in enumerate(case.mechanisms):
        within = slice(turn * each, (turn + 1) * each)
        here, values = reported[:, within], held[:, within]
        listed = mechanism.size is not None
        scheme = Scheme(
            "category" if listed else "string",
            mechanism,
            tuple(f"v{value}" for value in range(size)) if listed else (),
        )
        items = range(size) if listed else STRINGS
        fresh, cost = mechanism, mechanism.epsilon
        if isinstance(mechanism, MemoizedSubsetSelection):
            # A memo for each device and value, and fresh noise on that of the value of the day.
            own = np.broadcast_to(np.arange(size), (len(values), size))
            other = (own + rng.integers(1, size, own.shape)) % size
            truthful = rng.random(own.shape) < float(mechanism.permanent.p)
            values = np.take_along_axis(np.where(truthful, own, other), values, axis=1)
            fresh, cost = mechanism.fresh, 1.0
        counted = np.bincount(values[here], minlength=size)
        rows = analysis_of(fresh).sample_rows(items, counted, rng)
        counts = here.sum(axis=0)
        reports = {str(turn * each + place): int(n) for place, n in enumerate(counts.tolist()) if n}
        tally = Tally("m", scheme.fingerprint, tuple(reports), rows)
        told = Participation(reports, crowd.rate, case.budget, cost)
        found.append((tally, scheme, None if listed else STRINGS, told))
    return found


def both(case: Case, rng: np.random.Generator) -> tuple[Shares, Shares]:
    """The estimate of one population, and the same as if all reports were independent."""
    ours, blind = [], []
    for tally, scheme, strings, told in parts_of(case, rng):
        ours.append(estimate(tally, scheme, strings, participation=told))
        alone = Participation({"": tally.reports})
        blind.append(estimate(tally, scheme, strings, participation=alone))
    return combine(ours), combine(blind)


def coverage(case: Case, populations: int) -> dict[str, Cell]:
    """How often intervals hold the share, and how wide they are."""
    rng, truth = np.random.default_rng(7), np.array(case.shares)
    inside, blind, width, share = [], [], [], []
    for _ in range(max(2, round(populations * case.repeat))):
        found, apart = both(case, rng)
        inside.append((found.low <= truth) & (truth <= found.high))
        blind.append((apart.low <= truth) & (truth <= apart.high))
        width.append(found.high - found.low)
        share.append(found.share)
    return row_of(case, np.array(inside), np.array(blind), np.array(width), np.array(share))


def row_of(
    case: Case,
    inside: NDArray[np.bool_],
    blind: NDArray[np.bool_],
    width: NDArray[np.float64],
    share: NDArray[np.float64],
) -> dict[str, Cell]:
    covered = float(inside.mean())
    # Values of one population vary together, so the error is that between populations.
    error = float(inside.mean(axis=1).std(ddof=1) / math.sqrt(len(inside)))
    need = 2 * Z * share.std(axis=0, ddof=1)
    slack = 3 * error
    low, high = 0.94 - slack, 0.96 + slack
    met = covered >= low and (covered <= high or not case.exact)
    return {
        "case": case.name,
        "devices": case.crowd.devices,
        "windows": case.crowd.windows,
        "covered": Measured(covered, error),
        "as independent": Measured(
            float(blind.mean()), float(blind.mean(axis=1).std(ddof=1) / math.sqrt(len(blind)))
        ),
        "width": float((width.mean(axis=0) / need).mean()),
        "goal": Goal("94 to 96%" if case.exact else "94% or more", met),
    }


def fresh(epsilon: float, size: int = 2) -> SubsetSelection:
    return SubsetSelection.design(size, epsilon)


def memory(epsilon: float, lifetime: float, size: int = 2) -> MemoizedSubsetSelection:
    return MemoizedSubsetSelection.design(size, epsilon, lifetime, k=1)


HALVES, FIVE = [0.3, 0.7], [0.4, 0.25, 0.2, 0.1, 0.05]
TEN = (np.arange(1, 11) ** -1.0 / (np.arange(1, 11) ** -1.0).sum()).tolist()
SIX = [0.35, 0.25, 0.2, 0.1, 0.06, 0.04]
COMING = np.arange(1000) * 30 // 1000
STAYING = np.random.default_rng(0).integers(0, 30, 1000)

CASES = [
    Case("2 values, epsilon 1", Crowd(2000, 8), [fresh(1.0)], HALVES, 8.0),
    Case("2 values, epsilon 4", Crowd(1000, 30), [fresh(4.0)], HALVES, 120.0),
    Case("2 values, epsilon 4, ledger of 8", Crowd(1000, 30, 0.6, 8), [fresh(4.0)], HALVES, 32.0),
    Case("2% a day, a year", Crowd(500, 365, 0.02, 8), [fresh(1.0, 5)], FIVE, 8.0),
    Case("2% a day, a year, epsilon 4", Crowd(500, 365, 0.02, 8), [fresh(4.0, 5)], FIVE, 32.0),
    Case("a crowd that grows", Crowd(1000, 30, 0.7, since=COMING), [fresh(4.0)], HALVES, 120.0),
    Case(
        "strings, hashed projective geometry",
        Crowd(1000, 20),
        [HashedProjectiveGeometry.design("m", 2.0)],
        SIX,
        repeat=0.1,
    ),
    Case(
        "strings, cohort local hashing",
        Crowd(1000, 20),
        [CohortLocalHashing.design("m", 3.0)],
        SIX,
        repeat=0.1,
    ),
    Case("10 values, memory, 7 windows", Crowd(2000, 7), [memory(1.0, 1.5, 10)], TEN),
    Case("10 values, memory, 30 windows", Crowd(2000, 30), [memory(1.0, 4.0, 10)], TEN),
    Case("two fresh schemes in turn", Crowd(1000, 20), [fresh(4.0), fresh(3.0)], HALVES, 200.0),
    Case("fresh, then memory", Crowd(1000, 20), [fresh(3.0), memory(3.0, 5.0)], HALVES),
    Case(
        "devices that come and go",
        Crowd(1000, 40, since=STAYING, until=STAYING + 10),
        [fresh(4.0)],
        HALVES,
        120.0,
        exact=False,
    ),
    Case(
        "values that change",
        Crowd(1000, 30, changing=0.1),
        [fresh(4.0)],
        HALVES,
        120.0,
        exact=False,
    ),
]


def shares(quick: bool) -> Iterator[Table]:
    rows = [coverage(case, 100 if quick else 4000) for case in CASES]
    yield Table("windows", "Shares among all devices", rows=rows)


if __name__ == "__main__":
    run(__doc__, {"shares": shares})
