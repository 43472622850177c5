"""A chart in a frame of another site, as a browser lets it in or keeps it out."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from .browsing import follow
from .conftest import SHOWCASE_TOKEN

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


class Site:
    """A web site of one page, under two names of this machine, which are two origins."""

    def __init__(self) -> None:
        self.page = ""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(site.page.encode())

            def log_message(self, *arguments: object) -> None:
                """Nothing: the tests' output is for the tests."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        port = self.server.server_address[1]
        self.named = f"http://127.0.0.1:{port}"
        self.other = f"http://localhost:{port}"


@pytest.fixture
def site(environ: dict[str, str]) -> Iterator[Site]:
    """The site, which the dashboard lets show charts under one of its names."""
    site = Site()
    thread = threading.Thread(target=site.server.serve_forever, daemon=True)
    thread.start()
    environ["DENIABLE_DASHBOARD_FRAME_ANCESTORS"] = site.named
    # Links name the dashboard by this setting, so its port must be known before it starts.
    with socket.create_server(("127.0.0.1", 0)) as free:
        bind = f"127.0.0.1:{free.getsockname()[1]}"
    environ.update(DENIABLE_DASHBOARD_BIND=bind, DENIABLE_PUBLIC_URL=f"http://{bind}")
    yield site
    site.server.shutdown()
    site.server.server_close()
    thread.join()


def test_a_named_site_shows_the_chart_and_another_does_not(
    site: Site, showcase_page: str, open_browser: Callable[[bool], Chrome]
) -> None:
    """The copied HTML shows the chart with its styles to people who are not signed in, on the
    site that is named; on another the browser refuses it."""
    maker = open_browser(False)
    maker.get(f"{showcase_page}/login?token={SHOWCASE_TOKEN.replace(' ', '+')}")
    maker.get(f"{showcase_page}/share?view=/metric/browser")
    maker.find_element("css selector", "input[value=chart]").click()
    follow(maker, "css selector", "button.primary")
    copied = maker.find_element("id", "frame").get_property("value")
    site.page = f"<!doctype html><title>A wiki</title>{copied}"
    stranger = open_browser(False)

    stranger.get(site.named)
    stranger.switch_to.frame(stranger.find_element("tag name", "iframe"))
    assert "Which browser opens links on this desktop?" in stranger.page_source
    assert stranger.find_element("css selector", ".chart.large").rect["width"] > 200
    assert stranger.find_element("tag name", "body").value_of_css_property("margin") == "0px"

    stranger.get(site.other)
    stranger.switch_to.frame(stranger.find_element("tag name", "iframe"))
    assert "Which browser" not in stranger.page_source
    assert stranger.find_elements("css selector", ".chart") == []
