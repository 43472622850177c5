"""A mechanism that nothing knows of, added as ARCHITECTURE.md says: one class, one analysis, and
their entries in two tables take it from the registry to the pages, the planner and simulation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from click.testing import CliRunner

from deniable import Registry, mechanisms
from deniable.exact import exp_below
from deniable.mechanisms import Cell, FrequencyOracle, Packing, Report, Row
from deniable.mechanisms.base import ONE, check_parameters, check_size
from deniable.randomness import Bits, below, coin, system_bits
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses import ANALYSES, sampling
from deniable_estimator.analyses.base import OneRowAnalysis
from deniable_estimator.analyses.support import Counts, Items
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.terminal import estimate, plan, simulate

TOKEN = "Vq3mS0x-8JtYc_1rKfWz5LbNpH2eGdUa"
DAY = "2026-11-16"
NOW = 1_795_000_000.0  # 2026-11-18, UTC


class Mirror(FrequencyOracle[int]):
    """Randomized response whose columns run from the last value to the first."""

    name: ClassVar[str] = "mirror"
    size: int

    def __init__(self, size: int, threshold: int) -> None:
        self.size, self.threshold = check_size(self.name, size), threshold
        self.rows = (Row(size, Packing.INDEX),)
        self.p = Fraction(threshold, ONE)
        self.q = (1 - self.p) / (size - 1)
        self.odds = self.p / self.q

    @classmethod
    def design(cls, size: int, epsilon: float) -> Self:
        odds = exp_below(epsilon)
        return cls(size, int(ONE * odds / (odds + size - 1)))

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        size, threshold = check_parameters(
            cls.name, parameters, size=(2, 1000), threshold=(1, ONE - 1)
        )
        return cls(size, threshold)

    def parameters(self) -> dict[str, Any]:
        return {"size": self.size, "threshold": self.threshold}

    def randomize(self, item: int, bits: Bits = system_bits) -> Report:
        self.require_item(item)
        if not coin(self.threshold, bits):
            other = below(self.size - 1, bits)
            item = other + (other >= item)
        return Report(0, self.size - 1 - item)

    def likelihood(self, report: Report, item: int) -> Fraction:
        return self.p if report.columns == self.size - 1 - item else self.q

    def support(self, item: int) -> Iterator[Cell]:
        yield Cell(0, self.size - 1 - item)


class MirrorAnalysis(OneRowAnalysis[Mirror]):
    """Each value is supported by the column on the other side."""

    def places(self, cells: Counts) -> Counts:
        return cells[::-1]

    def supported(self, targets: int) -> tuple[int, int]:
        return max(0, targets - (self.mechanism.size - 1)), 1

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        size, p, q = self.mechanism.size, float(self.mechanism.p), float(self.mechanism.q)
        cells = np.zeros(size, np.int64)
        for item, count in enumerate(counts.tolist()):
            chances = np.full(size, q)
            chances[size - 1 - item] = p
            cells += rng.multinomial(count, chances / chances.sum())
        return (TallyRow(int(counts.sum()), cells),)


REGISTRY = """
schema = 1
app = "example"
[metrics.browser]
type = "category"
description = "Which browser opens links?"
owner = "growth@acme.example"
expires = 2027-06-30
values = ["firefox", "chrome", "safari", "other"]
mechanism = "mirror"
epsilon = 2.0
lifetime_epsilon = 8.0
"""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry that names the mechanism, which is entered into both tables."""
    monkeypatch.setitem(mechanisms.DESIGNS, Mirror.name, Mirror.design)
    monkeypatch.setitem(mechanisms._REBUILDS, Mirror.name, Mirror.from_parameters)
    monkeypatch.setitem(ANALYSES, Mirror, MirrorAnalysis)
    path = tmp_path / "metrics.toml"
    path.write_text(REGISTRY)
    return path


@pytest.fixture
def store(tmp_path: Path, registry: Path) -> str:
    """A store with a day of 100,000 reports: half firefox, 30% chrome, 20% safari."""
    address, metric = f"sqlite:///{tmp_path}/tallies.db", Registry.load(registry)["browser"]
    counts, rng = np.array([50_000, 30_000, 20_000, 0]), np.random.default_rng(1)
    (row,) = sampling.sample_tally(metric.scheme, counts, rng).rows
    with closing(open_store(address)) as held:
        held.publish({"browser": [metric.scheme]})
        key = TallyRowKey(TallyKey("browser", metric.scheme.fingerprint, DAY), 0)
        increment = Increment(4, row.reports, (0, 1, 2, 3), row.cells.tolist())
        held.fold(Commit(("a" * 32,), {key: increment}), NOW)
    return address


def test_commands(registry: Path, store: str) -> None:
    """`estimate`, `plan` and `simulate` know it: shares within 5 standard errors (2e-6, seed 1)."""
    asked = ["browser", "--registry", str(registry), "--json"]
    found = CliRunner().invoke(estimate, [*asked, "--store", store])
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    for row, share in zip(answer["values"], (0.5, 0.3, 0.2, 0.0), strict=True):
        assert abs(row["share"] - share) < 5 * row["std_error"]
    drawn = CliRunner().invoke(simulate, [*asked, "--devices", "100000", "--seed", "1"])
    assert drawn.exit_code == 0, drawn.output
    for row in json.loads(drawn.stdout)["values"]:
        assert abs(row["share"] - row["truth"]) < 5 * row["std_error"]
    planned = CliRunner().invoke(
        plan,
        ["--size", "4", "--epsilon", "2", "--devices", "1000", "--mechanism", "mirror", "--json"],
    )
    assert planned.exit_code == 0, planned.output
    assert json.loads(planned.stdout)["mechanism"] == "mirror"


def test_pages(registry: Path, store: str) -> None:
    """The metric's page, its files and the overview show it."""
    settings = DashboardSettings(dashboard_token=TOKEN, dashboard_login_link=True)
    held, declared = open_store(store), Registry.load(registry)
    app = create_app(settings, store=held, registry=declared, clock=lambda: NOW)
    client = app.test_client()
    client.post("/login", data={"token": TOKEN})
    days = f"?from={DAY}&to={DAY}"
    page = client.get(f"/metric/browser{days}")
    assert page.status_code == 200
    assert "firefox" in page.text
    assert "mirror" in page.text
    assert client.get("/").status_code == 200
    assert client.get(f"/metric/browser.csv{days}").text.startswith("value,share")
    held.close()
