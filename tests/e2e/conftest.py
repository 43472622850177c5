"""A real browser, and the `deniable` command as people run it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from tests.ports import free_port
from tests.tools import need

from .running import calculated, run

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,900",
)


@pytest.fixture
def command():
    """The beginning of a command line: this interpreter's `deniable`."""
    return [sys.executable, "-c", "from deniable.cli import main; main()"]


@pytest.fixture
def environ():
    """An environment without settings of ours, whose temporary folder is the test's."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("DENIABLE_") and name != "DO_NOT_TRACK"
    }
    # Python puts sockets there, whose paths have at most 107 bytes; those of `tmp_path` are long.
    with tempfile.TemporaryDirectory() as folder:
        yield {**kept, "TMPDIR": folder}


@pytest.fixture
def start(environ):
    """Starts processes in groups of their own, and ends what is left of them."""
    started = []

    def start(arguments, folder=None):
        process = subprocess.Popen(
            arguments, cwd=folder, stdout=subprocess.PIPE, text=True, env=environ, process_group=0
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=120)


@pytest.fixture
def listening(command, environ, start):
    """Starts a server, like `deniable collect`, with settings at a free port. Returns its
    address."""

    def listening(*arguments, **settings):
        environ.update(DENIABLE_BIND="127.0.0.1:0", DENIABLE_LOG_FORMAT="text", **settings)
        process = start([*command, *arguments])
        for line in process.stdout:
            if "listening at" in line:
                return line.rsplit(" ", 1)[1].strip()
        raise AssertionError(f"{arguments} did not start")

    return listening


@pytest.fixture
def open_browser(tmp_path):
    """Opens headless Chromium, with or without JavaScript."""
    need("chromium", "chromedriver")
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    opened = []

    def open_browser(javascript):
        options = webdriver.ChromeOptions()
        options.binary_location = programs[0] or ""
        profile = tmp_path / f"profile{len(opened)}"
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        if not javascript:
            settings = {"profile.managed_default_content_settings.javascript": 2}
            options.add_experimental_option("prefs", settings)
        browser = webdriver.Chrome(options=options, service=Service(programs[1]))
        opened.append(browser)
        return browser

    yield open_browser
    for browser in opened:
        browser.quit()


@pytest.fixture
def axe():
    """The source of axe-core, which judges a page's accessibility; npm fetches it once."""
    folder = Path(__file__).parent
    source = folder / "node_modules" / "axe-core" / "axe.min.js"
    need("npm")
    run([folder.parents[1] / ".ci" / "packages", folder], folder, os.environ, 120)
    return source.read_text(encoding="utf-8")


@pytest.fixture
def dashboard_page(command, start):
    """Starts the dashboard that `environ` describes, and finds its address."""

    def find():
        dashboard = start([*command, "dashboard"])
        for line in dashboard.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                return found[0]
        raise AssertionError("the dashboard printed no address")

    return find


@pytest.fixture
def demo(command, start):
    """Starts a demo of some devices: its process, its dashboard, token and page to try it, and all
    that it printed."""

    def demo(devices):
        process = start([*command, "demo", "--devices", str(devices), "--port", "0"])
        printed = ""
        while "Ctrl-C" not in printed:
            printed += process.stdout.readline()
        link = re.search(r"(http://127\.0\.0\.1:\d+)/login\?\S*token=(\S+)", printed)
        page = re.search(r"^Try it.*?(\S+)$", printed, re.M)
        return process, *link.groups(), page[1], printed

    return demo


SHOWCASE_TOKEN = "Vq3mS0x-8JtYc_1rKfWz5LbNpH2eGdUa"


@pytest.fixture(scope="session")
def showcase(tmp_path_factory):
    """Builds the crowds that the documentation's pictures show, once a day: their folder, and the
    settings that point there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
        from showcase import build
    del sys.modules["showcase"]

    @cache
    def built(_):
        folder = tmp_path_factory.mktemp("showcase")
        return folder, build(folder)

    return lambda: built(datetime.now(UTC).date())


@pytest.fixture
def showcase_page(dashboard_page, environ, tmp_path, showcase):
    """The address of a dashboard over a copy of the showcase, whose charts may be framed by
    https://wiki.acme.example, or by whom `environ` names."""
    folder, settings = showcase()
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for name, text in settings.items():
        environ[name] = text.replace(str(folder), str(tmp_path))
    environ.update(DENIABLE_DASHBOARD_TOKEN=SHOWCASE_TOKEN, DENIABLE_DASHBOARD_LOGIN_LINK="1")
    bind = environ.setdefault("DENIABLE_DASHBOARD_BIND", f"127.0.0.1:{free_port()}")
    environ.setdefault("DENIABLE_PUBLIC_URL", f"http://{bind}")
    environ.setdefault("DENIABLE_DASHBOARD_FRAME_ANCESTORS", "https://wiki.acme.example")
    address = dashboard_page()
    calculated(address, SHOWCASE_TOKEN)
    return address
