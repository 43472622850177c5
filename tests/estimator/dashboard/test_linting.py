"""`deniable lint` checks the dashboard's files that settings name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable.commands import lint

from .conftest import REGISTRY


def test_the_dashboards_files_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Annotations, boards and people, each mistake with its file and line; without a setting none
    is looked at. A metric that is not declared is a warning in annotations, a mistake on a board.
    """
    monkeypatch.chdir(tmp_path)
    Path("metrics.toml").write_text(REGISTRY)
    for name in ("DATA", "BOARDS"):
        monkeypatch.delenv(f"DENIABLE_{name}", raising=False)
    assert json.loads(CliRunner().invoke(lint, ["--json"]).stdout)["files"] == []
    Path("kept").mkdir(exist_ok=True)
    Path("kept/annotations.toml").write_text(
        'schema = 1\n[[annotations]]\ndate = 2026-11-20\ntext = "x"\nmetrics = ["browsr"]\n'
    )
    Path("boards").mkdir()
    board = 'schema = 1\ntitle = "T"\n[[items]]\nmetric = "{}"\n'
    Path("boards/good.toml").write_text(board.format("browser"))
    monkeypatch.setenv("DENIABLE_DATA", "kept")
    monkeypatch.setenv("DENIABLE_BOARDS", "boards")
    done = CliRunner().invoke(lint)
    assert done.exit_code == 0, "a warning is no mistake"
    told = "kept/annotations.toml: warning: annotations.1.metrics: browsr fits no metric"
    assert told in done.output
    assert "boards/good.toml: no mistakes" in done.output
    Path("boards/bad.toml").write_text(board.format("browsr"))
    Path("boards/Bad name.toml").write_text(board.format("browser"))
    Path("kept/people.toml").write_text("schema = 1\n[people.a]\nrole = 'king'\n")
    done = CliRunner().invoke(lint, ["--json"])
    assert done.exit_code == 1
    found = {
        each["source"]: [(one["line"], one["severity"]) for one in each["problems"]]
        for each in json.loads(done.stdout)["files"]
    }
    assert found == {
        "kept/annotations.toml": [(None, "warning")],
        "boards/good.toml": [],
        "boards/bad.toml": [(4, "error")],
        "boards/Bad name.toml": [(None, "error")],
        "kept/people.toml": [(3, "error")],
    }
    Path("kept/annotations.toml").write_text("schema = 9\n")
    monkeypatch.setenv("DENIABLE_BOARDS", "nowhere")
    Path("kept/people.toml").unlink()
    done = CliRunner().invoke(lint)
    assert done.exit_code == 1
    assert "kept/annotations.toml:1: error: schema" in done.output
    assert "nowhere: error: is no folder" in done.output
