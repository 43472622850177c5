"""`deniable lint` and `deniable sent`: what they print and how they exit."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable import Registry
from deniable.tools.commands import lint, sent

REGISTRIES = Path(__file__).parent / "registries"


@pytest.fixture
def run(monkeypatch):
    """Runs a command on a wide terminal."""
    monkeypatch.setenv("COLUMNS", "200")

    def invoke(command, *arguments):
        return CliRunner().invoke(command, [str(each) for each in arguments])

    return invoke


def test_lint_reads_a_compiled_registry(run, tmp_path):
    """What is shown of metrics.json is what is shown of its metrics.toml, but why `auto` chose."""
    shown = []
    registry = Registry.load(REGISTRIES / "good.toml")
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps(registry.compile()), encoding="utf-8")
    for each in (REGISTRIES / "good.toml", path):
        metrics = json.loads(run(lint, each, "--json").stdout)["metrics"]
        shown.append([{**facts, "explanation": None} for facts in metrics])
    assert shown[0] == shown[1]


@pytest.fixture
def state_dir(make_client, clock, tmp_path):
    """The state of a device that has sent one report."""
    client = make_client()
    client.record("browser", "chrome")
    clock.days(1)
    assert client.flush()
    client.close()
    return tmp_path / "state"


def test_sent_finds_the_only_state(run, state_dir, monkeypatch, tmp_path):
    """Without a name the user's only state is shown; none or several ask for a choice."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    none = run(sent)
    assert none.exit_code == 1
    assert "--state-dir" in none.output
    root = tmp_path / "xdg" / "deniable"
    root.mkdir(parents=True)
    state_dir.rename(root / "one")
    assert len(json.loads(run(sent, "--json").stdout)["reports"]) == 1
    (root / "two").mkdir()
    (root / "two" / "state.sqlite3").touch()
    several = run(sent)
    assert several.exit_code == 1
    assert "--app two" in several.output
    assert len(json.loads(run(sent, "--app", "one", "--json").stdout)["reports"]) == 1
    assert "no state of deniable in" in run(sent, "--app", "three").output


def test_sent_creates_nothing(run, tmp_path):
    """Asking about a device that does not exist is an error and leaves no file."""
    result = run(sent, "--state-dir", tmp_path)
    assert result.exit_code == 1
    assert "no state" in result.output
    assert list(tmp_path.iterdir()) == []


def test_sent_has_one_form(run, state_dir, tmp_path):
    """A page and JSON at once are refused, and nothing is written."""
    page = tmp_path / "page.html"
    result = run(sent, "--state-dir", state_dir, "--json", "--html", page)
    assert result.exit_code == 2
    assert not page.exists()
