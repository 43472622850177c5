"""The dashboard in Chinese, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from .conftest import SHOWCASE_TOKEN
from .test_accessibility import OPEN_ALL, RUN_AXE, resize

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PAGES = ("/", "/metric/browser?shares=normalized&by=week", "/metric/browser/compare", "/plan")


@pytest.mark.parametrize("scripts", [False, True])
def test_the_footer_switches_the_language_for_good(
    showcase_page: str, open_browser: Callable[[bool], Chrome], scripts: bool
) -> None:
    """One click, with or without scripts, leads to the same page in Chinese; the pages after it
    are in Chinese as well, until the click back."""
    browser = open_browser(scripts)
    browser.get(f"{showcase_page}/login?token={SHOWCASE_TOKEN.replace(' ', '+')}")
    browser.get(f"{showcase_page}/metric/browser?shares=normalized")
    browser.find_element("link text", "简体中文").click()
    assert "shares=normalized" in browser.current_url
    assert "归一化占比" in browser.find_element("tag name", "main").text
    browser.find_element("link text", "指标").click()
    assert browser.current_url == f"{showcase_page}/"
    assert browser.find_element("tag name", "h1").text == "指标"
    browser.find_element("link text", "English").click()
    assert browser.find_element("tag name", "h1").text == "Metrics"


def test_pages_in_chinese_are_for_everybody(
    showcase_page: str, open_browser: Callable[[bool], Chrome], axe: str
) -> None:
    """axe-core finds nothing serious or critical in them, and none is wider than a phone."""
    browser = open_browser(True)
    browser.set_script_timeout(60)
    browser.get(f"{showcase_page}/login?token={SHOWCASE_TOKEN.replace(' ', '+')}")
    resize(browser, 375, mobile=True)
    found: list[str] = []
    for path in PAGES:
        browser.get(f"{showcase_page}{path}{'&' if '?' in path else '?'}lang=zh-Hans")
        assert browser.execute_script("return document.documentElement.lang") == "zh-Hans"
        browser.execute_script(OPEN_ALL)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        if wide != 375:
            found.append(f"{path}: {wide} pixels wide on a phone")
        browser.execute_script(axe)
        problems: list[str] = browser.execute_async_script(RUN_AXE)
        found.extend(f"{path}: {each}" for each in problems)
    assert found == []
