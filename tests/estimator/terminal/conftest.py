"""A registry of numbers, and a store that holds some days of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from click import Command
from click.testing import CliRunner, Result
from tests.registries import declared

from deniable import Registry, Scheme
from deniable_collector.tally import Tally
from deniable_estimator.analyses.sampling import sample_numbers
from deniable_estimator.planning.population import Crowd, lognormal_crowd, normal_crowd

DAYS = tuple(f"2026-11-{day:02}" for day in range(1, 13))
DEVICES = 20_000

REGISTRY = declared(
    latency={"type": "number", "low": 0.001, "high": 100, "unit": "s", "scale": "log",
             "ask": "distribution"},
    outside={"type": "number", "low": -20, "high": 40, "unit": "degrees", "ask": "mean"},
    tabs={"type": "number", "low": 0, "high": 12, "integer": True, "ask": ["mean", "distribution"],
          "epsilon": 4.0},
    dark_mode={"type": "boolean", "epsilon": 1.0},
)  # fmt: skip

CROWDS: dict[str, Crowd] = {
    "latency": lognormal_crowd(0.4, 1.0),
    "outside": normal_crowd(-5.0, 4.0),
    "tabs": Crowd.of(np.arange(9.0), np.arange(9.0, 0.0, -1.0)),
}

Call: TypeAlias = Callable[..., Result]


@pytest.fixture
def registry_file(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.toml"
    path.write_text(REGISTRY)
    return path


@pytest.fixture
def report(registry: Registry, fill: Callable[[Tally, Scheme], None]) -> Callable[..., None]:
    """Store a day of a metric's usual crowd, its numbers multiplied:
    report(metric, day, times=1.0, devices=DEVICES)."""
    rng = np.random.default_rng(1)

    def store(name: str, day: str, times: float = 1.0, devices: int = DEVICES) -> None:
        scheme, crowd = registry[name].scheme, CROWDS[name]
        counts = rng.multinomial(devices, crowd.weights / crowd.weights.sum())
        numbers = crowd.numbers * times
        fill(sample_numbers(scheme, numbers, counts, rng, metric=name, window=day), scheme)

    return store


@pytest.fixture
def call(registry_file: Path, store_url: str) -> Call:
    """Run a command against the test's registry and store, on a wide terminal."""

    def run(command: Command, *arguments: str, stored: bool = True) -> Result:
        common = ["--registry", str(registry_file), *(["--store", store_url] if stored else [])]
        return CliRunner().invoke(command, [*arguments, *common], env={"COLUMNS": "160"})

    return run
