"""Following links and sending forms in a browser that may be slow, and what axe-core says of a
page."""

OPEN_ALL = "document.querySelectorAll('details').forEach(each => { each.open = true; })"

RUN_AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then(
  found => done(found.violations
    .map(each => `${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map(
      node => node.target + " " + ((node.any[0] || {}).message || "")).join("; ")}`)),
  error => done(["axe failed: " + error]),
);
"""


def follow(browser, by, what):
    """Click an element, and wait until the page is another one."""
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.support.expected_conditions import staleness_of
    from selenium.webdriver.support.ui import WebDriverWait

    element = browser.find_element(by, what)
    element.click()
    # While one page gives way to the next, asking for an element of it can fail in any way.
    WebDriverWait(browser, 30, ignored_exceptions=[WebDriverException]).until(staleness_of(element))


def resize(browser, width, *, mobile=False):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": mobile},
    )


def look(browser, *, colours="light", media=""):
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": media, "features": [{"name": "prefers-color-scheme", "value": colours}]},
    )


def complaints(browser, axe, address):
    """What axe-core, whose source `axe` is, finds on a page with everything unfolded."""
    browser.get(address)
    browser.execute_script(OPEN_ALL)
    return [f"{address}: {each}" for each in judge(browser, axe)]


def judge(browser, axe):
    """What axe-core finds on the page that is shown: in light and dark, on a desktop and on a
    phone; and whether the page is wider than the screen."""
    browser.set_script_timeout(60)
    browser.execute_script(axe)
    found = []
    for width in (1200, 360):
        resize(browser, width, mobile=width == 360)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        if wide > width:
            found.append(f"{browser.title}: {wide} pixels wide where there are {width}")
        for colours in ("light", "dark"):
            look(browser, colours=colours)
            problems = browser.execute_async_script(RUN_AXE)
            found.extend(f"{browser.title}, {width}, {colours}: {each}" for each in problems)
    resize(browser, 1200)
    return found
