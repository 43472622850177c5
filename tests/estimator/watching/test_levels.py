"""The stated number of false alarms: by arithmetic, and by simulation."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from deniable import windows
from deniable_estimator.judging.levels import (
    DAYS,
    PERIODS,
    SPANS,
    FalseAlarms,
    Per,
    judgement_level,
)
from deniable_estimator.statistics.tails import binomial_tail, poisson_tail

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "watch.py"


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    """The benchmark, whose simulation is run here with fewer metrics."""
    sys.path.append(str(BENCHMARK.parent))
    spec = importlib.util.spec_from_file_location("benchmark_of_watch", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", windows.KINDS)
@pytest.mark.parametrize("per", PERIODS)
def test_levels_add_up_to_what_is_stated(kind: windows.Kind, per: Per) -> None:
    """Over all metrics, looks and spans the levels sum to the number that is allowed, or less."""
    level = judgement_level(FalseAlarms(0.5, per), 200, kind)
    looks = 1 if per == "run" else max(1, PERIODS[per] / DAYS[kind])
    total = 200 * looks * (len(SPANS[kind]) * level.span + level.anomaly)
    assert total == pytest.approx(0.5)


def test_no_level_is_above_one_in_twenty() -> None:
    """A large allowance for few metrics does not make a test useless."""
    level = judgement_level(FalseAlarms(1000.0, "run"), 1, "day")
    assert level.span == level.anomaly == 0.05


@pytest.mark.campaign
def test_false_alarms_are_at_most_as_stated(simulation: ModuleType) -> None:
    """12 metrics in 60 days, 45 false alarms a month allowed: at most 90 are expected, so a count
    that is in the upper tail of Poisson(90) at alpha = .001 refutes the promise. Seed 2. At least
    one must occur, or nothing was tested."""
    rng = np.random.default_rng(2)
    allowed = FalseAlarms(45.0, "month")
    changes, anomalies = simulation.false_alarms(12, 60, 20_000, allowed, rng)
    assert poisson_tail(changes + anomalies, 90.0) > 0.001
    assert changes > 5


@pytest.mark.campaign
def test_a_change_of_three_standard_errors_is_told(simulation: ModuleType) -> None:
    """Among 200 metrics with 10 false alarms a month, a rise by 3 standard errors is told within
    two windows with a power of 60% or more, and one by 5 with 99%. Two binomial tests of 60 runs
    at alpha = .001 each, seed 3."""
    rng = np.random.default_rng(3)
    allowed = FalseAlarms(10.0, "month")
    for errors, promised in ((3.0, 0.6), (5.0, 0.99)):
        told = round(60 * simulation.power(200, 60, 20_000, errors, allowed, rng))
        assert binomial_tail(60 - told, 60, 1 - promised) > 0.001
