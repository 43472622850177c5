"""Plans of numbers and discoveries, and what the command refuses."""

from __future__ import annotations

import math

import pytest
from click.testing import CliRunner
from tests.client.discoveries import declared

from deniable import SchemeError
from deniable_estimator.planning.discoveries import plan_discovery
from deniable_estimator.planning.numbers import ASKS, QuantilePlan, plan_number
from deniable_estimator.privacy import guarantee_in
from deniable_estimator.privacy.words import shared_words
from deniable_estimator.terminal.plan_command import plan

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


def test_sampling_takes_more_devices() -> None:
    """At a tenth of the reports, ten times as many devices find a share."""
    whole, part = (plan_discovery(16, 2.0, 10**6, sample_rate=rate) for rate in (1.0, 0.1))
    assert math.isclose(part.devices_to_find, 10 * whole.devices_to_find, rel_tol=1e-5)
    assert math.isclose(part.reach.half_text, math.sqrt(10) * whole.reach.half_text)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--discovery", "--epsilon", "2"], "say --epsilon and --devices with --discovery"),
        (["--discovery", "--size", "4"], "--size: not with --discovery"),
        (["--discovery", "--max-length", "7", "--epsilon", "2", "--devices", "9"], "even"),
        (["--discovery", "--epsilon", "11", "--devices", "9"], "at most 10"),
        (["--size", "4", "--max-length", "8"], "is for --discovery"),
    ],
)
def test_wrong_calls(options: list[str], told: str) -> None:
    """Options without meaning for a discovery are refused, with what to do."""
    done = CliRunner().invoke(plan, options)
    assert done.exit_code != 0
    assert told in done.output


def test_the_label_says_how_many_holders_a_string_needs() -> None:
    """With `devices` the label has the holders of a string that stays hidden, and of one that is
    found in half and in 95% of the windows; without, it says what is missing."""
    registry = declared("devices = 1_000_000")
    given = guarantee_in(registry, registry["search"])
    assert given.to_dict()["discovery"] == {
        "devices": 1_000_000,
        "hidden": 5_134,
        "half": 8_984,
        "sure": 12_833,
    }
    listed, crowd = shared_words(given)
    assert "no more about a device than its report did" in listed
    assert "from 8,984 on that have a string" in crowd
    assert "no guarantee for a device" in crowd
    registry = declared()
    assert "say `devices`" in shared_words(guarantee_in(registry, registry["search"]))[1]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--size", "1"),
        ("--epsilon", "0"),
        ("--epsilon", "-1"),
        ("--epsilon", "inf"),
        ("--epsilon", "1000"),
        ("--epsilon", "nan"),
        ("--devices", "0"),
        ("--share", "1.5"),
        ("--sample-rate", "0"),
        ("--mechanism", "magic"),
    ],
)
def test_impossible_options(option: str, value: str) -> None:
    """What cannot be planned is refused by name, without a traceback."""
    arguments = {"--size": "10", "--epsilon": "1", "--devices": "1000", option: value}
    flat = [text for pair in arguments.items() for text in pair]
    result = CliRunner().invoke(plan, flat)
    assert result.exit_code in (1, 2)
    assert option.lstrip("-") in result.stderr
    assert "Traceback" not in result.output
