"""The examples of metrics on the pages that explain their keys."""

import gzip
import json
import math
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable import Registry
from deniable.tools.commands import lint
from deniable.tools.compile_command import web_files

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    "reference/metrics-toml.md",
    *(f"how-to/{each}.md" for each in ("numbers", "strings", "pairs-and-segments")),
    "tutorial/any-language.md",
    "tutorial/web-page.md",
]
EXAMPLES = [
    text
    for page in PAGES
    for text in re.findall(
        r'(?:^```toml\n|parse\(""")(.*?)(?:^```$|""")',
        (DOCS / page).read_text(encoding="utf-8"),
        re.M | re.S,
    )
]


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_example_passes_lint(text, tmp_path):
    """Each registry, of Python's examples too, has no mistake and no warning of `deniable lint`."""
    head = "" if "schema =" in text else 'schema = 1\napp = "editor"\n\n'
    (tmp_path / "metrics.toml").write_text(head + text, encoding="utf-8")
    (tmp_path / "languages.txt").write_text("english\nchinese\nother\n", encoding="utf-8")
    done = CliRunner().invoke(lint, [str(tmp_path / "metrics.toml"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["problems"]
    assert [each for each in found if each["severity"] != "note"] == []


def test_the_page_says_how_large_its_scripts_are():
    """Gzipped and with a registry: booleans and categories, the same with memos, and numbers."""
    page = (DOCS / "tutorial/web-page.md").read_text(encoding="utf-8")
    (visitors,) = re.findall(r"^```toml\n(.*?)^```$", page, re.M | re.S)
    memoized = visitors.replace("\nepsilon", '\nlongitudinal = "memoize"\nepsilon')
    number = visitors.replace('"boolean"', '"number"\nask = "mean"\nlow = 0\nhigh = 10')
    for text in (visitors, memoized, number):
        script = web_files(Registry.parse(text))["deniable.min.js"]
        assert f"{math.ceil(len(gzip.compress(script, 9)) / 1000)} KB" in page
