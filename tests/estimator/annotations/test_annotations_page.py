"""docs/annotations.md has every key, option and limit of the code, and its examples work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from deniable_estimator.annotations import file as code
from deniable_estimator.annotations import load_annotations, parse_annotations
from deniable_estimator.checked_files import MAX_FILE
from deniable_estimator.dashboard import annotated
from deniable_estimator.terminal.annotate import annotate
from deniable_estimator.watching.digest import NEAR_DAYS

PAGE = (Path(__file__).parents[3] / "docs" / "annotations.md").read_text(encoding="utf-8")


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the table whose first heading is this: first cell -> the others."""
    found = re.search(rf"^\| {heading} \|.*\n\|[ -|]*\n((?:\|.*\n)+)", PAGE, re.M)
    assert found is not None, heading
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in found[1].splitlines()
    ]
    return {first.strip("` "): others for first, *others in rows}


def test_every_key_has_a_row() -> None:
    """Each key that the code reads has a row with meaning, default and limits; no other has."""
    assert set(table("key at the top")) == set(code.TOP_KEYS)
    assert set(table("key")) == set(code.KEYS)
    for cells in [*table("key at the top").values(), *table("key").values()]:
        assert len(cells) == 3
        assert all(cells)


def test_every_limit_is_that_of_the_code() -> None:
    """The page names each number."""
    assert f"{code.MOST_ANNOTATIONS:,} tables" in table("key at the top")["annotations"][2]
    keys = table("key")
    assert "from {} to {}".format(*code.YEARS) in keys["date"][2]
    assert f"1 to {code.MOST_TEXT} characters" in keys["text"][2]
    assert f"{code.MOST_LINK:,} ASCII" in keys["link"][2]
    assert f"1 to {code.MOST_PATTERNS} names" in keys["metrics"][2]
    assert f"{MAX_FILE:,} bytes" in PAGE
    assert f"the latest {annotated.MOST_LISTED} of" in PAGE
    assert f"from {NEAR_DAYS} days before" in PAGE


def test_every_option_has_a_row() -> None:
    """Each option of the command, and no other."""
    known = {each for option in annotate.params for each in option.opts if each.startswith("--")}
    assert set(table("option")) == known


def test_the_example_has_every_key() -> None:
    """The file of the page is read without a mistake."""
    (text,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(parse_annotations(text)) == 2
    for key in (*code.TOP_KEYS, *code.KEYS):
        assert re.search(rf"^(\[\[{key}\]\]|{key} = )", text, re.M), key


def test_the_commands_work(tmp_path: Path) -> None:
    """Each command of the page runs, one after the other."""
    (block,) = re.findall(r"^```\n(.*?)^```$", PAGE, re.M | re.S)
    path = tmp_path / "annotations.toml"
    common = ["--file", str(path), "--registry", str(tmp_path / "none.toml")]
    for line in block.splitlines():
        program, command, *rest = shlex.split(line)
        assert (program, command) == ("deniable", "annotate")
        done = CliRunner().invoke(annotate, [*rest, *common])
        assert done.exit_code == 0, done.output
    assert [each.text for each in load_annotations(path)] == ["Release 4.2"]
