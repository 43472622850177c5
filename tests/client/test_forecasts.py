"""Commands of the SDK where the estimator, which forecasts, is not installed."""

import json
import sys

from click.testing import CliRunner

from deniable.tools.commands import lint
from deniable.tools.doctor.command import doctor
from deniable.tools.starting.commands import init


def test_without_the_estimator_commands_say_what_is_missing(tmp_path, monkeypatch):
    """`init` and `lint` work, and name in one sentence what brings forecasts; `doctor` works."""
    for module in ("planning.crowd_forecast", "dashboard.checks"):
        monkeypatch.setitem(sys.modules, f"deniable_estimator.{module}", None)
    runner, path = CliRunner(), str(tmp_path / "new" / "metrics.toml")
    done = runner.invoke(init, [str(tmp_path / "new"), "--yes"])
    assert done.exit_code == 0
    assert done.output.count("pip install 'deniable[estimator]'") == 1
    problems = json.loads(runner.invoke(lint, [path, "--json"]).stdout)["problems"]
    assert problems[0]["severity"] == "note"
    assert "pip install 'deniable[estimator]'" in problems[0]["message"]
    assert "valid" in runner.invoke(doctor, [path, "--json"]).output
