"""`deniable estimate` in a shell: what its options refuse, and what it says where there is nothing
to tell or no letter to tell it with."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from tests.registries import declared

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
