"""The planner's page for numbers, and its endpoint."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from deniable import Registry
from deniable_estimator.terminal import plan

from .conftest import TOKEN, text_of

HEADERS = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}
QUERY = "low=1&high=1000&scale=log&ask=both&epsilon=2&lifetime_epsilon=8&devices=500000"


def test_page_command_and_endpoint_agree(browser: FlaskClient) -> None:
    """The same question has the same figures on the page, in the terminal and from the API."""
    query = f"{QUERY}&sample_rate=0.2&unit=ms"
    page = text_of(browser, f"/plan/number?{query}")
    options = [
        part
        for pair in query.split("&")
        for name, text in [pair.split("=")]
        for part in (f"--{name.replace('_', '-')}", text)
    ]
    made = json.loads(CliRunner().invoke(plan, ["--number", *options, "--json"]).stdout)
    assert browser.get(f"/api/v1/plan/number?{query}", headers=HEADERS).json == made
    assert f"{made['mean']['devices']:,} devices" in page
    assert f"±{100 * made['mean']['half_width']:.1f}%" in page
    for each in made["quantiles"]:
        assert f"<td>{each['devices_to_promise']:,}</td>" in page
    kept = ", ".join(f"p{100 * each['p']:g}" for each in made["quantiles"] if each["promised"])
    assert f"Useful intervals for {kept}." in page
    assert "no upper limit" in page
    assert "two numbers" in page


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


def test_a_mean_has_no_quantiles(browser: FlaskClient) -> None:
    """The page of a mean has its width as its headline, and no table."""
    page = text_of(browser, "/plan/number?ask=mean&unit=kg")
    assert re.search(r"The mean is known to ±\d\.\d kg\.", page)
    assert "<table><caption>" in page  # that of the label
    assert "Devices for both limits" not in page
    assert "noise hides even the middle" in text_of(browser, "/plan/number?ask=mean&devices=10")


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


def test_both_planners_lead_to_each_other(browser: FlaskClient) -> None:
    """Each page has a link to the other, and ?number leads to that of numbers."""
    assert 'href="/plan/number"' in browser.get("/plan").text
    assert 'href="/plan"' in browser.get("/plan/number").text
    moved = browser.get("/plan?number=1&low=3")
    assert moved.status_code == 302
    assert moved.headers["Location"] == "/plan/number?low=3"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("low=1", "high"),
        (QUERY.replace("ask=both", "ask=mode"), "ask"),
        (QUERY.replace("low=1", "low=1e300"), "low"),
        (QUERY.replace("low=1", "low=5000"), "must be below"),
        (f"{QUERY}&size=3", "size"),
    ],
)
def test_the_endpoint_names_what_is_wrong(browser: FlaskClient, query: str, words: str) -> None:
    """A parameter that is missing, unknown or impossible is a 400 that names it."""
    answer = browser.get(f"/api/v1/plan/number?{query}", headers=HEADERS)
    assert answer.status_code == 400
    assert words in answer.json["detail"]
