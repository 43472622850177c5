"""Tallies of discovery, drawn from their exact distribution."""

from __future__ import annotations

import numpy as np
import pytest
from tests.registries import declared

from deniable import Registry, Scheme
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.answers.basis import Part
from deniable_estimator.statistics.participation import Participation

HOSTILE = "=1+\u202e<b>"
"""A formula, a mark that reorders a line, and a tag: 9 bytes."""

CROWD = {
    "search": 30_000,
    "seam": 12_000,
    "a": 20_000,
    "搜索": 15_000,
    "поиск": 9_000,
    HOSTILE: 14_000,
    "longerwords": 9_000,
    "longerwordy": 9_000,
    "": 22_000,
}
"""String -> its devices. The last two words have one head of ten bytes, and one
has ten bytes in all."""

_EPSILONS = {"epsilon": 4.0, "lifetime_epsilon": 40.0}
TOML = declared(
    terms={"type": "discovery", "max_length": 10, "deny": ["*@*"], **_EPSILONS},
    engine={"type": "category", "values": ["search", "other"], **_EPSILONS},
    followed={"type": "string", **_EPSILONS},
    clicks={"type": "number", "ask": "mean", "unit": "clicks", "low": 0, "high": 9, **_EPSILONS},
)


@pytest.fixture(scope="session")
def code():
    """Ten bytes at epsilon 4: six rows of 712,980 places."""
    return PrefixTree.design("terms", 4.0, 5)


@pytest.fixture(scope="session")
def draw():
    """draw(code, crowd, seed, window=...): a tally of strings and their devices."""

    def make(mechanism, crowd, seed, window="2026-11-16"):
        counts = np.array(list(crowd.values()), np.int64)
        rows = analysis_of(mechanism).sample_rows(list(crowd), counts, np.random.default_rng(seed))
        return Tally("terms", Scheme("discovery", mechanism, ()).fingerprint, (window,), rows)

    return make


@pytest.fixture(scope="session")
def part():
    """part(code, tally): what `find_strings` is given."""

    def make(mechanism, tally):
        return Part(tally, Scheme("discovery", mechanism, ()), None, Participation.evenly(tally))

    return make


@pytest.fixture(scope="session")
def crowd(code, draw):
    """140,000 devices with the strings of CROWD, and 40,000 whose strings all differ."""
    rare = {f"{number:05d}": 1 for number in range(40_000)}
    return draw(code, {**CROWD, **rare}, seed=1)


@pytest.fixture
def registry_file(tmp_path):
    path = tmp_path / "metrics.toml"
    path.write_text(TOML)
    return path


@pytest.fixture
def registry(registry_file):
    return Registry.load(registry_file)
