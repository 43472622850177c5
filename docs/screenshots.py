"""Take the pictures of the dashboard that the documentation shows, over made-up crowds.

python docs/screenshots.py
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from deniable_demo.population import RELEASED
from showcase import build

IMAGES = Path(__file__).with_name("images")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
SINCE = urlencode({"since": RELEASED})
# name, path, height, pixels for each of CSS's
DEMO = (("demo-since", f"/?{SINCE}", 1130, 2),)
SHOWCASE = (
    ("dashboard-metric", "/metric/language", 2245, 1),
    ("dashboard-number", "/metric/page_load?limit=2.5", 1345, 1),
    ("dashboard-segments", "/metric/page_load/segments?by=platform", 1620, 1),
    ("dashboard-pair", "/metric/plan_and_minutes", 1090, 1),
    ("dashboard-discovery", "/metric/plugin", 1000, 1),
    ("dashboard-releases", "/releases", 775, 1),
)
_WAITING = "Decoding · deniable"
TOKEN = secrets.token_urlsafe(32)


def main() -> None:
    """Open the dashboard on the demo's crowd, and on some others; photograph both; end them."""
    with serving("demo", "--read-only", "--port", "0") as link:
        photograph(link, DEMO)
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            **build(Path(folder)),
            "DENIABLE_DASHBOARD_TOKEN": TOKEN,
            "DENIABLE_DASHBOARD_LOGIN_LINK": "1",
            "DENIABLE_DASHBOARD_BIND": "127.0.0.1:0",
        }
        with serving("dashboard", **settings) as page:
            photograph(f"{page}/login?{urlencode({'token': TOKEN})}", SHOWCASE)


@contextmanager
def serving(*command: str, **settings: str) -> Iterator[str]:
    """A dashboard that `deniable COMMAND` starts: the address that it prints."""
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", "from deniable.cli import main; main()", *command],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **settings},
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+\S*", line):
                yield found[0].rstrip(".,")
                break
        else:
            sys.exit(f"deniable {command[0]} did not start; its message stands above")
    finally:
        process.terminate()
        process.wait()


def photograph(login: str, pictures: tuple[tuple[str, str, int, int], ...]) -> None:
    """Take pictures of a dashboard, after signing in by the `login` link."""
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, path in programs.items() if path is None]
    if missing:
        sys.exit(f"install {' and '.join(missing)} to take pictures")
    page = login[: login.index("/login")]
    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = programs["chromium"] or ""
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=Service(programs["chromedriver"]))
        try:
            browser.get(login)
            for name, path, height, scale in pictures:
                metrics = {"width": 1200, "height": height, "deviceScaleFactor": scale}
                browser.execute_cdp_cmd(
                    "Emulation.setDeviceMetricsOverride", {**metrics, "mobile": False}
                )
                # What takes long runs in the background, and is asked for again until it is there.
                WebDriverWait(browser, 120, 1).until(
                    lambda found, at=page + path: _shows(found, at)
                )
                browser.save_screenshot(str(IMAGES / f"{name}.png"))
        finally:
            browser.quit()


def _shows(browser: webdriver.Chrome, address: str) -> bool:
    browser.get(address)
    return browser.title != _WAITING and "being calculated" not in browser.page_source


if __name__ == "__main__":
    main()
