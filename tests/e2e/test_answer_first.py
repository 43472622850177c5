"""The answer comes first: on a phone it begins on the first screen, on every kind of page."""

from .browsing import follow, resize
from .conftest import SHOWCASE_TOKEN

PAGES = (
    "/metric/browser",
    "/metric/dark_mode",
    "/metric/language",
    "/metric/page_load",
    "/metric/plan_and_minutes",
    "/metric/plugin/strings",
    "/metric/page_load/segments?by=platform",
)

TOP = "return document.querySelector('h2.headline').getBoundingClientRect().top"


def test_the_answer_begins_above_300_pixels(showcase_page, open_browser):
    """On a screen of 390 pixels; the definition and the privacy label are behind Details."""
    browser = open_browser(True)
    browser.get(showcase_page)
    browser.find_element("id", "token").send_keys(SHOWCASE_TOKEN)
    follow(browser, "css selector", "form button")
    resize(browser, 390, mobile=True)
    tops = {}
    for path in PAGES:
        browser.get(showcase_page + path)
        tops[path] = browser.execute_script(TOP)
        assert not browser.find_element("css selector", "#details :is(dl, p)").is_displayed()
    assert {path: top for path, top in tops.items() if not 0 < top < 300} == {}
