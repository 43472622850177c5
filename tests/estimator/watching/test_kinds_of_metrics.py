"""Numbers, strings and metrics with memory are watched as far as their reports allow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from deniable import Registry, Scheme
from deniable_collector.stores.base import Store
from deniable_collector.tally import Tally
from deniable_estimator.analyses.sampling import sample_numbers, sample_tally
from deniable_estimator.watching.digest import weekly_digest
from deniable_estimator.watching.rules_file import parse_rules
from deniable_estimator.watching.run import Watcher
from deniable_estimator.watching.state import WatchState

from .conftest import day, noon

REGISTRY = Registry.parse(
    """
schema = 1
app = "example"
[defaults]
owner = "o"
expires = 2029-06-30

[metrics.latency]
type = "number"
description = "How long does the first page take?"
low = 0.001
high = 100
unit = "s"
scale = "log"
ask = ["mean", "distribution"]
epsilon = 4.0
lifetime_epsilon = 8.0

[metrics.host]
type = "string"
description = "The host that the app opens with."
epsilon = 4.0
lifetime_epsilon = 8.0

[metrics.theme]
type = "boolean"
description = "Dark mode is on."
longitudinal = "memoize"
epsilon = 1.0
lifetime_epsilon = 8.0
"""
)
RULES = 'schema = 1\ndashboard = "https://d.example"\nwait_days = 0\n'
Fill = Callable[[Tally, Scheme], None]


def watched(store: Store, name: str, folder: Path | None = None) -> Watcher:
    rules = parse_rules(f'{RULES}only = ["{name}"]\n', REGISTRY.metrics, {})
    return Watcher(store, REGISTRY, rules, folder)


def told(watcher: Watcher) -> dict[str, list[str]]:
    """The series of the changes in the run after the last of 36 days, by direction."""
    state = WatchState()
    assert watcher.run(state, noon(34)).messages == ()
    found: dict[str, list[str]] = {"up": [], "down": []}
    for each in watcher.run(state, noon(35)).messages:
        assert each["kind"] == "change"
        facts = each["facts"]
        found["up" if facts["difference"] > 0 else "down"].append(facts["series"])
    return found


def test_a_number(store: Store, fill: Fill) -> None:
    """A time that doubles is told of its quantiles and means, in seconds; one that does not is
    told of none."""
    scheme, rng = REGISTRY["latency"].scheme, np.random.default_rng(7)
    for number in range(36):
        times = rng.lognormal(-0.5, 0.8, 4000) * (2 if number == 35 else 1)
        counts = np.full(4000, 5)
        fill(
            sample_numbers(scheme, times, counts, rng, metric="latency", window=day(number)), scheme
        )
    watcher = watched(store, "latency")
    found = told(watcher)
    assert "p50" in found["up"]
    assert found["down"] == []
    message = watcher.run(WatchState(), noon(35)).messages[0]
    assert message["facts"]["unit"] == "s"
    assert " s (95% CI" in message["text"]
    digest = weekly_digest(
        store, REGISTRY, (REGISTRY["latency"],), {}, "https://d.example", noon(34)
    )
    assert "s (95% CI" in digest.unchanged[0].text


def test_a_metric_with_memory(store: Store, fill: Fill) -> None:
    """Its windows are not independent, so no change is told, and the digest says so."""
    scheme, rng = REGISTRY["theme"].scheme, np.random.default_rng(9)
    for number in range(36):
        yes = 14_000 if number == 35 else 6_000
        counts = np.array([yes, 20_000 - yes])
        fill(sample_tally(scheme, counts, rng, metric="theme", window=day(number)), scheme)
    assert told(watched(store, "theme")) == {"up": [], "down": []}
    digest = weekly_digest(store, REGISTRY, (REGISTRY["theme"],), {}, "https://d.example", noon(34))
    assert "changes have no interval" in digest.unchanged[0].text
