"""The pages: what they say, escape, refuse and forbid."""

import re
from datetime import UTC, datetime

import pytest
from tests.registries import declared

from deniable import Registry
from deniable_collector.stores import StoreUnavailable

from .conftest import NUMBERS, browser_of, dashboard_of, fill, fill_numbers, program_of, text_of


def test_a_long_table_is_listed_on_request(empty_store):
    """Of 1,000 values a page lists the largest and links to all; each is then there once."""
    names = [f"value {number}" for number in range(1000)]
    registry = Registry.parse(declared(many={"type": "category", "values": names}))
    empty_store.publish([("many", registry["many"].scheme)])
    fill(empty_store, registry, "many", [0.2, 0.2, 0.1] + [0.001] * 500 + [0.0] * 497, 100_000)
    client = browser_of(dashboard_of(empty_store, registry), accept="")
    page = client.get("/metric/many").text
    assert page.count('<th scope="row"><label>') == 100
    assert len(page.encode()) < 100_000
    link = re.search(r'<a href="([^"]*lines=all[^"]*)"', page)
    assert link is not None
    whole = client.get(link[1].replace("&amp;", "&")).text
    assert len(set(re.findall(r'"> (value \d+)</label>', whole))) == 1000
    assert client.get("/metric/many?lines=few").status_code == 400


def test_after_its_first_day_an_app_that_reports_at_once_shows_whole_days(empty_store):
    """With reports of whole days the page shows these, and today is one click away."""
    at_once = {"type": "boolean", "answer": "at_once", "aggregate": "first"}
    registry = Registry.parse(declared(m=at_once))
    empty_store.publish([("m", registry["m"].scheme)])
    fill(empty_store, registry, "m", [0.5, 0.5], 3000, "2026-11-21")
    fill(empty_store, registry, "m", [0.5, 0.5], 5000, "2026-11-20")
    page = text_of(browser_of(dashboard_of(empty_store, registry)), "/metric/m")
    assert "5,000 devices reported" in page
    assert ">today</a>" in page


@pytest.mark.parametrize(
    ("hours", "told"),
    [
        (0.99, "less than an hour ago"),
        (1, "1 hour ago"),
        (47.9, "47 hours ago"),
        (48, "2 days ago"),
    ],
)
def test_since_when_a_window_is_over(empty_store, registry, hours, told):
    """It ended less than an hour ago, not 0 hours ago."""
    fill(empty_store, registry, "browser", [0.5, 0.5, 0.0, 0.0], 3000)
    now = datetime(2026, 11, 21, tzinfo=UTC).timestamp() + hours * 3600
    client = browser_of(dashboard_of(empty_store, registry, lambda: now))
    assert f"20 Nov 2026, ended {told}" in client.get("/metric/browser").text


@pytest.mark.parametrize("path", ["/", "/metric/browser", "/metric/browser.csv", "/login", "/x"])
def test_every_response_carries_the_same_protection(browser, path):
    """No response may run scripts, be framed, sniffed or kept by caches."""
    headers = browser.get(path).headers
    policy = headers["Content-Security-Policy"]
    for rule in (
        "default-src 'none'",
        "style-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ):
        assert rule in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


class Failing:
    """A store that fails whatever it is asked."""

    def __init__(self, error):
        self.error = error

    def __getattr__(self, name):
        def fail(*arguments):
            raise self.error

        return fail


def test_a_store_that_is_down_is_explained(registry, caplog):
    """While the store is away the page says so, with 503, and the log says why."""

    away = StoreUnavailable("redis://:secret@db is away", retry_after=3)
    answer = program_of(dashboard_of(Failing(away), registry)).get("/")
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "3"
    assert "secret" not in answer.text
    assert "db is away" in caplog.text


def test_a_failure_shows_nothing_of_itself(registry):
    """An error of our own gives a plain 500, not its text."""

    answer = program_of(dashboard_of(Failing(RuntimeError("the inside")), registry)).get("/")
    assert answer.status_code == 500
    assert "inside" not in answer.text


def test_three_devices_bound_no_median(empty_store):
    """Of a distribution of too few the page says so, and draws nothing."""
    numbers = Registry.parse(NUMBERS)
    empty_store.publish([("load", numbers["load"].scheme)])
    fill_numbers(empty_store, numbers, "load", [1.0, 2.0, 3.0])
    page = text_of(browser_of(dashboard_of(empty_store, numbers)), "/metric/load")
    assert "Too few devices have reported to tell where half of them" in page
    assert not any(each in page for each in ('class="chart numbers', "nan", "inf%"))
