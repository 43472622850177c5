"""`deniable plan simulate` and `deniable plan privacy` of numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deniable_estimator.terminal.privacy_command import privacy
from deniable_estimator.terminal.simulated import simulate

from .conftest import Call


def test_a_billion_numbers(call: Call) -> None:
    """A billion devices take seconds; quantiles and mean are as near to the truth beside them as
    their intervals say, which are narrow. Seed 1: intervals are widened by twice themselves."""
    arguments = ("latency", "--lognormal", "0.4,1", "--devices", "1000000000", "--seed", "1")
    result = call(simulate, *arguments, "--json", stored=False)
    document = json.loads(result.stdout)
    assert document["devices"] == document["n"] == 10**9
    for row in document["series"]:
        width = row["high"] - row["low"]
        assert width < 0.1 * row["truth"]
        assert row["low"] - width < row["truth"] < row["high"] + width
    assert call(simulate, *arguments, "--json", stored=False).stdout == result.stdout
    assert document["series"][0]["truth"] == pytest.approx(0.4, rel=0.001)


def test_the_truth_stands_beside_the_estimate(call: Call, tmp_path: Path) -> None:
    """Each table has a column of the truth; whole numbers of a file are drawn by their weights."""
    told = call(
        simulate, "latency", "--lognormal", "0.4,1", "--devices", "50000", stored=False
    ).output
    assert len(re.findall(r"\btruth\b", told)) == 2
    file = tmp_path / "tabs.csv"
    file.write_text("1,3\n2.2,1\n")
    arguments = ("tabs", "--numbers", str(file), "--devices", "1000000", "--seed", "2", "--json")
    document = json.loads(call(simulate, *arguments, stored=False).stdout)
    truths = {row["series"]: row["truth"] for row in document["series"]}
    assert (truths["p50"], truths["p90"]) == (1, 2)
    assert truths["mean"] == pytest.approx(1.25, abs=0.01)


def test_a_mean_is_simulated(call: Call) -> None:
    """A mean has one row, and its truth is that of the crowd, also beyond the range."""
    arguments = ("outside", "--normal", "35,10", "--devices", "100000", "--seed", "3")
    document = json.loads(call(simulate, *arguments, "--json", stored=False).stdout)
    (row,) = document["series"]
    assert row["truth"] == pytest.approx(35, abs=0.2)
    # What lies above 40 counts as 40.
    assert row["estimate"] < 34
    assert "truth" in call(simulate, *arguments, stored=False).output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("latency",), "by one of --normal, --lognormal, --numbers"),
        (("latency", "--normal", "1,1", "--lognormal", "1,1"), "by one of"),
        (("latency", "--normal", "1"), "write two numbers"),
        (("latency", "--normal", "1,0"), "the second above 0"),
        (("latency", "--normal", "nan,1"), "be finite"),
        (("latency", "--lognormal", "0,1"), "a median above 0"),
        (("latency", "--normal", "1,1", "--zipf", "1"), "leave --zipf and --shares out"),
        (("latency", "--normal", "1,1", "--shares", "x.csv"), "leave --zipf and --shares out"),
        (("latency", "--normal", "1,1", "--candidates", "x.txt"), "which has no candidates"),
        (("dark_mode", "--normal", "1,1"), "is not a number"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], words: str, call: Call) -> None:
    """What has no meaning for the metric is a wrong call, in words."""
    result = call(simulate, *arguments, "--devices", "10", stored=False)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def test_a_file_that_is_not_there(call: Call) -> None:
    """It is an error with the file's name, and no traceback."""
    result = call(simulate, "latency", "--numbers", "none.csv", "--devices", "10", stored=False)
    assert result.exit_code == 1
    assert "none.csv" in result.stderr


@pytest.mark.parametrize("metric", ["latency", "outside", "tabs"])
def test_the_privacy_of_a_number(metric: str, call: Call) -> None:
    """The guarantee of a number has the same figures as any other."""
    words = " ".join(call(privacy, metric, stored=False).output.split())
    assert "one report" in words
    assert "two values" not in words
    document = json.loads(call(privacy, metric, "--json", stored=False).stdout)
    assert document["report"]["epsilon"] <= (4.0 if metric == "tabs" else 2.0)
    assert document["lifetime"]["epsilon"] <= 8.0
    assert metric in call(privacy, stored=False).output
