"""`deniable store`: what its commands do and say."""

import json
import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

from deniable.protocol import windows
from deniable.tools.command_line import find

from .filling import commit


@pytest.fixture
def run(home):
    """Runs a command on the store of the environment."""

    def run(*arguments, code=0, answer=None):
        result = CliRunner().invoke(find("store"), arguments, answer, home.environ)
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.fixture
def scheme(store, registry):
    scheme = registry["browser"].scheme
    store.publish([("browser", scheme), ("dark_mode", registry["dark_mode"].scheme)])
    return scheme


@pytest.fixture
def filled(store, scheme, new_id, noon):
    """A store with three days of one metric."""
    for number, day in enumerate(("2026-11-01", "2026-11-02", "2026-11-20"), 1):
        more = {"metric": "browser", "window": day, "reports": number}
        store.fold(commit(scheme, new_id(), cells={1: number}, **more), noon)
    return store


def test_info_names_a_sum_that_is_damaged(filled, run, scheme, home):
    """`info` checks each sum as it does windows, names the damaged ones, shows the rest, and exits
    with 1."""
    of = "browser", scheme.fingerprint
    assert len(filled.sums.drop_windows(of, windows.end("2026-11-01"), ("month",))) == 1
    with closing(sqlite3.connect(home.url.removeprefix("sqlite:///"))) as file, file:
        file.execute("UPDATE blocks SET block = substr(block, 1, 20)")
    said = run("info", code=1)
    assert "window kept-day-2026-11 is damaged" in said.stderr
    assert "browser" in said.stdout


def test_drop_names_sums_too(filled, run, scheme):
    """Kept sums whose period had ended are counted, shown and dropped."""
    of = "browser", scheme.fingerprint
    filled.sums.drop_windows(of, windows.end("2026-11-02"), ("week", "month"))
    dry = json.loads(run("drop", "--before", "2026-11-09", "--dry-run", "--json").stdout)
    assert [each["period"] for each in dry["sums"]] == ["2026-W44", "2026-W45"]
    assert (dry["dropped"], dry["tallies"]) == (False, [])
    said = run("drop", "--before", "2026-11-09", "--yes").stdout
    assert "0 tallies of 0 metrics and 2 sums of dropped windows dropped" in said
    assert [each.period for each in filled.sums.names(of)] == ["2026-11"]


def test_drop_asks_first(filled, run, scheme):
    """Windows go when the question was answered by yes, and not by no or by looking."""
    run("drop", "--before", "2026-11-03", "--dry-run")
    no = run("drop", "--before", "2026-11-03", answer="n\n", code=1)
    assert "Drop 2 tallies of 1 metric that had ended by 2026-11-03, for ever?" in no.output
    assert len(filled.windows("browser", scheme.fingerprint)) == 3
    nobody = run("drop", "--before", "2026-11-03", answer="", code=1)
    assert "answer the question, or confirm with --yes" in nobody.output
    assert len(filled.windows("browser", scheme.fingerprint)) == 3
    run("drop", "--before", "2026-11-03", answer="y\n")
    assert filled.windows("browser", scheme.fingerprint) == ["2026-11-20"]
    assert "0 tallies of 0 metrics dropped" in run("drop", "--before", "2026-11-03").stdout


def test_an_import_of_what_was_dropped(filled, run, noon, tmp_path, monkeypatch):
    """Windows that were added before and dropped since are told, with what to do; those that are
    there are not."""
    monkeypatch.setattr("time.time", lambda: noon)
    file, other = str(tmp_path / "sums.gz"), f"sqlite:///{tmp_path}/other.db"
    run("export", file)
    run("import", file, "--store", other)
    again = run("import", file, "--store", other)
    assert again.output == f"nothing was added: all of {file} had been added before\n"
    run("drop", "--before", "2026-11-03", "--yes", "--store", other)
    said = run("import", file, "--store", other)
    assert said.stdout == again.output
    assert f"2 windows of {file} had been added before and then dropped" in said.stderr
    assert "again after that, or into another store" in said.stderr
