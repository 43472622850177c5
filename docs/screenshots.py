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
from pathlib import Path
from urllib.parse import urlencode

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

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
PICTURES = (
    # name, path, width, height (None: the whole page), colours, pixels for each of CSS's
    ("dashboard", "/metric/browser", 1200, 1250, "light", 2),
    ("dashboard-overview", "/", 1200, None, "light", 1),
    ("dashboard-metric", "/metric/language", 1200, None, "light", 1),
    ("dashboard-number", "/metric/page_load?limit=2.5", 1200, None, "light", 1),
    ("dashboard-segments", "/metric/page_load/segments?by=platform", 1200, None, "light", 1),
    ("dashboard-pair", "/metric/plan_and_minutes", 1200, 1090, "light", 1),
    ("dashboard-discovery", "/metric/plugin", 1200, 1000, "light", 1),
    ("dashboard-dark", "/metric/dark_mode", 1200, None, "dark", 1),
    ("dashboard-compare", "/metric/browser/compare", 1200, None, "light", 1),
    ("dashboard-releases", "/releases", 1200, 775, "light", 1),
    ("dashboard-planner", "/plan", 1200, None, "light", 1),
    ("dashboard-phone", "/metric/dark_mode", 390, 844, "light", 2),
    # The last: the choice of a language is remembered. It takes a font with Chinese letters.
    ("dashboard-chinese", "/metric/browser?lang=zh-Hans", 1200, None, "light", 1),
)
_WAITING = "Decoding · deniable"
TOKEN = secrets.token_urlsafe(32)


def main() -> None:
    """Make up some crowds, open the dashboard on them, photograph it, end it."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            **build(Path(folder)),
            "DENIABLE_DASHBOARD_TOKEN": TOKEN,
            "DENIABLE_DASHBOARD_LOGIN_LINK": "1",
            "DENIABLE_DASHBOARD_BIND": "127.0.0.1:0",
        }
        dashboard = subprocess.Popen(
            [sys.executable, "-c", "from deniable.cli import main; main()", "dashboard"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **settings},
        )
        try:
            assert dashboard.stdout is not None
            for line in dashboard.stdout:
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    photograph(found[0], f"{found[0]}/login?{urlencode({'token': TOKEN})}")
                    break
            else:
                sys.exit("the dashboard did not start; its message stands above")
        finally:
            dashboard.terminate()
            dashboard.wait()


def photograph(page: str, login: str) -> None:
    """Take every picture of the dashboard at `page`, after signing in by the `login` link."""
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, path in programs.items() if path is None]
    if missing:
        sys.exit(f"install {' and '.join(missing)} to take pictures")
    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = programs["chromium"] or ""
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=Service(programs["chromedriver"]))
        try:
            browser.get(login)
            for name, path, width, height, colours, scale in PICTURES:
                features = [{"name": "prefers-color-scheme", "value": colours}]
                browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
                _resize(browser, width, height or 600, scale)
                browser.get(page + path)
                # A search for strings runs in the background, and its page asks again for it.
                WebDriverWait(browser, 60).until(lambda found: found.title != _WAITING)
                if height is None:
                    whole = browser.execute_script("return document.documentElement.scrollHeight")
                    _resize(browser, width, whole, scale)
                browser.save_screenshot(str(IMAGES / f"{name}.png"))
        finally:
            browser.quit()


def _resize(browser: webdriver.Chrome, width: int, height: int, scale: int) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False},
    )


if __name__ == "__main__":
    main()
