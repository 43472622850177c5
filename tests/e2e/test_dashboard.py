"""The dashboard in a real browser, over what real devices have reported."""

import re

import pytest

from .running import calculated


@pytest.fixture
def dashboard(command, start):
    """Address and token of the dashboard of a small demo."""
    demo = start([*command, "demo", "--devices", "600", "--port", "0"])
    assert demo.stdout is not None
    for line in demo.stdout:
        if found := re.search(r"(http://127\.0\.0\.1:\d+)/login\?\S*token=(\S+)", line):
            calculated(found[1], found[2])
            return found[1], found[2]
    raise AssertionError("the demo printed no address")


def test_the_styles_are_let_in(dashboard, open_browser):
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
