"""The planner's page for a lifetime epsilon, and its endpoint."""

from __future__ import annotations

import html
import itertools
import json
import re
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from deniable_estimator.dashboard.charts.division import division_chart
from deniable_estimator.planning.lifetime import plan_lifetime
from deniable_estimator.terminal import plan

from .conftest import TOKEN, text_of

HEADERS = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}
QUERY = "lifetime_epsilon=8&years=2&devices=50000&size=20&epsilon=1"


def test_page_command_and_endpoint_agree(browser: FlaskClient) -> None:
    """The same question has the same figures on the page, in the terminal and from the API."""
    page = html.unescape(text_of(browser, f"/plan/lifetime?{QUERY}&turnover=30"))
    asked = [f"--{pair.replace('_', '-')}" for pair in QUERY.split("&")]
    done = CliRunner().invoke(plan, [*asked, "--turnover=0.3", "--json"])
    made = json.loads(done.stdout)
    told = browser.get(f"/api/v1/plan/lifetime?{QUERY}&turnover=0.3", headers=HEADERS)
    assert told.json == made
    best = made["best"]
    assert f"Best: {best['reports']} reports with epsilon {best['epsilon']:g} each" in page
    rows = re.findall(r"<tr.*?>(<th scope=\"row\">.*?)</tr>", page)
    assert len(rows) == len(made["choices"])
    for row, each in zip(rows, made["choices"], strict=True):
        assert f"<td>±{100 * each['half_width']:.1f} points</td>" in row
        assert f"<td>{each['epsilon']:g}</td>" in row
        assert ("best" in row) == (each == best)
        assert f"{100 * each['left_after_years'][-1]:.0f}% / " in row
    assert f"epsilon = {best['epsilon']}\nlifetime_epsilon = 8.0\n" in page


@pytest.mark.parametrize("question", ["mean", "distribution"])
@pytest.mark.parametrize("window", ["day", "week", "month"])
def test_numbers_and_windows_are_planned(browser: FlaskClient, question: str, window: str) -> None:
    """The page of a number has no memos, and declares the window unless it is a day."""
    page = text_of(browser, f"/plan/lifetime?question={question}&window={window}")
    assert "memoized" not in page
    assert (f'window = "{window}"' in html.unescape(page)) == (window != "day")
    assert re.search(rf'<option value="{window}" selected>', page)


def test_the_chart_is_well_formed_and_marks_the_best(browser: FlaskClient) -> None:
    """The picture has a dot for each choice, larger for the best, and a dashed line through those
    that are not advised."""
    page = text_of(browser, f"/plan/lifetime?{QUERY}")
    found = re.search(
        r'<svg class="chart reach".*?</svg>\s*(?=<p class="legend">)', page, re.DOTALL
    )
    assert found is not None
    root = ElementTree.fromstring(found[0])
    space = "{http://www.w3.org/2000/svg}"
    made = plan_lifetime(20, 8, 2, 50_000, epsilon=1)
    dots = root.findall(f"{space}circle")
    assert len(dots) == len(made.choices)
    assert len({each.get("r") for each in dots}) == 2
    assert len(root.findall(f"{space}svg/{space}path")) == 2


@pytest.mark.parametrize(
    ("lifetime", "years"), [(0.001, 0.01), (0.5, 1), (8, 2), (100, 20), (10_000, 20), (10_000, 0.1)]
)
def test_every_chart_stays_inside(lifetime: float, years: float) -> None:
    """Dots and ticks lie within the plot, and ticks do not overlap."""
    chart = division_chart(plan_lifetime(2, lifetime, years, 1000))
    assert all(0 <= dot.x <= 100 and 0 <= dot.y <= chart.height for dot in chart.dots)
    assert sum(dot.best for dot in chart.dots) == 1
    places = [tick.at for tick in chart.counts]
    assert places == sorted(places)
    assert all(b - a >= 6 for a, b in itertools.pairwise(places))
    assert 1 <= len(chart.parts) <= 8
    assert all(0 <= tick.at <= chart.height for tick in chart.parts)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("years=0", "Write a number above"),
        ("years=21", "Write a number above"),
        ("years=0.0001", "years must be from"),
        ("turnover=100", "Write a whole number from 0 up to 99."),
        ("turnover=-1", "Write a whole number from 0 up to 99."),
        ("epsilon=9", "let the lifetime"),
        ("question=mode", "Choose what is asked."),
        ("window=year", "Choose day, week or month."),
        ("sizes=3", "is not known here"),
        ("size=1", "Write a whole number"),
    ],
)
def test_mistakes_are_marked(browser: FlaskClient, query: str, words: str) -> None:
    """What cannot be planned is said beside its field, and nothing is calculated."""
    response = browser.get(f"/plan/lifetime?{query}")
    assert response.status_code == 400
    assert words in html.unescape(response.text)
    assert "These numbers cannot be planned" in response.text


def test_the_planners_lead_to_each_other(browser: FlaskClient) -> None:
    """Each of the three pages links to the two others."""
    pages = ("/plan", "/plan/number", "/plan/lifetime")
    for page in pages:
        text = text_of(browser, page)
        assert all(f'href="{other}"' in text for other in pages if other != page)


def test_a_long_list_is_planned_elsewhere(browser: FlaskClient) -> None:
    """Of more than 100 values another process makes the plan, with the same figures."""
    page = text_of(browser, "/plan/lifetime?size=5000")
    made = plan_lifetime(5000, 8, 2, 100_000, epsilon=1)
    assert f"Best: {made.best.reports} reports with epsilon {made.best.epsilon:g}" in page


def test_the_page_speaks_chinese(browser: FlaskClient) -> None:
    """No sentence of the results is left in English."""
    page = browser.get(
        f"/plan/lifetime?{QUERY}&turnover=30", headers={"Accept-Language": "zh-CN"}
    ).text
    main = re.sub(r"<pre.*?</pre>|<[^>]*>", " ", page.partition("<h1>")[2], flags=re.DOTALL)
    words = set(re.findall(r"[A-Za-z]{3,}", main.partition("<footer")[0]))
    assert words <= {"epsilon", "Epsilon", "odds", "English"}, words
