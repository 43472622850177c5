"""`deniable plan --years`: what it prints and what it refuses."""

from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

from deniable_estimator.terminal import plan

ASKED = ["--lifetime", "8", "--years", "2", "--turnover", "0.3", "--devices", "50000"]


def run(*arguments: str) -> Result:
    """The command's result, in a terminal that is wide enough."""
    return CliRunner(env={"COLUMNS": "120"}).invoke(plan, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--years", "2", "--size", "2"], "--years needs --lifetime"),
        ([*ASKED], "say --size for values"),
        ([*ASKED, "--size", "2", "--sample-rate", "0.5"], "--sample-rate: not with --years"),
        ([*ASKED, "--size", "2", "--memoize"], "--memoize: not with --years"),
        ([*ASKED, "--size", "2", "--low", "1"], "only with --number"),
        ([*ASKED, "--size", "2", "--epsilon", "9"], "epsilon must be from"),
        ([*ASKED, "--size", "2", "--turnover", "1"], "--turnover"),
        ([*ASKED, "--size", "2", "--years", "21"], "--years"),
        (["--size", "2", "--turnover", "0.5"], "--turnover and --window are for --years"),
        (["--size", "2", "--devices", "5"], "say --epsilon and --devices"),
    ],
)
def test_a_wrong_call_says_what_to_do(arguments: list[str], told: str) -> None:
    """What does not go together, and what is out of its bounds, is refused by its name."""
    done = run(*arguments)
    assert done.exit_code in (1, 2)
    assert told in " ".join(done.stderr.split())
