"""What deniable prints is what it printed when the golden files were taken.

The files in `outputs` hold what every command and page shows of the crowd of `crowd.py`. Where a
change of theirs is meant, `python -m pytest tests/golden --take` takes them anew; look at the
difference before you commit it.
"""

from __future__ import annotations

import difflib
import gzip
import math
import re
import time
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

import deniable
from deniable import Registry
from deniable_collector.stores import Store, open_store
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.app import close_app
from deniable_estimator.dashboard.settings import DashboardSettings

from . import crowd
from .cases import COMMANDS, PAGES, STRINGS

OUTPUTS = Path(__file__).parent / "outputs"
TOKEN = "Vq3mS0x-8JtYc_1rKfWz5LbNpH2eGdUa"
DIGITS = 9
TOLERANCE = 1e-7
"""Relative. Kinds of CPU add up in different orders: of most numbers that changes the sixteenth
digit, of a p-value in a far or skewed tail the ninth."""
PLAIN = 20_000
"""Longer texts are kept compressed."""
LINES = 40
"""So many lines of a difference are shown."""

_FLOAT = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")
_KIND = re.compile(r'"kind": ?"shares", ?|, ?"kind": ?"shares"')


def rounded(text: str) -> str:
    """The text, with its longer decimal numbers rounded to nine significant digits."""

    def shorter(found: re.Match[str]) -> str:
        return found[0] if _digits(found[0]) <= DIGITS else f"{float(found[0]):.{DIGITS}g}"

    return _FLOAT.sub(shorter, text)


def same(kept: str, found: str) -> bool:
    """Whether two rounded lines differ in nothing but the last digits of long numbers."""
    if kept == found:
        return True
    if _FLOAT.sub("0", kept) != _FLOAT.sub("0", found):
        return False
    return all(
        old == new
        or (
            max(_digits(old), _digits(new)) >= DIGITS - 1
            and math.isclose(float(old), float(new), rel_tol=TOLERANCE)
        )
        for old, new in zip(_FLOAT.findall(kept), _FLOAT.findall(found), strict=True)
    )


def _digits(number: str) -> int:
    return len(number.partition("e")[0].replace(".", "").lstrip("0"))


def comparable(text: str, form: str) -> str:
    """The text without what may differ; JSON gets a line for each object."""
    if form == "json":
        text = re.sub(r"(?<=\}), ?(?=[\{\"])", ",\n", _KIND.sub("", text))
    return rounded(text.replace(f"v={deniable.__version__}", "v=VERSION"))


