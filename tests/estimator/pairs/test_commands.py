"""The commands about pairs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.estimator.pairs.conftest import REGISTRY

from deniable_estimator.terminal.privacy_command import privacy
from deniable_estimator.terminal.simulated import simulate

Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("free,3\n", "value,value,weight"),
        ("free,yes,3\n", "names 'yes'"),
        ("free,true,-1\n", "weight"),
        ("free,true,1\nfree,true,1\n", "names 'free' with 'true' a second time"),
        ("free,true,0\n", "no cell a weight above 0"),
    ],
)
def test_a_broken_file_of_cells(run: Run, tmp_path: Path, lines: str, why: str) -> None:
    """Each mistake in a file of cells is named with its line."""
    path = tmp_path / "cells.csv"
    path.write_text(lines, encoding="utf-8")
    refused = run(simulate, "plan_by_mode", "--devices", "9", "--shares", str(path), stored=False)
    assert refused.exit_code == 1
    assert why in refused.output


def test_privacy_adds_up(run: Run) -> None:
    """The label of a pair, and of each of its metrics, says what all reports about the same values
    reveal together; forgotten ones show the figures of the pair."""
    document = json.loads(run(privacy, "plan_by_mode", "--json", stored=False).output)
    assert document["same_values"]["metrics"] == ["plan", "dark_mode", "plan_by_mode"]
    assert document["same_values"]["epsilon"] == pytest.approx(3.5)
    assert any("both metrics" in each for each in document["not_covered"])
    of_plan = json.loads(run(privacy, "plan", "--json", stored=False).output)
    assert of_plan["same_values"]["epsilon"] == pytest.approx(3.0)
    alone = [
        json.loads(run(privacy, each, "--json", stored=False).output)
        for each in ("plan", "dark_mode", "plan_by_mode")
    ]
    for span in ("typical_year", "worst_year", "lifetime"):
        both = document["same_values"][span]["epsilon"]
        assert both == pytest.approx(sum(each[span]["epsilon"] for each in alone)), span
    told = run(privacy, "plan_by_mode", stored=False).output
    assert "all of them in a lifetime" in told
    assert "in the worst one, and" in told
    capped = "lifetime_epsilon = 9.0\n" + REGISTRY.lstrip()
    least = json.loads(run(privacy, "plan", "--json", text=capped, stored=False).output)
    assert least["same_values"]["lifetime"]["epsilon"] == pytest.approx(9.0)
    text = REGISTRY + 'forget = "marginals"\n'
    shown = run(privacy, "plan", text=text, stored=False)
    assert "does not report" in shown.output or "do not report" in shown.output
    whole = json.loads(run(privacy, "--json", text=text, stored=False).output)
    assert [each["metric"] for each in whole["metrics"]] == ["plan_by_mode"]
    assert whole["report"]["epsilon"] == pytest.approx(2.0)
