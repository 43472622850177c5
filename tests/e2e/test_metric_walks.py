"""Questions that a person asks of a metric's page, each within three clicks, without JavaScript."""

import re
from itertools import pairwise

import pytest

from .browsing import follow
from .conftest import SHOWCASE_TOKEN


@pytest.fixture
def browser(showcase_page, open_browser):
    """A browser without JavaScript that has signed in and shows the overview."""
    opened = open_browser(False)
    opened.implicitly_wait(10)
    opened.get(f"{showcase_page}/login?token={SHOWCASE_TOKEN}")
    return opened


def text(browser, selector="main"):
    return browser.find_element("css selector", selector).text


def seen(browser):
    """The tooltips that are seen."""
    tips = browser.find_elements("css selector", ".points .tip")
    return [tip for tip in tips if tip.value_of_css_property("clip-path") == "none"]


def _points(browser):
    """The points of a trend are one stop of the Tab key; arrow keys lead from one to the next, and
    a finger shows the one that it touches. Each says its day, number and interval."""
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    follow(browser, "xpath", "//h2/a[.='dark_mode']")
    buttons = browser.find_elements("css selector", ".points input")
    assert len(buttons) == 28
    assert seen(browser) == []
    buttons[0].send_keys(Keys.SPACE)
    first = [tip.text for tip in seen(browser)]
    browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    second = [tip.text for tip in seen(browser)]
    pattern = r"\d+ \w{3} 20\d\d: true [\d.]+%, [\d.]+% to [\d.]+%, [\d,]+ reports"
    assert len(first) == len(second) == 1
    assert first != second
    assert re.fullmatch(pattern, second[0])
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("name") != "trend-point"

    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True},
    )
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    browser.refresh()
    button = browser.find_elements("css selector", ".points input")[20]
    at = browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center'});"
        "const at = arguments[0].getBoundingClientRect();"
        "return {x: at.x + at.width / 2, y: at.y + 60};",
        button,
    )
    for kind, places in (("touchStart", [at]), ("touchEnd", [])):
        browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})
    touched = WebDriverWait(browser, 60).until(seen)
    assert len(touched) == 1
    assert re.fullmatch(pattern, touched[0].text)
    assert touched[0].rect["x"] >= 0
    assert touched[0].rect["x"] + touched[0].rect["width"] <= 400


def _ticked(browser):
    """Two ticks and a button draw three values on one scale, each with a label at its end; the
    address keeps them."""
    follow(browser, "link text", "browser")
    browser.find_element("css selector", "#details > summary").click()
    for value in ("firefox", "safari"):
        browser.find_element("css selector", f"input[type=checkbox][value={value}]").click()
    follow(browser, "css selector", "form.draw button")
    assert {"chrome", "firefox", "safari"} <= set(re.findall(r"value=(\w+)", browser.current_url))
    assert text(browser, "#trend").startswith("Over time: chrome")
    labels = browser.find_elements("css selector", ".trend .end .long")
    assert sorted(each.text for each in labels) == ["chrome", "firefox", "safari"]
    heights = sorted(each.rect["y"] for each in labels)
    assert all(two - one >= 11 for one, two in pairwise(heights))
    severe = [each for each in browser.get_log("browser") if each["level"] in ("SEVERE", "WARNING")]
    assert severe == []


def test_a_person_has_answers_in_three_clicks(browser, showcase_page):
    """How several values went together, and what each point of a trend says: each from the
    overview."""
    for each in (_ticked, _points):
        browser.get(showcase_page)
        each(browser)
