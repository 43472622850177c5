"""Annotating a release, as somebody at the dashboard does it."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING

from .conftest import SHOWCASE_TOKEN

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


def test_a_release_is_annotated_in_three_steps(
    showcase_page: str,
    open_browser: Callable[[bool], Chrome],
    command: list[str],
    environ: dict[str, str],
) -> None:
    """Unfold the command on a metric's page, run it, load the page again: the release is there,
    without JavaScript. A flag leads by key to its entry, which is marked."""
    from selenium.webdriver.common.keys import Keys

    browser = open_browser(False)
    browser.get(f"{showcase_page}/login?token={SHOWCASE_TOKEN}")
    browser.get(f"{showcase_page}/metric/browser")
    browser.find_element("css selector", ".annotate summary").click()
    box = browser.find_element("css selector", ".annotate textarea")
    assert box.is_displayed()
    program, *arguments = shlex.split(str(box.get_property("value")).replace("4.2", "5.0"))
    assert program == "deniable"
    subprocess.run([*command, *arguments], env=environ, check=True, timeout=60)
    browser.refresh()
    assert "Release 5.0" in browser.find_element("css selector", ".annotations").text

    flag = browser.find_element("css selector", ".flags a")
    told = flag.find_element("css selector", ".told")
    assert told.value_of_css_property("visibility") == "hidden"
    browser.find_element("css selector", ".annotate summary").send_keys(Keys.SHIFT, Keys.TAB)
    flag.send_keys(Keys.NULL)
    assert told.value_of_css_property("visibility") == "visible"
    flag.send_keys(Keys.ENTER)
    assert browser.current_url.endswith("#annotation-1")
    entry = browser.find_element("css selector", "li:target")
    assert entry.text.endswith("Release 4.2 more")
    # Nothing of a flag lies outside of the chart's card.
    card = browser.find_element("css selector", ".timeline").rect
    for each in browser.find_elements("css selector", ".flags .pole"):
        assert card["x"] <= each.rect["x"] <= card["x"] + card["width"] - each.rect["width"]
        assert each.rect["y"] > card["y"]
