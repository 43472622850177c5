"""The documentation as a whole: its links hold, and it stays small enough to be read."""

import re
import subprocess
import unicodedata
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LISTED = subprocess.run(
    ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
).stdout.split("\0")
FILES = [ROOT / each for each in LISTED if each] or [
    each for each in ROOT.rglob("*") if each.is_file() and ".venv" not in each.parts
]
PAGES = [
    each
    for each in FILES
    if each.suffix == ".md"
    and each.exists()
    and (each.parent == ROOT or ROOT / "docs" in each.parents)
]
GENERATED = {"commands.md", "http.md", "python.md", "settings.md", "typescript.md"}
"""Pages of the reference that the site fills from the code."""


def text_of(page):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


@cache
def anchors(page):
    """The anchors of a page's headings, as forges make them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", text_of(page), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        kept = [
            each for each in unicodedata.normalize("NFC", plain) if each.isalnum() or each in " -_"
        ]
        found.add("".join(kept).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_holds(page):
    """What a page links to is there: the file, the picture, and the heading."""
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or target.suffix != ".md" or anchor in anchors(target), (
            f"{page.name}: {link}"
        )


def test_every_page_that_the_code_names_exists():
    """Messages, help texts, docstrings and settings name pages that there are."""
    for path in FILES:
        if path.suffix in {".py", ".ts", ".toml", ".json", ".po", ".yml", ".service", ".txt"}:
            text = path.read_text(encoding="utf-8", errors="ignore") if path.exists() else ""
            for name in re.findall(r"\bdocs/[\w./-]+\.md\b", text):
                assert (ROOT / name).exists() or "tests/" in str(path), f"{path}: {name}"


def test_the_documentation_stays_small():
    """28 pages by hand, none longer than 1,200 words but the reference, a README of 170 lines."""
    by_hand = [each for each in PAGES if "docs" in each.parts and each.name not in GENERATED]
    assert len(by_hand) <= 28
    for page in by_hand:
        if page.parent.name != "reference":
            words = [each for each in text_of(page).split() if re.search(r"\w", each)]
            assert len(words) <= 1_200, f"{page}: {len(words)} words"
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 170
