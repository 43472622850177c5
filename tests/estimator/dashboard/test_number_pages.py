"""Pages of numbers: what they say of means, distributions, and limits that are typed in."""

import re
from datetime import date

import pytest

from deniable import Registry
from deniable_estimator.answers.distribution import Distribution
from deniable_estimator.asking.reading import read
from deniable_estimator.dashboard.words import percent

from .conftest import (
    NUMBERS,
    YESTERDAY,
    browser_of,
    dashboard_of,
    fill_numbers,
    store_of_numbers,
)

DAY = date.fromisoformat(YESTERDAY)


@pytest.fixture(scope="module")
def numbers():
    return Registry.parse(NUMBERS)


@pytest.fixture(scope="module")
def number_store(tmp_path_factory, numbers):
    with store_of_numbers(tmp_path_factory.mktemp("numbers"), numbers) as store:
        yield store


@pytest.fixture(scope="module")
def number_reader(number_store, numbers):
    """A browser that has signed in to a dashboard of numbers."""
    return browser_of(dashboard_of(number_store, numbers))


def headline(page):
    found = re.search(r'<h2 id="estimate" class="headline[^"]*">([^<]*)</h2>', page)
    assert found
    return found[1]


@pytest.mark.parametrize("limit", ["1", "2.5", "5e1", " 2.5 ", "0.01", "100"])
def test_the_share_below_a_limit_is_that_of_the_library(
    number_reader, number_store, numbers, limit
):
    """A limit that is typed in is answered with the shares below and above it."""
    answer = number_reader.get("/metric/load", query_string={"limit": limit})
    assert answer.status_code == 200
    found = read(number_store, numbers, "load", date(2026, 10, 24), DAY)
    assert isinstance(found, Distribution)
    share = found.share_below(float(limit))
    half = (share.high - share.low) / 2
    told = re.search(
        r'<p class="since" role="status"><strong>([^<]*)</strong> are below', answer.text
    )
    assert told
    assert told[1] == percent(share.share, half)
    assert percent(share.low, half) in answer.text
    assert percent(1 - share.share, half) in answer.text
    assert f'value="{limit.strip()}"' in answer.text


@pytest.mark.parametrize("limit", ["soon", "nan", "inf", "1e9", "0.001", "-1", "2,5", "<b>"])
def test_a_bad_limit_names_its_field(number_reader, limit):
    """What is no number, and what lies outside of the range, is refused beside the field; the rest
    of the page stands."""
    answer = number_reader.get("/metric/load", query_string={"limit": limit})
    assert answer.status_code == 400
    page = answer.text
    field = re.search(r'<input id="limit"[^>]*>', page)
    assert field
    assert 'aria-invalid="true" aria-describedby="mistake"' in field[0]
    assert re.search(r'<p class="problem" id="mistake" role="alert">“limit”', page)
    assert headline(page).startswith("Half of the devices")
    assert "<b>" not in page
    problem = number_reader.get(
        "/metric/load", query_string={"limit": limit}, headers={"Accept": "application/json"}
    )
    assert problem.status_code == 400
    assert "“limit”" in problem.json["detail"]


def test_a_view_of_a_number_has_its_own_parameters(number_reader):
    """Numbers have no order, no normalized shares; a mean has no limit: such parameters are
    refused, and no switch offers them."""
    for path in (
        "/metric/tabs?limit=2",
        "/metric/tabs?order=declared",
        "/metric/load?shares=normalized",
        "/metric/dark_mode?limit=2",
    ):
        assert number_reader.get(path).status_code == 400, path
    assert number_reader.get("/metric/load?value=p90&limit=2&by=week").status_code == 200
    page = number_reader.get("/metric/load?limit=2").text
    assert "normalized" not in page
    assert "limit=2" in page.replace("&amp;", "&").partition('class="switch"')[2]


def test_too_few_and_no_reports_have_words(number_store, numbers, number_reader):
    """Three devices bound no median; where nobody has reported, the page says what to check."""
    fill_numbers(number_store, numbers, "load", [1.0, 2.0, 3.0], "2026-09-01")
    few = number_reader.get("/metric/load?from=2026-09-01&to=2026-09-01")
    assert headline(few.text).startswith("Too few devices have reported to tell where half of them")
    assert 'class="chart numbers' not in few.text
    assert "nan" not in few.text
    assert "inf%" not in few.text
    none = number_reader.get("/metric/load?from=2026-10-01&to=2026-10-02")
    assert none.status_code == 200
    assert "No reports in these days" in none.text
