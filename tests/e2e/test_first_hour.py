"""From an empty folder to a number of one's own, as README and tutorials tell a new user."""

import http.cookiejar
import json
import re
import shlex
import threading
import urllib.error
import urllib.request
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.ports import free_port, until

from deniable import Registry

from .running import counted, run, until_answered, with_program

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TUTORIAL = (ROOT / "docs/tutorial/first-metric.md").read_text(encoding="utf-8")
PLAIN = (ROOT / "docs/tutorial/any-language.md").read_text(encoding="utf-8")
LIVE = README.partition("## See a report in two minutes\n")[2].partition("\n## ")[0]
SECTION = TUTORIAL.partition("## A metric of your own\n")[2].partition("\n## ")[0]
COMMANDS = 6


class Login(BaseHTTPRequestHandler):
    """A page that answers everything with 200."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()


@pytest.fixture
def environ(environ, tmp_path):
    """A new user's environment: the program `deniable`, a home, ports that are free."""
    environ |= {
        "PATH": with_program(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "home"),
        "COLUMNS": "200",
        "DENIABLE_BIND": f"127.0.0.1:{free_port()}",
        "DENIABLE_DASHBOARD_BIND": f"127.0.0.1:{free_port()}",
        "DENIABLE_DASHBOARD_LOGIN_LINK": "1",
    }
    return environ


@pytest.fixture
def serve(start):
    """Starts servers by what is typed."""
    return lambda command, folder: start(shlex.split(command), folder)


def test_from_an_empty_folder_to_the_dashboard(tmp_path, environ, serve):
    """The tutorial's commands and those that `init` prints, six with the installation, lead to a
    dashboard that shows the reports of the example and of the metric that was added. The edits are
    the tutorial's line and the ports, which other programs may use here."""
    work = tmp_path / "work"
    work.mkdir()

    printed = re.findall(r"^(deniable .*?)(?:\s{3,}.*)?$", SECTION, re.M)
    assert [each.split()[1] for each in printed] == ["init", "add"]
    shown = [run(command, work, environ) for command in printed]
    following = [line.strip() for line in shown[0].partition("Next:\n")[2].splitlines()]
    assert [each.split()[-1] for each in following] == ["collect", "app.py", "dashboard"]
    assert len(printed + following) < COMMANDS  # and pip install

    (folder,) = work.iterdir()
    for name in ("app.py", "compose.yml"):
        path = folder / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("127.0.0.1:8080", environ["DENIABLE_BIND"]), encoding="utf-8")
    (line,) = re.findall(r"^telemetry\.record\(.*\)$", SECTION, re.M)
    text = (folder / "app.py").read_text(encoding="utf-8")
    text = re.sub(r"^telemetry\.record\(.*\)$", rf"\g<0>\n{line}", text, flags=re.M)
    (folder / "app.py").write_text(text, encoding="utf-8")
    collect, app, dashboard = following
    serve(collect, folder)
    until_answered(f"http://{environ['DENIABLE_BIND']}/readyz")
    assert run(app, folder, environ) == "telemetry is on\n"

    served = serve(dashboard, folder)
    token = served.stdout.readline().partition("token: ")[2].strip()
    page = f"http://{environ['DENIABLE_DASHBOARD_BIND']}"
    until_answered(f"{page}/healthz")
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))

    def read(path):
        with browser.open(page + path, timeout=60) as response:
            return response.read().decode("utf-8")

    overview = read(f"/login?token={token}")
    assert 'href="/metric/browser' in overview
    assert 'href="/metric/dark_mode' in overview
    # As the tutorial says: until tomorrow, today is not over, and has to be asked for.
    today = datetime.now(UTC).date().isoformat()
    seen = json.loads(read(f"/metric/browser.json?from={today}&to={today}"))
    assert (seen["n"], seen["windows"]) == (1, [today])
    assert "chrome" in read(f"/metric/browser?from={today}&to={today}")
    assert json.loads(read(f"/metric/dark_mode.json?from={today}&to={today}"))["n"] == 1

    doctor = run(f"deniable doctor --endpoint http://{environ['DENIABLE_BIND']}", folder, environ)
    assert doctor.splitlines()[-1] == "0 errors, 0 warnings"


