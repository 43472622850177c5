"""Asks the crowd: runs a question, and says which facts its output has."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from click.testing import CliRunner
from tests.collector.conftest import SocketClient

import deniable
from deniable import Registry
from deniable.cli import main
from deniable_collector.collector import Collector
from deniable_collector.inherited import Inherited
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.app import close_app
from deniable_estimator.dashboard.settings import DashboardSettings

from . import crowd
from .facts import Facts, facts_of, look_of

TOKEN = "Vq3mS0x-8JtYc_1rKfWz5LbNpH2eGdUa"
SITE = "https://deniable.acme.example"
UNFINISHED = ("being calculated", "正在计算")
"""What a page says that will say more soon."""

PATIENCE = 60.0
"""Seconds in which a page must have been calculated."""

WIDTH = "400"
"""Columns of the terminal: no sentence is wrapped."""

FORMS = {"--json": "json", "--csv": "csv", "--report": "html"}
"""The options that say what a command prints."""

_SPECS = re.compile(r"^(?:Usage: deniable|(?=Example: )|  (?=-))\s*(\S+(?: \S+)*)", re.MULTILINE)
"""What a command takes, as its help has it: the call, and its options without their meaning."""

_SECRET = re.compile(r"(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z\d])[\w-]{32,}(?![\w-])")
_RELEASE = re.compile(r"\b[0-9a-f]{24}\b")
_TYPES = {"text/html": "html", "image/svg+xml": "svg", "text/csv": "csv"}


def crowd_folder(tmp_path_factory):
    """The folder of the crowd, which the first process of a run builds for all; only read it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "crowd"
    with (shared / "crowd.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            building = shared / "crowd.new"
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            with inside(building):
                crowd.build(building)
                made = run(["release", "browser", "--from", "2026-09-21", "--to", "2026-11-01"])
            assert made.exit_code == 0, made.stderr
            building.rename(folder)
    return folder


@contextmanager
def inside(folder, settings=None):
    """Work in a folder of the crowd, at the crowd's time and with its settings and these."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("DENIABLE_")}
    for name in ("FORCE_COLOR", "XDG_STATE_HOME", "DO_NOT_TRACK"):
        kept.pop(name, None)
    given = {
        "DENIABLE_STORE": f"sqlite:///{folder / crowd.STORE}",
        "DENIABLE_RELEASES": crowd.LEDGER,
        "HOME": str(folder),
        "COLUMNS": WIDTH,
        "TERM": "dumb",
        **(settings or {}),
    }
    here = Path.cwd()
    os.chdir(folder)
    try:
        with (
            mock.patch.dict(os.environ, kept | given, clear=True),
            mock.patch.object(time, "time", return_value=crowd.NOW),
        ):
            yield
    finally:
        os.chdir(here)


class Result(NamedTuple):
    """What a command printed, and its exit code."""

    stdout: str
    stderr: str
    exit_code: int


def run(arguments):
    """Run the `deniable` command in this process."""
    code: object = 0
    with (
        CliRunner().isolation() as (stdout, stderr, _),
        mock.patch.object(sys, "argv", ["deniable", *arguments]),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
        sys.stderr.flush()
    return Result(*(each.getvalue().decode() for each in (stdout, stderr)), int(code or 0))


class Dashboard:
    """A dashboard over a folder of the crowd's."""

    def __init__(self, folder):
        settings = DashboardSettings(
            dashboard_token=TOKEN,
            candidates_dir=str(folder / "lists"),
            data=str(folder),
            boards=str(folder / "boards"),
            releases=str(folder / crowd.LEDGER),
            public_url=SITE,
            dashboard_frame_ancestors="https://wiki.acme.example",
        )
        self.folder = folder
        self._link = ""
        self.store = open_store(Settings(store=f"sqlite:///{folder / crowd.STORE}"))
        self.registry = Registry.load(folder / "metrics.toml")
        self.app = create_app(
            settings,
            store=self.store,
            registry=self.registry,
            clock=lambda: crowd.NOW,
        )

    def collector(self, path):
        """What the collector of its store responds."""
        app = Collector(Inherited(Settings(), self.registry), self.store)
        # Nothing that it does by itself changes the crowd's store.
        app.upkeep = ()
        with closing(SocketClient(app)) as client:
            return client.get(path)

    def close(self):
        """End its processes."""
        close_app(self.app)
        self.store.close()

    def response(self, verb, rest, folder):
        """The response to a request of somebody who has just signed in, once it is no longer being
        calculated."""
        client = self.app.test_client()
        client.environ_base["HTTP_ACCEPT"] = "text/html"
        if not rest.startswith("/login"):
            assert client.post("/login", data={"token": TOKEN}).status_code == 303
        path, *given = rest.replace("LINK", self._link).split(" ")
        if "RELEASE" in path:
            found = self.response("GET", "/api/v1/releases", folder).get_json()
            path = path.replace("RELEASE", found["releases"][0]["id"])
        headers = {"Sec-Fetch-Site": "same-origin"}
        if path.startswith("/api"):
            headers["Accept"] = "*/*"
        sent: dict[str, str | Path] = dict(each.split("=", 1) for each in given if "=" in each)
        sent |= {
            name: folder / file for name, _, file in (each.partition("@") for each in given) if file
        }
        body = {"data": sent} if sent else {}
        if given[:1] == ["<"]:
            body = {"data": (folder / given[1]).read_text("utf-8"), "content_type": "text/plain"}
        end, pause = time.monotonic() + PATIENCE, 0.05
        while True:
            response = client.open(path, method=verb, headers=headers, **body)
            text = response.text if response.mimetype == "text/html" else ""
            if found := re.search(r"/shared/[\w-]{30,}", text):
                self._link = found[0]
            is_waiting = any(each in text for each in UNFINISHED)
            if response.status_code not in (202, 503) and not is_waiting:
                return response
            assert time.monotonic() < end, f"{path}: {response.status} {text}"
            # A page that is calculated is made anew for each look at it.
            time.sleep(pause := min(2 * pause, 0.8))


class Said(NamedTuple):
    """The facts of an output, and a digest of how it looks."""

    facts: Facts
    look: str


class Crowd:
    """What the lines of one question are asked of: a folder of its own, and a dashboard."""

    def __init__(self, folder, dashboard):
        self.folder, self.dashboard = folder, dashboard

    def ask(self, line):
        """What a command or a request gives, with its exit code or its status."""
        settings, command, arguments = line.partition("deniable ")
        if command:
            given = dict(each.split("=", 1) for each in settings.split())
            return self._command(shlex.split(arguments), given)
        verb, rest = line.split(" ", 1)
        if verb == "cat":
            path = self.folder / rest
            form = {".csv": "csv", ".html": "html"}.get(path.suffix, "text")
            return self._said(path.read_text(encoding="utf-8"), form, around=True)
        if verb == "collector":
            return self._response(self.dashboard.collector(rest), rest)
        return self._response(self.dashboard.response(verb, rest, self.folder), rest)

    def _command(self, arguments, settings):
        with inside(self.folder, settings):
            result = run(arguments)
        form = next((FORMS[each] for each in arguments if each in FORMS), "text")
        if "--out" in arguments or result.exit_code == 2 or not result.stdout:
            form = "text"
        if arguments[-1] == "--help":
            # Whether -h stands there, for which columns make room, depends on how the command was
            # called first.
            text = re.sub(" {2,}", "  ", result.stdout.replace("-h, --help", "--help"))
            return Said(facts_of("\n".join(_SPECS.findall(text)), "text"), look_of(text))
        said = self._said(result.stdout, form)
        for fact in self._told(result.stderr).splitlines():
            if fact.strip() and not fact.startswith(("Usage: ", "Try '")):
                said.facts["", f"stderr: {' '.join(fact.split())}"] += 1
        said.facts["", f"exit code {result.exit_code}"] = 1
        return said

    def _response(self, response, rest):
        file = response.headers.get("Content-Disposition", "").partition("filename=")[2]
        text = response.text if response.mimetype != "image/png" else ""
        form = (
            "json" if response.mimetype.endswith("json") else _TYPES.get(response.mimetype, "text")
        )
        form = "openapi" if rest.endswith("openapi.json") else form
        said = self._said(text, form, around=rest == "/")
        told = f"status {response.status_code}, {response.mimetype}"
        said.facts["", f"{told}, as {file}" if file else told] = 1
        return said

    def _said(self, text, form, **more):
        text = self._told(text)
        return Said(facts_of(text, form, **more), look_of(text))

    def _told(self, text):
        """The text without what is another one in each run."""
        for folder in (self.folder, self.dashboard.folder):
            text = text.replace(str(folder), "FOLDER")
        text = text.replace(deniable.__version__, "VERSION")
        return _RELEASE.sub("RELEASE", _SECRET.sub("SECRET", text))
