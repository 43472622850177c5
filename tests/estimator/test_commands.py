"""The commands as people and programs call them: output, errors and exit codes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deniable import Registry, Scheme
from deniable_collector.tally import Tally
from deniable_estimator.answers.basis import BASIS_COLUMNS
from deniable_estimator.answers.shares import COLUMNS
from deniable_estimator.terminal import NO_DATA, estimate, plan, simulate


@pytest.fixture
def ask(registry_file: Path, store_url: str) -> Callable[..., Result]:
    """Run `deniable estimate` against the test's registry and store."""

    def run(*arguments: str) -> Result:
        common = ["--registry", str(registry_file), "--store", store_url]
        return CliRunner().invoke(estimate, [*arguments, *common])

    return run


@pytest.fixture
def reported(
    registry: Registry, fill: Callable[[Tally, Scheme], None], make_tally: Callable[..., Tally]
) -> Scheme:
    """1,000 reports of browsers on one day."""
    scheme = registry["browser"].scheme
    fill(make_tally(scheme, 1000, [500, 300, 100, 100]), scheme)
    return scheme


@pytest.mark.usefixtures("reported")
def test_estimate_as_table(ask: Callable[..., Result]) -> None:
    """By default the answer is a table for people."""
    result = ask("browser")
    assert result.exit_code == 0, result.output
    assert "1,000 devices" in result.output
    assert "firefox" in result.output


@pytest.mark.usefixtures("reported")
def test_estimate_without_a_window(ask: Callable[..., Result]) -> None:
    """A window that is left out counts nothing, and one that is none is refused."""
    assert ask("browser", "--without", "2026-11-16").exit_code == NO_DATA
    assert ask("browser", "--without", "2026-11-17", "--without", "2026-11-18").exit_code == 0
    assert ask("browser", "--without", "16 November").exit_code == 2


@pytest.mark.usefixtures("reported")
def test_estimate_as_json(ask: Callable[..., Result]) -> None:
    """--json prints the estimate and nothing else."""
    result = ask("browser", "--json", "--from", "2026-11-16", "--to", "2026-11-16")
    answer = json.loads(result.stdout)
    assert (answer["metric"], answer["n"]) == ("browser", 1000)
    assert [row["value"] for row in answer["values"]] == ["firefox", "chrome", "safari", "other"]


@pytest.mark.usefixtures("reported")
def test_estimate_as_csv(ask: Callable[..., Result]) -> None:
    """--csv prints a header and a line for each value."""
    result = ask("browser", "--csv", "--level", "0.9", "--adjust", "bonferroni")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert list(rows[0]) == ["value", *COLUMNS, *BASIS_COLUMNS]
    assert len(rows) == 4


@pytest.mark.usefixtures("reported")
def test_candidates_file(ask: Callable[..., Result], tmp_path: Path) -> None:
    """Candidates come from a file, and a mistake in it is named with its line."""
    file = tmp_path / "candidates.txt"
    file.write_text("chrome\nsafari\n")
    answer = json.loads(ask("browser", "--json", "--candidates", str(file)).stdout)
    assert [row["value"] for row in answer["values"]] == ["chrome", "safari"]
    file.write_text("chrome\n\nsafari\n")
    result = ask("browser", "--candidates", str(file))
    assert result.exit_code == 1
    assert "line 2" in result.stderr


