"""`deniable dev` as developers run it: a web page reports to it, and nothing of it is left."""

import json
import os
import re
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.ports import until
from tests.registries import declared, tables

from .browsing import judge
from .running import serving

METRICS = declared(
    browser={"type": "category", "values": ["firefox", "chrome", "safari", "edge", "other"],
             "epsilon": 2.5, "lifetime_epsilon": 2.5},
    startup={"type": "number", "low": 0.01, "high": 60, "scale": "log", "unit": "s",
             "ask": "distribution"},
)  # fmt: skip
PLUGIN = tables(plugin={"type": "string"})

PAGE = """\
<!doctype html>
<html lang="en">
<title>shop</title>
<script src="ADDRESS/deniable.min.js"></script>
<script>
  const client = new deniable.Client(deniable.metrics, {
    endpoint: "https://t.acme.example", consent: true, development: "ADDRESS",
  });
  client.record("browser", "chrome");
</script>
"""


@pytest.fixture
def shop(tmp_path):
    """A folder with the registry of an app."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "metrics.toml").write_text(METRICS, encoding="utf-8")
    return folder


@pytest.fixture
def dev(shop, command, start):
    """Starts `deniable dev`: the process and the address that it prints."""

    def run(*options):
        path = str(shop / "metrics.toml")
        process = start([*command, "dev", path, "--port", "0", *options])
        printed = ""
        for line in process.stdout:
            printed += line
            if "Ctrl-C" in line:
                break
        found = re.search(r"export DENIABLE_DEV=(http://127\.0\.0\.1:\d+)\n", printed)
        assert found is not None, printed
        assert f"Live page: {found[1]}/live\n" in printed
        assert f'development="{found[1]}"' in printed
        assert f'src="{found[1]}/deniable.min.js"' in printed
        return process, found[1]

    return run


def read(address):
    """What the live page shows."""
    with urllib.request.urlopen(f"{address}/live.json", timeout=120) as response:
        return json.load(response)


def send_list(page):
    """Send a list of strings to the page of a metric, as its form does."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    browser.open(urllib.request.Request(page, headers={"Accept": "text/html"}), timeout=120).close()
    body = (
        b'--x\r\nContent-Disposition: form-data; name="candidates"; filename="list.txt"\r\n\r\n'
        b"secret-plugin\n\r\n--x--\r\n"
    )
    headers = {"Accept": "text/html", "Content-Type": "multipart/form-data; boundary=x"}
    with browser.open(urllib.request.Request(page, body, headers), timeout=120) as response:
        assert b"secret-plugin" in response.read()


def test_a_web_page(shop, dev, open_browser, axe):
    """In a real browser a page with the development build reports to `deniable dev`, stores
    nothing, and the live page in another tab shows it without being loaded again. axe-core finds
    nothing on the live page, empty and full."""
    _, address = dev()
    (shop / "index.html").write_text(PAGE.replace("ADDRESS", address), encoding="utf-8")
    browser = open_browser(True)
    browser.get(f"{address}/live")
    assert browser.find_element("id", "begin").text == "No report yet"
    found = judge(browser, axe)
    live = browser.current_window_handle
    browser.switch_to.new_window("tab")
    with serving(shop, {}) as pages:
        browser.get(f"{pages}/index.html")
        until(lambda: read(address)["reports"])
    stored = "return indexedDB.databases().then((all) => all.length)"
    assert browser.execute_script(stored) == 0
    browser.switch_to.window(live)
    until(lambda: browser.find_elements("css selector", ".arrivals li"))
    text = browser.find_element("id", "live").text
    assert "times likelier from a device with" in text
    assert "Columns set" in text
    assert not read(address)["mistakes"]
    policy = [each for each in browser.get_log("browser") if "Content Security" in each["message"]]
    assert policy == []
    assert found + judge(browser, axe) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left(shop, dev, environ, number):
    """While it runs, all that it keeps, also a list that a page was sent, is in one temporary
    folder; Ctrl-C, SIGTERM and a closed terminal delete it and free the port."""
    (shop / "metrics.toml").write_text(METRICS + PLUGIN)
    process, address = dev("--crowd", "100")
    until(lambda: len(read(address)["estimates"]) == 3)
    send_list(f"{address}/metric/plugin")
    folder = Path(environ["TMPDIR"])
    (kept,) = folder.iterdir()
    assert kept.name.startswith("deniable-dev-")
    os.kill(process.pid, number)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Everything is deleted" in printed
    assert list(folder.iterdir()) == []
    with pytest.raises(urllib.error.URLError):
        read(address)
