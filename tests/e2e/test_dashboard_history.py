"""The dashboard over weeks of reports, in a real browser without JavaScript: trends, changes,
filters, strings and the planner."""

from __future__ import annotations

from collections.abc import Callable
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
    browser.implicitly_wait(60)

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

    follow(browser, "link text", "week")
    assert "by=week" in browser.current_url
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
    severe = [line for line in browser.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]
    assert severe == []
