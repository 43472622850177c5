"""The answer of a pair: its numbers, files, words, and what several schemes say together."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from datetime import date

import numpy as np
import pytest
from tests.estimator.conftest import Fill
from tests.estimator.pairs.conftest import DAYS, DEVICES, REGISTRY, TABLE

from deniable import Metric, Registry, Scheme
from deniable_collector.stores.base import Store
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers import answer_of, combine
from deniable_estimator.answers.pair import PairAnswer
from deniable_estimator.answers.pair_estimate import LEAST_FOR_TEST
from deniable_estimator.answers.pair_words import conditional_words, remarks, verdict_words
from deniable_estimator.answers.shares import Shares
from deniable_estimator.errors import EstimateError
from deniable_estimator.questions.looks import Look, look
from deniable_estimator.questions.reading import read, select
from deniable_estimator.questions.trend import trend


def answered(
    scheme: Scheme, n: int = 50_000, table: np.ndarray = TABLE, seed: int = 1, day: str = DAYS[0]
) -> PairAnswer:
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, table.ravel())
    found = answer_of(sample_tally(scheme, counts, rng, metric="p", window=day), scheme)
    assert isinstance(found, PairAnswer)
    return found


@pytest.fixture
def scheme(registry: Registry) -> Scheme:
    return registry["plan_by_mode"].scheme


@pytest.mark.parametrize("n", [0, 1, LEAST_FOR_TEST - 1])
def test_few_reports(scheme: Scheme, n: int) -> None:
    """Without reports and with few of them there is no test and no effect; files say null."""
    found = answered(scheme, n)
    assert found.independence is None
    assert found.effect is None
    document = found.to_dict()
    assert document["independence"] is None
    assert document["effect"] is None
    json.dumps(document, allow_nan=False)
    assert len(list(csv.reader(io.StringIO(found.to_csv())))) == 1 + TABLE.size
    assert ("No reports" if n == 0 else "too few") in verdict_words(found)
    assert list(remarks(found)) == []


def test_too_few_of_a_value(scheme: Scheme) -> None:
    """A conditional whose condition is below 3 standard errors is not a number anywhere."""
    table = np.array([[0.5, 0.48], [0.01, 0.005], [0.003, 0.002]])
    found = answered(scheme, 1000, table)
    assert not found.conditionals["first"].known[2, 0]
    assert "Too few have plan=team" in conditional_words(found, "first", 2, 0)
    row = found.to_dict()["cells"][4]
    assert row["values"] == {"plan": "team", "dark_mode": "true"}
    assert row["given_first"] == {"share": None, "low": None, "high": None, "too_few": True}
    place = found.series.place("dark_mode=true given plan=team")
    assert place is not None
    assert np.isnan(found.series.value[place])
    assert found.lumped == ("plan=pro", "plan=team")


def test_several_schemes(registry: Registry, scheme: Scheme) -> None:
    """Schemes with other epsilons are averaged: cells sum to 1, margins agree with cells, and the
    result is more exact than each."""
    other = dataclasses.replace(registry["plan_by_mode"], epsilon=1.0).scheme
    one, two = answered(scheme), answered(other, seed=2, day=DAYS[1])
    both = combine([one, two])
    assert isinstance(both, PairAnswer)
    assert both.n == 100_000
    assert both.joint.share.sum() == pytest.approx(1)
    assert both.margins[0].share == pytest.approx(both.table.sum(axis=1))
    assert both.joint.share == pytest.approx(TABLE.ravel(), abs=0.03)
    assert both.independence is not None
    assert (both.margins[0].std_error <= one.margins[0].std_error).all()


def test_repeated_reports_count_as_devices(scheme: Scheme) -> None:
    """Two windows under two schemes of the same devices are no better than the devices allow."""
    one = answered(scheme)
    again = combine([one, answered(scheme, seed=3, day=DAYS[1])])
    assert again.devices < again.n
    assert isinstance(again, PairAnswer)
    assert again.covariance is not None
    assert again.covariance.kept > 0


def test_other_lists_are_left_out(registry: Registry, scheme: Scheme) -> None:
    """Reports about other values are not mixed in: the larger part is told, with their number."""
    text = REGISTRY.replace('"team"]', '"firm"]')
    other = Registry.parse(text)["plan_by_mode"].scheme
    both = combine([answered(scheme), answered(other, 20_000, day=DAYS[1])])
    assert both.n == 50_000
    assert any("20,000 reports under other lists are left out" in each for each in both.warnings)


def test_candidates_are_refused(scheme: Scheme) -> None:
    """A pair has a closed list of cells."""
    rng = np.random.default_rng(1)
    tally = sample_tally(scheme, np.full(6, 10), rng, window=DAYS[0])
    with pytest.raises(EstimateError, match="no candidates"):
        answer_of(tally, scheme, ["free"])


FORGOTTEN = REGISTRY + 'forget = "marginals"\n'


def test_forgotten_marginals_come_from_the_pair(filled: Registry, store: Store) -> None:
    """A metric that is not reported by itself is estimated from the pair, with wider intervals and
    a note; also by days, and for some of its values."""
    registry = Registry.parse(FORGOTTEN)
    found = read(store, registry, "plan")
    assert isinstance(found, Shares)
    assert (found.metric, found.n) == ("plan", len(DAYS) * DEVICES)
    assert found.share == pytest.approx(TABLE.sum(axis=1), abs=0.02)
    assert any("plan_by_mode" in each for each in found.warnings)
    one = read(store, registry, "dark_mode", date(2026, 11, 1), date(2026, 11, 1))
    assert one.n == DEVICES
    some = read(store, registry, "plan", candidates=["team", "free"])
    assert isinstance(some, Shares)
    assert some.values == ("team", "free")
    assert some.share == pytest.approx(found.share[[2, 0]])
    assert len(trend(store, registry, "plan").reported) == len(DAYS)
    assert read(store, filled, "plan").n == 0


def test_own_reports_are_not_counted_twice(
    filled: Registry, store: Store, fill: Fill, registry: Registry
) -> None:
    """In a window with reports of the metric itself, those of the pair are left out, as the same
    devices may have sent both."""
    own: Metric = registry["plan"]
    rng = np.random.default_rng(3)
    counts = rng.multinomial(5000, TABLE.sum(axis=1))
    fill(sample_tally(own.scheme, counts, rng, metric="plan", window=DAYS[0]), own.scheme)
    found = read(store, Registry.parse(FORGOTTEN), "plan")
    assert found.n == 5000 + (len(DAYS) - 1) * DEVICES


def test_windows_of_a_margin_are_looked_at(filled: Registry, store: Store) -> None:
    """Anomalies of a pair look at its cells, and those of a margin at the margin."""
    selection = select(store, Registry.parse(FORGOTTEN), "plan")
    found = look(DAYS[0], selection.within({DAYS[0]}).read())
    assert isinstance(found, Look)
    assert found.values == ("free", "pro", "team")
    assert look("2026-12-01", selection.within({"2026-12-01"}).read()) is None
    cells = look(DAYS[0], select(store, filled, "plan_by_mode").within({DAYS[0]}).read())
    assert cells is not None
    assert len(cells.values) == 6
