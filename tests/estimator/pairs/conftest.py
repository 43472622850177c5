"""A registry with a pair, and a store that holds some days of it."""

import numpy as np
import pytest
from tests.registries import declared

from deniable import Registry
from deniable_estimator.analyses import sample_tally

REGISTRY = declared(
    plan={"type": "category", "values": ["free", "pro", "team"], "epsilon": 1.0},
    dark_mode={"type": "boolean", "epsilon": 0.5},
    plan_by_mode={"type": "pair", "of": ["plan", "dark_mode"], "lifetime_epsilon": 100.0},
)

TABLE = np.array([[0.30, 0.20], [0.10, 0.20], [0.05, 0.15]])
DAYS = tuple(f"2026-11-{day:02}" for day in range(1, 11))
DEVICES = 20_000


@pytest.fixture
def registry():
    return Registry.parse(REGISTRY)


@pytest.fixture
def filled(fill, registry):
    """The registry; the store holds ten days of the pair alone."""
    metric = registry["plan_by_mode"]
    rng = np.random.default_rng(7)
    for day in DAYS:
        counts = rng.multinomial(DEVICES, TABLE.ravel())
        tally = sample_tally(metric.scheme, counts, rng, metric=metric.name, window=day)
        fill(tally, metric.scheme)
    return registry
