"""`deniable plan lifetime`: what it prints and what it refuses."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from deniable.command_line import find

ASKED = ["--lifetime-epsilon", "8", "--years", "2", "--turnover", "0.3", "--devices", "50000"]


def run(*arguments: str) -> Result:
    """The command's result, in a terminal that is wide enough."""
    return CliRunner(env={"COLUMNS": "120"}).invoke(find("plan", "lifetime"), list(arguments))


@pytest.mark.parametrize(
    ("domain", "options"),
    [
        (["--size", "20"], {"size": 20}),
        (["--low", "0", "--high", "9", "--ask", "mean"], {"question": "mean"}),
        (
            ["--low", "1", "--high", "9", "--ask", "both", "--scale", "log"],
            {"question": "distribution", "log": True},
        ),
    ],
)
def test_json_is_the_plan(domain: list[str], options: dict[str, object]) -> None:
    """--json prints the plan's document and nothing else; without --devices there are 100,000."""
    done = run("--lifetime-epsilon", "4", "--years", "1", "--window", "week", *domain, "--json")
    made = json.loads(done.stdout)
    assert made["devices"] == 100_000
    assert made["windows"] == 52
    assert made["best"]["one"]["belief"] < made["best"]["life"]["belief"]
    assert {name: made[name] for name in options} == options


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--years", "2", "--size", "2"], "--lifetime-epsilon"),
        ([*ASKED], "say --size for values"),
        ([*ASKED, "--low", "1", "--high", "2"], "say --size for values"),
        ([*ASKED, "--size", "2", "--low", "1"], "leave --size out"),
        ([*ASKED, "--size", "2", "--turnover", "1"], "--turnover"),
        ([*ASKED, "--size", "2", "--years", "21"], "--years"),
    ],
)
def test_a_wrong_call_says_what_to_do(arguments: list[str], told: str) -> None:
    """What does not go together, and what is out of its bounds, is refused by its name."""
    done = run(*arguments)
    assert done.exit_code in (1, 2)
    assert told in " ".join(done.stderr.split())
