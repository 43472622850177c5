"""`deniable estimate` in a shell: what its options refuse, and what it says where there is nothing
to tell or no letter to tell it with."""

import json
import os
import subprocess
import sys
from datetime import date

import numpy as np
import pytest
from click.testing import CliRunner
from tests.registries import declared

from deniable.protocol import windows
from deniable.tools.command_line import find
from deniable_estimator.analyses import sample_tally

DAYS = [f"2026-01-{day:02}" for day in range(5, 12)]

SEGMENTS = '[segments.platform]\nvalues = ["ios", "web"]\n'


@pytest.fixture
def registry_file(tmp_path):
    path = tmp_path / "metrics.toml"
    theme = {"type": "boolean", "epsilon": 1.0, "segments": ["platform"]}
    path.write_text(declared(theme=theme) + SEGMENTS)
    return path


@pytest.fixture
def call(registry, registry_file, store_url, fill):
    """Call a command on a store with a week of reports, of which 9 in 10 are yes from the fifth day
    on, and 1 in 10 before."""
    rng, scheme = np.random.default_rng(1), registry["theme"].scheme
    for place, label in enumerate(DAYS):
        counts = [2000, 18_000] if place < 4 else [18_000, 2000]
        fill(sample_tally(scheme, counts, rng, metric="theme", window=label), scheme)

    def invoke(text):
        words = [*text.split(), "--registry", str(registry_file), "--store", store_url]
        return CliRunner().invoke(find(), ["estimate", *words])

    return invoke


@pytest.mark.parametrize("words", ["theme", "segments theme --by platform", "trend theme"])
def test_json_and_csv_are_refused_together(call, words):
    """One of them would be left out silently."""
    result = call(f"{words} --csv --json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "choose one of them" in result.output


def test_reports_of_an_earlier_window_are_named(call, registry_file):
    """After an edit of `window` the store has none of the new kind yet: it is the right store."""
    assert "--store" not in call("theme").output
    assert "Check that --store" in call("theme --from 2027-01-01").stderr
    registry_file.write_text(registry_file.read_text().replace("[metrics.theme]", WEEKLY))
    result = call("theme")
    assert result.exit_code == 3
    assert 'write window = "day" in the registry' in result.stderr
    assert "--store" not in result.stderr


def test_a_window_is_compared_with_those_before_the_range(call, registry, fill):
    """`--from` changes no alarm: three times the usual reports are told for the last day alone too,
    by `estimate` above its numbers as well."""
    rng, scheme = np.random.default_rng(2), registry["theme"].scheme
    for label, n in (("2026-01-12", 20_000), ("2026-01-13", 60_000)):
        fill(sample_tally(scheme, [n, 0], rng, metric="theme", window=label), scheme)
    assert call("anomalies theme --from 2026-01-12 --to 2026-01-12").exit_code == 0
    for words in ("", "--from 2026-01-13"):
        result = call(f"anomalies theme {words} --json")
        found = json.loads(result.stdout)["windows"]
        assert (result.exit_code, [e["window"] for e in found if e["anomalous"]]) == (
            4,
            ["2026-01-13"],
        )
        assert call(f"theme {words}").stdout.startswith("Anomalous: 13 Jan 2026. Do not rely")
    assert "Anomalous" not in call("theme --to 2026-01-12").stdout


def test_what_is_left_out_since_is_left_out_before(call, registry, fill, monkeypatch):
    """The same weekday of the days before, as on pages; JSON has both periods."""
    rng, scheme = np.random.default_rng(1), registry["theme"].scheme
    for label in ("2026-01-12", "2026-01-13"):
        fill(sample_tally(scheme, [9000, 9000], rng, metric="theme", window=label), scheme)
    monkeypatch.setattr("time.time", lambda: windows.end("2026-01-13"))
    told = json.loads(call("theme --since 2026-01-11 --without 2026-01-12 --json").stdout)
    assert (told["since"], told["from"]) == ("2026-01-11", "2026-01-12")
    periods = [told["change"][each]["windows"] for each in ("before", "after")]
    assert periods == [["2026-01-06"], ["2026-01-13"]]


def test_what_is_compared_begins_with_the_first_report(call, registry, fill, monkeypatch):
    """Four weeks since are not compared with four of which the store has one."""
    rng, scheme = np.random.default_rng(1), registry["theme"].scheme
    for label in windows.span("day", date(2026, 1, 12), date(2026, 2, 7)):
        fill(sample_tally(scheme, [900, 900], rng, metric="theme", window=label), scheme)
    monkeypatch.setattr("time.time", lambda: windows.end("2026-02-07"))
    told = json.loads(call("theme --since 2026-01-12 --json").stdout)
    periods = [told["change"][each] for each in ("before", "after")]
    assert [(each["from"], each["to"]) for each in periods] == [
        ("2026-01-05", "2026-01-11"),
        ("2026-01-13", "2026-01-19"),
    ]


def test_windows_of_another_kind_cannot_be_left_out(call):
    """It would leave out nothing, and say nothing."""
    result = call("theme --without 2026-W02")
    assert result.exit_code == 2
    assert "“without” takes windows like 20" in result.output


WEEKLY = '[metrics.theme]\nwindow = "week"'


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_the_letters_is_told_what_they_are(encoding):
    """No letter ends a command with a traceback, and JSON stays JSON."""
    code = "import sys; from deniable.cli import main; sys.exit(main())"
    words = ["plan", "--size", "5", "--epsilon", "1", "--devices", "100000"]
    environ = {**os.environ, "PYTHONIOENCODING": encoding}
    told, data = (
        subprocess.run(
            [sys.executable, "-c", code, *words, *form], env=environ, capture_output=True
        )
        for form in ([], ["--json"])
    )
    assert (told.returncode, told.stderr) == (0, b"")
    assert b"5 values, \\u03b5 1" in told.stdout
    assert "ε" in json.loads(data.stdout)["subtitle"]