def test_from_a_clone_to_the_live_page(tmp_path, environ, serve):
    """The README's six commands lead from a clone to one's own metric on the live page. The first,
    which installs deniable, has been run here already; the port is any that is free."""
    commands = re.findall(r"^(.*?)(?:\s{3,}.*)?$", LIVE.split("```")[1].strip(), re.M)
    install, init, enter, dev, export, app = commands
    assert len(commands) <= COMMANDS
    assert install == "pip install '.[all]'"
    assert dev in run(init, tmp_path, environ)
    folder = tmp_path / enter.removeprefix("cd ")
    server = serve(f"{dev} --port 0", folder)
    printed = ""
    while "Ctrl-C" not in printed:
        printed += server.stdout.readline()
    found = re.search(r"^ *export DENIABLE_DEV=(\S+)$", printed, re.M)
    assert found is not None
    assert export.partition("=")[0] == found[0].strip().partition("=")[0]
    assert run(app, folder, {**environ, "DENIABLE_DEV": found[1]}) == "telemetry is on\n"
    with urllib.request.urlopen(f"{found[1]}/live.json", timeout=120) as response:
        seen = json.load(response)
    assert [each["metric"] for each in seen["reports"]] == ["browser"]
    assert seen["mistakes"] == []


def test_a_page_reports_from_a_browser(tmp_path, environ, serve, open_browser):
    """With `--where web` the commands that `init` prints serve a page, whose value a real browser
    reports to the collector of the page's origin."""

    shown = run("deniable init . --app shop --yes --where web", tmp_path, environ)
    port = str(free_port())
    build, collect, pages = (
        line.strip().replace("8000", port) for line in shown.partition("Next:\n")[2].splitlines()
    )
    page = tmp_path / "index.html"
    page.write_text(page.read_text().replace("127.0.0.1:8080", environ["DENIABLE_BIND"]))
    run(build, tmp_path, environ)
    serve(f"env {collect}", tmp_path)
    until_answered(f"http://{environ['DENIABLE_BIND']}/readyz")
    serve(pages, tmp_path)
    until_answered(f"http://127.0.0.1:{port}/")
    browser = open_browser(True)
    browser.get(f"http://127.0.0.1:{port}/")
    assert browser.title == "shop: telemetry is on"
    registry = Registry.load(tmp_path / "metrics.toml")
    until(lambda: counted(f"sqlite:///{tmp_path}/deniable.db", registry["browser"]) == 1)


def test_a_shell_tool_reports_by_plain_http(tmp_path, environ, serve):
    """The tutorial's registry, script and loop, as they stand but for the port: one report of the
    tool itself, however often it runs, and one of each device of the small crowd."""
    (registry,) = re.findall(r"^```toml\n(.*?)^```$", PLAIN, re.M | re.S)
    script, crowd = re.findall(r"^```sh\n(.*?)^```$", PLAIN, re.M | re.S)
    (tmp_path / "metrics.toml").write_text(registry, encoding="utf-8")
    run("deniable compile metrics.toml -o metrics.json", tmp_path, environ)
    compiled = json.loads((tmp_path / "metrics.json").read_text())["metrics"]["colors"]
    assert f"scheme={compiled['scheme']} " in script
    assert f"threshold={compiled['parameters']['threshold']} " in script
    script = script.replace("127.0.0.1:8080", environ["DENIABLE_BIND"])
    (tmp_path / "colors.sh").write_text(script, encoding="utf-8")
    environ = {**environ, "DO_NOT_TRACK": "0"}
    # Before there is a collector the report waits, and the tool goes on.
    run("sh colors.sh yes", tmp_path, environ)
    # And it waits behind a page that is no collector, like the login of a network.
    address = environ["DENIABLE_BIND"].split(":")
    with HTTPServer((address[0], int(address[1])), Login) as login:
        other = threading.Thread(target=login.handle_request)
        other.start()
        run("sh colors.sh yes", tmp_path, environ)
        other.join()
    serve("deniable collect", tmp_path)
    until_answered(f"http://{environ['DENIABLE_BIND']}/readyz")
    run("sh colors.sh yes", tmp_path, environ)
    run("sh colors.sh no", tmp_path, environ)
    colors = Registry.load(tmp_path / "metrics.toml")["colors"]
    store = f"sqlite:///{tmp_path}/deniable.db"
    assert counted(store, colors) == 1
    run(["sh", "-c", crowd], tmp_path, environ)
    assert counted(store, colors) == 61
