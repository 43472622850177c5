"""The pages: what they say, escape, refuse and forbid."""

import re
from datetime import UTC, datetime

import pytest

from deniable import Registry
from deniable_collector.stores import StoreUnavailable, open_store

from .conftest import browser_of, dashboard_of, fill, fill_numbers


def test_a_long_table_is_listed_on_request(tmp_path):
    """Of 1,000 values a page lists the largest and links to all; each is then there once."""
    names = ", ".join(f'"value {number}"' for number in range(1000))
    registry = Registry.parse(
        "schema = 1\napp = 'example'\n"
        "[metrics.many]\ntype = 'category'\ndescription = '?'\nowner = 'me'\n"
        f"expires = 2027-06-30\nepsilon = 2.0\nlifetime_epsilon = 8.0\nvalues = [{names}]\n"
    )
    store = open_store(f"sqlite:///{tmp_path}/many.db")
    store.publish({"many": [registry["many"].scheme]})
    shares = [0.2, 0.2, 0.1] + [0.001] * 500 + [0.0] * 497
    fill(store, registry, "many", shares, 100_000)
    client = browser_of(dashboard_of(store, registry), accept="")
    page = client.get("/metric/many").text
    assert page.count('<th scope="row"><label>') == 100
    assert "997 values cannot be told from noise" in page
    assert "900 smaller values are not listed" in page
    assert len(page.encode()) < 100_000
    link = re.search(r'<a href="([^"]*lines=all[^"]*)"', page)
    assert link is not None
    whole = client.get(link[1].replace("&amp;", "&")).text
    assert len(set(re.findall(r'"> (value \d+)</label>', whole))) == 1000
    assert client.get("/metric/many?lines=few").status_code == 400
    store.close()


def test_the_first_day_of_an_app_that_reports_at_once(empty_store):
    """Where only today has reports, page and overview show today; with older ones the page shows
    them, and today is one click away."""
    registry = Registry.parse(
        "schema = 1\napp = 'example'\n[metrics.m]\ntype = 'boolean'\ndescription = '?'\n"
        "owner = 'me'\nexpires = 2027-06-30\nepsilon = 2.0\nlifetime_epsilon = 8.0\n"
        "answer = 'at_once'\naggregate = 'first'\n"
    )
    empty_store.publish({"m": [registry["m"].scheme]})
    fill(empty_store, registry, "m", [0.5, 0.5], 3000, "2026-11-21")
    client = browser_of(dashboard_of(empty_store, registry))
    page = client.get("/metric/m").text
    assert "3,000 devices reported" in page
    assert "No reports" not in page
    assert '<a href="/metric/m?from=2026-11-21&amp;to=2026-11-21' in page
    while (cards := client.get("/")).status_code == 202:
        pass
    assert "3,000 reports" in cards.text
    assert "21 Nov 2026" in cards.text
    other = client.get("/metric/m?from=2026-11-19&to=2026-11-20").text
    assert "There are reports of 21 Nov 2026, which is not over yet." in other
    assert '<a class="button primary" href="/metric/m?from=2026-11-21&amp;to=2026-11-21' in other
    fill(empty_store, registry, "m", [0.5, 0.5], 5000, "2026-11-20")
    page = client.get("/metric/m").text
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
    empty_store.publish({metric.name: [metric.scheme] for metric in registry})
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


def test_a_store_that_is_down_is_explained(token, registry, caplog):
    """While the store is away the page says so, with 503, and the log says why."""

    class Down:
        def __getattr__(self, name):
            raise StoreUnavailable("redis://:secret@db is away", retry_after=3)

    away = dashboard_of(Down(), registry).test_client()
    answer = away.get("/", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "3"
    assert "secret" not in answer.text
    assert "db is away" in caplog.text


def test_a_failure_shows_nothing_of_itself(token, registry):
    """An error of our own gives a plain 500, not its text."""

    class Broken:
        def __getattr__(self, name):
            raise RuntimeError("the inside")

    broken = dashboard_of(Broken(), registry).test_client()
    answer = broken.get("/", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 500
    assert "inside" not in answer.text


def test_three_devices_bound_no_median(number_app, number_store, numbers):
    """Of a distribution of too few the page says so, and draws nothing."""
    fill_numbers(number_store, numbers, "load", [1.0, 2.0, 3.0], "2026-09-01")
    page = browser_of(number_app).get("/metric/load?from=2026-09-01&to=2026-09-01").text
    assert "Too few devices have reported to tell where half of them" in page
    assert not any(each in page for each in ('class="chart numbers', "nan", "inf%"))