def test_no_data_says_what_to_check(ask: Callable[..., Result]) -> None:
    """Without reports the exit code is 3, the advice is on stderr, and JSON is still JSON."""
    result = ask("browser", "--json")
    assert result.exit_code == NO_DATA
    assert json.loads(result.stdout)["n"] == 0
    assert "DENIABLE_STORE" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["browsr"], 1, "did you mean browser?"),
        (["browser", "--from", "2026-11-17", "--to", "2026-11-16"], 1, "swap them"),
        (["browser", "--from", "yesterday"], 2, "--from"),
        (["browser", "--level", "1"], 2, "--level"),
        (["browser", "--adjust", "none"], 2, "--adjust"),
        ([], 2, "METRIC"),
    ],
)
def test_mistakes(
    arguments: list[str], code: int, message: str, ask: Callable[..., Result]
) -> None:
    """Mistakes exit 1 or 2 with a message that says what to do, and no traceback."""
    result = ask(*arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_missing_registry_and_store(registry_file: Path, tmp_path: Path) -> None:
    """A registry or store that is not there is an error, not a traceback."""
    gone = str(tmp_path / "gone.toml")
    assert "cannot be read" in CliRunner().invoke(estimate, ["browser", "--registry", gone]).stderr
    url = f"sqlite:///{tmp_path / 'gone.db'}"
    result = CliRunner().invoke(
        estimate, ["browser", "--registry", str(registry_file)], env={"DENIABLE_STORE": url}
    )
    assert result.exit_code == 1
    assert "gone.db" in result.stderr


def test_plan() -> None:
    """`deniable plan` prints a plan for people, and as JSON for programs."""
    arguments = ["--size", "100", "--epsilon", "1", "--devices", "100000"]
    assert "2.49%" in CliRunner().invoke(plan, arguments).output
    made = json.loads(CliRunner().invoke(plan, [*arguments, "--share", "0.05", "--json"]).stdout)
    assert made["mechanism"] == "subset_selection"
    assert made["share"] == 0.05
    assert made["detectable_share"] == pytest.approx(0.0248, abs=1e-4)


def test_plan_with_memory() -> None:
    """--memoize plans for devices that keep their noise, and says what a lifetime is for then."""
    arguments = ["--size", "5", "--epsilon", "1", "--devices", "10000", "--memoize"]
    told = CliRunner().invoke(plan, [*arguments, "--lifetime-epsilon", "4"]).output
    assert "memoized_subset_selection" in told
    assert "any history adds at most" in told
    lacking = CliRunner().invoke(plan, arguments)
    assert lacking.exit_code == 2
    assert "--lifetime-epsilon" in lacking.output


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--size", "1"),
        ("--epsilon", "0"),
        ("--epsilon", "-1"),
        ("--epsilon", "inf"),
        ("--epsilon", "1000"),
        ("--epsilon", "nan"),
        ("--devices", "0"),
        ("--share", "1.5"),
        ("--sample-rate", "0"),
        ("--mechanism", "magic"),
    ],
)
def test_impossible_plans(option: str, value: str) -> None:
    """What cannot be planned is refused by name, without a traceback."""
    arguments = {"--size": "10", "--epsilon": "1", "--devices": "1000", option: value}
    flat = [text for pair in arguments.items() for text in pair]
    result = CliRunner().invoke(plan, flat)
    assert result.exit_code in (1, 2)
    assert option.lstrip("-") in result.stderr
    assert "Traceback" not in result.output


def test_simulate_a_billion(registry_file: Path) -> None:
    """A billion devices are simulated; every estimate is within 6 standard errors of its truth."""
    arguments = ["browser", "--registry", str(registry_file), "--devices", "1000000000"]
    result = CliRunner().invoke(simulate, [*arguments, "--seed", "1", "--json"])
    answer = json.loads(result.stdout)
    assert answer["devices"] == answer["n"] == 10**9
    assert sum(row["truth"] for row in answer["values"]) == pytest.approx(1)
    for row in answer["values"]:
        assert abs(row["share"] - row["truth"]) < 6 * row["std_error"] < 0.001
    again = CliRunner().invoke(simulate, [*arguments, "--seed", "1", "--json"])
    assert again.stdout == result.stdout


def test_simulate_shares_and_sampling(registry_file: Path, tmp_path: Path) -> None:
    """A file gives the shares, the metric's sample rate decides how many answer."""
    file = tmp_path / "shares.csv"
    file.write_text("true,3\nfalse,1\n")
    arguments = ["dark_mode", "--registry", str(registry_file), "--devices", "100000"]
    result = CliRunner().invoke(
        simulate, [*arguments, "--shares", str(file), "--seed", "2", "--json"]
    )
    answer = json.loads(result.stdout)
    assert answer["n"] == pytest.approx(50_000, abs=1000)
    assert answer["values"][0]["truth"] == pytest.approx(0.75, abs=0.01)
    table = CliRunner().invoke(simulate, [*arguments, "--seed", "2"])
    assert "truth" in table.output


def test_simulate_mistakes(registry_file: Path, tmp_path: Path) -> None:
    """Unknown metrics and bad files are refused as `deniable estimate` refuses them."""
    common = ["--registry", str(registry_file), "--devices", "10"]
    assert "did you mean" in CliRunner().invoke(simulate, ["browsers", *common]).stderr
    file = tmp_path / "shares.csv"
    file.write_text("lynx,1\n")
    result = CliRunner().invoke(simulate, ["browser", *common, "--shares", str(file)])
    assert "lynx" in result.stderr
    listed = CliRunner().invoke(simulate, ["browser", *common, "--candidates", str(file)])
    assert listed.exit_code == 2
