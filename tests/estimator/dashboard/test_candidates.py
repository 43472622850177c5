"""Strings: candidates that are uploaded, or that the operator has listed."""

import pytest
from tests.registries import declared

from deniable import Registry

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
    """A file named like the metric gives the page its strings, also in their order; one with a
    mistake is told, and gives it none."""
    assert client.get("/metric/site.csv").status_code == 400
    (folder / "site.txt").write_text("b.example\na.example\n")
    page = client.get("/metric/site").text
    assert "a.example leads" in page
    listed = client.get("/metric/site?order=declared").text
    assert page.index(">a.example</text>") < page.index(">b.example</text>")
    assert listed.index(">b.example</text>") < listed.index(">a.example</text>")
    (folder / "site.txt").write_text("a\na\n")
    broken = client.get("/metric/site").text
    assert "repeats line 1" in broken
    assert client.get("/metric/site.csv").status_code == 400
