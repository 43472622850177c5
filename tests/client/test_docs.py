"""The pages on metrics.toml and the SDK name every key, mechanism and name that the code has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import deniable
from deniable import Client
from deniable.commands import lint
from deniable.keys import TOP_KEYS, all_keys
from deniable.types import TYPES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "registry.md").read_text(encoding="utf-8")
SDK = (DOCS / "sdk.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.M | re.S)


def rows(heading: str) -> set[str]:
    """The first cells of the tables that begin with such a heading."""
    tables = re.findall(rf"^\| {heading} \|.*\n\|[ -|]*\n((?:\|.*\n)+)", PAGE, re.M)
    return {line.split(" | ")[0].strip("| `") for table in tables for line in table.splitlines()}


def test_every_key_and_mechanism_has_a_row() -> None:
    """Keys at the top, keys of a metric, and names of mechanisms are listed, and no others."""
    assert rows("key at the top") == set(TOP_KEYS)
    assert rows("key") == set(all_keys())
    both = (False, True)
    names = {
        name for kind in TYPES.values() for memo in both for name in kind.mechanisms(memoize=memo)
    }
    assert rows("name") == names - {"auto"}


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_example_passes_lint(text: str, tmp_path: Path) -> None:
    """Each block of TOML is taken by `deniable lint` without a mistake or a warning."""
    head = "" if "schema =" in text else 'schema = 1\napp = "editor"\n\n'
    (tmp_path / "metrics.toml").write_text(head + text, encoding="utf-8")
    (tmp_path / "languages.txt").write_text("english\nchinese\nother\n", encoding="utf-8")
    done = CliRunner().invoke(lint, [str(tmp_path / "metrics.toml"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["problems"]
    assert [each for each in found if each["severity"] != "note"] == []


def test_every_public_name_is_named() -> None:
    """Each exported name, and each member of the client, stands in code on the page."""
    members = {name for name in dir(Client) if not name.startswith("_")}
    for name in {*deniable.__all__, *members}:
        assert re.search(rf"`(\w+\.)*{name}\b", SDK), name
