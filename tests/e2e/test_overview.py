"""Which metrics need me? The overview in a browser: the strip, filters while typing, the list."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from .browsing import follow
from .conftest import SHOWCASE_TOKEN

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def sign_in(browser: Chrome, page: str) -> None:
    browser.get(f"{page}/login?token={SHOWCASE_TOKEN.replace(' ', '+')}")
    deadline = time.monotonic() + 60
    while "being calculated" in browser.find_element("tag name", "main").text:
        assert time.monotonic() < deadline
        time.sleep(0.2)
        browser.get(page)


def shown(browser: Chrome) -> list[str]:
    """The metrics of the cards, all at one moment: a script may be replacing them."""
    names = "return [...document.querySelectorAll('.metric h2')].map(each => each.textContent)"
    found: list[str] = browser.execute_script(names)
    return found


def test_which_metrics_need_me(showcase_page: str, open_browser: Callable[[bool], Chrome]) -> None:
    """The first page answers without a click: each metric that needs attention, and why. One click
    leads to the days that show it; three show all of one state as a list. No JavaScript runs."""
    browser = open_browser(False)
    sign_in(browser, showcase_page)
    strip = browser.find_element("id", "strip")
    lines = {
        each.find_element("tag name", "a").text: each.find_element("tag name", "span").text
        for each in strip.find_elements("tag name", "li")
    }
    assert strip.find_element("class name", "count").text == str(len(lines))
    assert lines["old_importer"].startswith("expired on 2026-01-31")
    assert "too few to see a share" in lines["crash_on_start"]
    assert set(lines) < set(shown(browser)), "not every metric needs it"
    follow(browser, "css selector", "#strip li a")
    assert "/metric/" in browser.current_url
    browser.back()
    follow(browser, "link text", "list")
    state = browser.find_element("id", "state")
    state.find_element("css selector", "option[value=few]").click()
    follow(browser, "css selector", ".filters button")
    rows = browser.find_elements("css selector", ".metrics tbody th a")
    assert {each.text for each in rows} == {n for n, text in lines.items() if "too few" in text}
    assert "view=list" in browser.current_url
    assert "state=few" in browser.current_url


def test_it_filters_while_somebody_types(
    showcase_page: str, open_browser: Callable[[bool], Chrome]
) -> None:
    """With JavaScript the cards follow the search without a button, values are found, the address
    follows, the field keeps the focus, and the policy blocks nothing."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser = open_browser(True)
    sign_in(browser, showcase_page)
    every = shown(browser)
    field = browser.find_element("id", "q")
    field.send_keys("bing.com")
    WebDriverWait(browser, 20).until(lambda page: shown(page) == ["search_engine"])
    assert browser.current_url.endswith("?q=bing.com")
    assert browser.switch_to.active_element == field
    assert "bing.com" in browser.find_element("css selector", ".found mark").text
    for _ in "bing.com":
        field.send_keys("\b")
    WebDriverWait(browser, 20).until(lambda page: shown(page) == every)
    assert browser.current_url == f"{showcase_page}/"
    browser.find_element("css selector", "#sort option[value=name]").click()
    WebDriverWait(browser, 20).until(lambda page: shown(page) == sorted(every))
    field.send_keys("nothing matches this")
    WebDriverWait(browser, 20).until(lambda page: "No metric matches" in page.page_source)
    log = [each["message"] for each in browser.get_log("browser")]
    assert [each for each in log if "favicon" not in each] == []
