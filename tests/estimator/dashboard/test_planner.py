"""The planner's pages: what they declare, draw and refuse."""

import html
import itertools
import json
import re

import pytest
from click.testing import CliRunner
from tests.estimator.planning.conftest import plan

from deniable import Registry
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable.tools.command_line import find
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.dashboard.planner import division_chart
from deniable_estimator.planning.pair_plan import conditional_half_width
from deniable_estimator.privacy.words import rounded_up

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


@pytest.mark.parametrize("size", [2, 20, 3_000])
def test_memory_is_planned(shared_browser, size):
    """With the box ticked the page says what a memo reveals, as `deniable plan --memoize` does,
    and declares it; the box stays ticked."""
    query = f"size={size}&epsilon=1&lifetime_epsilon=8&devices=50000&sample_rate=0.2"
    fresh, page = (text_of(shared_browser, f"/plan?{query}{more}") for more in ("", "&memoize=1"))
    options = ["--size", str(size), "--epsilon", "1", "--devices", "50000", "--sample-rate", "0.2"]
    options += ["--lifetime-epsilon", "8", "--memoize", "--share", "0.01", "--json"]
    made = json.loads(CliRunner().invoke(find("plan"), options).stdout)
    memory = made["memory"]
    assert f"reveal at most ε {rounded_up(memory['memo_epsilon'], 2)};" in page
    assert f"adds at most ε {rounded_up(memory['fresh_epsilon'], 2)}" in page
    assert f"±{100 * memory['lasting_std_error']:.2g} points" in page
    assert f"{made['devices_to_detect']:,} devices" in page
    assert re.search(r'name="memoize" value="1" checked', page)
    metric = declared(page, values=size)["my_metric"]
    assert metric.longitudinal == "memoize"
    assert metric.scheme.mechanism.name == made["mechanism"]
    for text in ("longitudinal", "any number", " checked"):
        assert text not in fresh


def test_the_declaration_is_a_registry(shared_browser):
    """What the page says to declare is understood by the registry, once the values are named."""
    page = text_of(shared_browser, "/plan?size=3&epsilon=0.5&sample_rate=0.25")
    metric = declared(page, values=3)["my_metric"]
    assert (metric.epsilon, metric.sample_rate, metric.devices) == (0.5, 0.25, 100_000)
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
        ("?size=1", "from 2"),
        ("?size=ten", "a whole number"),
        ("?size=1000000", "100,000"),
        ("?epsilon=0", "from 0.001"),
        ("?epsilon=nan", "from 0.001"),
        ("?sample_rate=2", "up to 1"),
        ("?epsilon=8&lifetime_epsilon=2", "the larger one"),
        ("?memoize=1&epsilon=2&lifetime_epsilon=2", "lifetime_epsilon"),
        ("?memoize=1&lifetime_epsilon=", "needs a lifetime epsilon"),
        ("?size=%3Cscript%3E", "a whole number"),
        ("/number?low=nan", "Write a number from"),
        ("/number?high=inf", "Write a number from"),
        ("/number?low=5&high=5", "Let high be above low."),
        ("/number?scale=log&low=0", "A logarithmic scale begins above 0."),
        ("/number?ask=mode", "Choose one of mean, distribution, both."),
        ("/number?scale=square", "Choose one of linear, log."),
        (f"/number?unit={'m' * 21}", "at most 20 characters"),
        ("/number?sizes=3", "is not known here"),
        ("/pair?rows=1", "from 2 up to 450"),
        ("/pair?rows=100&columns=10", "1,000 cells, and a pair has at most 900"),
        ("/pair?rows=2&columns=9&effect=0.99", "a Cramér’s V of at most 0."),
        ("/pair?effect=-1", "from 0 up to 1"),
        ("/pair?effect=nan", "from 0 up to 1"),
        ("/discovery?max_length=7", "an even number"),
        ("/discovery?epsilon=11", "from 0.001 up to 10"),
        ("/retention?lifetime_epsilon=", "Write a number from"),
        ("/retention?asks=all", "Choose one of"),
        ("/lifetime?years=0", "Write a number from"),
        ("/lifetime?years=21", "Write a number from"),
        ("/lifetime?turnover=1", "up to 0.99"),
        ("/lifetime?turnover=-1", "from 0 up to 0.99"),
        ("/lifetime?epsilon=9", "let the lifetime"),
        ("/lifetime?ask=mode", "Choose one of"),
        ("/lifetime?ask=mean&low=5", "both low and high"),
        ("/lifetime?low=5&high=6", "say what is asked"),
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


def test_conditionals_of_rare_values_are_too_few(shared_browser):
    """A value that hardly stands out has no conditional shares, from the same share on as the plan
    says; and a larger crowd shows more of them."""
    made = plan("pair", rows=6, columns=6, epsilon=1.0, devices=5_000)
    mechanism = SubsetSelection.design(36, 1.0)
    model = Covariance.of(mechanism, 5_000)
    least = made["shown_from"][0]
    assert least is not None
    assert conditional_half_width(least * 0.99, 6, model) is None
    assert conditional_half_width(least * 1.01, 6, model) is not None
    few, many = (
        text_of(
            shared_browser, f"/plan/pair?rows=6&columns=6&epsilon=1&sample_rate=1&devices={n}"
        ).count("<td>too few</td>")
        for n in (5_000, 500_000)
    )
    assert few > many
    assert few > 0


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
