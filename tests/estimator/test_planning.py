"""The planner's figures, against published values, simulation and their own inverses."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from deniable import SchemeError
from deniable.mechanisms import Mechanism, design
from deniable_estimator.forecasting.detection import (
    LEVEL,
    POWER,
    detectable_share,
    reports_for_half_width,
    reports_to_detect,
    usable,
)
from deniable_estimator.planning.plan import plan
from deniable_estimator.statistics.intervals import Noise, debias
from deniable_estimator.statistics.significance import adjust_p, share_p_values

VARIANCES = [
    # epsilon, size, k, p, q, n * sum of variances
    (1, 2, 1, 0.7310585786, 0.2689414214, 1.841347),
    (1, 5, 1, 0.4046096752, 0.1488475812, 11.429751),
    (1, 10, 3, 0.5381015262, 0.2735442749, 29.104055),
    (1, 20, 5, 0.4753668864, 0.2381385849, 65.684366),
    (2, 50, 6, 0.5018924498, 0.1122062765, 33.789939),
    (1, 100, 27, 0.5013443530, 0.2676631884, 359.953485),
    (2, 1000, 119, 0.4995164669, 0.1186191026, 721.615938),
]


@pytest.mark.parametrize(("epsilon", "size", "k", "p", "q", "total"), VARIANCES)
def test_plan_of_known_mechanisms(
    epsilon: float, size: int, k: int, p: float, q: float, total: float
) -> None:
    """The plan has the optimal subset size, its probabilities, and errors that add up to theory."""
    made = plan(size, epsilon, 1000, share=1.0)
    assert made.parameters["k"] == k
    assert (made.p, made.q) == pytest.approx((p, q), abs=1e-9)
    at_zero = plan(size, epsilon, 1000, share=1e-12).std_error
    assert 1000 * (made.std_error**2 + (size - 1) * at_zero**2) == pytest.approx(total, rel=1e-6)
    assert made.loss == 1
    assert made.epsilon <= epsilon


FEW_SUPPORTERS = [(200_000, 10.0, 1_000), (10_000, 6.0, 2_000), (1_000, 4.0, 10_000)]
"""(values, epsilon, reports) with 0.05, 5 and 180 chance supporters of each value."""

GRID = [
    *FEW_SUPPORTERS,
    *itertools.product(
        (2, 5, 100, 1_000, 200_000), (0.25, 1.0, 4.0, 10.0), (3, 100, 3_000, 10**5, 10**7)
    ),
]
"""(values, epsilon, reports)."""

mechanism_of = cache(partial(design, "auto"))


def power(mechanism: Mechanism[Any], size: int, reports: int, share: float) -> float:
    """How often a value of this share is detected among `size`, by the estimator's own p-values
    and the exact distribution of its support."""
    noise = Noise.of(mechanism.p, mechanism.q, reports, 1)
    others = np.ones(size - 1)

    def detected(count: int) -> bool:
        found = debias(np.array([count]), reports, mechanism.p, mechanism.q)
        p = share_p_values(found, noise)
        return bool(adjust_p(np.concatenate([p, others]), "bonferroni")[0] <= LEVEL)

    first = bisect_left(range(reports + 1), True, key=detected)
    rate = float(mechanism.q) + share * float(mechanism.p - mechanism.q)
    # No support is no find, whatever its p-value.
    return float(stats.binom.sf(max(first, 1) - 1, reports, rate))


@pytest.mark.parametrize(("size", "epsilon", "reports"), GRID)
def test_detectable_share_has_its_power(size: int, epsilon: float, reports: int) -> None:
    """At the promised share the test detects with power .8, to .003, and at a share 2% smaller
    with less; where no share is promised, even all of the crowd are detected less often.

    Exact: nothing is drawn."""
    mechanism = mechanism_of(size, epsilon)
    share = detectable_share(mechanism, size, reports)
    if share is None:
        assert power(mechanism, size, reports, 1.0) < POWER + 0.003
    else:
        assert power(mechanism, size, reports, share) == pytest.approx(POWER, abs=0.003)
        assert power(mechanism, size, reports, 0.98 * share) < POWER - 0.003


@pytest.mark.parametrize("size", [2, 1000, 200_000])
@pytest.mark.parametrize("epsilon", [1.0, 10.0])
@pytest.mark.parametrize("share", [0.9, 0.001])
def test_reports_to_detect_are_enough_and_hardly_more(
    size: int, epsilon: float, share: float
) -> None:
    """With as many reports as a share needs, and with more, the test detects it with power .8, to
    .003; but not with 3% fewer, counted down by no less than one chance supporter."""
    mechanism = mechanism_of(size, epsilon)
    reports = reports_to_detect(mechanism, size, share)
    for more in (1.0, 1.01, 1.1, 1.3, 1.5, 2.0, 5.0):
        assert power(mechanism, size, math.ceil(more * reports), share) > POWER - 0.003
    least = max(1, math.floor(0.97 * reports - 1 / mechanism.q))
    fewer = {int(each) for each in np.linspace(least, reports - 1, 20)} - {0}
    assert reports == 1 or min(power(mechanism, size, each, share) for each in fewer) < POWER


def test_devices_are_whole_and_enough() -> None:
    """The devices that a plan asks for are the reports over the sample rate, rounded up, at the
    share of an even spread if no other is given."""
    made, chosen = plan(10, 1.0, 1000, sample_rate=0.7), design("auto", 10, 1.0)
    assert made.share == 0.1
    assert made.to_dict() == plan(10, 1.0, 1000, sample_rate=0.7, share=0.1).to_dict()
    for told, reports in (
        (made.devices_to_detect, reports_to_detect(chosen, 10, 0.1)),
        (made.devices_for_half_width, reports_for_half_width(chosen, 0.1, 0.01)),
    ):
        assert told - 1 < reports / 0.7 < told


def test_hopeless_plans_say_so() -> None:
    """With ten devices over a thousand values nothing is detectable and there is no signal."""
    mechanism = design("auto", 1000, 1.0)
    assert detectable_share(mechanism, 1000, 10) is None
    assert not usable(mechanism, 1000, 10)
    assert usable(mechanism, 1000, 10_000)
    assert detectable_share(mechanism, 1000, 0.1) is None
    assert not usable(mechanism, 1000, 0.1)


def test_memory_needs_a_lifetime() -> None:
    """Without the bound of a memo, or with one below a report's, there is no plan."""
    for lifetime in (None, 0.5, 1.0):
        with pytest.raises(SchemeError, match="lifetime_epsilon"):
            plan(8, 1.0, 1000, memoize=True, lifetime_epsilon=lifetime)


def test_impossible_plans() -> None:
    """An unknown mechanism and an impossible epsilon are refused."""
    with pytest.raises(SchemeError):
        plan(10, 1.0, 1000, mechanism="magic")
    with pytest.raises(SchemeError):
        plan(10, float("nan"), 1000)
