"""The planner's page for pairs, its endpoint, and the part of a segment in every planner."""

from __future__ import annotations

import re
import time

import pytest
from flask.testing import FlaskClient

from deniable import Registry
from deniable.mechanisms import SubsetSelection
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.planning.pairs import (
    conditional_half_width,
    plan_pair,
)

from .conftest import text_of

QUERY = "epsilon=2&lifetime_epsilon=8&devices=50000&sample_rate=0.5"
REST = 'description = "?"\nowner = "me"\nexpires = 2027-06-30\n'


def test_conditionals_of_rare_values_are_too_few(browser: FlaskClient) -> None:
    """A value that hardly stands out has no conditional shares, from the same share on as the plan
    says; and a larger crowd shows more of them."""
    made = plan_pair(6, 6, 1.0, 5_000)
    mechanism = SubsetSelection.design(36, 1.0)
    model = Covariance.of(mechanism, 5_000)
    least = made.shown_from[0]
    assert least is not None
    assert conditional_half_width(least * 0.99, 6, model) is None
    assert conditional_half_width(least * 1.01, 6, model) is not None
    few, many = (
        text_of(browser, f"/plan/pair?rows=6&columns=6&epsilon=1&sample_rate=1&devices={n}").count(
            "<td>too few</td>"
        )
        for n in (5_000, 500_000)
    )
    assert few > many
    assert few > 0


def test_the_declaration_is_a_registry(browser: FlaskClient) -> None:
    """What the page says to declare is a pair, once its two metrics are declared."""
    page = text_of(browser, f"/plan/pair?rows=2&columns=2&{QUERY}")
    found = re.search(r"<pre[^>]*><code>(\[metrics.*?)</code></pre>", page, re.DOTALL)
    assert found is not None
    text = found[1].replace("&#34;", '"')
    two = "".join(
        f'[metrics.{name}]\ntype = "boolean"\nepsilon = 1.0\nlifetime_epsilon = 8.0\n{REST}'
        for name in ("first", "second")
    )
    registry = Registry.parse(f"schema = 1\napp = 'example'\n{two}{text}\n{REST}")
    assert registry["my_pair"].epsilon == 2.0


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("rows=1", "from 2 up to 450"),
        ("rows=100&columns=10", "1,000 cells, and a pair has at most 900"),
        ("rows=2&columns=9&effect=0.99", "a Cramér’s V of at most 0."),
        ("effect=0", "above 0 up to 1"),
        ("effect=nan", "above 0 up to 1"),
        ("size=4", "size"),
        ("devices=%3Cscript%3E", "&lt;script&gt;"),
    ],
)
def test_mistakes_are_marked(browser: FlaskClient, query: str, words: str) -> None:
    """A mistake is a 400 that keeps the form and says what to write, in Chinese too."""
    page = browser.get(f"/plan/pair?{query}")
    assert page.status_code == 400
    assert words in page.text
    assert "<script>" not in page.text
    assert 'role="alert"' in page.text
    assert browser.get(f"/plan/pair?{query}&lang=zh").status_code == 400


@pytest.mark.campaign
@pytest.mark.parametrize("query", ["rows=2&columns=450", "rows=30&columns=30&devices=10"])
def test_the_extremes_are_planned(browser: FlaskClient, query: str) -> None:
    """The longest lists, and crowds that are far too small, have a page."""
    deadline = time.monotonic() + 30
    while (page := browser.get(f"/plan/pair?{query}&effect=0.05")).status_code == 202:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert page.status_code == 200
    assert "No usable signal" in page.text or "or more is found" in page.text