def check(name: str, text: str, *, take: bool) -> None:
    """Compare an output with its golden file, or take that anew."""
    plain = OUTPUTS / name.replace(",", "").replace(" ", "-")
    packed = plain.with_name(f"{plain.name}.gz")
    found = comparable(text, plain.suffix[1:])
    if take:
        for old in (plain, packed):
            old.unlink(missing_ok=True)
        content = found.encode()
        if len(found) > PLAIN:
            packed.write_bytes(gzip.compress(content, mtime=0))
        else:
            plain.write_bytes(content)
        return
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
    kept = comparable(content.decode(), plain.suffix[1:])
    before, now = kept.split("\n"), found.split("\n")
    if len(before) == len(now):
        # What is the same but for rounding does not show up in the difference.
        now = [old if same(old, new) else new for old, new in zip(before, now, strict=True)]
    lines = list(difflib.unified_diff(before, now, "golden", "now", n=0, lineterm=""))
    if lines:
        more = [f"... and {len(lines) - LINES} lines more"] if len(lines) > LINES else []
        shown = "\n".join(line[:300] for line in (*lines[:LINES], *more))
        pytest.fail(
            f"the output {name!r} has changed. If it is meant to, take it anew by "
            f"`python -m pytest tests/golden --take`.\n{shown}",
            pytrace=False,
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the registry, the lists of strings and the store."""
    made = tmp_path_factory.mktemp("golden")
    crowd.build(made)
    return made


@pytest.fixture(scope="module")
def store(folder: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{folder}/tallies.db")
    yield opened
    opened.close()


@pytest.fixture
def app(folder: Path, store: Store) -> Iterator[Flask]:
    """A dashboard that has calculated nothing yet, so that no page rests on another's work."""
    settings = DashboardSettings(
        dashboard_token=TOKEN,
        candidates_dir=str(folder / "candidates"),
        public_url="https://deniable.acme.example",
        dashboard_frame_ancestors="https://wiki.acme.example",
    )
    registry = Registry.load(folder / "metrics.toml")
    made = create_app(settings, store=store, registry=registry, clock=lambda: crowd.NOW)
    yield made
    close_app(made)


@pytest.fixture
def browser(app: Flask) -> FlaskClient:
    """A browser that has signed in."""
    client = app.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    assert client.post("/login", data={"token": TOKEN}).status_code == 303
    return client


@pytest.fixture
def take(request: pytest.FixtureRequest) -> bool:
    """Whether the golden files are taken anew."""
    return bool(request.config.getoption("--take", default=False))


def fetch(client: FlaskClient, path: str) -> TestResponse:
    """The response, once it is no longer being calculated."""
    headers = {"Accept": "*/*"} if path.startswith("/api") else {}
    unfinished = "is being calculated. Load the page again", "正在计算只看总和"
    while (response := client.get(path, headers=headers)).status_code in (202, 503) or any(
        each in response.text for each in unfinished
    ):
        time.sleep(0.05)
    return response


@pytest.mark.parametrize("name", COMMANDS)
def test_command(name: str, folder: Path, take: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command prints what it printed, and exits with the code that it exited with."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(time, "time", lambda: crowd.NOW)
    command, *arguments = COMMANDS[name]
    (point,) = entry_points(group="deniable.commands", name=command)
    result = CliRunner().invoke(
        point.load(),
        arguments,
        env={
            "DENIABLE_STORE": f"sqlite:///{folder}/tallies.db",
            "DENIABLE_REGISTRY": None,
            "DENIABLE_FAKES": None,
            "DENIABLE_ALARM_LEVEL": None,
            "COLUMNS": "110",
            "TERM": None,
            "FORCE_COLOR": None,
        },
    )
    check(name, f"{result.stdout}[{result.exit_code}]\n{result.stderr}", take=take)


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, browser: FlaskClient, take: bool) -> None:
    """The dashboard gives what it gave, with the same status, type and file name."""
    if name.startswith("overview"):
        # Its cards do not wait for strings to be decoded.
        for metric in STRINGS:
            fetch(browser, f"/metric/{metric}.csv")
    response = fetch(browser, PAGES[name])
    file = response.headers.get("Content-Disposition", "shown")
    head = f"{response.status_code} {response.content_type} {file}"
    check(name, f"{response.text}\n[{head}]\n", take=take)


def test_embedded_chart(browser: FlaskClient, take: bool) -> None:
    """The chart behind a page's link for other sites is the same."""
    page = fetch(browser, "/metric/browser").text
    found = re.search(r"https://deniable\.acme\.example(/embed/[^\"<]+)", page)
    assert found
    response = fetch(browser, found[1].replace("&amp;", "&"))
    assert response.status_code == 200
    check("embedded chart.html", response.text, take=take)


def test_no_golden_file_is_left_over() -> None:
    """Each golden file belongs to a test."""
    names = {*COMMANDS, *PAGES, "embedded chart.html"}
    expected = {each.replace(",", "").replace(" ", "-") for each in names}
    assert {path.name.removesuffix(".gz") for path in OUTPUTS.iterdir()} == expected


def test_numbers_are_rounded() -> None:
    """Long decimal numbers are compared by nine digits; short ones and names by all of theirs."""
    assert rounded('{"a": 0.123456789012, "b": 1.25, "c": 1.00000000049e-05}') == (
        '{"a": 0.123456789, "b": 1.25, "c": 1e-05}'
    )
    assert rounded("a1e456789012345 123456789012") == "a1e456789012345 123456789012"
    assert same("0.123456789,1.25", "0.123456788,1.25")
    assert not same("0.123456789,1.25", "0.123456589,1.25")
    assert not same("0.123456789,1.25", "0.123456789,1.24")
    assert not same("0.123456789,1.25", "0.123456789,1.250")
    assert not same("0.123456789,7", "0.123456789,8")
    assert comparable('{"kind": "shares", "n": 1}', "json") == '{"n": 1}'
    assert comparable('{"n": 1, "kind": "mean"}', "json") == '{"n": 1, "kind": "mean"}'
