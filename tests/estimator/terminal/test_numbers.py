"""Numbers in a terminal: estimate, trend and anomalies, as tables and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from deniable_estimator.terminal.anomalies_command import ALARM, anomalies
from deniable_estimator.terminal.estimate_command import estimate
from deniable_estimator.terminal.options import NO_DATA
from deniable_estimator.terminal.trend_command import trend

from .conftest import CROWDS, DAYS, Call

Report = Callable[..., None]


def test_shares_below_limits(call: Call, report: Report) -> None:
    """--below shows the share below a limit, in the table and in JSON; whole numbers below a
    fraction are those up to the whole number before it."""
    report("latency", DAYS[0])
    report("tabs", DAYS[0])
    told = call(estimate, "latency", "--below", "0.8").output
    assert re.search(r"^below 0\.8 s +7\d", told, re.MULTILINE)
    document = json.loads(call(estimate, "tabs", "--below", "4", "--below", "3.5", "--json").stdout)
    four, fraction = document["shares_below"]
    assert (four["limit"], fraction["limit"]) == (4, 3.5)
    assert {**four, "limit": 0} == {**fraction, "limit": 0}
    assert four["low"] < four["share"] < four["high"]
    truth = CROWDS["tabs"].share_below(4)
    assert four["share"] == pytest.approx(truth, abs=2 * (four["high"] - four["low"]))
    assert "shares_below" not in json.loads(call(estimate, "tabs", "--json").stdout)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["latency", "--below", "1000"], 1, "choose one from 0.001 to 100"),
        (["latency", "--below", "nan"], 2, "--below"),
        (["latency", "--below", "1", "--csv"], 2, "use --json"),
        (["outside", "--below", "1"], 1, "not asked for the distribution"),
        (["latency", "--candidates", "none.txt"], 2, "is a number, which has no candidates"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], code: int, words: str, call: Call, report: Report
) -> None:
    """What has no meaning for a number is refused in words, and without a traceback."""
    report(arguments[0], DAYS[0], devices=100)
    result = call(estimate, *arguments)
    assert result.exit_code == code
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


@pytest.mark.parametrize("metric", ["latency", "outside"])
def test_nothing_reported(metric: str, call: Call) -> None:
    """Without reports there is a heading and the usual exit code, and JSON has no numbers."""
    result = call(estimate, metric)
    assert result.exit_code == NO_DATA
    assert "0 devices" in result.output
    document = json.loads(call(estimate, metric, "--json").stdout)
    assert {row["estimate"] for row in document["series"]} == {None}


def test_files_have_the_unit(call: Call, report: Report) -> None:
    """JSON names unit and range; CSV has a line for each series and for each edge."""
    report("latency", DAYS[0])
    document = json.loads(call(estimate, "latency", "--json").stdout)
    assert (document["kind"], document["unit"]) == ("distribution", "s")
    lines = call(estimate, "latency", "--csv").stdout.splitlines()
    assert [line.split(",")[0] for line in lines[1:6]] == [
        *("p50", "p90", "p95", "p99"),
        "geometric mean",
    ]
    assert lines[6].startswith("share below 0.001,")


def test_a_trend_follows_a_series(call: Call, report: Report) -> None:
    """By default the median or the mean, with --value another; an unknown one names those that
    there are, and ends without a limit are said in words."""
    for day in DAYS[:8]:
        report("latency", day, devices=2_000)
        report("outside", day)
    told = call(trend, "latency").output
    assert "latency  p50  ·  by day" in told
    assert "p95  ·" in call(trend, "latency", "--value", "p95").output
    assert "at least" in call(trend, "latency", "--value", "p99").output
    unknown = call(trend, "latency", "--value", "p42")
    assert unknown.exit_code == 1
    assert "choose one of p50, p90, p95, p99, geometric mean" in unknown.stderr
    mean = call(trend, "outside").output
    assert "outside  mean  ·  by day" in mean
    # Bars of numbers below zero begin below zero.
    assert re.search(r"−\d\.\d+ +0\.0", mean.partition("change since")[0])
    document = json.loads(call(trend, "latency", "--json").stdout)
    assert document["kind"] == "distribution"
    assert document["periods"][0]["values"][0]["series"] == "p50"


def test_a_mean_that_moves_is_no_anomaly(call: Call, report: Report) -> None:
    """A mean that moves by half is a change; four times the usual reports are an anomaly."""
    for day in DAYS[:-1]:
        report("outside", day)
    assert call(anomalies, "outside").exit_code == 0
    report("outside", DAYS[-1], times=1.5)
    assert call(anomalies, "outside").exit_code == 0
    for _ in range(3):
        report("outside", DAYS[-1])
    result = call(anomalies, "outside", "--json")
    assert result.exit_code == ALARM
    (window,) = [each for each in json.loads(result.stdout)["windows"] if each["anomalous"]]
    assert window["window"] == DAYS[-1]
    assert "Do not correct the estimates." in " ".join(call(anomalies, "outside").output.split())
