"""The examples of metrics on the pages that explain their keys."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable.tools.commands import lint

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    "reference/metrics-toml.md",
    *(f"how-to/{each}.md" for each in ("numbers", "strings", "pairs-and-segments")),
]
EXAMPLES = [
    text
    for page in PAGES
    for text in re.findall(
        r"^```toml\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S
    )
]


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_example_passes_lint(text, tmp_path):
    """Each block of TOML is taken by `deniable lint` without a mistake or a warning."""
    head = "" if "schema =" in text else 'schema = 1\napp = "editor"\n\n'
    (tmp_path / "metrics.toml").write_text(head + text, encoding="utf-8")
    (tmp_path / "languages.txt").write_text("english\nchinese\nother\n", encoding="utf-8")
    done = CliRunner().invoke(lint, [str(tmp_path / "metrics.toml"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["problems"]
    assert [each for each in found if each["severity"] != "note"] == []
