"""The dashboard in Chinese, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from .conftest import SHOWCASE_TOKEN

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


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
