"""The planner's page for numbers, and its endpoint."""

from __future__ import annotations

import re

import pytest
from flask.testing import FlaskClient

from deniable import Registry

from .conftest import text_of


@pytest.mark.parametrize("ask", ["mean", "distribution", "both"])
def test_the_declaration_is_a_registry(browser: FlaskClient, ask: str) -> None:
    """What the page says to declare is understood by the registry, unit and all."""
    page = text_of(browser, f"/plan/number?low=-5&high=1e3&ask={ask}&unit=%22k%5C")
    found = re.search(r"<pre[^>]*><code>(\[metrics.*?)</code></pre>", page, re.DOTALL)
    assert found is not None
    text = found[1].replace("&#34;", '"')
    rest = 'description = "?"\nowner = "me"\nexpires = 2027-06-30\n'
    metric = Registry.parse(f"schema = 1\napp = 'example'\n{text}\n{rest}")["my_metric"]
    assert metric.type.unit == '"k\\'
    assert (metric.type.range.low, metric.type.range.high) == ("-5", "1000")
    assert len(metric.type.ask) == (2 if ask == "both" else 1)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("low=x", "Write a number above"),
        ("low=nan", "Write a number above"),
        ("high=inf", "Write a number above"),
        ("low=5&high=5", "Let high be above low."),
        ("scale=log&low=0", "A logarithmic scale begins above 0."),
        ("ask=mode", "Choose what is asked of the number."),
        ("scale=square", "Choose a scale."),
        (f"unit={'m' * 21}", "Let the unit be short."),
        ("sizes=3", "is not known here"),
        ("epsilon=9&lifetime_epsilon=1", "let the lifetime"),
    ],
)
def test_mistakes_are_marked(browser: FlaskClient, query: str, words: str) -> None:
    """A mistake is a 400 that keeps the form and says what to write, in Chinese too."""
    answer = browser.get(f"/plan/number?{query}")
    assert answer.status_code == 400
    assert words in answer.text
    assert "<form" in answer.text
    assert words not in browser.get(f"/plan/number?{query}&lang=zh-Hans").text
