"""The dashboard over weeks of reports, in a real browser without JavaScript: trends, changes,
filters, strings and the planner."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from .browsing import follow
from .conftest import SHOWCASE_TOKEN

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def test_a_person_follows_a_change(
    showcase_page: str, open_browser: Callable[[bool], Chrome], tmp_path: Path
) -> None:
    """Filter the overview, open a metric, see its trend by week, choose a value, compare two
    periods, name strings by a file, and plan a metric; nothing is blocked by the policy."""

    browser = open_browser(False)
    browser.implicitly_wait(10)

    def one(selector: str) -> str:
        return browser.find_element("css selector", selector).text

    browser.get(showcase_page)
    browser.find_element("id", "token").send_keys(SHOWCASE_TOKEN)
    follow(browser, "css selector", "form button")
    browser.find_element("id", "q").send_keys("dark")
    follow(browser, "css selector", ".filters button")
    assert [each.text for each in browser.find_elements("css selector", ".metric h2")] == [
        "dark_mode"
    ]
    follow(browser, "css selector", ".metric h2 a")

    assert re.search(r"Newest complete week, .*: yes [\d.]+%", one("main"))
    assert re.search(r"Compared with .* 20\d\d to .* 20\d\d\.", one("main"))
    dots = browser.find_elements("css selector", ".trend .dot")
    assert len(dots) == 28
    band = browser.find_element("css selector", ".trend path.interval")
    assert band.rect["width"] > 400
    follow(browser, "link text", "week")
    assert "by=week" in browser.current_url
    assert 4 <= len(browser.find_elements("css selector", ".trend .dot")) <= 6
    browser.find_element("css selector", ".timeline details summary").click()
    assert "95% CI" in one(".steps")

    browser.get(f"{showcase_page}/metric/browser")
    follow(browser, "css selector", ".choices li:nth-child(4) a")
    assert one("#trend") == "Over time: chrome, firefox"
    assert len(browser.find_elements("css selector", ".trend path.line.s2")) == 1
    follow(browser, "link text", "Compare periods")
    assert "95% CI" in one("h2.headline") or "No change" in one("h2.headline")
    assert len(browser.find_elements("css selector", "tbody tr")) == 6

    browser.get(f"{showcase_page}/metric/search_engine")
    assert one("h2.headline").startswith("google.com leads")
    names = tmp_path / "names.txt"
    names.write_text("ecosia.org\nnobody.example\n")
    browser.find_element("id", "candidates").send_keys(str(names))
    follow(browser, "css selector", ".upload button")
    assert one("h2.headline").startswith("ecosia.org leads")
    # The list stays: for other days, and for a trend of each of its strings.
    for link in (".presets a:not([aria-current])", "#content .timeline .switch a"):
        follow(browser, "css selector", link)
        assert one("h2.headline").startswith("ecosia.org leads")
    assert one("#trend") == "Over time: ecosia.org"
    assert "ecosia" not in browser.current_url
    follow(browser, "css selector", ".own button")
    assert one("h2.headline").startswith("google.com leads")

    follow(browser, "link text", "Planner")
    devices = browser.find_element("id", "devices")
    devices.clear()
    devices.send_keys("1000000")
    follow(browser, "css selector", ".planner button")
    assert "devices=1000000" in browser.current_url
    assert "are detectable" in one("h2.headline")
    assert browser.find_element("css selector", ".reach .line").rect["width"] > 400
    assert len(browser.find_elements("css selector", ".chart .truth")) == 10

    severe = [line for line in browser.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]
    assert severe == []


def test_a_person_leaves_out_a_day_of_fakes(
    showcase_page: str, open_browser: Callable[[bool], Chrome]
) -> None:
    """The alarm of a day is seen, the day is marked in the trend, and one click leaves it out."""

    browser = open_browser(False)
    browser.implicitly_wait(10)
    # The day of fakes in `docs/showcase.py`.
    flood = datetime.now(UTC).date() - timedelta(days=65)
    days = f"from={flood - timedelta(days=6)}&to={flood + timedelta(days=7)}"
    browser.get(showcase_page)
    browser.find_element("id", "token").send_keys(SHOWCASE_TOKEN)
    follow(browser, "css selector", "form button")
    browser.get(f"{showcase_page}/metric/dark_mode?{days}")
    headline = browser.find_element("css selector", "h2.headline").text
    assert re.search(r"Anomalous: \d+ \w{3} 20\d\d\. Do not rely on these shares\.", headline)
    assert browser.find_element("css selector", ".alarm").is_displayed()
    mark = browser.find_element("css selector", ".timeline .trend rect.alarm")
    assert mark.rect["height"] > 200
    follow(browser, "partial link text", "Leave out")
    assert f"without={flood}" in browser.current_url
    browser.implicitly_wait(0)
    assert not browser.find_elements("css selector", ".alarm")
    assert "Left out: " in browser.find_element("css selector", ".left-out").text
    assert len(browser.find_elements("css selector", ".trend .dot")) == 13
