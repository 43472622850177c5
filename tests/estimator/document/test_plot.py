"""One function draws a chart on a page and as a picture of its own."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from deniable_estimator.document.plot.drawing import draw
from deniable_estimator.document.plot.marks import (
    BarRow,
    Bars,
    CellRow,
    Chart,
    Columns,
    Dot,
    Dots,
    DrawnLine,
    Flag,
    HeatCell,
    HeatMap,
    HistogramBar,
    LineChart,
)
from deniable_estimator.document.plot.page import Page
from deniable_estimator.document.plot.parts import PictureFrame, picture, small_bar
from deniable_estimator.document.plot.ticks import Label, Tick

HOSTILE = "</text></svg><script>alert('&\"')"
ROW = BarRow(HOSTILE, "25%", 25.0, 20.0, 30.0, "20%", "30%", spread="5")
OPEN = BarRow("p99", "at least 3 s", None, 60.0, 100.0, between="3 s to ∞", open_high=True)
DOTS = Dots(rows=(OPEN, ROW), ticks=(Label(0, "0"), Label(50, HOSTILE), Label(100, "9")))
LINE = DrawnLine(
    HOSTILE, 1, ("M0 5L1000 9",), ("M0 4L1000 8L1000 10L0 6Z",), (Dot(50, 7, 5, 9, *4 * [False]),)
)
CHARTS: dict[str, Chart] = {
    "bars": Bars(rows=(ROW,), ticks=(Tick(0, "0%"), Tick(100, "100%"))),
    "lines": LineChart(
        form="trend",
        height=20,
        lines=(LINE, LINE._replace(style=2)),
        levels=(Tick(5, HOSTILE),),
        ticks=(Label(50, HOSTILE),),
    ),
    "columns": Columns(
        height=20, columns=(HistogramBar(10, 5, 8, False, HOSTILE),), levels=(), marks=DOTS
    ),
    "cells": HeatMap(
        corner=HOSTILE,
        heads=(HOSTILE,),
        rows=(CellRow(HOSTILE, (HeatCell(HOSTILE, -4, HOSTILE, HOSTILE, named=True), None)),),
        wide=True,
    ),
    "dots": DOTS,
}


def on_page(chart):
    """The chart on a page, as XML."""
    return f"<main>{draw(chart, Page())}</main>".replace(" hidden>", ">")


def of(chart):
    """The chart as a picture of its own."""
    frame = PictureFrame(
        HOSTILE, HOSTILE, [("title", HOSTILE), ("sub", "")], [("alarming", HOSTILE)]
    )
    flag = Flag("1", 1, 50.0, (50.0,), HOSTILE, "middle")
    return picture(frame, (chart,), str, (flag,) if isinstance(chart, LineChart) else ())


@pytest.mark.parametrize("mark", CHARTS)
def test_whatever_a_text_holds_it_stays_a_text(mark):
    """Names that people give cannot become elements, on a page or in a picture."""
    chart = CHARTS[mark]
    for drawn in (on_page(chart), of(chart)):
        tags = {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(drawn).iter()}
        assert "script" not in tags


@pytest.mark.parametrize("mark", CHARTS)
def test_a_picture_needs_no_style_sheet(mark):
    """Its lengths are pixels of its own, inside of it, and each shape has a colour."""
    root = ElementTree.fromstring(of(CHARTS[mark]))
    width, height = (float(root.get(name, "")) for name in ("width", "height"))
    ground, *shapes = (
        each for each in root.iter() if re.search("rect|line|path|circle$", each.tag)
    )
    assert ground.get("width") == "100%"
    assert shapes
    for each in root.iter():
        assert each.get("class") is None
    for each in shapes:
        assert each.get("fill") or each.get("stroke")
        places = {name: float(each.get(name, "0")) for name in ("x", "x1", "x2", "cx")}
        assert all(0 <= at <= width for at in places.values())
        assert all(0 <= float(each.get(name, "0")) <= height for name in ("y", "y1", "y2", "cy"))


def test_page_and_picture_have_the_same_proportions():
    """A bar is as long on the scale of a picture as it is on a page."""
    page = ElementTree.fromstring(on_page(CHARTS["bars"]))
    (bar,) = page.findall(".//rect[@class='bar']")
    whisker = page.find(".//line[@class='whisker']")
    assert whisker is not None
    assert [bar.get("width"), whisker.get("x1"), whisker.get("x2")] == ["25%", "20%", "30%"]
    name = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(of(CHARTS["bars"]))
    first, last = (float(e.get("x1", "")) for e in root.findall(f"{name}line[@stroke='#ecebe6']"))
    (drawn,) = root.findall(f"{name}rect[@fill='#0f766e']")
    assert float(drawn.get("width", "")) == pytest.approx((last - first) / 4)


def test_an_end_without_a_limit_has_an_arrow_and_no_dot():
    """Nobody reads a limit where there is none."""
    page = draw(Dots(rows=(OPEN,), ticks=()), Page())
    assert "<circle" not in page
    assert page.count("whisker open") == 1
    assert page.count('x1="100%" x2="100%"') == 0
    assert draw(Dots(rows=(ROW,), ticks=()), Page()).count("<circle") == 1


def test_a_small_bar_begins_at_zero():
    """A card has no scale: below zero a bar ends there."""
    below = ROW._replace(at=5.0)
    assert '"M5 3h7"' in small_bar(below, 12.0)
    assert '"M12 3h13"' in small_bar(ROW, 12.0)
