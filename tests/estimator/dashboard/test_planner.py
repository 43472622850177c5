"""The planner page: what it promises, draws and refuses."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from deniable import Registry
from deniable_estimator.privacy.words import rounded_up
from deniable_estimator.terminal import plan

from .conftest import text_of


@pytest.mark.parametrize("size", [2, 20, 3_000])
def test_memory_is_planned(browser: FlaskClient, size: int) -> None:
    """With the box ticked the page says what a memo reveals, as `deniable plan --memoize` does,
    and declares it; the box stays ticked."""
    query = f"size={size}&epsilon=1&lifetime_epsilon=8&devices=50000&sample_rate=0.2"
    fresh, page = (text_of(browser, f"/plan?{query}{more}") for more in ("", "&memoize=1"))
    options = ["--size", str(size), "--epsilon", "1", "--devices", "50000", "--sample-rate", "0.2"]
    options += ["--lifetime-epsilon", "8", "--memoize", "--share", "0.01", "--json"]
    made = json.loads(CliRunner().invoke(plan, options).stdout)
    memory = made["memory"]
    assert f"reveal at most ε {rounded_up(memory['memo_epsilon'], 2)};" in page
    assert f"adds at most ε {rounded_up(memory['fresh_epsilon'], 2)}" in page
    assert f"±{100 * memory['lasting_std_error']:.2g} points" in page
    assert f"{made['devices_to_detect']:,} devices" in page
    assert re.search(r'name="memoize" value="1" checked', page)
    found = re.search(r"<pre[^>]*><code>(\[metrics.*?)</code></pre>", page, re.DOTALL)
    assert found is not None
    values = json.dumps([str(number) for number in range(size)])
    text = found[1].replace("&#34;", '"').replace("[...]", values)
    rest = 'description = "?"\nowner = "me"\nexpires = 2027-06-30\n'
    metric = Registry.parse(f"schema = 1\napp = 'example'\n{text}\n{rest}")["my_metric"]
    assert metric.longitudinal == "memoize"
    assert metric.scheme.mechanism.name == made["mechanism"]
    for text in ("longitudinal", "any number", " checked"):
        assert text not in fresh


def test_the_example_is_the_same_each_time(browser: FlaskClient) -> None:
    """A link shows the same page to everybody: true shares, estimates and their intervals."""
    page = browser.get("/plan").text
    assert page == browser.get("/plan").text
    found = re.search(r'<div class="chart large".*?</div>', page, re.DOTALL)
    assert found is not None
    chart = ElementTree.fromstring(found[0].replace(" hidden>", ">"))
    assert len([each for each in chart.iter() if each.get("class") == "truth"]) == 10
    assert "intervals hold the true share" in page


def test_the_declaration_is_a_registry(browser: FlaskClient) -> None:
    """What the page says to declare is understood by the registry, once the values are named."""
    page = browser.get("/plan?size=3&epsilon=0.5&sample_rate=0.25").text
    found = re.search(r"<pre[^>]*><code>(\[metrics.*?)</code></pre>", page, re.DOTALL)
    assert found is not None
    text = found[1].replace("&#34;", '"').replace("[...]", '["a", "b", "c"]')
    rest = 'description = "?"\nowner = "me"\nexpires = 2027-06-30\n'
    metric = Registry.parse(f"schema = 1\napp = 'example'\n{text}\n{rest}")["my_metric"]
    assert (metric.epsilon, metric.sample_rate, metric.devices) == (0.5, 0.25, 100_000)


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("size=1", "from 2"),
        ("size=ten", "a whole number"),
        ("size=1000000", "10,000"),
        ("epsilon=0", "above 0"),
        ("epsilon=nan", "above 0"),
        ("devices=1e99", "a whole number"),
        ("sample_rate=2", "up to 1"),
        ("epsilon=8&lifetime_epsilon=2", "the larger one"),
        ("memoize=1&epsilon=2&lifetime_epsilon=2", "lifetime_epsilon"),
        ("size=%3Cscript%3E", "a whole number"),
    ],
)
def test_bad_numbers_are_marked(browser: FlaskClient, query: str, advice: str) -> None:
    """A number that makes no sense stays in the form, with what to write instead."""
    answer = browser.get(f"/plan?{query}")
    assert answer.status_code == 400
    assert advice in answer.text
    assert 'role="alert"' in answer.text
    assert "<script" not in answer.text


@pytest.mark.parametrize(
    "query",
    [
        "devices=10&sample_rate=0.0001",
        "devices=10000000000&sample_rate=1&size=10000&epsilon=10&lifetime_epsilon=10",
        "size=2&epsilon=0.001",
    ],
)
def test_the_extremes_are_planned(browser: FlaskClient, query: str) -> None:
    """The smallest and the largest numbers that the form takes have a page."""
    assert 'id="reach"' in text_of(browser, f"/plan?{query}")
