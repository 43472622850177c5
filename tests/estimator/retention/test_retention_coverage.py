"""How often the intervals of a retention cover it, from exact draws with memos.

A coverage of .95 over 2,000 runs is seen between .938 and .962 with probability .986 (2.5 standard
errors); the cells of one crowd are many, so their mean is nearer.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.estimator.retention.crowds import counted, curve

from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection
from deniable_estimator.analyses.retention import average, cells_of, retention
from deniable_estimator.kinds.retention.crowd import Life
from deniable_estimator.statistics.participation import Participation

AGES = 12


def _covered(
    devices,
    epsilon,
    *,
    runs,
    windows=16,
    growth=0.0,
    season=0.0,
    sample_rate=1.0,
    both=False,
    memo=2.0,
    fewer=0.0,
    seed=7,
):
    """The coverage of the cells, of the average of each age, and the average itself."""
    rng = np.random.default_rng(seed)
    channel = MemoizedSubsetSelection.design(AGES + 2, epsilon, epsilon + memo)
    lifecycle = MemoizedSubsetSelection.design(3, epsilon, epsilon + memo) if both else None
    life = Life.steady(devices)
    lives = [
        replace(
            life,
            new=life.new * (1 + growth) ** place * (1 + season * math.sin(place)),
            back=life.back - fewer * (place > windows // 2),
        )
        for place in range(windows)
    ]
    counts = counted(
        lives,
        channel,
        rng,
        runs=runs,
        older=devices - life.new,
        sample_rate=sample_rate,
        lifecycle=lifecycle,
    )
    cells = cells_of(counts.numbers, AGES)
    asked = Participation({}, sample_rate)
    found, ages = retention(counts, cells, asked), average(counts, cells, asked)
    # Of a cohort the first chance alone differs, so only its first two ages are known in closed
    # form where it changes: those of the second half begin with a lower one.
    truth = np.array([
        curve(replace(life, back=lives[min(first + 1, windows - 1)].back), AGES)[age - 1]
        for first, age in zip(cells.first.tolist(), cells.age.tolist(), strict=True)
    ])  # fmt: skip
    new = np.array([each.new for each in lives])
    of_all = np.array([
        np.average(truth[cells.age == age], weights=new[cells.first[cells.age == age]])
        for age in range(1, AGES + 1)
    ])  # fmt: skip
    inside = (found.low <= truth) & (truth <= found.high)
    return inside, (ages.low <= of_all) & (of_all <= ages.high), ages


def test_intervals_of_a_small_crowd_cover_its_retention():
    """120 crowds of 20,000 devices at epsilon 2, seed 7: over 12 averages and 78 cells of each,
    whose coverage is within .02 of .95 with probability .999."""
    cells, averages, _ = _covered(20_000, 2.0, runs=120, windows=13)
    assert 0.93 <= cells.mean() <= 0.97
    assert 0.92 <= averages.mean() <= 0.98


@pytest.mark.campaign
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("devices", [2_000, 50_000, 1_000_000])
@pytest.mark.parametrize(
    "crowd",
    [
        {},
        {"growth": 0.05, "season": 0.5},
        {"growth": -0.05, "sample_rate": 0.4},
        {"both": True, "fewer": 0.1},
        {"memo": 0.7, "season": 0.3},
    ],
    ids=["steady", "growing", "sampled", "both-and-fewer-back", "short-memo"],
)
def test_intervals_cover_the_retention_of_every_crowd(devices, epsilon, crowd):
    """2,000 runs each, seed 7: the mean coverage of all cells and of all averages. It may be above
    .97 where cohorts are below the noise, as the interval is cut at 0 and 1 and is then all, and
    where memos are nearly all of the noise, as their covariance is left out."""
    cells, averages, _ = _covered(devices, epsilon, runs=2_000, **crowd)
    print(crowd, devices, epsilon, round(cells.mean(), 4), np.round(averages.mean(axis=0), 3))
    assert 0.94 <= cells.mean() <= 0.985
    assert averages.mean() >= 0.94
    assert averages.mean(axis=0).min() >= 0.93
