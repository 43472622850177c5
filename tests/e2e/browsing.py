"""Following links and sending forms in a browser that may be slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

__all__ = ["follow"]


def follow(browser: Chrome, by: str, what: str) -> None:
    """Click an element, and wait until the page is another one."""
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.support.expected_conditions import staleness_of
    from selenium.webdriver.support.ui import WebDriverWait

    element = browser.find_element(by, what)
    element.click()
    # While one page gives way to the next, asking for an element of it can fail in any way.
    WebDriverWait(browser, 30, ignored_exceptions=[WebDriverException]).until(staleness_of(element))
