"""The planner's page for a lifetime epsilon, and its endpoint."""

from __future__ import annotations

import html
import itertools

import pytest
from flask.testing import FlaskClient

from deniable_estimator.dashboard.charts.division import division_chart
from deniable_estimator.planning.lifetime import plan_lifetime

from .conftest import text_of


@pytest.mark.campaign
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


def test_a_long_list_is_planned_elsewhere(browser: FlaskClient) -> None:
    """Of more than 100 values another process makes the plan, with the same figures."""
    page = text_of(browser, "/plan/lifetime?size=5000")
    made = plan_lifetime(5000, 8, 2, 100_000, epsilon=1)
    assert f"Best: {made.best.reports} reports with epsilon {made.best.epsilon:g}" in page
