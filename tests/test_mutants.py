"""The settings of `make mutants`: they name what there is."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "mutants"


def test_modules_and_their_tests_are_there() -> None:
    """Every module of the core is named once, with tests that exist."""
    modules = tomllib.loads((FOLDER / "modules.toml").read_text(encoding="utf-8"))["module"]
    paths = [each["path"] for each in modules]
    assert len(set(paths)) == len(paths) > 30
    for each in modules:
        files = [test for test in each["tests"] if test.endswith(".py")]
        assert files
        assert all((ROOT / file).is_file() for file in (each["path"], *files))


def test_written_faults_are_of_texts_that_are_there() -> None:
    """Each fault that is written down replaces a text that its file holds once."""
    modules = tomllib.loads((FOLDER / "modules.toml").read_text(encoding="utf-8"))["module"]
    texts = [
        (each["path"], was, (ROOT / each["path"]).read_text(encoding="utf-8").count(was))
        for each in modules
        for was, _ in each.get("faults", ())
    ]
    assert len(texts) > 20
    assert [each for each in texts if each[2] != 1] == []


def test_equivalents_speak_of_lines_that_are_there() -> None:
    """What is called equivalent is a line of a module as it stands, and says why."""
    document = tomllib.loads((FOLDER / "equivalents.toml").read_text(encoding="utf-8"))
    for each in document["equivalent"]:
        text = " ".join((ROOT / each["path"]).read_text(encoding="utf-8").split())
        assert each["was"] in text, each["was"]
        assert each["becomes"]
        assert each["was"] not in each["becomes"]
        assert len(each["reason"]) > 20
