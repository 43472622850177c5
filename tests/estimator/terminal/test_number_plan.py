"""`deniable plan number`: what it shows, and what it refuses."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from deniable.command_line import find

COMMON = ("--epsilon", "1", "--devices", "100000")
NUMBER = ("number", "--low", "0.001", "--high", "100")


def planned(*arguments: str) -> Result:
    return CliRunner().invoke(find("plan"), [*arguments, *COMMON], env={"COLUMNS": "120"})


def test_cells_are_said_to_limit_a_mean() -> None:
    """A width below what the cells leave open takes no number of devices, and the table says so."""
    told = planned(*NUMBER, "--ask", "distribution", "--half-width", "0.01").output
    assert "no number of devices: the width of the cells alone leaves ±" in " ".join(told.split())


def test_the_plan_as_json() -> None:
    """The same numbers for programs, with null where there is no limit."""
    document = json.loads(planned(*NUMBER, "--ask", "both", "--scale", "log", "--json").stdout)
    assert (document["kind"], document["scale"], document["ask"]) == ("number", "log", "both")
    assert [each["p"] for each in document["quantiles"]] == [0.5, 0.9, 0.95, 0.99]
    assert document["quantiles"][3]["high"] is None


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "--size"),
        (("--size", "5", "--low", "1"), 2, "--low"),
        (("--size", "5", "--half-width", "2"), 2, "part of 1"),
        (NUMBER, 2, "--ask"),
        ((*NUMBER, "--ask", "mean", "--memoize"), 2, "--memoize"),
        (("number", "--low", "0", "--high", "1", "--ask", "mean", "--scale", "log"), 1, "above 0"),
        (("number", "--low", "2", "--high", "1", "--ask", "mean"), 1, "must be below"),
        (("number", "--low", "inf", "--high", "1", "--ask", "mean"), 2, "--low"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], code: int, words: str) -> None:
    """What cannot be planned is refused in words, without a traceback."""
    result = planned(*arguments)
    assert result.exit_code == code
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
