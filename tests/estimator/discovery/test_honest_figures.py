"""What stands beside a list of finds holds with few reports and with several schemes too."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from deniable.mechanisms import PrefixTree
from deniable_estimator.answers.files import harmless
from deniable_estimator.answers.finds_making import Rule, find_strings
from deniable_estimator.terminal.finds_view import finds_view
from deniable_estimator.terminal.promoting import _replace

from .conftest import Draw, MakePart


def _seen(view: RenderableType) -> str:
    console = Console(width=200)
    with console.capture() as caught:
        console.print(view)
    return " ".join(caught.get().split())


def test_one_report_says_little(code: PrefixTree, draw: Draw, part: MakePart) -> None:
    """Whether or not the only report supports the empty string, the interval of the share without
    a string is wide."""
    seen = set()
    for seed in range(8):
        found = find_strings([part(code, draw(code, {"": 1}, seed))], Rule()).withheld
        if found.share:  # not in the row that knows nothing of it
            assert found.high - found.low > 1, found
            seen.add(found.share > 0)
    assert seen == {True, False}


def test_too_few_for_any_string(code: PrefixTree, draw: Draw, part: MakePart) -> None:
    """No share above 100% is named as one that surfaces."""
    one = _seen(finds_view(find_strings([part(code, draw(code, {"a": 1}, seed=1))], Rule())))
    assert "too small for any string to surface" in one
    assert "%" not in one.replace("95%", "")
    some = _seen(finds_view(find_strings([part(code, draw(code, {"a": 15}, seed=1))], Rule())))
    assert "strings of any letters, may be missing" in some


def test_no_device_is_explained_twice(code: PrefixTree, draw: Draw, part: MakePart) -> None:
    """A beginning that one scheme cuts at counts the whole strings of a longer scheme: what all
    of them explain holds each device once."""
    other = PrefixTree.design("terms", 4.0, 6)
    words = {"longerwords": 60_000, "longerwordy": 60_000, "search": 20_000}
    first = draw(code, words, seed=4)
    second = draw(other, words, seed=5, window="2026-11-17")
    both = find_strings([part(code, first), part(other, second)], Rule())
    assert {each.text for each in both.finds} >= {"longerword", "longerwords", "longerwordy"}
    assert both.explained.share == pytest.approx(1, abs=0.05)
    assert both.explained.low <= 1 <= both.explained.high


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Strings are added to the file that a link leads to."""
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old\n")
    link.symlink_to(real)
    _replace(link, "old\nnew\n")
    assert link.is_symlink()
    assert real.read_text() == "old\nnew\n"


@pytest.mark.parametrize("text", ["=cmd()", " =1", "\uff1dcmd()", "\uff0b1", "\uff0d1", "\uff20A1"])
def test_formulas_in_all_widths(text: str) -> None:
    """A spreadsheet that takes wide signs for formulas too is given none."""
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", ["a;b", ";=cmd()", "a; @b", "x\u037ey"])
def test_no_text_begins_a_cell(text: str) -> None:
    """A spreadsheet that separates cells by semicolons takes a text for one cell: no text begins
    another one, which could hold a formula."""
    assert harmless(text) == text.replace(";", "\\x3b")
    assert ";" not in harmless(text)
