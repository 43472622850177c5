"""What README and docs print can be typed as it stands: commands, options and Python."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.ports import free_port
from tests.registries import tables
from tests.tools import need

from deniable import Registry
from deniable.protocol.segments import combinations
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of, sample_tally
from deniable_estimator.dashboard.sharing.links import SharedLink, SharedLinks
from deniable_estimator.development.crowd import fold_tally
from deniable_estimator.kinds.retention.crowd import Life, tallies_of

from .running import ran, run, until_answered, with_program

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
PRIOR = ROOT / "estimator" / "deniable_estimator" / "analyses" / "discovery" / "prior.json"
PROGRAMS = ("deniable", "make", "pip", "python", "curl", "docker", ".ci/run")


class Line(NamedTuple):
    """A command as a page prints it."""

    page: str
    command: str


def fenced(page, language):
    """The fenced blocks of a page in one language ("" for none)."""
    found = re.findall(
        r"^```(\S*)[^\n]*\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S
    )
    return [text for name, text in found if name == language]


def printed():
    """All commands in fenced blocks, in their order, without what is said beside them."""
    lines = []
    for page in PAGES:
        for block in fenced(page, "") + fenced(page, "sh"):
            if block.startswith(("#!", "for ")):  # A script, which test_first_hour.py runs.
                continue
            for line in block.replace("\\\n", " ").splitlines():
                command = re.split(r"\s{3,}|\s+# ", line)[0].strip()
                if "\\" in line or command.split(" ")[0] in PROGRAMS:
                    whole = line.strip() if command.startswith("curl") else command
                    lines.append(Line(page.name, re.sub(r"\s+", " ", whole)))
    return lines


LINES = printed()


def of(program):
    """Those of one program."""
    return [line for line in LINES if line.command.split()[0] == program]


SERVERS = [
    line
    for line in of("deniable")
    if re.match(r"deniable (collect|dashboard|dev)( -| \S+\.toml|$)", line.command)
]
"""Commands that run until they are ended. The README's come first."""


def test_there_is_something_to_run():
    """Every program that the pages speak of is found, and nothing that looks like one is missed."""
    assert {line.command.split()[0] for line in LINES} == set(PROGRAMS)
    assert len(of("deniable")) > 15


# The world in which the commands run: a folder with the README's registry, a collector and a
# dashboard that were started by the README's own lines.

BOARD = """schema = 1
title = "Every Monday"

[[items]]
metric = "browser"
"""

MORE_METRICS = """
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30
[segments.platform]
values = ["ios", "android", "web"]
""" + tables(
    dark_mode={"type": "boolean", "segments": ["platform"]},
    homepage={"type": "string"},
    site={"type": "string"},
    popular_terms={"type": "string"},
    engine={"type": "category", "values": ["maps", "weather"]},
    colors={"type": "boolean"},
    search_terms={"type": "discovery", "epsilon": 4.0},
    checkout_step={"type": "category", "values": ["cart", "address", "payment", "done"]},
    startup_time={"type": "number", "low": 0.05, "high": 20, "unit": "s", "scale": "log",
                  "ask": "distribution"},
)  # fmt: skip
RELEASED = 'schema = 1\n\n[[annotations]]\ndate = 2026-11-02\ntext = "Release 4.2"\n'
HOSTS = "a.example\nb.example\nc.example\n"


