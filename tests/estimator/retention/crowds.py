"""Many crowds at once, with the tallies of their reports drawn from the exact distribution."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from deniable_estimator.analyses.retention import CohortCounts
from deniable_estimator.kinds.retention.crowd import windows_of

FIRST = 100
"""The number of the first window."""


def reports_of(channel, memos, rng):
    """The reports and cells of crowds with these memos, shape (runs, size): each report is a
    uniform set with probability `blind`, and otherwise holds the memo and a uniform rest."""
    fresh = channel.fresh
    size, k = fresh.size, fresh.k
    blind = float((1 - fresh.p) * size / (size - k))
    owned = rng.binomial(memos, 1 - blind)
    cells = owned + _sets((memos - owned).sum(axis=-1), size, k, rng)
    if k > 1:
        for own in range(size):
            others = [column for column in range(size) if column != own]
            cells[..., others] += _sets(owned[..., own], size - 1, k - 1, rng)
    return memos.sum(axis=-1), cells


def _sets(counts, size, k, rng):
    sets = list(combinations(range(size), k))
    holds = np.zeros((len(sets), size), np.int64)
    for place, each in enumerate(sets):
        holds[place, list(each)] = 1
    return rng.multinomial(counts, np.full(len(sets), 1 / len(sets))) @ holds


def curve(life, ages):
    """The part of new devices that is active so many windows later, from 1 to `ages`."""
    found, active, away = [], 0.0, 0.0
    for age in range(1, ages + 1):
        stay, back = (life.back, 0.0) if age == 1 else (life.stays * active, life.returns * away)
        gone = 1 - life.back if age == 1 else active - stay
        away = (away - back) * (1 - life.quits) + gone
        active = stay + back
        found.append(active)
    return np.array(found)


def counted(lives, channel, rng, *, runs, older=0.0, sample_rate=1.0, lifecycle=None):
    """What is counted of `runs` crowds that live like this."""
    reports, cells = [], []
    channels = {"cohorts": channel}
    if lifecycle is not None:
        channels = {"lifecycle": lifecycle, **channels}
    for window in windows_of(
        [replace(each, new=np.full(runs, each.new)) for each in lives],
        channels,
        rng,
        first=FIRST,
        older=np.full(runs, older),
        sample_rate=sample_rate,
    ):
        n, found = reports_of(channel, window["cohorts"].memos, rng)
        reports.append(n)
        cells.append(found)
    numbers = range(FIRST, FIRST + len(lives))
    return CohortCounts.of(channel, numbers, np.stack(reports, 1), np.stack(cells, 1))
