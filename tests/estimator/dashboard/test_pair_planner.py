"""The planner's page for pairs, its endpoint, and the part of a segment in every planner."""

from __future__ import annotations

import json
import re
import time

import numpy as np
import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable import Registry
from deniable.mechanisms import SubsetSelection
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.planning.pairs import (
    conditional_half_width,
    dependent_table,
    plan_pair,
    power,
    power_of,
    strongest_effect,
)
from deniable_estimator.terminal import plan

from .conftest import TOKEN, text_of

HEADERS = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}
QUERY = "epsilon=2&lifetime_epsilon=8&devices=50000&sample_rate=0.5"
REST = 'description = "?"\nowner = "me"\nexpires = 2027-06-30\n'


def options(query: str) -> list[str]:
    """The options of `deniable plan` that say the same as an address."""
    pairs = [part.split("=") for part in query.split("&")]
    return [part for name, text in pairs for part in (f"--{name.replace('_', '-')}", text)]


def test_page_command_and_endpoint_agree(browser: FlaskClient) -> None:
    """The same question has the same figures on the page, in the terminal and from the API."""
    page = text_of(browser, f"/plan/pair?rows=3&columns=5&effect=0.2&{QUERY}")
    call = ["--pair", "3x5", "--effect", "0.2", *options(QUERY), "--json"]
    made = json.loads(CliRunner().invoke(plan, call).stdout)
    asked = f"/api/v1/plan/pair?rows=3&columns=5&effect=0.2&{QUERY}"
    assert browser.get(asked, headers=HEADERS).json == made
    assert f"{made['devices_to_detect']:,} devices" in page
    assert f"{100 * made['power']:.0f}% of the time" in page
    assert f"Cramér’s V {made['least_effect']:.2f} or more" in page
    shown = [re.escape(f"{width * 100:.1f}") for width in made["conditional_half_widths"]]
    assert all(re.search(f"±{width}", page) for width in shown)


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


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 9), st.integers(2, 9), st.floats(0, 1), st.sampled_from([0.5, 1.0, 2.0, 4.0]))
def test_the_power_is_that_of_the_test(
    rows: int, columns: int, part: float, epsilon: float
) -> None:
    """The planner's closed form is the power of the test at the assumed table."""
    effect = part * strongest_effect(rows, columns)
    model = Covariance.of(SubsetSelection.design(rows * columns, epsilon), 5_000)
    tested = power(dependent_table(rows, columns, effect), model)
    assert np.isclose(power_of(effect, rows, columns, model), tested, rtol=1e-6, atol=1e-9)


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


@pytest.mark.parametrize("query", ["rows=2&columns=450", "rows=30&columns=30&devices=10"])
def test_the_extremes_are_planned(browser: FlaskClient, query: str) -> None:
    """The longest lists, and crowds that are far too small, have a page."""
    deadline = time.monotonic() + 30
    while (page := browser.get(f"/plan/pair?{query}&effect=0.05")).status_code == 202:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert page.status_code == 200
    assert "No usable signal" in page.text or "or more is found" in page.text


def test_the_page_speaks_chinese(browser: FlaskClient) -> None:
    """No sentence of the results is left in English."""
    page = browser.get(f"/plan/pair?{QUERY}", headers={"Accept-Language": "zh-CN"}).text
    main = re.sub(r"<pre.*?</pre>|<[^>]*>", " ", page.partition("<h1>")[2], flags=re.DOTALL)
    words = set(re.findall(r"[A-Za-z]{3,}", main.partition("<footer")[0]))
    assert words <= {"epsilon", "Epsilon", "odds", "English", "Cram", "TLS"}, words


@pytest.mark.parametrize("kind", ["/plan?size=5&", "/plan/number?low=0&high=10&ask=mean&"])
def test_a_segment_is_planned(browser: FlaskClient, kind: str) -> None:
    """The part of a segment plans for so many devices, as the command does, says so, declares all
    devices and a segment, and its label says what reports tell in clear."""
    page = text_of(browser, f"{kind}segment_share=0.1&{QUERY}")
    assert "For a segment with 0.1 of 50,000 devices." in page
    assert "from 5,000 devices" in page
    assert "Not private: each report states its segment without noise: my_segment" in page
    declared = re.search(r"<pre[^>]*><code>(.*?)</code></pre>", page, re.DOTALL)
    assert declared is not None
    text = re.sub(r"\[\.\.\.\]", '["a", "b"]', declared[1].replace("&#34;", '"'))
    metric = Registry.parse(f"schema = 1\napp = 'example'\n{text}\n{REST}")["my_metric"]
    assert metric.devices == 50_000
    assert len(metric.segments) == 1
    of = kind.partition("?")[2]
    made = browser.get(f"/api/v1{kind}segment_share=0.1&{QUERY}", headers=HEADERS).json
    call = ["--number"] if "number" in kind else []
    call += [*options(f"{of}{QUERY}"), "--segment-share", "0.1", "--json"]
    assert made == json.loads(CliRunner().invoke(plan, call).stdout)
    assert (made["devices"], made["all_devices"], made["segment_share"]) == (5_000, 50_000, 0.1)
    assert "For a segment" not in text_of(browser, f"{kind}{QUERY}")
