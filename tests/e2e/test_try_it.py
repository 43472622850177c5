"""The demo's page where a visitor answers as one more device, in a real browser."""

import json
import math
import re
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest

from .browsing import judge

DEVICES = 50


def answer(browser, metric, choice):
    """Answer a question, and wait for the estimate."""
    from selenium.webdriver.support.ui import WebDriverWait

    card = browser.find_element("css selector", f"[data-metric={metric}]")
    buttons = card.find_elements("css selector", ".choices button")
    (button,) = (each for each in buttons if each.text == choice)
    button.click()
    shares = ".shares tbody tr"
    WebDriverWait(browser, 60).until(lambda _: card.find_elements("css selector", shares))
    return card


def test_a_visitor_is_one_more_device(demo, open_browser):
    """The page shows the report that left, what it says, and an estimate that counts it; a second
    visit has answered already; with its data deleted the browser is a new device."""
    from selenium.webdriver.support.ui import WebDriverWait

    _, dashboard, token, page, _ = demo(DEVICES)
    browser = open_browser(True)
    browser.get(page)
    heading = browser.find_element("tag name", "h1").text
    assert heading == f"Answer as one of {DEVICES + 1} devices"
    card = answer(browser, "browser", "firefox")
    report = json.loads(card.find_element("tag name", "pre").text)
    assert set(report) == {"metric", "scheme", "window", "columns"}
    assert f"{DEVICES + 1} reports" in card.find_element("css selector", ".crowd").text
    rows = card.find_elements("css selector", ".beliefs tbody tr")
    beliefs = [int(row.text.split()[-1].removesuffix("%")) for row in rows]
    assert abs(sum(beliefs) - 100) <= len(beliefs)
    # One report, with epsilon 2: 60% for the value that it names, 8% for each other.
    assert sorted(beliefs) == [8, 8, 8, 8, 8, 60]
    answer(browser, "dark_mode", "no")
    ledger = browser.find_element("css selector", ".ledger").text
    assert ledger.count("4.00 of 8") == 2

    browser.refresh()
    WebDriverWait(browser, 60).until(
        lambda _: len(browser.find_elements("css selector", ".shares tbody tr")) == 8
    )
    again = browser.find_element("css selector", "[data-metric=browser]")
    assert json.loads(again.find_element("tag name", "pre").text) == report
    assert "has answered" in again.find_element("css selector", ".state").text
    assert not again.find_elements("css selector", "button:enabled")

    browser.find_element("id", "renew").click()
    WebDriverWait(browser, 60).until(
        lambda _: browser.find_elements("css selector", ".choices button:enabled")
    )
    card = answer(browser, "browser", "edge")
    assert f"{DEVICES + 2} reports" in card.find_element("css selector", ".crowd").text
    assert browser.get_log("browser") == []

    newest = datetime.now(UTC).date() - timedelta(days=1)
    request = urllib.request.Request(
        f"{dashboard}/metric/browser.json?from={newest}&to={newest}",
        headers={"Authorization": f"Bearer {token}"},
    )
    with urllib.request.urlopen(request) as response:
        assert json.load(response)["n"] == DEVICES + 2
    # The dashboard's pages lead here.
    browser.get(f"{dashboard}/login?token={token}")
    assert browser.find_element("link text", "Try it").get_attribute("href") == f"{page}/"


def test_it_is_accessible(demo, open_browser, axe):
    """axe-core finds nothing before and after answering, in light and dark, on a desktop and on a
    phone, and the page is never wider than the phone."""
    _, _, _, page, _ = demo(DEVICES)
    browser = open_browser(True)
    browser.get(page)
    found = judge(browser, axe)
    answer(browser, "browser", "other")
    answer(browser, "dark_mode", "yes")
    assert found + judge(browser, axe) == []


def test_only_what_the_page_needs_is_served(demo):
    """Estimates are those of the two questions, with finite numbers; anything else is not found;
    the policy of each response allows no inline script and no other address."""
    _, _, _, page, _ = demo(DEVICES)
    with urllib.request.urlopen(f"{page}/estimate.json?metric=dark_mode") as response:
        document = json.load(response)
        policy = response.headers["Content-Security-Policy"]
    assert document["n"] == DEVICES
    assert all(math.isfinite(each["estimate"]) for each in document["values"])
    assert "unsafe" not in policy
    assert re.search(r"connect-src 'self' http://127\.0\.0\.1:\d+;", policy)
    for path in ("/estimate.json?metric=language", "/estimate.json", "/../commands.py", "/none"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(page + path)
        assert refused.value.code == 404
        refused.value.close()
