"""One function draws a chart on a page and as a picture of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from jinja2 import Environment, FileSystemLoader

import deniable_estimator
from deniable_estimator.document.plot.drawing import draw
from deniable_estimator.document.plot.lines import SparkPoint, apart, line_of, sparkline
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
    Point,
    RuleLine,
    Spot,
)
from deniable_estimator.document.plot.parts import (
    _KEYS as KEYS,
)
from deniable_estimator.document.plot.parts import (
    flags,
    key,
    part_bar,
    picture,
    small_bar,
    small_chart,
    spark,
    strip,
)
from deniable_estimator.document.plot.pens import Page
from deniable_estimator.document.plot.scales import (
    Axis,
    NumberAxis,
    Tick,
    end_text,
    log_levels,
    scale_from_zero,
)
from deniable_estimator.document.units import NumberUnit, ShareUnit

HOSTILE = "</text></svg><script>alert('&\"')"
ROW = BarRow(HOSTILE, "25%", 25.0, 20.0, 30.0, "20%", "30%", spread="5")
OPEN = BarRow("p99", "at least 3 s", None, 60.0, 100.0, between="3 s to ∞", open_high=True)
DOTS = Dots(rows=(OPEN, ROW), ticks=(Tick(0, "0"), Tick(50, HOSTILE), Tick(100, "9")))
LINE = DrawnLine(
    HOSTILE, 1, ("M0 5L1000 9",), ("M0 4L1000 8L1000 10L0 6Z",), (Dot(50, 7, 5, 9, *4 * [False]),)
)
FLAG = Flag("1", 1, 50.0, (50.0,), f"{HOSTILE} and more", "middle")
CHARTS: dict[str, Chart] = {
    "bars": Bars(rows=(ROW,), ticks=(Tick(0, "0%"), Tick(100, "100%"))),
    "lines": LineChart(
        form="trend",
        height=20,
        lines=(LINE, LINE._replace(style=2)),
        levels=(Tick(5, HOSTILE),),
        ticks=(Tick(50, HOSTILE),),
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


FOLDER = Path(deniable_estimator.__file__).parent / "dashboard" / "templates"
PAGES = Environment(
    autoescape=True,
    loader=FileSystemLoader(FOLDER),
    trim_blocks=True,
    extensions=["jinja2.ext.i18n"],
)
PAGES.filters["isolated"] = str


def on_page(chart):
    """The chart on a page, as XML."""
    heat = PAGES.get_template("_document.html").module.heat
    drawn = heat(chart).strip() if isinstance(chart, HeatMap) else draw(chart, Page())
    return f"<main>{drawn}</main>".replace(" hidden>", ">")


def of(chart):
    """The chart as a picture of its own."""
    titled = replace(chart, title=HOSTILE, description=HOSTILE)
    flagged = (FLAG,) if isinstance(chart, LineChart) else ()
    head, foot = [("title", HOSTILE), ("sub", "")], [("alarming", HOSTILE)]
    return picture((titled,), str, head, foot, flagged)


@pytest.mark.parametrize("mark", CHARTS)
def test_whatever_a_text_holds_it_stays_a_text(mark):
    """Names that people give cannot become elements, on a page or in a picture."""
    chart = CHARTS[mark]
    for drawn in (on_page(chart), of(chart)):
        tags = {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(drawn).iter()}
        assert "script" not in tags


CELLS = (CellRow("all", (HeatCell("?", 0, "few"), HeatCell("9%", 2)), "note", "12", whole=True),)
SHOWN = LineChart(
    form="reach",
    height=90,
    lines=(LINE._replace(dashed=True, dots=(Dot(50, 7, 5, 9, True, True, True),)),),
    levels=(Tick(5, "9"), Tick(60, "1"), Tick(90, "")),
    ticks=(Tick(0, "0"), Tick(50, "5", spare=True), Tick(100, "9")),
    points=(Point("a day", 20.0, 5.0, True), Point("", 25.0, 5.0, False)),
    rules=(RuleLine((0, 30), (100, 30), "asked"), RuleLine((9, 0), (9, 90))),
    spots=(Spot(61, 30, 4, "left"), Spot(60, 30, 4, "right"), Spot(5, 5, 2)),
)
"""Plots that have what no other here has."""


def drawings():
    """Each drawing as it is written, and where numbers lie on scales."""
    share, seconds, log = ShareUnit(), NumberUnit("s"), NumberUnit("s", log=True)
    charts = [*CHARTS.values(), SHOWN, replace(SHOWN, form="numbers"), Dots(rows=(OPEN,), ticks=())]
    charts += [
        replace(SHOWN, form="trend small", lines=(LINE, LINE._replace(style=8))),
        *(HeatMap(corner="", heads=("1",) * 14, rows=(), wide=wide) for wide in (True, False)),
        HeatMap(corner="week", heads=("1", "2"), over="age", counted="n", rows=CELLS),
        Bars(rows=(OPEN._replace(open_low=True, impossible=True), ROW._replace(truth=9.0)), zero=9),
    ]
    rows = [ROW, ROW._replace(at=5.0), OPEN, OPEN._replace(open_low=True), ROW._replace(low=29.9)]
    yield from (line for each in charts for line in on_page(each).splitlines())
    yield from (line for each in charts for line in of(each).splitlines())
    yield from (str(strip(row, 12.0)) for row in rows)
    yield from (str(small_bar(row, 12.0)) for row in rows)
    yield str(flags((FLAG,), 90, Page(), "notes"))
    columns = CHARTS["columns"]
    assert isinstance(columns, Columns)
    yield str(small_chart(columns, Page()))
    yield from (str(small_chart(Dots(rows=(row,), ticks=DOTS.ticks), Page())) for row in rows)
    yield from (str(key(each)) for each in KEYS)
    yield from map(str, (part_bar(30), part_bar(100.0, 8)))
    ends = [(0.0, 1.0), (0.2, 0.21), (-0.01, 0.5), (-0.4, 0.5), (-0.5, -0.2), (0.0, 0.0), (3, 2e6)]
    for unit in (share, seconds, log):
        for low, high in POSITIVE if unit.log else ends:
            numbers = np.array([[(low + high) / 2, low, high], [high, low, np.inf]])
            for gridlines in (True, False):
                axis = Axis.of(unit, numbers.copy(), gridlines=gridlines)
                assert axis is not None
                yield f"{low} {high} {axis.bottom:.9g} {axis.top:.9g} {axis.ticks(99)}"
    for low, high in ends:
        scale, levels = scale_from_zero(low, high)
        yield f"{low} {high} {scale.low:.9g} {scale.high:.9g} {np.round(levels, 9).tolist()}"
    assert Axis.of(share, np.full((2, 3), np.nan)) is None
    yield from (f"{each} {[f'{at:.9g}' for at, _ in log_levels(*each)]}" for each in LOGS)
    yield from (f"{unit.tick(*each)}" for each in STEPS for unit in (share, seconds))
    for low, high, is_log, *more in RANGES:
        number_axis = NumberAxis(low, high, is_log, *more)
        at = [number_axis.across(each) for each in (low - 1, low, (low + high) / 2, high, high + 1)]
        yield f"{end_text(low)} {end_text(high)} {at} {number_axis.ticks()}"
    points = [None, *(SparkPoint(9 + each % 5, 0.1 * each, 0.3) for each in range(1, 130)), None]
    some = [points[1], None, *points[7:12]]
    for unit in (share, seconds, log):
        for found in (points, some, points[:2]):
            line = sparkline(found, unit)
            yield str(line and spark(line, HOSTILE))
    found_axis = Axis.of(seconds, np.array([[1.0, 0.0, 9.0]]))
    assert found_axis is not None
    numbers_of = [(1, 0, 2), (2, 1, math.inf), None, (3, 2, 4), None, (4, 3, 5), (5, 4, 6)]
    for small in (False, True):
        more_of = {"partial": (0,), "alarmed": (6,), "small": small}
        yield str(line_of("line", 1, numbers_of, found_axis, 90, **more_of))
    yield str([apart(each, 90) for each in ([9, 9, 12], [80, 88, 89], [50.04, 10])])


POSITIVE = [(0.02, 30.0), (3.0, 3.001), (1e-6, 1e9)]
LOGS = [(0.01, 100), (0.01, 1e6), (2, 30), (1, 3), (0.9, 1.1)]
STEPS = [(0.025, 0.025), (0.05, 0.025), (0.25, 0.25), (2.5, 2.5), (0.5, 0.5), (20.0, 10.0)]
STEPS += [(1e4, 1e4), (2e6, 1e6), (2.5e6, 5e5), (1e-4, 1e-4), (0.0, 1e6)]
RANGES = [(0, 100, False), (0.5, 99.5, False, 7.5, 92.5, 0.5), (1, 1000, True), (0.2, 30, True)]
RANGES += [(0, 50, False, 7.5, 92.5), (0.5, 20, True, 7.5, 92.5), (0, 5e9, False, 7.5, 92.5)]
RANGES += [(10_000, 90_000, False, 7.5, 92.5), (1_000_000, 1_000_050, False, 7.5, 92.5)]
RANGES += [(1e-5, 1e9, True, 7.5, 92.5), (-3, 2e6, False), (1234567, 1234571, False, 7.5, 92.5)]


def test_what_is_drawn_stays(stays):
    """Nothing is drawn otherwise than before."""
    stays("drawn.txt", drawings())
