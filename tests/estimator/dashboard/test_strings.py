"""Long lists of strings: decoded in the background, once, and told how far it has come."""

import threading

import pytest
from tests.registries import declared

from deniable import Registry
from deniable_estimator.asking import fetch

from .conftest import dashboard_of, fill_drawn, page_of, program_of

REGISTRY = declared(site={"type": "string", "epsilon": 4.0})
DAYS = ("2026-11-16", "2026-11-18", "2026-11-20")
TEXT = {"Content-Type": "text/plain"}
SITE = "/api/v1/metrics/site"


@pytest.fixture
def registry():
    return Registry.parse(REGISTRY)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "candidates"
    folder.mkdir()
    (folder / "site.txt").write_text("a.example\nb.example\nc.example\n")
    return folder


@pytest.fixture
def app(empty_store, registry, folder):
    """On each of three days 20,000 devices have named two sites."""
    for day in DAYS:
        fill_drawn(empty_store, registry, "site", {"a.example": 15_000, "b.example": 5_000}, day)
    return dashboard_of(empty_store, registry, candidates_dir=str(folder))


@pytest.fixture
def program(app):
    return program_of(app)


class Slow:
    """Decoding that waits at a gate, and counts how often it was done."""

    def __init__(self):
        self.gate = threading.Event()
        self.held = threading.Event()
        self.count = 0
        self.free = 0
        """So many may pass before the gate."""

    def __call__(self, *arguments, **options):
        self.count += 1
        if self.count > self.free:
            self.held.set()
            assert self.gate.wait(120)
        return DECODE(*arguments, **options)  # type: ignore[arg-type]


DECODE = fetch.answers_of


@pytest.fixture
def slow(monkeypatch, app):
    """The estimator, at a pace that the test sets; and people who wait a moment only."""
    slow = Slow()
    monkeypatch.setattr(fetch, "answers_of", slow)
    monkeypatch.setattr("deniable_estimator.dashboard.source.PAGE_PATIENCE", 0.01)
    monkeypatch.setattr("deniable_estimator.dashboard.source.FILE_PATIENCE", 0.02)
    yield slow
    slow.gate.set()


def test_a_page_comes_back_by_itself_until_it_is_done(browser, slow):
    """It says so at once and refreshes without a script; then it is what it always was."""
    answer = browser.get("/metric/site")
    assert answer.status_code == 202
    assert answer.headers["Refresh"] == "2"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Calculating the result" in answer.text
    assert "<script>" not in answer.text
    slow.gate.set()
    assert "a.example leads" in page_of(browser, "/metric/site").text


def test_a_trend_tells_how_many_periods_are_done(browser, slow):
    """The bar counts periods with reports: the range's estimate and two of three days are free."""
    slow.free = 3
    path = "/metric/site?by=day"
    for _ in range(500):
        page = browser.get(path)
        assert page.status_code == 202
        if "2 of 3 periods are done, 66%" in page.text:
            break
    else:
        raise AssertionError(page.text)
    assert '<progress max="3" value="2"' in page.text
    slow.gate.set()
    assert "Over time: a.example" in page_of(browser, path).text


def test_a_program_waits_and_is_then_told_to_come_back(program, slow):
    """503 with Retry-After and how far it is, never a body that could be taken for the table;
    two programs that ask for the same wait for one decode."""
    path = f"{SITE}/trend?by=day&format=csv"
    answer = program.get(path)
    assert answer.status_code == 503
    assert answer.mimetype == "application/problem+json"
    assert answer.headers["Retry-After"] == "2"
    assert answer.json["type"] == "urn:deniable:problem:still-decoding"
    assert slow.held.wait(120)
    assert program.get(path).json["of"] == 3
    assert slow.count == 1
    slow.gate.set()
    answer = page_of(program, path)
    assert answer.text.count("\n") == 1 + 3 * 3
    assert slow.count == 3


def test_a_trend_stands_for_the_reports_that_it_was_begun_with(
    program, slow, empty_store, registry
):
    """What is given to whoever asks again, although more was reported meanwhile, has the tag of
    what it was calculated from: with that, the new reports are asked for."""
    path = f"{SITE}/trend?by=day"
    assert program.get(path).status_code == 503
    assert slow.held.wait(120)
    fill_drawn(empty_store, registry, "site", {"a.example": 10_000}, DAYS[0])
    slow.gate.set()
    answers = []
    for count in (60_000, 70_000):
        answers.append(page_of(program, path))
        assert sum(each["n"] for each in answers[-1].json["periods"]) == count
        program.environ_base["HTTP_IF_NONE_MATCH"] = answers[-1].headers["ETag"]
    assert program.get(path).status_code == 304


def test_strings_are_named_in_three_ways(program, folder):
    """By the operator's list, by `value`, or in the body of a POST; without any, it says so."""
    text = {"data": "b.example\n", "content_type": "text/plain"}
    body = {"json": {"candidates": ["b.example"]}}
    for answer in (
        program.get(f"{SITE}/estimate?value=b.example"),
        program.post(f"{SITE}/estimate", **text),  # type: ignore[arg-type]
        program.post(f"{SITE}/estimate", **body),  # type: ignore[arg-type]
    ):
        assert [each["value"] for each in answer.json["values"]] == ["b.example"]
    posted = program.post(f"{SITE}/trend?by=day", **body)  # type: ignore[arg-type]
    assert sum(each["n"] for each in posted.json["periods"]) == 60_000
    assert "ETag" not in posted.headers
    compared = program.post(f"{SITE}/comparison?from=2026-11-18", **body)  # type: ignore[arg-type]
    assert compared.json["after"]["n"] == 40_000
    assert program.get(f"{SITE}/estimate").json["size"] == 3
    (folder / "site.txt").unlink()
    missing = program.get(f"{SITE}/estimate")
    assert missing.status_code == 400
    assert missing.json["type"] == "urn:deniable:problem:candidates-missing"


@pytest.mark.parametrize("call", ["estimate", "trend", "comparison"])
def test_strings_are_found_in_any_spelling(program, call):
    """What is asked for and what is told are in the form that devices report."""
    for asked in (
        program.get(f"{SITE}/{call}?value=cafe%CC%81.example&from=2026-11-18"),
        program.post(f"{SITE}/{call}?from=2026-11-18", data="cafe\u0301.example", headers=TEXT),
    ):
        parts = [each for each in asked.json.get("periods", [asked.json]) if each.get("n", 1)]
        assert [each["value"] for each in parts[-1]["values"]] == ["caf\u00e9.example"]


@pytest.mark.parametrize(
    ("body", "kind", "status", "advice"),
    [
        (b"", "text/plain", 400, "holds no value"),
        (b"\xff", "text/plain", 400, "UTF-8"),
        (b"a\na", "text/plain", 400, "repeats"),
        (b"[]", "application/json", 400, "object"),
        (b"{", "application/json", 400, "truncated"),
        (b'{"candidates": ["a", ""]}', "application/json", 400, "line 2: is blank"),
        (b'{"candidates": [1]}', "application/json", 400, "str"),
        (b"a", "text/html", 415, "text/plain"),
        (b"x" * ((2 << 20) + 1), "text/plain", 413, "2,097,152 bytes"),
    ],
)
def test_a_bad_list_is_a_problem(program, body, kind, status, advice):
    """The document says what is wrong with what was sent, and where a long list belongs."""
    answer = program.post(f"{SITE}/estimate", data=body, content_type=kind)
    assert answer.status_code == status
    assert answer.mimetype == "application/problem+json"
    assert advice in answer.json["detail"]