class World:
    """A folder, the addresses that stand for those on the pages, and a token of the read API."""

    def __init__(self, folder):
        self.folder = folder
        self.collector = f"http://127.0.0.1:{free_port()}"
        self.dashboard = f"http://127.0.0.1:{free_port()}"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.release = ""
        """The id of a release of this world."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("DENIABLE_")}
        self.environ = {
            **kept,
            "PATH": with_program(folder),
            "COLUMNS": "200",
            "XDG_STATE_HOME": str(folder / "state"),
            "DENIABLE_BIND": self.collector.removeprefix("http://"),
            "DENIABLE_DASHBOARD_BIND": self.dashboard.removeprefix("http://"),
            "DENIABLE_API_TOKENS_FILE": str(folder / "tokens.toml"),
            "DENIABLE_DATA": str(folder),
            "DENIABLE_RELEASES": str(folder / "releases.db"),
        }
        today = datetime.now(UTC).date()
        link = SharedLink("/metric/browser", today, today + timedelta(1), maker="Ana")
        self.link = SharedLinks(str(folder / "links.db")).make(link)

    def here(self, command):
        """The command with the addresses of this world."""
        for theirs, ours in {
            "http://127.0.0.1:8080": self.collector,
            "https://deniable.acme.example": self.dashboard,
            "redis://other:6379/0": "sqlite:///other.db",
            "METRIC": "browser",
            "3f9a0c51e2b7": self.link.id,
            "0c2ad5f4be1c1db7b5a4d3a0": self.release,
        }.items():
            command = command.replace(theirs, ours)
        return command

    def run(self, command):
        """Run it in a shell, as it is typed."""
        typed = ["bash", "-o", "pipefail", "-c", self.here(command)]
        return ran(typed, self.folder, self.environ, 120)

    def serve(self, command, probe):
        """Start a server, and wait until it answers."""
        with (self.folder / "server.log").open("ab") as log:
            process = subprocess.Popen(
                shlex.split(self.here(command)),
                cwd=self.folder,
                env=self.environ,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        until_answered(probe)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The README's own registry, and a few metrics more that the other pages name, with the files
    of all pages; at the end its servers are ended."""
    world = World(tmp_path_factory.mktemp("world"))
    (registry,) = fenced(ROOT / "README.md", "toml")
    (returning,) = fenced(ROOT / "docs/how-to/retention.md", "toml")
    more = registry + MORE_METRICS + returning
    (world.folder / "metrics.toml").write_text(more, encoding="utf-8")
    (world.folder / "metrics.before.toml").write_text(registry, encoding="utf-8")
    (world.folder / "boards").mkdir(exist_ok=True)
    (world.folder / "boards" / "example.toml").write_text(BOARD)
    (world.folder / "annotations.toml").write_text(RELEASED)
    (world.folder / "rules.toml").write_text('schema = 1\ndashboard = "https://d.example"\n')
    for name in ("hosts.txt", "sites.txt", "plugins.txt", "words.tsv"):
        (world.folder / name).write_text(HOSTS, encoding="utf-8")
    shutil.copy(PRIOR, world.folder / "ours.json")
    # The owner's commands need a device of one app that has reported.
    run([sys.executable, "-c", DEVICE], world.folder, {**world.environ, "DO_NOT_TRACK": "0"})
    yield world
    for process in world.processes:
        process.terminate()
    for process in world.processes:
        process.wait(120)


DEVICE = """
import time
import deniable
now = [time.time() - 86400]
client = deniable.Client("metrics.toml", clock=lambda: now[0], background=False, consent=True)
for _ in range(400):  # until the coin of sample_rate has said yes
    client.record("checkout_step", "cart")
    client.flush()
    now[0] += 86400
    if client.flush() or client.sent():
        break
assert client.sent()
client.close()
"""


@pytest.fixture(scope="module")
def serving(world):
    """With collector and dashboard, started as the README says, and a reader's token."""
    token = next(line for line in of("deniable") if "token new" in line.command)
    # One token stands for those of all pages.
    # Under a name of its own: the page's own command gives its name to another token.
    command = re.sub("--name [a-z]+", "--name tests --scope read:releases", token.command)
    made = world.run(command)
    assert made.returncode == 0, made.stderr
    found = re.search(r"[A-Za-z0-9_-]{20,}", made.stderr)
    assert found is not None, "the command shows no token"
    world.environ["TOKEN"] = found[0]
    for name, probe in (("collect", "/readyz"), ("dashboard", "/healthz")):
        line = next(each for each in SERVERS if each.command.split()[1] == name)
        address = world.collector if name == "collect" else world.dashboard
        world.serve(line.command, address + probe)
    report(world.folder)
    made = world.run("deniable release browser --epsilon 1 --out released.json")
    assert made.returncode == 0, made.stderr
    world.release = json.loads((world.folder / "released.json").read_text())["manifest"]["id"]
    return world


