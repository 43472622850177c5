"""`deniable plan --discovery`, and what the privacy label says of a discovery."""

import json
import math

import pytest
from click.testing import CliRunner
from tests.client.discoveries import declaration, declared

from deniable_estimator.planning.discoveries import plan_discovery
from deniable_estimator.privacy import guarantee_in
from deniable_estimator.privacy.words import shared_words
from deniable_estimator.terminal.plan_command import plan
from deniable_estimator.terminal.privacy_command import privacy


def planned(*options: str) -> str:
    done = CliRunner().invoke(plan, ["--discovery", *options])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_a_plan_tells_what_surfaces() -> None:
    """The command prints from which share on strings surface, the tally's size, and the fakes."""
    told = planned("--epsilon", "2", "--devices", "1000000", "--lifetime-epsilon", "6")
    assert "half of them found from 0.898% of the devices on, 95% from 1.28% on" in told
    assert "8,647,200 counters" in told
    assert "4,287 fake devices put a string of theirs on the list" in told
    assert "each device reports 3 times" in told


def test_a_plan_without_hope_says_so() -> None:
    """Ten devices find nothing: the shares are null in JSON, and the text says it."""
    document = json.loads(planned("--epsilon", "1", "--devices", "10", "--json"))
    assert document["reach"]["half_text"] is None
    assert document["devices_to_find"] > 1_000_000
    told = planned("--epsilon", "1", "--devices", "10")
    assert "No string will surface" in told
    assert "hidden every string, whatever part of the devices has it" in told


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


def test_the_command_prints_the_label(tmp_path) -> None:
    """`deniable privacy` has the same sentences, and a registry's sum works with a discovery."""
    path = tmp_path / "metrics.toml"
    path.write_text(declaration("devices = 1_000_000"), encoding="utf-8")
    for arguments in (["search"], []):
        done = CliRunner().invoke(privacy, [*arguments, "--registry", str(path)])
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(privacy, ["search", "--registry", str(path)])
    assert "12,833" in done.output
