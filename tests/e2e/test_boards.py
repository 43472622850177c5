"""A board, as somebody finds it and looks at it on a screen, a phone and paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .browsing import follow
from .conftest import SHOWCASE_TOKEN

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def test_a_board_is_two_clicks_away(
    showcase_page: str, open_browser: Callable[[bool], Chrome]
) -> None:
    """From the overview to the board and from a chart to its metric, without JavaScript; charts
    stand side by side on a desktop and one below the other on a phone, and none is wider than its
    card, on paper neither."""
    browser = open_browser(False)
    browser.get(f"{showcase_page}/login?token={SHOWCASE_TOKEN}")
    follow(browser, "link text", "Boards")
    follow(browser, "link text", "Every Monday")
    assert browser.current_url == f"{showcase_page}/boards/monday"
    for width, media, columns in ((1200, "", 3), (360, "", 1), (690, "print", 1)):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
        cards = browser.find_elements("css selector", ".board > .card")
        assert len(cards) == 8
        assert len({round(each.rect["x"]) for each in cards if "small" in str(
            each.get_attribute("class"))}) == columns  # fmt: skip
        for card in cards:
            right = card.rect["x"] + card.rect["width"]
            assert right <= width
            for chart in card.find_elements("css selector", ":scope svg.chart"):
                assert chart.rect["x"] + chart.rect["width"] <= right + 1
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    follow(browser, "link text", "Open tabs, last week")
    assert browser.current_url.startswith(f"{showcase_page}/metric/tabs?")
