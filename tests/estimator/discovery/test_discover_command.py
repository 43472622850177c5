"""`deniable discover` as people and programs call it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from deniable import Registry
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.tally import Tally
from deniable_estimator.terminal.discover import discover

from .conftest import CROWD, HOSTILE, TOML, Draw

NOW = 1_795_000_000.0  # 2026-11-18, UTC


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, draw: Draw) -> Path:
    """A folder with a registry and a store of two days, in the second of which nobody searched."""
    folder = tmp_path_factory.mktemp("filled")
    (folder / "metrics.toml").write_text(TOML)
    scheme = Registry.load(folder / "metrics.toml")["terms"].scheme
    store = open_store(f"sqlite:///{folder / 'store.db'}")
    store.publish({"terms": [scheme]})
    ids = itertools.count()
    days = [("2026-11-15", CROWD), ("2026-11-16", {**CROWD, "search": 5_000, "me@here": 20_000})]
    for seed, (window, crowd) in enumerate(days):
        # A registry that denies a pattern later: these devices did not know it yet.
        assert scheme.mechanism.name == "prefix_tree"
        tally: Tally = draw(scheme.mechanism, crowd, seed + 10, window)
        increments = {}
        for number, row in enumerate(tally.rows):
            columns = np.flatnonzero(row.cells)
            key = TallyRowKey(TallyKey("terms", scheme.fingerprint, window), number)
            increments[key] = Increment(
                len(row.cells), row.reports, columns.tolist(), row.cells[columns].tolist()
            )
        assert not store.fold(Commit((f"{next(ids):032x}",), increments), NOW)
    store.close()
    return folder


@pytest.fixture
def ask(filled: Path) -> Callable[..., Result]:
    """Run `deniable discover terms` against the filled store."""

    def run(*arguments: str, metric: str = "terms") -> Result:
        place = ["--registry", str(filled / "metrics.toml")]
        store = ["--store", f"sqlite:///{filled / 'store.db'}"]
        return CliRunner().invoke(discover, [metric, *arguments, *place, *store])

    return run


def test_promote_to_a_string_metric(ask: Callable[..., Result], tmp_path: Path) -> None:
    """Whole strings are added to the candidates file, once, and then marked as followed."""
    (tmp_path / "followed.txt").write_text("known\nsearch\n", encoding="utf-8")
    result = ask("--promote", "followed", "--candidates-dir", str(tmp_path))
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "followed.txt").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["known", "search"]
    assert set(lines[2:]) == {"seam", "a", "搜索", HOSTILE}
    assert "4 added to" in result.output
    assert "2 left out" in result.output
    again = ask("--promote", "followed", "--candidates-dir", str(tmp_path))
    assert "0 added to" in again.output
    assert (tmp_path / "followed.txt").read_text(encoding="utf-8").splitlines() == lines
    found = json.loads(ask("--json", "--candidates-dir", str(tmp_path)).output)
    assert {each["text"]: each["followed"] for each in found["finds"]}["seam"] == ["followed"]
    assert [each.name for each in tmp_path.iterdir()] == ["followed.txt"]


def test_promote_to_a_category(ask: Callable[..., Result], filled: Path) -> None:
    """The values of a category are proposed and not written: they change its scheme."""
    result = ask("--promote", "engine")
    assert '    "search",\n    "other",\n' in result.output
    assert '    "\\u641c\\u7d22",\n' in result.output
    assert "values = [" in result.output
    assert (filled / "metrics.toml").read_text() == TOML


@pytest.mark.parametrize(
    "arguments",
    [
        ("--by", "week"),
        ("--trend", "--promote", "followed"),
        ("--candidates", "x"),
        ("--promote", "followed"),
        ("--promote", "clicks"),
        ("--promote", "terms"),
        ("--promote", "engine", "--candidates", "x"),
    ],
)
def test_wrong_calls(ask: Callable[..., Result], arguments: tuple[str, ...]) -> None:
    """Options that do not fit together are refused before anything is calculated."""
    assert ask(*arguments).exit_code == 2
