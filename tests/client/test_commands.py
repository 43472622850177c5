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


def test_lint_prints_every_mistake_with_its_line(run):
    """A bad registry gives one line for each problem, as file:line, and exit code 1."""
    path = REGISTRIES / "every_mistake.toml"
    result = run(lint, path)
    listed = run(lint, path, "--json")
    problems = json.loads(listed.stdout)["problems"]
    assert result.exit_code == listed.exit_code == 1
    lines = result.stderr.splitlines()
    assert len(lines) == len(problems) > 20
    for line, problem in zip(lines, problems, strict=True):
        place = path if problem["line"] is None else f"{path}:{problem['line']}"
        assert line.startswith(f"{place}: error: ")


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


def test_lint_warns_of_what_cannot_work(run, tmp_path):
    """Too small a crowd and an expired metric are warnings at their line, with exit code 0."""
    path = tmp_path / "metrics.toml"
    path.write_text(
        "schema = 1\napp = 'example'\n"
        "[metrics.m]\ntype = 'boolean'\ndescription = 'd'\nowner = 'o'\n"
        "expires = 2020-01-01\nepsilon = 0.1\nlifetime_epsilon = 0.1\ndevices = 500\n"
    )
    result = run(lint, path)
    assert result.exit_code == 0
    assert f"{path}:3: warning: metrics.m: no usable signal with 500 devices" in result.stderr
    assert f"{path}:3: warning: metrics.m: expired on 2020-01-01" in result.stderr
    warned = json.loads(run(lint, path, "--json").stdout)["problems"]
    assert [problem["severity"] for problem in warned] == ["warning", "warning"]


EDITED = """
schema = 1
app = "editor"
[defaults]
owner = "a"
expires = 2037-06-30
[metrics.kept]
type = "category"
values = ["x", "y", "z"]
description = "With memory."
longitudinal = "memoize"
epsilon = 1.0
memo_epsilon = 3.0
lifetime_epsilon = 7.0
[metrics.fresh]
type = "boolean"
description = "Without memory."
epsilon = 1.0
lifetime_epsilon = 3.0
"""


def test_lint_warns_of_a_cap_that_no_report_fits_into(run, tmp_path):
    """The registry's own lifetime below the cost of one report is told at each such metric."""
    path = tmp_path / "metrics.toml"
    path.write_text(EDITED.replace('app = "editor"', 'app = "editor"\nlifetime_epsilon = 0.5'))
    result = run(lint, path)
    warned = [line for line in result.stderr.splitlines() if "warning" in line]
    assert len(warned) == 2
    assert all("no device can ever report" in line for line in warned)


@pytest.mark.parametrize(
    ("keys", "year"),
    [
        ('window = "day"', "100"),
        ('window = "month"\nsample_rate = 0.9', None),
        ("sample_rate = 0.06", "21.9"),
        ("sample_rate = 0.054", None),
        ("one_in = 18", "20.29"),
        ("one_in = 19", None),
    ],
)
def test_lint_refuses_a_year_that_means_nothing(run, tmp_path, keys, year):
    """More than epsilon 20 in a usual year is a mistake, at the line of the key to change; each of
    the two changes that it names mends it."""
    path = tmp_path / "metrics.toml"
    text = EDITED.replace("epsilon = 1.0\nlifetime_epsilon = 3.0", f"{keys}\nepsilon = 1.0\n"
                          "lifetime_epsilon = 100.0")  # fmt: skip
    path.write_text(text)
    result = run(lint, path)
    if year is None:
        assert result.exit_code == 0
        return
    assert result.exit_code == 1
    (line,) = [each for each in result.stderr.splitlines() if ": error: " in each]
    place = text.splitlines().index("lifetime_epsilon = 100.0") + 1
    assert line.startswith(f"{path}:{place}: error: metrics.fresh.lifetime_epsilon: is 100, so ")
    assert f"reveal epsilon {year}" in line
    for old, new in (
        ("lifetime_epsilon = 100.0", "lifetime_epsilon = 20"),
        (keys, "one_in = 19" if "one_in" in keys else "sample_rate = 0.054"),
    ):
        assert new in line
        path.write_text(text.replace(old, new))
        assert run(lint, path).exit_code == 0


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
