"""The planner's pages: what they declare, draw and refuse."""

import html
import itertools
import json
import re

import pytest
from tests.estimator.planning.conftest import plan

from deniable import Registry
from deniable_estimator.dashboard.planner import division_chart

from .conftest import page_of, text_of

REST = 'description = "?"\nowner = "me"\nexpires = 2027-06-30\n'


def declared(page, values=0):
    """The registry with what the page says to declare, and with the two metrics of a pair."""
    found = re.search(r"<pre[^>]*><code>(\[metrics.*?)</code></pre>", page, re.DOTALL)
    assert found is not None
    listed = json.dumps([str(number) for number in range(values)])
    text = html.unescape(found[1]).replace("[...]", listed)
    two = "".join(
        f'[metrics.{name}]\ntype = "boolean"\nepsilon = 1.0\nlifetime_epsilon = 8.0\n{REST}'
        for name in ("first", "second")
    )
    return Registry.parse(f"schema = 1\napp = 'example'\n{two}{text}\n{REST}")


def test_the_declaration_is_a_registry(shared_browser):
    """What the page says to declare is understood by the registry, once the values are named."""
    page = text_of(shared_browser, "/plan?size=3&epsilon=0.5&sample_rate=0.25")
    metric = declared(page, values=3)["my_metric"]
    assert (metric.epsilon, metric.sample_rate, metric.devices) == (0.5, 0.25, 100_000)
    page = text_of(shared_browser, "/plan?size=3&lifetime_epsilon=8&sample_rate=0.2&memoize=1")
    assert declared(page, values=3)["my_metric"].longitudinal == "memoize"
    page = text_of(
        shared_browser, "/plan/pair?rows=2&columns=2&epsilon=2&devices=50000&sample_rate=0.5"
    )
    assert declared(page)["my_pair"].epsilon == 2.0
    for ask in ("mean", "distribution", "both"):
        page = text_of(shared_browser, f"/plan/number?low=-5&high=1e3&ask={ask}&unit=%22k%5C")
        metric = declared(page)["my_metric"]
        assert metric.type.unit == '"k\\'
        assert (metric.type.range.low, metric.type.range.high) == ("-5", "1000")
        assert len(metric.type.ask) == (2 if ask == "both" else 1)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("?size=ten", "a whole number"),
        ("?size=1000000", "100,000"),
        ("?epsilon=nan", "from 0.001"),
        ("?epsilon=8&lifetime_epsilon=2", "the larger one"),
        ("?memoize=1&lifetime_epsilon=", "needs a lifetime epsilon"),
        ("?size=%3Cscript%3E", "a whole number"),
        ("/number?low=nan", "Write a number from"),
        ("/number?low=5&high=5", "Let high be above low."),
        ("/number?ask=mode", "Choose one of mean, distribution, both."),
        (f"/number?unit={'m' * 21}", "at most 20 characters"),
        ("/number?sizes=3", "is not known here"),
        ("/pair?rows=1", "from 2 up to 450"),
        ("/pair?effect=-1", "from 0 up to 1"),
        ("/retention?lifetime_epsilon=", "Write a number from"),
        ("/lifetime?turnover=-1", "from 0 up to 0.99"),
        ("/lifetime?epsilon=9", "let the lifetime"),
        ("/lifetime?ask=mean&low=5", "both low and high"),
        ("/lifetime?window=year", "Choose one of"),
    ],
)
def test_mistakes_are_marked(shared_browser, path, words):
    """What cannot be planned is a 400 that keeps the form and says beside its field what to
    write."""
    answer = page_of(shared_browser, f"/plan{path}")
    assert answer.status_code == 400
    assert words in html.unescape(answer.text)
    assert 'role="alert"' in answer.text
    assert "<form" in answer.text
    assert "<script>" not in answer.text


@pytest.mark.parametrize(
    "query",
    [
        "devices=10&sample_rate=0.0001",
        "devices=1000000000000&sample_rate=1&size=10000&epsilon=10&lifetime_epsilon=10",
        "devices=1&size=2",
        "size=2&epsilon=0.001",
    ],
)
def test_the_extremes_are_planned(shared_browser, query):
    """The smallest and the largest numbers that the form takes have a page."""
    assert 'id="reach"' in text_of(shared_browser, f"/plan?{query}")


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("lifetime", "years"), [(0.001, 0.01), (0.5, 1), (8, 2), (100, 20), (10_000, 20), (10_000, 0.1)]
)
def test_every_chart_stays_inside(lifetime, years):
    """Dots and ticks lie within the plot, and ticks do not overlap."""
    made = plan("lifetime", lifetime_epsilon=lifetime, years=years, devices=1000)
    chart = division_chart(made["choices"], made["best"])
    assert all(0 <= dot.at <= 100 and 0 <= dot.down <= chart.height for dot in chart.spots)
    assert sum(bool(dot.text) for dot in chart.spots) == 1
    places = [tick.at for tick in chart.ticks]
    assert places == sorted(places)
    assert all(b - a >= 6 for a, b in itertools.pairwise(places))
    assert 1 <= len(chart.levels) <= 8
    assert all(0 <= tick.at <= chart.height for tick in chart.levels)


def test_a_long_list_is_planned_elsewhere(shared_browser):
    """Of more than 100 values another process makes the plan, with the same figures; of other
    windows it makes another one."""
    for window, windows in (("day", 730), ("month", 24)):
        page = text_of(shared_browser, f"/plan/lifetime?size=5000&window={window}")
        best = plan("lifetime", size=5000, lifetime_epsilon=8, years=2, window=window)["best"]
        assert f"Best: {best.reports} reports with epsilon {best.epsilon:g}" in page
        assert f"{windows} windows" in page
