"""Strings: candidates that are uploaded, or that the operator has listed."""

import threading

import pytest
from tests.ports import until
from tests.registries import declared

from deniable import Registry
from deniable_estimator.asking.reading import Selection

from .conftest import browser_of, dashboard_of, fill_drawn

REGISTRY = declared(site={"type": "string", "epsilon": 4.0, "mechanism": "cohort_local_hashing"})


@pytest.fixture
def registry():
    return Registry.parse(REGISTRY)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "candidates"
    folder.mkdir()
    return folder


@pytest.fixture
def client(empty_store, registry, folder):
    """A signed-in browser; 20,000 devices have named two sites."""
    fill_drawn(empty_store, registry, "site", {"a.example": 15_000, "b.example": 5_000})
    return browser_of(dashboard_of(empty_store, registry, candidates_dir=str(folder)), accept="")


def test_the_operators_list_is_used(client, folder):
    """A file named like the metric gives the page, its files and its trend their strings."""
    assert client.get("/metric/site.csv").status_code == 400
    (folder / "site.txt").write_text("b.example\na.example\n")
    page = client.get("/metric/site").text
    assert "a.example leads" in page
    assert "Choose day, week or month" in page
    listed = client.get("/metric/site?order=declared").text
    assert page.index(">a.example</text>") < page.index(">b.example</text>")
    assert listed.index(">b.example</text>") < listed.index(">a.example</text>")
    assert client.get("/metric/site.json").json["n"] == 20_000
    reported = [each["n"] for each in client.get("/metric/site/trend.json").json["periods"]]
    assert sum(reported) == 20_000
    (folder / "site.txt").write_text("a\na\n")
    broken = client.get("/metric/site").text
    assert "repeats line 1" in broken
    assert client.get("/metric/site.csv").status_code == 400


def test_a_slow_list_does_not_hold_up_the_overview(client, folder, monkeypatch):
    """While strings are being decoded the page is there, says so on their card, and looks again
    by itself."""
    held = threading.Event()
    honest = Selection.read

    def slow(selection):
        held.wait(30)
        return honest(selection)

    monkeypatch.setattr(Selection, "read", slow)
    monkeypatch.setattr("deniable_estimator.dashboard.overview.page.PAGE_PATIENCE", 0.5)
    (folder / "site.txt").write_text("a.example\nb.example\n")
    try:
        page = client.get("/")
        assert page.status_code == 202
        assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in page.text
        assert "is being calculated" in page.text
        assert "<span>a.example</span>" not in page.text
    finally:
        held.set()
    until(lambda: "<span>a.example</span>" in client.get("/").text)
