"""The overview in a browser: it filters while somebody types."""

from .conftest import SHOWCASE_TOKEN


def shown(browser):
    """The metrics of the cards, all at one moment: a script may be replacing them."""
    names = "return [...document.querySelectorAll('.metric h2')].map(each => each.textContent)"
    return browser.execute_script(names)


def test_it_filters_while_somebody_types(showcase_page, open_browser):
    """With JavaScript the cards follow the search without a button, values are found, the address
    follows, the field keeps the focus, and the policy blocks nothing."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser = open_browser(True)
    browser.get(f"{showcase_page}/login?token={SHOWCASE_TOKEN}")
    every = shown(browser)
    field = browser.find_element("id", "q")
    field.send_keys("bing.com")
    WebDriverWait(browser, 60).until(lambda page: shown(page) == ["search_engine"])
    assert browser.current_url.endswith("?q=bing.com")
    assert browser.switch_to.active_element == field
    assert "bing.com" in browser.find_element("css selector", ".found mark").text
    for _ in "bing.com":
        field.send_keys("\b")
    WebDriverWait(browser, 60).until(lambda page: shown(page) == every)
    assert browser.current_url == f"{showcase_page}/"
    browser.find_element("css selector", "#sort option[value=name]").click()
    WebDriverWait(browser, 60).until(lambda page: shown(page) == sorted(every))
    field.send_keys("nothing matches this")
    WebDriverWait(browser, 60).until(lambda page: "No metric matches" in page.page_source)
    log = [each["message"] for each in browser.get_log("browser")]
    assert [each for each in log if "favicon" not in each] == []
