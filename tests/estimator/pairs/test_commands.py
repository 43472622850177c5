"""The commands about pairs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner, Result
from tests.estimator.pairs.conftest import REGISTRY

from deniable_estimator.terminal.privacy_command import privacy
from deniable_estimator.terminal.simulated import simulate

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command on that registry."""

    def run(command: Command, *arguments: str, text: str = REGISTRY) -> Result:
        path = tmp_path / "metrics.toml"
        path.write_text(text, encoding="utf-8")
        return CliRunner().invoke(command, [*arguments, "--registry", str(path)])

    return run


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
    refused = run(simulate, "plan_by_mode", "--devices", "9", "--shares", str(path))
    assert refused.exit_code == 1
    assert why in refused.output


def test_privacy_adds_up(run: Run) -> None:
    """The label of a pair, and of each of its metrics, says what all reports about the same values
    reveal together; a cap bounds it, and forgotten ones show the figures of the pair."""
    names = ("plan", "dark_mode", "plan_by_mode")
    of_plan, of_mode, of_pair = (json.loads(run(privacy, each, "--json").output) for each in names)
    assert of_pair["same_values"]["metrics"] == [*names]
    assert of_pair["same_values"]["epsilon"] == pytest.approx(3.5)
    assert of_plan["same_values"]["epsilon"] == pytest.approx(3.0)
    for span in ("typical_year", "worst_year", "lifetime"):
        expected = sum(each[span]["epsilon"] for each in (of_plan, of_mode, of_pair))
        assert of_pair["same_values"][span]["epsilon"] == pytest.approx(expected), span
    capped = "lifetime_epsilon = 9.0\n" + REGISTRY.lstrip()
    least = json.loads(run(privacy, "plan", "--json", text=capped).output)
    assert least["same_values"]["lifetime"]["epsilon"] == pytest.approx(9.0)
    whole = json.loads(run(privacy, "--json", text=REGISTRY + 'forget = "marginals"\n').output)
    assert [each["metric"] for each in whole["metrics"]] == ["plan_by_mode"]
    assert whole["report"]["epsilon"] == pytest.approx(2.0)
