"""The documentation's site: complete, without requests to others, readable by everybody."""

from __future__ import annotations

import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from .browsing import judge
from .running import ran, run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (
    "docs/index.html",
    "README.html",
    "docs/explanation/mechanisms.html",
    "docs/explanation/comparison.html",
    "docs/tutorial/web-page.html",
    "docs/reference/settings.html",
    "docs/reference/commands.html",
    "docs/reference/python.html",
    "search.html?q=subset",
)
"""One of each kind: lists, pictures, formulas, tables, code, references, search."""


def build(source, out):
    """Build the pages of a folder as `make site` does."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E"]
    options = ["-d", out / "doctrees", "-c", DOCS / "site"]
    return ran([*command, *options, source, out / "site"], ROOT, os.environ, 120)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The whole site. Its TypeScript page is made by TypeDoc where there is Node."""
    reference = ROOT / ".make" / "typescript" / "README.md"
    reference.parent.mkdir(parents=True, exist_ok=True)
    if not reference.exists():
        reference.write_text("Built without Node.\n", encoding="utf-8")
    run(".ci/web reference", ROOT, os.environ, 120)
    out = tmp_path_factory.mktemp("site")
    done = build(ROOT, out)
    assert done.returncode == 0, done.stderr
    return out / "site"


class Loaded(HTMLParser):
    """Collects what a browser loads without being asked: not links, but sources and styles."""

    def __init__(self):
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        names = ["src", "srcset", "poster", "data"] + (["href"] if tag == "link" else [])
        self.found += [str(values[name]) for name in names if values.get(name)]


def test_nothing_is_loaded_from_others(site):
    """No page and no style sheet loads a script, font, style or picture from another host, and
    what a page loads is there, so the site works from the file system."""
    for page in site.rglob("*.html"):
        parser = Loaded()
        parser.feed(page.read_text(encoding="utf-8"))
        assert parser.found or page == site / "index.html"
        for name in parser.found:
            assert not re.match(r"(?:\w+:)?//", name), f"{page}: {name}"
            assert (
                name.startswith(("data:", "#"))
                or (page.parent / re.split("[?#]", name)[0]).exists()
            )
    for sheet in site.rglob("*.css"):
        for name in re.findall(r"url\(([^)]+)\)", sheet.read_text(encoding="utf-8")):
            assert name.strip("\"'").startswith(("data:", "#")) or "//" not in name, sheet


MISTAKES = {
    "a page in no section": ("lost.md", "# Lost\n", "lost.md"),
    "a dead link": ("page.md", "# Page\n\n[there](nowhere.md)\n", "nowhere.md"),
    "a missing anchor": ("page.md", "# Page\n\n[there](index.md#nothing)\n", "nothing"),
    "a formula that is none": ("page.md", "# Page\n\n$$\\unknown{x}$$\n", "formula"),
    "a picture that is missing": ("page.md", "# Page\n\n![it](none.svg)\n", "none.svg"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_fails_the_build(mistake, tmp_path):
    """Each kind of mistake makes the build fail, with a message that names it."""
    name, text, told = MISTAKES[mistake]
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Index\n\n## Part\n\n- [Page](page.md): one\n")
    (docs / "page.md").write_text("# Page\n")
    (docs / name).write_text(text)
    done = build(tmp_path, tmp_path / "out")
    assert done.returncode != 0
    assert told in done.stderr, done.stderr


def test_axe_finds_nothing(site, open_browser, axe):
    """axe-core finds nothing on any kind of page, in light and dark, on a desktop and on a
    phone. No page is wider than the phone, and the search finds pages without a server."""
    browser = open_browser(True)
    found = []
    for page in PAGES:
        browser.get(f"file://{site}/{page}")
        found += judge(browser, axe)
    assert not found, "\n".join(found)
    results = browser.find_elements("css selector", "#search-results li a")
    assert any("mechanisms" in str(each.get_attribute("href")) for each in results)
    browser.get(f"file://{site}/index.html")
    assert browser.current_url.endswith("docs/index.html")
