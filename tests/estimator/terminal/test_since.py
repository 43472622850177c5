"""`--since` of `deniable estimate` and `deniable estimate trend`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from deniable_estimator.terminal.estimate_command import estimate
from deniable_estimator.terminal.trend_command import trend

from .conftest import Call

Report = Callable[..., None]


@pytest.fixture
def annotations(tmp_path: Path, report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among the dashboard's data, a release eight days ago, after which a mean doubled."""
    today = datetime.now(UTC).date()
    for ago in range(1, 22):
        at = today - timedelta(ago)
        report("outside", at.isoformat(), times=2.0 if ago < 8 else 1.0)
    path = tmp_path / "annotations.toml"
    when: date = today - timedelta(8)
    path.write_text(f'schema = 1\n[[annotations]]\ndate = {when}\ntext = "Release 4.2"\n')
    monkeypatch.setenv("DENIABLE_DATA", str(tmp_path))


@pytest.mark.usefixtures("annotations")
def test_the_change_is_said_first(call: Call) -> None:
    """With its interval and the days, of which the day of the release is none; in JSON beside the
    answer of the days after it."""
    asked = "outside", "--since", "release 4.2"
    told = call(estimate, *asked).output.splitlines()[0]
    assert told.startswith(("mean: −", "mean: -"))
    assert "down" in told
    assert "since Release 4.2" in told
    document = json.loads(call(estimate, *asked, "--json").stdout)
    (change,) = document["since"]["change"]["values"]
    assert change["changed"]
    assert -6 < change["low"] < change["high"] < -4
    periods = [document["since"]["change"][name]["windows"] for name in ("before", "after")]
    assert [len(each) for each in periods] == [7, 7]
    assert document["windows"] == periods[1]
    assert max(periods[0]) < min(periods[1])


@pytest.mark.usefixtures("annotations")
def test_a_trend_shows_both_periods(call: Call) -> None:
    """The trend runs from the first day before to the last after, and says the same."""
    asked = "outside", "--since", "Release 4.2"
    found = json.loads(call(trend, *asked, "--json").stdout)
    other = json.loads(call(estimate, *asked, "--json").stdout)
    assert found["since"]["change"]["values"] == other["since"]["change"]["values"]
    assert found["periods"][0]["period"] == min(found["since"]["change"]["before"]["windows"])
    told = call(trend, *asked).output.splitlines()
    assert "since Release 4.2" in told[0]
    assert found["step"]["text"] == told[-1]
    assert "Noted then: Release 4.2." in told[-1]
    rows = csv.DictReader(io.StringIO(call(trend, *asked, "--csv").stdout))
    steps = {row["period"]: row["step"] for row in rows if row["step"]}
    assert steps[found["step"]["period"]] == "most likely"
    assert (min(steps), max(steps)) == (found["step"]["first"], found["step"]["last"])


@pytest.mark.usefixtures("annotations")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--since", "Release 4.3"), "did you mean Release 4.2?"),
        (("--since", "Release 4.2", "--from", "2026-11-01"), "takes the place of"),
        (("--since", "2999-01-01"), "is complete yet"),
    ],
)
def test_what_cannot_be_asked_is_refused(call: Call, arguments: tuple[str, ...], told: str) -> None:
    """A name that there is not, two ranges at once, and the future."""
    result = call(estimate, "outside", *arguments)
    assert result.exit_code in (1, 2)
    assert told in result.output