def report(folder):
    """Put three days of November's reports into the collector's store, or seven weeks' of devices
    that come back, drawn with seed 1, and an empty store beside it."""
    rng = np.random.default_rng(1)
    registry = Registry.load(folder / "metrics.toml")
    with contextlib.closing(open_store(Settings(store=f"sqlite:///{folder}/deniable.db"))) as store:
        for metric in registry:
            for window, rows in drawn_windows(metric, rng):
                tally = Tally(metric.name, metric.scheme.fingerprint, (window,), tuple(rows))
                fold_tally(store, tally, time.time())
    with contextlib.closing(open_store(Settings(store=f"sqlite:///{folder}/other.db"))) as store:
        store.publish((metric.name, metric.scheme) for metric in registry)


def drawn_windows(metric, rng):
    """The windows of a metric with the rows of their tallies."""
    if metric.type.name == "retention":
        weeks = [f"2026-W{week}" for week in range(41, 48)]
        lives = [Life.steady(20_000)] * len(weeks)
        for week, (tally, _) in zip(weeks, tallies_of(metric, weeks, lives, rng), strict=True):
            yield week, list(tally.rows)
        return
    for day in ("2026-11-03", "2026-11-04", "2026-11-20"):
        # Of each segment as many devices.
        tallies = [drawn(metric, day, rng) for _ in range(combinations(metric.segments))]
        yield day, [row for tally in tallies for row in tally.rows]


def drawn(metric, day, rng):
    """One day of 2,000 devices, spread evenly over the values, or over some numbers."""
    about = {"metric": metric.name, "window": day}
    if metric.type.name == "number":
        numbers = np.linspace(0.2, 5, 20)
        return sample_tally(metric.scheme, np.full(20, 100), rng, values=numbers, **about)
    if metric.type.name == "discovery":
        thousands = np.full(3, 2_000)
        rows = analysis_of(metric.scheme.mechanism).sample_rows(HOSTS.split(), thousands, rng)
        return Tally(metric.name, metric.scheme.fingerprint, (day,), rows)
    values = HOSTS.split() if metric.needs_candidates else list(metric.values)
    counts = rng.multinomial(2_000, [1 / len(values)] * len(values))
    named = values if metric.needs_candidates else None
    return sample_tally(metric.scheme, counts, rng, values=named, **about)


ONCE = [line for line in of("deniable") if line not in SERVERS]


