"""Sharing a view, as a person does it in a browser."""

import json

import pytest
from click.testing import CliRunner

from deniable.tools.command_line import find

from .browsing import follow, judge

NAME = "Wolfeschlegelsteinhausenbergerdorff Hubert-Blaine"


@pytest.fixture
def token(environ, tmp_path):
    """The token of an analyst with a long name, whom the dashboard knows."""
    path = tmp_path / "people.toml"
    environ["DENIABLE_DATA"] = str(tmp_path)
    arguments = ["add", NAME, "--role", "analyst", "--json", "--file", str(path)]
    made = CliRunner().invoke(find("dashboard", "people"), arguments)
    return str(json.loads(made.stdout)["token"])


def test_three_clicks_share_a_chart(token, showcase_page, open_browser, axe):
    """Signed in at the page of a metric, a person clicks "Share" and "Make the link", and copies
    it; somebody else opens it, and stays in that view; a third click in the list revokes it.
    axe-core finds nothing on any of these pages, on a desktop and on a phone, in light and dark."""
    browser = open_browser(True)
    found = []

    browser.get(f"{showcase_page}/metric/browser")
    browser.find_element("id", "token").send_keys(token)
    follow(browser, "css selector", "button.primary")
    assert browser.current_url == f"{showcase_page}/metric/browser"
    assert NAME in browser.find_element("class name", "person").text
    found += judge(browser, axe)
    follow(browser, "link text", "Share")
    found += judge(browser, axe)
    follow(browser, "css selector", "button.primary")
    found += judge(browser, axe)
    link = str(browser.find_element("id", "address").get_property("value"))
    assert link.startswith(f"{showcase_page}/shared/")
    other = open_browser(True)
    other.get(link)
    assert "Read-only link" in other.find_element("class name", "top").text
    before = other.find_element("id", "estimate").text
    leading = {
        str(other.execute_script("return arguments[0].href.baseVal || arguments[0].href", each))
        for each in other.find_elements("css selector", "a[href]")
    }
    files = {each for each in leading if each.endswith((".csv", ".json", ".svg", ".png"))}
    assert files
    assert all(each.startswith(f"{link}/metric/browser") for each in files)
    # Annotations keep their own links.
    here = (f"{link}#", "#", "https://acme.example/releases/")
    assert {each for each in leading - files if not each.startswith(here)} == {
        f"{link}?lang=zh-Hans"
    }
    browser.get(link)
    found += judge(browser, axe)
    browser.get(f"{showcase_page}/links")
    found += judge(browser, axe)
    follow(browser, "css selector", "td button")
    assert "revoked" in browser.find_element("class name", "note").text
    found += judge(browser, axe)
    other.refresh()
    assert "This link opens nothing" in other.page_source
    assert before not in other.page_source
    browser.get(link)
    found += judge(browser, axe)
    assert found == []
