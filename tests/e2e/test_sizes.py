"""Narrow screens, large letters and paper."""

import pytest

from .browsing import OPEN_ALL, look, resize
from .conftest import SHOWCASE_TOKEN

PAGES = (
    "/",
    "/metric/language",
    "/metric/dark_mode",
    "/metric/page_load?limit=2.5",
    "/metric/tabs",
    "/metric/browser/compare",
    "/metric/page_load/compare",
    "/plan",
    "/plan/number",
    "/plan/lifetime",
    "/releases",
    "/released/browser",
)

ANSWERS = (
    "/metric/browser",
    "/metric/dark_mode",
    "/metric/language",
    "/metric/page_load",
    "/metric/plan_and_minutes",
    "/metric/plugin/strings",
    "/metric/page_load/segments?by=platform",
)
TOP = "return document.querySelector('h2.headline').getBoundingClientRect().top"

SIZES = """
return [...document.querySelectorAll("body *")]
  .filter(each => [...each.childNodes].some(node => node.nodeType == 3 && node.data.trim()))
  .map(each => [each.textContent.trim().slice(0, 40), parseFloat(getComputedStyle(each).fontSize)]);
"""
"""Every element with text of its own, and the size of its letters."""

MEETINGS = """
const boxes = [...document.querySelectorAll(".chart")].flatMap(chart => {
  const texts = [...chart.querySelectorAll("text")].filter(each => each.getClientRects().length);
  const lines = [...chart.querySelectorAll(".zero")].filter(each => each.getClientRects().length);
  const box = each => each.getBoundingClientRect();
  const meet = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
    && one.top < other.bottom - 1.5 && other.top < one.bottom - 1.5;
  const across = (line, text) => line.left > text.left && line.left < text.right
    && line.top < text.bottom - 1.5 && text.top < line.bottom - 1.5;
  return [
    ...texts.flatMap((text, place) => texts.slice(place + 1)
      .filter(other => meet(box(text), box(other)))
      .map(other => `${text.textContent} and ${other.textContent}`)),
    ...lines.flatMap(line => texts.filter(text => across(box(line), box(text)))
      .map(text => `the zero line and ${text.textContent}`)),
  ];
});
return boxes;
"""
"""Labels of a chart that lie over each other, or under its zero line."""

CROPPED = """
return [...document.querySelectorAll("input[type=date]")].flatMap(field => {
  const whole = field.cloneNode();
  whole.style.cssText = "position: absolute; width: max-content; min-width: max-content";
  field.after(whole);
  const wanted = whole.offsetWidth;
  whole.remove();
  const lacking = wanted - field.offsetWidth;
  return lacking > 0 ? [`${field.name} lacks ${lacking} of ${wanted} pixels`] : [];
});
"""
"""Date fields that are too narrow for a date and the button beside it."""

FILLED = """
const [width, height, gap] = arguments;
const style = document.body.style;
Object.assign(document.documentElement.style, {width: "max-content", height: `${height}px`});
Object.assign(style, {width: `${width}px`, height: `${height}px`, columnWidth: `${width}px`,
  columnGap: `${gap}px`, columnFill: "auto"});
const pages = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const range = document.createRange();
const count = box => {
  if (!box.width || !box.height) return;
  const page = Math.floor((box.left + 1) / (width + gap));
  pages[page] = Math.max(pages[page] || 0, box.bottom / height);
};
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  if (!node.data.trim() || !node.parentElement.checkVisibility()) continue;
  range.selectNodeContents(node);
  [...range.getClientRects()].forEach(count);
}
[...document.querySelectorAll("svg")].filter(each => each.checkVisibility())
  .forEach(each => [...each.getClientRects()].forEach(count));
return pages;
"""
"""How far down each page is filled, where the document is broken into pages of that size."""


@pytest.fixture
def browser(open_browser, showcase_page):
    """A browser that has signed in and has looked at strings, so that they are decoded."""
    browser = open_browser(True)
    browser.implicitly_wait(10)
    browser.get(f"{showcase_page}/login?token={SHOWCASE_TOKEN}")
    return browser


def letters(browser, size):
    """Set the browser's font size, as a reader does in its settings."""
    browser.execute_cdp_cmd("Page.setFontSizes", {"fontSizes": {"standard": size}})


def test_everything_fits_every_screen(showcase_page, browser):
    """On desktops and phones, with letters of 16 and of 24 pixels in the browser's settings: every
    text follows them, also in charts; no page is wider than its screen; no label of a chart
    lies on another or under the zero line; dates are whole."""
    found = []
    for path in PAGES:
        browser.get(showcase_page + path)
        browser.execute_script(OPEN_ALL)
        sizes = []
        for size in (16, 24):
            letters(browser, size)
            for width in (1280, 390, 320):
                resize(browser, width, mobile=width < 500)
                where = f"{path}, {width}, {size}"
                wide = browser.execute_script("return document.documentElement.scrollWidth")
                if wide > width:
                    found.append(f"{where}: {wide} pixels wide")
                for script in (MEETINGS, CROPPED):
                    found += [f"{where}: {each}" for each in browser.execute_script(script)]
                if width == 1280:
                    sizes.append(browser.execute_script(SIZES))
        assert len(sizes[0]) == len(sizes[1]) > 30
        found += [
            f"{path}: {text!r} has {before}, then {after}"
            for (text, before), (_, after) in zip(*sizes, strict=True)
            if after != pytest.approx(1.5 * before, rel=0.01)
        ]
    assert found == []


def test_the_answer_begins_above_300_pixels(showcase_page, browser):
    """On a screen of 390 pixels; the definition and the privacy label are behind Details."""
    resize(browser, 390, mobile=True)
    for path in ANSWERS:
        browser.get(showcase_page + path)
        assert 0 < browser.execute_script(TOP) < 300, path
        assert not browser.find_element("css selector", "#details :is(dl, p)").is_displayed()


def test_paper_is_filled(showcase_page, browser):
    """Printed on A4 no page but the last is left half empty, whatever the metric: what may not be
    broken, as rows, drawings and headings with what follows, is small."""
    look(browser, media="print")
    # A4 without margins of 14 and 16 mm, at 96 pixels an inch.
    width, height, gap = 688, 1001, 40
    resize(browser, 794)
    found = {}
    more = (
        "/boards/monday",
        "/metric/browser",
        "/metric/crash_on_start",
        "/metric/language/compare",
    )
    for path in (*PAGES, *more):
        browser.get(showcase_page + path)
        pages = browser.execute_script(FILLED, width, height, gap)
        assert len(pages) <= 5
        if poor := [round(each or 0, 2) for each in pages[:-1] if (each or 0) < 0.6]:
            found[path] = poor
        if pages[-1] < 0.1 and len(pages) > 1:
            found[f"{path}, the last page"] = [pages[-1]]
    assert found == {}
