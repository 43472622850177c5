"""Boards: their files, their pages and their frames."""

import re
from datetime import date, timedelta
from pathlib import Path

import pytest
from tests.registries import declared

from deniable import Registry
from deniable.protocol import windows
from deniable_estimator.asking.results import StillDecoding
from deniable_estimator.dashboard.boards import definition as code
from deniable_estimator.dashboard.boards.definition import (
    MOST_BOARDS,
    BoardFolder,
    parse_board,
)
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.files import CheckedFileError

from .conftest import REGISTRY, browser_of, dashboard_of, fill, text_of

BOARD = """schema = 1
title = "Monday <b>board</b>"

[[items]]
metric = "browser"
title = "Only two"
values = ["firefox", "chrome"]

[[items]]
metric = "silent"
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "boards"
    folder.mkdir()
    (folder / "monday.toml").write_text(BOARD, encoding="utf-8")
    return folder


@pytest.fixture
def board_app(store, registry, folder):
    fill(store, registry, "browser", [0.3, 0.69, 0.01, 0.0], 20_000, "2026-11-19")
    return dashboard_of(store, registry, boards=str(folder))


@pytest.fixture
def reader(board_app):
    return browser_of(board_app)


def mistakes(items, registry=REGISTRY):
    """Line and place of each mistake of a board with these items."""
    text = f'schema = 1\ntitle = "T"\n{items}'
    with pytest.raises(CheckedFileError) as caught:
        parse_board(text, "board", Registry.parse(registry))
    return [(each.line, each.where) for each in caught.value.problems]


def test_a_trend_has_the_series_of_its_metric():
    """A board names the series of a pair and of a retention, as addresses do, and not their
    cells."""
    registry = Registry.load(Path(__file__).parents[2] / "contract" / "crowd" / "metrics.toml")
    text = 'schema = 1\ntitle = "T"\n[[items]]\nmetric = "{}"\nview = "trend"\nvalues = ["{}"]\n'
    for metric, series, cell in (
        ("mode_by_channel", "update_channel=beta given dark_mode=true", "dark_mode=true × no"),
        ("trial", "age 2", "cohort 1"),
    ):
        board = parse_board(text.format(metric, series), "b", registry)
        assert board.charts[0].values == (series,)
        with pytest.raises(CheckedFileError, match="does not have"):
            parse_board(text.format(metric, cell), "b", registry)


def test_limits_are_met_exactly(registry):
    """As many charts, items and characters as may be are accepted, and one more is not."""
    chart, text = '[[items]]\nmetric = "browser"\n', '[[items]]\ntext = "{}"\n'
    full = chart * code.MOST_CHARTS + text.format("x") * (code.MOST_ITEMS - code.MOST_CHARTS)
    board = parse_board(f'schema = 1\ntitle = "{"t" * code.MOST_TITLE}"\n{full}', "b", registry)
    assert len(board.items) == code.MOST_ITEMS
    assert mistakes(chart * (code.MOST_CHARTS + 1)) == [(3, "items")]
    assert mistakes(text.format("x") * (code.MOST_ITEMS + 1)) == [(3, "items")]
    assert mistakes(text.format("x" * (code.MOST_TEXT + 1))) == [(4, "items.1.text")]
    assert mistakes("") == [(None, "items")]
    trend = chart + 'view = "trend"\nvalues = ["a", "b", "c", "d", "e", "f", "g", "h", "i"]\n'
    assert mistakes(trend) == [(6, "items.1.values")]


@pytest.mark.parametrize(
    "name", ["tuesday", "mondy", "..%2fmonday", "%2e%2e", "MONDAY", "monday.toml", "x" * 10_000]
)
def test_what_is_no_board_is_not_found(reader, name):
    """Whatever the name, no other file is read; a name that is nearly right is told the right
    one."""
    answer = reader.get(f"/boards/{name}")
    assert answer.status_code == 404
    assert ("Did you mean monday?" in answer.text) == (name in ("mondy", "monday.toml"))


def test_a_mistake_leaves_the_board_as_it_was(reader, folder):
    """It is told on the page, without the folder; a board that was never right is not shown."""
    assert "Only two" in text_of(reader, "/boards/monday")
    (folder / "monday.toml").write_text(BOARD.replace('"silent"', '"silnt"'), encoding="utf-8")
    page = text_of(reader, "/boards/monday")
    assert "Only two" in page
    assert "monday.toml:10: error: items.2.metric: is not declared" in page
    assert str(folder) not in page
    (folder / "new.toml").write_text("schema = 2\n")
    answer = reader.get("/boards/new")
    assert answer.status_code == 409
    assert ">Share<" not in answer.text
    assert ">Share<" in text_of(reader, "/boards/monday")
    assert reader.get("/share?view=/boards/new").status_code == 400
    assert "new.toml:1: error: schema: must be 1" in answer.text
    assert "1 mistake" in text_of(reader, "/boards")


def test_a_board_looks_again_while_a_chart_is_calculated(reader, monkeypatch):
    """Once all charts are there, the page does not reload by itself."""
    assert "Refresh" not in reader.get("/boards/monday").headers

    def slow(self):
        raise StillDecoding(0, 1, 0.0)

    monkeypatch.setattr(PageReading, "answer", property(slow))
    page = reader.get("/boards/monday")
    assert page.headers["Refresh"] == "5"
    assert "is being calculated" in page.text


def test_too_many_boards_are_refused(registry, tmp_path):
    """The first by name have an address; `refused` names the others, and files with no name."""
    for number in range(MOST_BOARDS + 1):
        (tmp_path / f"board-{number:03}.toml").write_text(BOARD)
    (tmp_path / "Not a name.toml").write_text(BOARD)
    kept = BoardFolder(tmp_path, registry)
    assert len(kept.names) == MOST_BOARDS
    assert kept.refused == ["Not a name.toml", f"board-{MOST_BOARDS:03}.toml"]
    assert BoardFolder(tmp_path / "gone", registry).names == []


def test_days_that_were_dropped_are_shown_by_whole_weeks(empty_store, tmp_path):
    """A chart of a year, the overview over a year and each range that a page offers have whole
    weeks, where the registry keeps no days of so long ago."""
    (tmp_path / "year.toml").write_text(
        'schema = 1\ntitle = "T"\n[[items]]\nmetric = "m"\nview = "trend"\n'
        'days = 120\nby = "week"\n'
    )
    keep = 'keep = { day = "60 days", week = "forever" }\n'
    registry = Registry.parse(declared(m={"type": "boolean"}) + keep)
    scheme = registry["m"].scheme
    empty_store.publish([("m", scheme)])
    for ago in range(1, 250):
        day = (date(2026, 11, 21) - timedelta(ago)).isoformat()
        fill(empty_store, registry, "m", [0.4, 0.6], 2_000, day)
    before = windows.end("2026-09-21")
    assert empty_store.sums.drop_windows(("m", scheme.fingerprint), before, ("week",))
    client = browser_of(dashboard_of(empty_store, registry, boards=str(tmp_path)))
    board = text_of(client, "/boards/year")
    assert "2026-W30" in board
    assert "dropped" not in board
    overview = text_of(client, "/?from=2026-07-24&to=2026-11-20")
    assert "No reports in these days" not in overview
    assert "Shown are 20 Jul 2026 to 20 Nov 2026" in overview
    page = text_of(client, "/metric/m")
    offered = set(re.findall(r"from=[-0-9]+&amp;to=[-0-9]+", page))
    assert len(offered) > 2
    for query in offered:
        for path in ("/metric/m?change=range&", "/metric/m/compare?"):
            assert client.get(path + query.replace("&amp;", "&")).status_code == 200
