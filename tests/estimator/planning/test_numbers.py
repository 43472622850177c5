"""Plans of numbers, against the mechanisms in force and simulated crowds."""

from __future__ import annotations

import pytest

from deniable import SchemeError
from deniable_estimator.planning.numbers import ASKS, QuantilePlan, plan_number

REGISTRY = """
schema = 1
app = "example"
[metrics.m]
type = "number"
description = "How many?"
owner = "me"
expires = 2027-06-30
low = 1
high = 1000
scale = "{scale}"
ask = {ask}
epsilon = 1.0
lifetime_epsilon = 8.0
"""

ASKED = {
    "mean": '"mean"',
    "distribution": '"distribution"',
    "both": '["mean", "distribution"]',
}


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize(("scale", "desired"), [("linear", 10.0), ("log", 0.05)])
def test_the_devices_for_a_width_have_it(ask: str, scale: str, desired: float) -> None:
    """With as many devices as the plan says, the width is the desired one, and not with a hundredth
    less; at a quarter of the sample rate it takes four times as many."""
    made = plan_number(1, 1000, ask, 1.0, 1000, scale=scale, half_width=desired)
    assert made.mean.desired == desired
    devices = made.mean.devices
    assert devices is not None

    def width(count: int) -> float:
        return plan_number(1, 1000, ask, 1.0, count, scale=scale).mean.half_width

    assert width(devices) <= desired < width(devices * 99 // 100)
    rare = plan_number(1, 1000, ask, 1.0, 1000, scale=scale, half_width=desired, sample_rate=0.25)
    assert rare.mean.devices == pytest.approx(4 * devices, abs=4)


def test_cells_limit_the_mean_of_a_distribution() -> None:
    """What the cells leave open is part of every width, and no crowd gets below it; a mean by
    itself has no such part."""
    made = plan_number(0, 100, "distribution", 1.0, 10**12, half_width=0.1)
    assert 0.1 < made.mean.rounding < 0.5
    assert made.mean.rounding <= made.mean.half_width < made.mean.rounding * 1.1
    assert made.mean.devices is None
    assert plan_number(0, 100, "mean", 1.0, 10**12, half_width=0.1).mean.rounding == 0


def test_quantiles_are_promised_from_enough_devices() -> None:
    """From `devices_to_promise` on a quantile is promised, from a quarter of it on it has both
    limits, and just below it has not."""
    made = plan_number(0, 10, "distribution", 1.0, 100_000)
    assert [each.p for each in made.quantiles] == [0.5, 0.9, 0.95, 0.99]
    assert [each.promised for each in made.quantiles] == [True, True, False, False]

    def at(devices: int, place: int) -> QuantilePlan:
        return plan_number(0, 10, "distribution", 1.0, devices).quantiles[place]

    for place, each in enumerate(made.quantiles):
        assert at(each.devices_to_promise, place).promised
        assert not at(each.devices_to_promise - 1, place).promised
        assert at(each.devices_for_limits, place).high is not None
        assert at(each.devices_for_limits * 99 // 100, place).high is None


@pytest.mark.parametrize(
    ("low", "high", "ask", "scale", "words"),
    [
        (3, 2, "mean", "linear", "must be below"),
        (0, 2, "mean", "log", "above 0"),
        (0, 2, "mode", "linear", "ask must be one of"),
    ],
)
def test_impossible_plans(low: float, high: float, ask: str, scale: str, words: str) -> None:
    """What no registry could declare is refused in words."""
    with pytest.raises(SchemeError, match=words):
        plan_number(low, high, ask, 1.0, 1000, scale=scale)
