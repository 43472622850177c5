"""Plans, against published values, exact power and their own inverses, and what is refused."""

import itertools
import math
from bisect import bisect_left
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.estimator.planning.conftest import plan

from deniable.protocol.mechanisms import design
from deniable_estimator.statistics.detection import (
    LEVEL,
    POWER,
    detectable_share,
    reports_for_half_width,
    reports_to_detect,
)
from deniable_estimator.statistics.intervals import Noise, debias
from deniable_estimator.statistics.significance import adjust_p, share_p_values

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


def power(mechanism, size, reports, share):
    """How often a value of this share is detected among `size`, by the estimator's own p-values
    and the exact distribution of its support."""
    noise = Noise.of(mechanism.p, mechanism.q, reports, 1)
    others = np.ones(size - 1)

    def detected(count):
        found = debias(np.array([count]), reports, mechanism.p, mechanism.q)
        p = share_p_values(found, noise)
        return bool(adjust_p(np.concatenate([p, others]), "bonferroni")[0] <= LEVEL)

    first = bisect_left(range(reports + 1), True, key=detected)
    rate = float(mechanism.q) + share * float(mechanism.p - mechanism.q)
    # No support is no find, whatever its p-value.
    return float(stats.binom.sf(max(first, 1) - 1, reports, rate))


@pytest.mark.parametrize(("size", "epsilon", "reports"), GRID)
def test_detectable_share_has_its_power(size, epsilon, reports):
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
def test_reports_to_detect_are_enough_and_hardly_more(size, epsilon, share):
    """With as many reports as a share needs, and with more, the test detects it with power .8, to
    .003; but not with 3% fewer, counted down by no less than one chance supporter."""
    mechanism = mechanism_of(size, epsilon)
    reports = reports_to_detect(mechanism, size, share)
    for more in (1.0, 1.01, 1.1, 1.3, 1.5, 2.0, 5.0):
        assert power(mechanism, size, math.ceil(more * reports), share) > POWER - 0.003
    least = max(1, math.floor(0.97 * reports - 1 / mechanism.q))
    fewer = {int(each) for each in np.linspace(least, reports - 1, 20)} - {0}
    assert reports == 1 or min(power(mechanism, size, each, share) for each in fewer) < POWER


def test_devices_are_whole_and_enough():
    """The devices that a plan asks for are the reports over the sample rate, rounded up, at the
    share of an even spread if no other is given."""
    asked = {"size": 10, "epsilon": 1.0, "devices": 1000, "sample_rate": 0.7}
    made, chosen = plan("values", **asked), design("auto", 10, 1.0)
    assert made["share"] == 0.1
    assert made == plan("values", **asked, share=0.1)
    for told, reports in (
        (made["devices_to_detect"], reports_to_detect(chosen, 10, 0.1)),
        (made["devices_for_half_width"], reports_for_half_width(chosen, 0.1, 0.01)),
    ):
        assert told - 1 < reports / 0.7 < told


@pytest.mark.parametrize("ask", ["mean", "both"])
@pytest.mark.parametrize(("scale", "desired"), [("linear", 10.0), ("log", 0.05)])
def test_the_devices_for_a_width_have_it(ask, scale, desired):
    """With as many devices as the plan says, the width is the desired one, and not with a hundredth
    less; at a quarter of the sample rate it takes four times as many."""

    def mean(**more):
        asked = {"low": 1, "high": 1000, "ask": ask, "scale": scale, "half_width": desired}
        return plan("number", **asked, **more)["mean"]

    devices = mean().devices
    assert mean(devices=devices).half_width <= desired
    assert mean(devices=devices * 99 // 100).half_width > desired
    assert mean(sample_rate=0.25).devices == pytest.approx(4 * devices, abs=4)


def test_quantiles_are_promised_from_enough_devices():
    """From `devices_to_promise` on a quantile is promised, from a quarter of it on it has both
    limits, and just below it has not."""
    made = plan("number", high=10)
    assert [each.p for each in made["quantiles"]] == [0.5, 0.9, 0.95, 0.99]
    assert [each.promised for each in made["quantiles"]] == [True, True, False, False]

    def at(devices, place):
        return plan("number", high=10, devices=devices)["quantiles"][place]

    for place, each in enumerate(made["quantiles"]):
        assert at(each.devices_to_promise, place).promised
        assert not at(each.devices_to_promise - 1, place).promised
        assert at(each.devices_for_limits, place).high is not None
        assert at(each.devices_for_limits * 99 // 100, place).high is None


def test_cells_limit_the_mean_of_a_distribution():
    """What the cells leave open is part of every width, and no crowd gets below it; a mean by
    itself has no such part."""
    mean = plan("number", devices=10**12, half_width=0.1)["mean"]
    assert 0.1 < mean.rounding < 0.5
    assert mean.rounding <= mean.half_width < mean.rounding * 1.1
    assert mean.devices is None
    assert plan("number", ask="mean", devices=10**12)["mean"].rounding == 0


def test_the_table_of_the_comparison_is_computed():
    """How many devices an interval takes in docs/explanation/comparison.md, beside an exact sum."""
    text = (Path(__file__).parents[3] / "docs/explanation/comparison.md").read_text()
    for title, size, share, half in (
        ("yes or no, 30% ± 1", 2, 0.3, 0.01),
        ("one of 100 values, 1% ± 0.2", 100, 0.01, 0.002),
    ):
        needed = [math.ceil(share * (1 - share) * (1.959964 / half) ** 2)]
        needed += [
            reports_for_half_width(design("auto", size, epsilon), share, half)
            for epsilon in (4.0, 2.0, 1.0)
        ]
        assert f"| {title} | {' | '.join(f'{each:,}' for each in needed)} |" in text
