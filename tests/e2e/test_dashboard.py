"""The dashboard in a real browser, over what real devices have reported."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from .browsing import follow
from .running import calculated

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


@pytest.fixture
def dashboard(
    command: list[str], start: Callable[[list[str]], subprocess.Popen[str]]
) -> tuple[str, str]:
    """Address and token of the dashboard of a small demo."""
    demo = start([*command, "demo", "--devices", "600", "--port", "0"])
    assert demo.stdout is not None
    for line in demo.stdout:
        if found := re.search(r"(http://127\.0\.0\.1:\d+)/login\?\S*token=(\S+)", line):
            calculated(found[1], found[2])
            return found[1], found[2]
    raise AssertionError("the demo printed no address")


@pytest.mark.parametrize("javascript", [True, False])
def test_a_person_finds_the_numbers(
    dashboard: tuple[str, str], open_browser: Callable[[bool], Chrome], javascript: bool
) -> None:
    """Sign in, see all metrics, open one, see its chart, intervals and table; nothing is
    blocked by the Content-Security-Policy, and no script is needed."""

    page, token = dashboard
    browser = open_browser(javascript)
    browser.implicitly_wait(60)

    browser.get("data:text/html,<title>off</title><script>document.title='on'</script>")
    assert browser.title == ("on" if javascript else "off")

    browser.get(f"{page}/metric/browser")
    assert "/login" in browser.current_url
    browser.find_element("id", "token").send_keys("not the token")
    follow(browser, "css selector", "form button")
    assert "not the token" in browser.find_element("css selector", "[role=alert]").text
    browser.find_element("id", "token").send_keys(token)
    follow(browser, "css selector", "form button")
    # The way led to a metric, and signing in went on there.
    assert browser.current_url == f"{page}/metric/browser"

    follow(browser, "link text", "Metrics")
    names = [each.text for each in browser.find_elements("css selector", ".metric h2")]
    lists = ["browser", "dark_mode", "language", "shop_images"]
    assert names == [*lists, "crashed", "plan", "minutes", "plan_and_minutes", "site_system"]
    assert len(browser.find_elements("css selector", ".metric:has(.bars, .figure)")) == 7
    facts = browser.find_element("css selector", ".metric .facts").text
    assert re.search(r"\d,\d{3} reports", facts), facts
    follow(browser, "xpath", "//h2/a[.='language']")

    chart = browser.find_element("css selector", ".chart.large")
    assert "english" in chart.text
    # One click, which takes no script, opens all that the answer itself does not need.
    table = browser.find_element("css selector", "section[aria-labelledby=numbers] table")
    assert not table.is_displayed()
    browser.find_element("css selector", "#details > summary").click()
    assert table.is_displayed()

    # Half of the languages of so few devices are below the noise of a week.
    follow(browser, "link text", "7 days")
    assert "from=" in browser.current_url
    assert browser.find_elements("css selector", ".chart.large")
    if not browser.find_element("css selector", "section[aria-labelledby=numbers]").is_displayed():
        browser.find_element("css selector", "#details > summary").click()
    folds = browser.find_elements("css selector", "details.fold > summary")
    assert len(folds) == 2, "chart and table"
    for fold in folds:
        assert re.fullmatch(r"\d+ values cannot be told from noise", fold.text)
        fold.click()
    whiskers = browser.find_elements("css selector", ".chart.large line.whisker")
    assert len(whiskers) == 3 * 21
    drawn = [each for each in whiskers if each.rect["width"] > 5]
    assert len(drawn) == 21, "every value has an interval that can be seen"
    assert browser.find_element("css selector", "h2.headline").text.startswith("english leads")
    lines = browser.find_elements("css selector", "section[aria-labelledby=numbers] tbody tr")
    assert len(lines) == 21
    assert browser.find_elements("css selector", "tbody tr.noise")
    assert "Privacy risk of a device" in browser.find_element("css selector", ".label").text

    follow(browser, "css selector", "header form button")
    assert "/login" in browser.current_url

    severe = [line for line in browser.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]
    # The wrong token was refused with a 403, which the browser notes.
    assert [line for line in severe if "403" not in line["message"]] == []


def test_the_styles_are_let_in(
    dashboard: tuple[str, str], open_browser: Callable[[bool], Chrome]
) -> None:
    """The policy that forbids scripts does not keep the style sheet out, and the page fits
    the width of a phone."""
    page, token = dashboard
    browser = open_browser(True)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 375, "height": 700, "deviceScaleFactor": 1, "mobile": True},
    )
    browser.get(f"{page}/login?token={token}")
    assert browser.current_url == f"{page}/"
    body = browser.find_element("tag name", "body")
    assert body.value_of_css_property("margin") == "0px"
    for path in ("/", "/metric/language", "/metric/dark_mode", "/metric/browser/compare", "/plan"):
        browser.get(page + path)
        assert browser.execute_script("return document.documentElement.scrollWidth") == 375
