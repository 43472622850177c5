"""A store with five days of reports, and the command with a ledger beside it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tests.registries import tables

from deniable.tools.command_line import find
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of

DAYS = [f"2026-01-{day:02}" for day in range(5, 10)]

MORE = '[segments.platform]\nvalues = ["ios", "web"]\n' + tables(
    theme={"type": "boolean", "epsilon": 1.0, "segments": ["platform"]},
    speed={"type": "number", "ask": "mean", "low": 0, "high": 10, "unit": "s", "epsilon": 1.0},
    word={"type": "string"},
)

Run = Callable[..., Result]


@pytest.fixture
def registry_file(tmp_path, registry_file):
    registry_file.write_text(registry_file.read_text() + MORE)
    return registry_file


@pytest.fixture
def filled(registry, fill):
    """Five days of 4,000 devices each."""
    rng = np.random.default_rng(1)
    crowds = {
        "browser": ([0, 1, 2, 3], [2000, 1000, 600, 400]),
        "dark_mode": ([0, 1], [1500, 2500]),
        "speed": ([1 << 28, 1 << 29], [2000, 2000]),
    }
    for name, (items, counts) in crowds.items():
        scheme = registry[name].scheme
        for day in DAYS:
            rows = analysis_of(scheme.mechanism).sample_rows(np.array(items), np.array(counts), rng)
            fill(Tally(name, scheme.fingerprint, (day,), tuple(rows)), scheme)


@pytest.fixture
def run(registry_file, store_url, tmp_path, filled):
    """Call the command with this store, registry and ledger."""

    def call(text, **environment):
        words = shlex.split(text)
        if words[0] not in ("list", "verify"):
            words += ["--registry", str(registry_file), "--store", store_url]
        given = {"DENIABLE_RELEASES": str(tmp_path / "releases.sqlite"), **environment}
        return CliRunner().invoke(find(), ["release", *words], env=given)

    return call


def document(result):
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found
