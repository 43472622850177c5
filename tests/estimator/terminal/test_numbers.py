"""Numbers in a terminal: estimate, trend and anomalies, as tables and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from deniable_estimator.terminal import estimate

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