@pytest.mark.parametrize("line", ONCE, ids=lambda line: f"{line.page}: {line.command}")
def test_each_command_runs(serving, line):
    """Every `deniable` command of a page ends well in a folder with the README's registry."""
    done = serving.run(line.command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout or done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("line", of("curl"), ids=lambda line: line.command)
def test_each_request_is_answered(serving, line):
    """Every `curl` of a page gets a response that is no error."""
    need("curl")
    done = serving.run(line.command.replace("curl ", "curl --fail-with-body -sS ", 1))
    assert done.returncode == 0, done.stdout + done.stderr


SNIPPETS = [(page.name, text) for page in PAGES for text in fenced(page, "python")]

PANDAS = '''
"""Reads a table as pandas does it: the address, and headers from storage_options."""
import csv, io, urllib.request
def read_csv(address, storage_options):
    request = urllib.request.Request(address, headers=storage_options)
    with urllib.request.urlopen(request) as answer:
        rows = list(csv.DictReader(io.TextIOWrapper(answer)))
    assert rows and "share" in rows[0], rows
    return rows
'''


@pytest.mark.parametrize(("page", "text"), SNIPPETS, ids=[name for name, _ in SNIPPETS])
def test_each_python_snippet_runs(serving, tmp_path, page, text):
    """Every block of Python runs as it stands, given the names of the app around it."""
    (tmp_path / "pandas.py").write_text(PANDAS)
    (tmp_path / "app.py").write_text(
        "import os, types\n"
        "settings = types.SimpleNamespace(telemetry_allowed=True)\n"
        "token = os.environ['TOKEN']\n" + serving.here(text)
    )
    for name in ("metrics.toml", "sites.txt", "hosts.txt"):
        shutil.copy(serving.folder / name, tmp_path)
    document = Registry.load(tmp_path / "metrics.toml").compile()
    (tmp_path / "metrics.json").write_text(json.dumps(document), encoding="utf-8")
    environ = {**serving.environ, "XDG_STATE_HOME": str(tmp_path), "DO_NOT_TRACK": "0"}
    run([sys.executable, "app.py"], tmp_path, environ)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_registry_is_valid(page, tmp_path):
    """Every block of TOML that declares metrics is accepted, with what stands around it."""
    for text in fenced(page, "toml"):
        declared = tomllib.loads(text)
        # Rules of `deniable watch` have metrics as well, and an address.
        if "metrics" in declared and "dashboard" not in declared:
            for metric in declared["metrics"].values():
                if "values_file" in metric:
                    (tmp_path / metric["values_file"]).write_text("a\nb\n")
            head = "" if "schema" in declared else 'schema = 1\napp = "editor"\n'
            owner = "" if "owner =" in text else '[defaults]\nowner = "a"\nexpires = 2030-01-01\n'
            own = "" if "schema" in declared else owner
            Registry.parse(head + own + text, folder=tmp_path)


INLINE = sorted(
    {
        (page.name, found)
        for page in [*PAGES, ROOT / "CHANGELOG.md", ROOT / "ARCHITECTURE.md"]
        for found in re.findall(r"`(deniable [a-z][^`]*)`", page.read_text(encoding="utf-8"))
    }
)


@pytest.mark.parametrize(("page", "command"), INLINE)
def test_each_command_that_is_named_exists(page, command):
    """Commands and options that a sentence names are those of the program."""
    path = ()
    for word in command.replace("\n", " ").split()[1:]:
        if word.strip(",") not in below(path):
            break
        path = (*path, word.strip(","))
    assert path, f"{page}: `{command}`"
    text = help_of(*path)
    for option in re.findall(r"--[a-z][a-z-]+", command):
        assert option in text, f"{page}: `{command}`"


def below(path):
    """The commands below some words."""
    points = (tuple(each.name.split(".")) for each in entry_points(group="deniable.commands"))
    return {each[len(path)] for each in points if each[: len(path)] == path != each}


@cache
def help_of(*words):
    command = [sys.executable, "-c", "from deniable.cli import main; main()", *words, "--help"]
    return run(command, ROOT, {**os.environ, "COLUMNS": "200"})


@pytest.mark.parametrize("line", of("python"), ids=lambda line: line.command)
def test_each_script_starts(line):
    """Benchmarks and fuzzing take minutes to hours. Here they are loaded, with all that they
    import, and know the options that are named."""
    _, *words = shlex.split(line.command)
    program = words[: 1 + (words[0] == "-m")]
    script = program[-1]
    options = [word for word in words if word.startswith("--")]
    load = ["-c", f"import runpy; runpy.run_path({script!r}, run_name='loaded')"]
    command = [sys.executable, *([*program, "--help"] if options else load)]
    told = run(command, ROOT, {**os.environ, "PYTHONPATH": str(ROOT / script.rpartition("/")[0])})
    assert all(option in told for option in options)


def test_each_target_of_make_exists():
    """Every `make` of a page is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {line.command.split()[1] for line in of("make")}
    assert {"demo", "test", "dist"} <= named <= targets


def test_a_clone_installs_as_the_readme_says(tmp_path):
    """In a copy of what is committed, `make dist` builds a wheel that brings the SDK, and
    `pip install '.[all]'` brings every command."""
    clone, environ = tmp_path / "clone", {**os.environ}
    clone.mkdir()
    listed = run("git ls-files -z --cached --others --exclude-standard", ROOT, environ)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    environ |= {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_COMPILE": "1",
        "VENV": str(tmp_path / "venv"),
    }
    environ.pop("PYTHONPATH", None)

    def typed(command):
        return run(["bash", "-c", command], clone, environ)

    pages = ("README.md", "first-metric.md")
    told = [line.command for line in LINES if line.page in pages]
    commands = ["make dist", "pip install dist/deniable-*.whl", "pip install '.[all]'"]
    installing = ("make dist", "pip install dist/", "pip install '.")
    assert {each for each in told if each.startswith(installing)} == {*commands}
    for command in commands:
        typed(command)
    names = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = typed("deniable --help")
    points = names["entry-points"]["deniable.commands"]
    assert all(f"\n  {name.partition('.')[0]} " in text for name in points)
    typed(
        'python -c "from importlib.metadata import entry_points; '
        "[each.load() for each in entry_points(group='deniable.commands')]\""
    )
