"""The geometry of numbers: bars whose areas are shares, marks with and without limits, axes."""

import math
from datetime import date
from itertools import pairwise

import numpy as np
import pytest

from deniable import Registry
from deniable_estimator.answers.distribution import Distribution
from deniable_estimator.answers.words.number_charts import (
    MOST_BARS,
    curve_chart,
    histogram_chart,
)
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reading import read
from deniable_estimator.document.plot.scales import STRIP, NumberAxis

from .conftest import NUMBERS, fill_numbers

HEIGHT = 200


@pytest.fixture
def answer(number_store, numbers):
    def find(name):
        found = read(number_store, numbers, Query(name))
        assert isinstance(found, Distribution)
        return found

    return find


def chart_of(answer):
    return histogram_chart(answer, height=HEIGHT)


@pytest.mark.parametrize("name", ["load", "plugins", "narrow"])
def test_bars_tile_the_plot_between_the_strips(answer, name):
    """Bars follow each other without gap or overlap, at most 64 of them, and what lies outside of
    the range has a strip at each end."""
    chart = chart_of(answer(name))
    below, *bars, above = chart.columns
    assert (below.start, below.width, below.outside) == (0, STRIP, True)
    assert (above.start, above.width, above.outside) == (100 - STRIP, STRIP, True)
    assert 2 <= len(bars) <= MOST_BARS
    assert not any(bar.outside for bar in bars)
    for one, two in pairwise(bars):
        assert one.start + one.width == pytest.approx(two.start, abs=0.02)
    assert below.width < bars[0].start
    assert bars[-1].start + bars[-1].width < above.start
    assert all(0 <= bar.height <= HEIGHT for bar in chart.columns)


@pytest.mark.parametrize("cells", [64, 256, 1024])
def test_the_area_of_bars_is_their_share(number_store, numbers, cells):
    """However many cells there are, as many bars are drawn as fit, and the area of a bar is in
    proportion to the share of its cells."""
    text = NUMBERS.replace('ask = "distribution"\n', f'ask = "distribution"\ncells = {cells}\n')
    registry = Registry.parse(text)
    number_store.publish({"load": [registry["load"].scheme]})
    fill_numbers(number_store, registry, "load", [0.5, 0.6, 2.0, 8.0] * 5_000, "2026-11-19")
    day = date(2026, 11, 19)
    found = read(number_store, registry, Query("load", Days(day, day)))
    assert isinstance(found, Distribution)
    chart = chart_of(found)
    inner = chart.columns[1:-1]
    assert 32 <= len(inner) <= MOST_BARS
    area = np.array([bar.width * bar.height for bar in inner])
    every = math.ceil((len(found.cells.shares) - 2) / len(inner))
    shares = np.add.reduceat(found.cells.shares[1:-1], np.arange(0, cells - 2, every))
    assert area / area.sum() == pytest.approx(shares / shares.sum(), abs=2e-3)


def test_marks_lie_where_the_quantiles_are(answer):
    """Each series is marked at its place on the axis of the bars, its interval around it."""
    found = answer("load")
    chart = chart_of(found)
    axis = NumberAxis.of(found.range)
    marks = chart.marks.rows
    assert [mark.label for mark in marks] == ["p50", "p90", "p95", "p99", "geometric mean"]
    for place, mark in enumerate(marks):
        if mark.at is None:
            continue
        assert mark.at == axis.across(float(found.series.value[place]))
        assert mark.low <= mark.at <= mark.high
    assert marks[0].at == pytest.approx(axis.across(math.sqrt(2)), abs=3)


def test_an_open_end_is_told_as_at_least(answer):
    """Where a third lies above the range, p90 has no upper limit: no dot, an interval up to the
    edge, and "at least"."""
    mark = chart_of(answer("narrow")).marks.rows[1]
    assert (mark.at, mark.high, mark.open_high, mark.open_low) == (None, 100.0, True, False)
    assert mark.known
    assert mark.number.startswith("at least ")
    assert mark.number.endswith(" GB")
    assert mark.high_text == "no upper limit"


def test_the_curve_rises_inside_of_its_band(answer):
    """The line never falls; at each point it lies between the ends of the band."""
    found = answer("load")
    chart = curve_chart(found, height=160, name="below", limit=2.0)

    def heights(path):
        return [float(each.split(" ")[1]) for each in path.strip("MZ").split("L")]

    line = heights(chart.lines[0].paths[0])
    band = heights(chart.lines[0].bands[0])
    upper, lower = band[: len(line)], band[len(line) :][::-1]
    assert all(one >= two for one, two in pairwise(line))
    assert all(high <= at <= low for high, at, low in zip(upper, line, lower, strict=True)), (
        "down, smaller is higher"
    )
    assert chart.rules[0].start == (NumberAxis.of(found.range).across(2.0), 0)
    assert [level.text for level in chart.levels] == ["0%", "25%", "50%", "75%", "100%"]
