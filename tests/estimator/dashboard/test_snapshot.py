"""The store as one request sees it."""

from __future__ import annotations

import gzip

import pytest
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store, StoreError
from deniable_collector.stores.base import Commit
from deniable_estimator.dashboard.snapshot import Snapshot

from .conftest import YESTERDAY, fill


def test_a_snapshot_reads_what_the_store_holds(store: Store, registry: Registry) -> None:
    """Schemes, windows and tallies are the store's."""
    seen = Snapshot(store)
    fingerprint = registry["browser"].scheme.fingerprint
    assert seen.schemes().keys() == store.schemes().keys()
    assert seen.scheme("browser", fingerprint).fingerprint == fingerprint
    assert seen.windows("browser", fingerprint) == [YESTERDAY]
    assert seen.tally("browser", fingerprint, [YESTERDAY]).reports == 20_000
    seen.ping()
    seen.close()
    store.ping()


def test_a_snapshot_does_not_change_under_a_page(store: Store, registry: Registry) -> None:
    """What arrives meanwhile is not seen, so that one page cannot contradict itself."""
    seen = Snapshot(store)
    fingerprint = registry["browser"].scheme.fingerprint
    seen.windows("browser", fingerprint)
    fill(store, registry, "browser", [0.25] * 4, 100, "2026-11-19")
    assert seen.windows("browser", fingerprint) == [YESTERDAY]
    assert len(Snapshot(store).windows("browser", fingerprint)) == 2


def test_a_snapshot_writes_nothing(store: Store) -> None:
    """The dashboard cannot add, publish or drop."""
    seen = Snapshot(store)
    for write in (
        lambda: seen.fold(Commit((), {}), 0.0),
        lambda: seen.publish({}),
        lambda: seen.drop(0.0),
    ):
        with pytest.raises(StoreError, match="only reads"):
            write()


def test_pages_are_compressed_for_those_who_can(browser: FlaskClient) -> None:
    """With gzip a page is the same, only shorter; without, it is sent as it is."""
    page = browser.get("/metric/browser")
    packed = browser.get("/metric/browser", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) == len(packed.data) < len(page.data) / 2
    assert gzip.decompress(packed.data) == page.data
    assert "Content-Encoding" not in page.headers
