"""`deniable plan --discovery`, and what the privacy label says of a discovery."""

import math

import pytest
from click.testing import CliRunner
from tests.client.discoveries import declared

from deniable_estimator.planning.discoveries import plan_discovery
from deniable_estimator.privacy import guarantee_in
from deniable_estimator.privacy.words import shared_words
from deniable_estimator.terminal.plan_command import plan


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
