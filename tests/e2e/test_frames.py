"""A chart in a frame of another site, as a browser lets it in or keeps it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.ports import free_port

from .browsing import follow
from .conftest import SHOWCASE_TOKEN
from .running import serving

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


@pytest.fixture
def site(environ: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """A web site that the dashboard lets show charts; `localhost` in its address is another."""
    (tmp_path / "wiki").mkdir()
    bind = f"127.0.0.1:{free_port()}"
    environ.update(DENIABLE_DASHBOARD_BIND=bind, DENIABLE_PUBLIC_URL=f"http://{bind}")
    with serving(tmp_path / "wiki", {}) as address:
        environ["DENIABLE_DASHBOARD_FRAME_ANCESTORS"] = address
        yield address


def test_a_named_site_shows_the_chart_and_another_does_not(
    site: str, showcase_page: str, tmp_path: Path, open_browser: Callable[[bool], Chrome]
) -> None:
    """The copied HTML shows the chart with its styles to people who are not signed in, on the
    site that is named; on another the browser refuses it."""
    maker = open_browser(False)
    maker.get(f"{showcase_page}/login?token={SHOWCASE_TOKEN}")
    maker.get(f"{showcase_page}/share?view=/metric/browser")
    maker.find_element("css selector", "input[value=chart]").click()
    follow(maker, "css selector", "button.primary")
    copied = maker.find_element("id", "frame").get_property("value")
    page = f"<!doctype html><title>A wiki</title>{copied}"
    (tmp_path / "wiki" / "index.html").write_text(page)
    stranger = open_browser(False)

    stranger.get(site)
    stranger.switch_to.frame(stranger.find_element("tag name", "iframe"))
    assert "Which browser opens links on this desktop?" in stranger.page_source
    assert stranger.find_element("css selector", ".chart.large").rect["width"] > 200
    assert stranger.find_element("tag name", "body").value_of_css_property("margin") == "0px"

    stranger.get(site.replace("127.0.0.1", "localhost"))
    stranger.switch_to.frame(stranger.find_element("tag name", "iframe"))
    assert "Which browser" not in stranger.page_source
    assert stranger.find_elements("css selector", ".chart") == []
