"""docs/boards.md has every key, default and limit of the code."""

from __future__ import annotations

import re
from pathlib import Path

from deniable_estimator.checked_files import MAX_FILE
from deniable_estimator.dashboard.boards import drawing
from deniable_estimator.dashboard.boards import file as code
from deniable_estimator.dashboard.boards.board import SIZES, VIEWS, BoardChart, BoardText
from deniable_estimator.dashboard.boards.commands import boards
from deniable_estimator.dashboard.boards.folder import MOST_BOARDS
from deniable_estimator.dashboard.boards.pages import REFRESH

PAGE = (Path(__file__).parents[3] / "docs" / "boards.md").read_text(encoding="utf-8")


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
    keys = {
        "key at the top": code.TOP_KEYS,
        "key of a chart": code.CHART_KEYS,
        "key of a text": code.TEXT_KEYS,
    }
    for heading, known in keys.items():
        rows = table(heading)
        assert set(rows) == set(known)
        assert all(len(cells) == 3 and all(cells) for cells in rows.values())
    assert {
        each: cells[0].partition(", with the [")[0] for each, cells in table("view").items()
    } == VIEWS
    assert {each: cells[0] for each, cells in table("size").items()} == SIZES


def test_every_default_and_limit_is_that_of_the_code() -> None:
    """The page names each number."""
    top, chart, text = (table(f"key {each}") for each in ("at the top", "of a chart", "of a text"))
    assert f"{code.MOST_ITEMS} tables, {code.MOST_CHARTS} of them" in top["items"][2]
    assert f"1 to {code.MOST_TITLE} " in top["title"][2] == chart["title"][2] == text["title"][2]
    assert f"1 to {code.MOST_DESCRIPTION} " in top["description"][2]
    assert f"1 to {code.MOST_TEXT:,} " in text["text"][2]
    assert f"1 to {code.MOST_DAYS:,}" == chart["days"][2]
    assert f"1 to {code.MOST_VALUES}, of a trend 1 to {code.MOST_LINES}" == chart["values"][2]
    assert f"largest {drawing.BARS}" in chart["values"][1]
    assert drawing.BARS == drawing.LINES
    least = BoardChart("x")
    assert (chart["view"][1], chart["size"][1]) == (f'`"{least.view}"`', f'`"{least.size}"`')
    assert text["size"][1] == f'`"{BoardText(()).size}"`'
    for cells, choices in ((chart["view"], VIEWS), (chart["size"], SIZES), (text["size"], SIZES)):
        assert cells[2] == ", ".join(f"`{each}`" for each in choices)
    assert f"up to {MOST_BOARDS} boards" in PAGE
    assert f"{MAX_FILE:,} bytes" in PAGE
    assert f"every {REFRESH} seconds" in PAGE


def test_every_option_is_named() -> None:
    """Each option of the command stands on the page."""
    for option in boards.params:
        for each in option.opts:
            assert not each.startswith("--") or f"`{each}`" in PAGE


def test_the_example_has_every_key() -> None:
    """`tests/e2e/test_documented_blocks.py` reads it; here each key is found in it."""
    (text,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.M | re.S)
    for key in {*code.TOP_KEYS, *code.CHART_KEYS, *code.TEXT_KEYS}:
        assert re.search(rf"^(\[\[{key}\]\]|{key} = )", text, re.M), key
