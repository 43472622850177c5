"""The geometry of numbers: bars whose areas are shares, marks with and without limits, axes."""

import math
from itertools import pairwise

import numpy as np
import pytest

from deniable import Registry
from deniable_estimator.asking.fetch import read
from deniable_estimator.asking.query import Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.document.plot.scales import STRIP
from deniable_estimator.kinds.numbers.charts import (
    MOST_BARS,
    histogram_chart,
)
from deniable_estimator.kinds.numbers.distribution import Distribution

from .conftest import NUMBERS, fill_numbers

HEIGHT = 200


@pytest.fixture
def ask(empty_store):
    """Stores numbers of a metric, and answers with their distribution."""

    def ask(registry, name, numbers):
        empty_store.publish([(name, registry[name].scheme)])
        fill_numbers(empty_store, registry, name, numbers)
        found = read(Reader(empty_store), registry, Query(name))
        assert isinstance(found, Distribution)
        return found

    return ask


def chart_of(answer):
    return histogram_chart(answer, height=HEIGHT)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("load", np.exp(np.linspace(-3, 3, 40_000))),
        ("plugins", np.arange(40_000) % 7),
        ("narrow", np.linspace(0, 6, 40_000)),
    ],
)
def test_bars_tile_the_plot_between_the_strips(ask, name, numbers):
    """Bars follow each other without gap or overlap, at most 64 of them, and what lies outside of
    the range has a strip at each end."""
    chart = chart_of(ask(Registry.parse(NUMBERS), name, numbers.tolist()))
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
def test_the_area_of_bars_is_their_share(ask, cells):
    """However many cells there are, as many bars are drawn as fit, and the area of a bar is in
    proportion to the share of its cells."""
    text = NUMBERS.replace('ask = "distribution"\n', f'ask = "distribution"\ncells = {cells}\n')
    found = ask(Registry.parse(text), "load", [0.5, 0.6, 2.0, 8.0] * 5_000)
    chart = chart_of(found)
    inner = chart.columns[1:-1]
    assert 32 <= len(inner) <= MOST_BARS
    area = np.array([bar.width * bar.height for bar in inner])
    every = math.ceil((len(found.cells.shares) - 2) / len(inner))
    shares = np.add.reduceat(found.cells.shares[1:-1], np.arange(0, cells - 2, every))
    assert area / area.sum() == pytest.approx(shares / shares.sum(), abs=2e-3)
