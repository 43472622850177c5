"""Schemes, tallies and a filled store for the estimator's tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from tests.registries import declared

from deniable import Registry, Scheme
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, TallyKey
from deniable_collector.stores.vectors import addition_of
from deniable_collector.tally import Tally, TallyRow

Fill: TypeAlias = Callable[[Tally, Scheme], None]

NOW = 1_795_000_000.0  # 2026-11-18, UTC

REGISTRY = declared(
    dark_mode={"type": "boolean", "epsilon": 1.0, "sample_rate": 0.5},
    browser={
        "type": "category",
        "lifetime_epsilon": 16.0,
        "values": ["firefox", "chrome", "safari", "other"],
    },
).replace("2999", "2027")


@pytest.fixture
def make_scheme():
    """A category scheme by subset selection: make_scheme(size, epsilon, k=None, values=None)."""

    def make(size, epsilon, k=None, values=None):
        mechanism = SubsetSelection.design(size, epsilon, k)
        return Scheme("category", mechanism, tuple(values or (f"v{i}" for i in range(size))))

    return make


@pytest.fixture
def make_tally():
    """A one-row tally: make_tally(scheme, reports, cells, windows=..., metric=...)."""

    def make(scheme, reports, cells, windows=("2026-11-16",), metric="browser"):
        row = TallyRow(reports, np.array(cells, np.int64))
        return Tally(metric, scheme.fingerprint, tuple(windows), (row,))

    return make


@pytest.fixture
def registry_file(tmp_path):
    """A metrics.toml with a boolean and a category of four."""
    path = tmp_path / "metrics.toml"
    path.write_text(REGISTRY)
    return path


@pytest.fixture
def registry(registry_file):
    return Registry.load(registry_file)


@pytest.fixture
def store_url(tmp_path):
    """The address of a real, empty SQLite store."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    opened = open_store(Settings(store=url))
    opened.publish(())
    opened.close()
    return url


@pytest.fixture
def store(store_url):
    opened = open_store(Settings(store=store_url))
    yield opened
    opened.close()


@pytest.fixture
def fill(store):
    """Fold a one-window tally into the store, as the collector would."""
    ids = itertools.count()

    def fold(tally, scheme):
        store.publish([(tally.metric, scheme)])
        (window,) = tally.windows
        key = TallyKey(tally.metric, tally.scheme, window)
        addition = addition_of(store.shape(key[:2]), dict(enumerate(tally.rows)))
        assert not store.fold(Commit((f"{next(ids):032x}",), {key: addition}), NOW)

    return fold
