"""The pages for everybody: by keyboard, on paper, on a phone, and read aloud."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.registries import declared

from deniable import Client, Registry

from .browsing import complaints, look, resize
from .conftest import SHOWCASE_TOKEN

FLOOD = datetime.now(UTC).date() - timedelta(days=65)
"""The day of fakes in `docs/showcase.py`."""

PAGES = (
    "/",
    "/?view=list",
    "/?q=fire&from=2026-11-01&to=2026-11-20",
    "/?q=nothing+matches",
    "/?tga=settings",
    "/metric/language",
    "/metric/browser?shares=normalized&by=week",
    "/metric/browser?from=2026-11-20&to=2026-11-01",
    "/metric/crash_on_start",
    "/metric/old_importer",
    "/metric/search_engine",
    "/metric/browser/compare",
    "/metric/language/compare",
    "/metric/browser/compare?from=soon",
    "/metric/page_load?limit=2.5",
    "/metric/page_load?limit=soon",
    "/metric/page_load/compare",
    "/metric/tabs",
    f"/metric/dark_mode?from={FLOOD}",
    f"/metric/dark_mode?from={FLOOD}&without={FLOOD}",
    "/boards",
    "/boards/monday",
    "/plan",
    "/plan?size=one",
    "/plan/number",
    "/plan/number?low=one",
    "/plan/pair",
    "/plan/pair?rows=one",
    "/metric/page_load/segments",
    "/metric/page_load/segments?by=system",
    "/links",
    "/releases",
    "/released/browser",
    "/plan?segment_share=0.05",
    "/plan/lifetime",
    "/plan/lifetime?years=0",
    "/metric/browsr",
)
"""Overview, metrics with a trend and with an alarm, comparisons, the planner, and pages about
mistakes."""


@pytest.fixture
def browser(open_browser):
    return open_browser(True)


@pytest.fixture
def owners_page(tmp_path):
    """The address of the page that an app shows the owner of the device."""
    cup = {"type": "category", "values": ["tea", "coffee", "milk"], "epsilon": 1.0}
    registry = Registry.parse(declared(m=cup))
    now = [1_795_000_000.0]
    client = Client(
        registry,
        state_dir=tmp_path / "state",
        clock=lambda: now[0],
        background=False,
        spread=0,
        consent=True,
    )
    for _ in range(3):
        client.record("m", "tea")
        client.flush()
        now[0] += 86_400
    path = tmp_path / "owner.html"
    path.write_text(
        client.owner_page(app="Acme", opt_out_url="/off", erase_url="acme:erase"), encoding="utf-8"
    )
    client.close()
    return path.as_uri()


@pytest.mark.parametrize("language", ["en", "zh-Hans"])
def test_axe_finds_nothing(showcase_page, owners_page, browser, axe, language):
    """axe-core finds nothing at all, of whatever impact, on any page, with everything unfolded, in
    light and dark, on a desktop and on a phone, in both languages; and no page is wider than the
    phone."""
    found = []

    def judge(address):
        found.extend(complaints(browser, axe, address))

    judge(f"{showcase_page}/login?used=1&lang={language}")
    browser.get(f"{showcase_page}/login?token={SHOWCASE_TOKEN}")
    for path in PAGES:
        judge(showcase_page + path)
    judge(f"{showcase_page}/embed/metric/browser")
    if language == "en":
        judge(owners_page)
        erasing = browser.find_element("css selector", "a.button")
        assert erasing.get_attribute("href") == "acme:erase"
        assert browser.find_element("tag name", "main").rect["width"] <= 720
    assert found == []


def test_the_keyboard_is_enough(showcase_page, browser):
    """Tab begins at a link that skips to the content, every stop is seen, and what is folded
    opens by a key."""
    from selenium.webdriver.common.keys import Keys

    browser.get(f"{showcase_page}/login?token={SHOWCASE_TOKEN}")
    browser.get(f"{showcase_page}/metric/browser")

    def press(key):
        browser.switch_to.active_element.send_keys(key)
        return browser.switch_to.active_element

    stop = press(Keys.TAB)
    assert stop.text == "Skip to the content"
    assert stop.rect["x"] >= 0
    press(Keys.ENTER)
    assert browser.current_url.endswith("#content")
    seen, folded = set(), None
    for _ in range(150):
        stop = press(Keys.TAB)
        if stop.tag_name == "body":
            break
        if stop.id in seen:  # a date is several stops in one field
            continue
        seen.add(stop.id)
        outline = browser.execute_script(
            "const style = getComputedStyle(arguments[0]);"
            "return style.outlineStyle != 'none' && parseFloat(style.outlineWidth) >= 1;",
            stop,
        )
        assert outline, stop.get_attribute("outerHTML")
        if stop.tag_name == "summary" and folded is None:
            folded = stop
            press(Keys.ENTER)
            parent = stop.find_element("xpath", "..")
            assert parent.get_attribute("open") is not None
    assert len(seen) > 25
    assert folded is not None


def test_paper_is_white_and_has_the_chart(showcase_page, browser):
    """Printed from a dark screen the page is ink on white, without controls and without links
    that look like links; chart and table fit A4, and the PDF has pages."""
    browser.get(f"{showcase_page}/login?token={SHOWCASE_TOKEN}")
    resize(browser, 690)
    look(browser, colours="dark", media="print")
    browser.get(f"{showcase_page}/metric/browser")

    def style(selector, name):
        element = browser.find_element("css selector", selector)
        return str(element.value_of_css_property(name))

    assert style("body", "background-color") == "rgba(255, 255, 255, 1)"
    assert style("h1", "color") == "rgba(0, 0, 0, 1)"
    for selector in (".controls", ".downloads", ".top nav"):
        assert style(selector, "display") == "none"
    link = browser.find_element("css selector", ".since a")
    assert "underline" not in link.value_of_css_property("text-decoration-line")
    chart = browser.find_element("css selector", ".chart.large")
    assert chart.rect["width"] > 250
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 690
    look(browser, colours="dark")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    assert len(printed["data"]) > 10_000
