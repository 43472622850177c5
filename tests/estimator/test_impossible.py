"""Shares that no honest crowd can have: called so, neither leader nor noise."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from deniable import Scheme
from deniable.mechanisms import SubsetSelection
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import Shares, estimate
from deniable_estimator.dashboard.charts import bar_chart, folded_chart
from deniable_estimator.dashboard.table import table
from deniable_estimator.dashboard.words import headline
from deniable_estimator.terminal.tables import estimate_view

VALUES = ("a", "b", "c", "d", "e", "f")
SCHEME = Scheme("category", SubsetSelection.design(6, 1.0), VALUES)
BOOLEAN = Scheme("boolean", SubsetSelection.design(2, 1.0), ("true", "false"))


def expected(shares: list[float], n: int, scheme: Scheme = SCHEME) -> Shares:
    """The estimate of a tally with just these shares, of n reports."""
    p, q = float(scheme.mechanism.p), float(scheme.mechanism.q)
    cells = np.array([round(n * (q + share * (p - q))) for share in shares])
    return estimate(Tally("m", scheme.fingerprint, ("2026-11-20",), (TallyRow(n, cells),)), scheme)


def test_what_lies_beyond_everything_is_impossible() -> None:
    """115% and -50% are impossible; -3% and 103% with as wide an interval are not; and what
    is impossible is neither among what stands out nor among the noise."""
    found = expected([1.15, -0.5, 0.2, 0.15, 0.0, 0.0], 5000)
    assert found.impossible.tolist() == [True, True, False, False, False, False]
    assert set(found.standing.tolist()) == {2, 3}
    assert set(found.below.tolist()) == {4, 5}
    assert found.strange.tolist() == [1, 0]
    assert not expected([1.03, -0.03, 0.0, 0.0, 0.0, 0.0], 5000).impossible.any()
    assert expected([1.2, -0.2], 400, BOOLEAN).impossible.all()
    assert not expected([1.02, -0.02], 400, BOOLEAN).impossible.any()
    assert found.to_dict()["values"][0]["impossible"] is True
    assert ",impossible," in found.to_csv().splitlines()[0]
    assert not estimate(sample_tally(SCHEME, np.zeros(6, int), np.random.default_rng(1)), SCHEME) \
        .impossible.any()  # fmt: skip


@pytest.mark.parametrize("n", [60, 1000, 20_000])
@pytest.mark.parametrize("scheme", [SCHEME, BOOLEAN], ids=["six", "two"])
def test_honest_shares_are_hardly_ever_impossible(scheme: Scheme, n: int) -> None:
    """Where all devices have one value, so that the others lie at zero and it at one, at most the
    level of drawn tallies has an impossible share: at .05, 300 tallies, seed 3, a binomial tail
    of 1e-5 in each of six comparisons; and that is not because nothing ever is (at .5 some are)."""
    rng = np.random.default_rng(3)
    counts = np.zeros(len(scheme.values or ()), int)
    counts[1] = n
    drawn = [estimate(sample_tally(scheme, counts, rng), scheme) for _ in range(300)]
    found = sum(replace(each, alarm_level=0.05).impossible.any() for each in drawn)
    assert found <= stats.binom.isf(1e-5, 300, 0.05)
    assert sum(replace(each, alarm_level=0.5).impossible.any() for each in drawn) >= 3


def test_nothing_impossible_leads() -> None:
    """The headline says which share is impossible instead of who leads, also of a boolean."""
    told = headline(expected([1.15, -0.5, 0.2, 0.15, 0.0, 0.0], 5000))
    assert told.startswith("Impossible: \N{MINUS SIGN}50.0% for b, 115.0% for a. Do not rely on")
    assert "leads" not in told
    yes = headline(expected([1.2, -0.2], 400, BOOLEAN))
    assert re.match(r"Impossible: 1(19|20)\.\d% say yes\. Do not rely on", yes)


def test_the_picture_and_the_table_mark_it() -> None:
    """Impossible values stand first in chart and table, marked so and not as noise, and are not
    folded away with it; the terminal says so too."""
    found = expected([0.3, -0.5, 0.2, 0.85, 0.15, 0.0], 5000)
    folded = folded_chart(found, limit=10, noise_limit=10)
    bars = {bar.label: bar for bar in folded.standing.bars}
    assert folded.standing.bars[0].label == "b"
    assert (bars["b"].impossible, bars["b"].noise) == (True, False)
    assert "b \N{MINUS SIGN}50.0%, which is impossible" in folded.standing.description
    assert folded.noise is not None
    assert [bar.label for bar in folded.noise.bars] == ["f"]
    assert [bar.label for bar in bar_chart(found).bars if bar.impossible] == ["b"]
    lines = table(found, 10)
    first = lines.standing[0]
    assert (first.value, first.impossible, first.noise) == ("b", True, False)
    assert [line.value for line in lines.noise] == ["f"]
    console = Console(width=120, file=io.StringIO())
    console.print(estimate_view(found))
    assert isinstance(console.file, io.StringIO)
    assert "Impossible: b. No honest crowd" in console.file.getvalue()
