"""Drawn crowds: intervals hold the truth, and finds and alarms are false, as often as is said."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from deniable import Scheme
from deniable.protocol.mechanisms import (
    DESIGNS,
    MEMOIZED_DESIGNS,
    MEMOIZED_STRING_DESIGNS,
    STRING_DESIGNS,
    Mechanism,
)
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.analyses import sample_tally
from deniable_estimator.kinds.registry import answer_of
from deniable_estimator.statistics.participation import Participation

pytestmark = pytest.mark.campaign

VALUES = tuple(f"value {number}" for number in range(60))
HELD = 12
"""So many of the values are somebody's, by a power law."""

MECHANISMS: dict[str, Callable[[], Mechanism[Any]]] = {
    **{name: partial(make, 60, 1.0) for name, make in DESIGNS.items()},
    **{name: partial(make, 60, 1.0, 3.0) for name, make in MEMOIZED_DESIGNS.items()},
    **{name: partial(make, "city", 2.0) for name, make in STRING_DESIGNS.items()},
    **{name: partial(make, "city", 2.0, 4.0) for name, make in MEMOIZED_STRING_DESIGNS.items()},
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_crowds_of_one_window(name):
    """95% intervals cover, no more than 5% of what is detected is nobody's, and as many honest
    tallies raise an alarm at .05.

    40 tallies of 100,000 devices, seed 1. 2,400 intervals cover in 93 to 97% of the cases, 4.5
    standard errors; finds and alarms are below a binomial tail of 1e-5.
    """
    mechanism, rng = MECHANISMS[name](), np.random.default_rng(1)
    closed = mechanism.size is not None
    scheme = Scheme("category" if closed else "string", mechanism, VALUES if closed else ())
    asked = None if closed else VALUES
    truth = np.zeros(len(VALUES))
    truth[:HELD] = np.arange(1, HELD + 1) ** -1.2
    truth /= truth.sum()
    covered, false, detected, alarms = [], 0, 0, 0
    for _ in range(40):
        counts = rng.multinomial(100_000, truth)
        found = answer_of(sample_tally(scheme, counts, rng, values=asked), scheme, asked)
        covered.append((found.low <= truth) & (truth <= found.high))
        detected += int(found.detected.sum())
        false += int(found.detected[HELD:].sum())
        alarms += bool(found.verdict.alarms(0.05))
    assert 0.93 <= np.mean(covered) <= 0.97
    assert detected > 40
    assert false <= stats.binom.isf(1e-5, detected, 0.05)
    assert alarms <= stats.binom.isf(1e-5, 40, 0.05)


@pytest.mark.parametrize(
    ("devices", "windows", "rate", "most"),
    [
        (2_000, 8, 1.0, None),
        (1_000, 30, 0.6, 8),
        (1_500, 30, 0.04, 2),
        (250, 365, 0.02, 8),
    ],
)
def test_devices_that_report_again(devices, windows, rate, most):
    """95% intervals over windows hold the share among all devices in 95% of 1,000 populations, of
    which each device holds a value and tosses its coin until its ledger is spent: seed 1; the band
    is 3 standard deviations wide on either side (alpha .003 for each of four). Intervals that took
    all reports for those of different devices covered .29 to .91."""
    rng = np.random.default_rng(1)
    mechanism = SubsetSelection.design(2, 4.0)
    scheme = Scheme("boolean", mechanism, ("true", "false"))
    covered = 0
    for _ in range(1_000):
        reported = rng.random((devices, windows)) < rate
        if most is not None:
            reported &= np.cumsum(reported, axis=1) <= most
        held = rng.random(devices) < 0.3
        yes = int(reported[held].sum())
        counts = np.array([yes, int(reported.sum()) - yes])
        tally = sample_tally(scheme, counts, rng)
        times = {str(number): float(n) for number, n in enumerate(reported.sum(axis=0)) if n}
        budget = None if most is None else 4.0 * most
        found = answer_of(tally, scheme, participation=Participation(times, rate, budget, 4.0))
        covered += bool(found.low[0] <= 0.3 <= found.high[0])
    assert abs(covered / 1_000 - 0.95) <= 0.021


@pytest.mark.parametrize("rate", [1.0, 0.2, 0.02])
@pytest.mark.parametrize("size", [2, 5, 50])
def test_devices_that_report_at_random(size, rate):
    """95% intervals of the commonest value, of 30%, hold its share among all devices in 93.5% of
    the populations: each of 27 settings is above a binomial tail of 1e-5 for 120 populations, seed
    1. Where few devices report in a window, counts that vary by chance took it to 86%."""
    rng = np.random.default_rng(1)
    values = tuple(VALUES[:size]) if size > 2 else ("true", "false")
    shares = np.full(size, 0.7 / (size - 1))
    shares[0] = 0.3
    for epsilon in (1.0, 2.0, 4.0):
        scheme = Scheme("category", SubsetSelection.design(size, epsilon), values)
        for windows in (6, 30, 365):
            for devices in (50, 400, 100_000):
                covered = 0
                for _ in range(120):
                    times, reports = drawn_reports(devices, windows, rate, shares, rng)
                    tally = sample_tally(scheme, times, rng)
                    told = Participation(reports, rate)
                    found = answer_of(tally, scheme, participation=told)
                    covered += bool(not found.n or found.low[0] <= 0.3 <= found.high[0])
                least = stats.binom.ppf(1e-5, 120, 0.935)
                assert covered >= least, (epsilon, windows, devices, covered)


def drawn_reports(devices, windows, rate, shares, rng):
    """How many reports come from devices with each value, and how many in each window with any."""
    held = rng.multinomial(devices, shares)
    chance = stats.binom.pmf(np.arange(windows + 1), windows, rate)
    often = np.array([rng.multinomial(each, chance / chance.sum()) for each in held])
    times = often @ np.arange(windows + 1)
    each = np.full(windows, devices)
    if rate < 1:
        each = rng.multinomial(times.sum(), np.full(windows, 1 / windows))
    return times, {str(place): float(n) for place, n in enumerate(each.tolist()) if n}
