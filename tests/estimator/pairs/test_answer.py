"""The answer of a pair: its numbers, files, words, and what several schemes say together."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from datetime import date

import numpy as np
import pytest
from tests.estimator.pairs.conftest import DAYS, DEVICES, REGISTRY, TABLE
from tests.registries import declared

from deniable import Metric, Registry
from deniable_estimator.analyses import sample_tally
from deniable_estimator.asking.comparison import compare
from deniable_estimator.asking.fetch import read, select
from deniable_estimator.asking.history import look_at_each
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.trend import trend
from deniable_estimator.kinds.base import ChangeTest
from deniable_estimator.kinds.pairs.pair import LEAST_FOR_TEST, PairAnswer
from deniable_estimator.kinds.pairs.words import (
    pair_remarks,
    verdict_words,
)
from deniable_estimator.kinds.registry import answer_of, combine
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.planning.population import zipf_shares


def _look(label, question):
    (found,) = look_at_each([label], [question])
    return found


def answered(scheme, n=50_000, table=TABLE, seed=1, day=DAYS[0]):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, table.ravel())
    found = answer_of(sample_tally(scheme, counts, rng, metric="p", window=day), scheme)
    assert isinstance(found, PairAnswer)
    return found


@pytest.fixture
def scheme(registry):
    return registry["plan_by_mode"].scheme


@pytest.mark.parametrize("n", [0, 1, LEAST_FOR_TEST - 1])
def test_few_reports(scheme, n):
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
    assert list(pair_remarks(found)) == []


def test_too_few_of_a_value(scheme):
    """A conditional whose condition is below 3 standard errors is not a number anywhere."""
    table = np.array([[0.5, 0.48], [0.01, 0.005], [0.003, 0.002]])
    found = answered(scheme, 1000, table)
    assert not found.conditionals[0].known[2, 0]
    turned = found.seen_from("dark_mode")
    assert turned.names == ("dark_mode", "plan")
    np.testing.assert_array_equal(turned.shares.share.T, found.conditionals[1].share)
    row = found.to_dict()["cells"][4]
    assert row["values"] == {"plan": "team", "dark_mode": "true"}
    assert row["given_first"] == {"share": None, "low": None, "high": None, "too_few": True}
    place = found.series.place("dark_mode=true given plan=team")
    assert place is not None
    assert np.isnan(found.series.value[place])
    assert found.lumped == ("plan=free", "plan=pro", "plan=team")


def test_several_schemes(registry, scheme):
    """Schemes with other epsilons are averaged by their reports: cells sum to 1, and margins agree
    with cells."""
    other = dataclasses.replace(registry["plan_by_mode"], epsilon=1.0).scheme
    one, two = answered(scheme), answered(other, seed=2, day=DAYS[1])
    both = combine([one, two])
    assert isinstance(both, PairAnswer)
    assert both.n == 100_000
    assert both.joint.share.sum() == pytest.approx(1)
    assert both.margins[0].share == pytest.approx(both.table.sum(axis=1))
    assert both.joint.share == pytest.approx(TABLE.ravel(), abs=0.03)
    assert both.independence is not None
    # Two windows of the same devices are no better than the devices allow.
    assert both.devices < both.n
    assert both.covariance is not None
    assert both.covariance.kept > 0


def test_other_lists_are_left_out(registry, scheme):
    """Reports about other values are not mixed in: the newest are told, and how many others."""
    text = REGISTRY.replace('"team"]', '"firm"]')
    other = Registry.parse(text)["plan_by_mode"].scheme
    both = combine([answered(scheme), answered(other, 20_000, day=DAYS[1])])
    assert both.n == 20_000
    said = "the values have changed: the newest is shown, and 50,000 reports under others"
    assert any(said in each for each in both.warnings)


FORGOTTEN = REGISTRY + 'forget = "marginals"\n'


def test_forgotten_marginals_come_from_the_pair(filled, store):
    """A metric that is not reported by itself is estimated from the pair, with wider intervals and
    a note; also by days, and for some of its values."""
    registry = Registry.parse(FORGOTTEN)
    found = read(Reader(store), registry, Query("plan"))
    assert isinstance(found, Shares)
    assert (found.metric, found.n) == ("plan", len(DAYS) * DEVICES)
    assert found.share == pytest.approx(TABLE.sum(axis=1), abs=0.02)
    assert any("plan_by_mode" in each for each in found.warnings)
    assert found.complete
    one = read(
        Reader(store), registry, Query("dark_mode", Days(date(2026, 11, 1), date(2026, 11, 1)))
    )
    assert one.n == DEVICES
    some = read(Reader(store), registry, Query("plan", candidates=["team", "free"]))
    assert isinstance(some, Shares)
    assert some.values == ("team", "free")
    assert some.share == pytest.approx(found.share[[2, 0]])
    assert len(trend(Reader(store), registry, Query("plan")).reported) == len(DAYS)
    assert read(Reader(store), filled, Query("plan")).n == 0


def test_own_reports_are_not_counted_twice(filled, store, fill, registry):
    """In a window with reports of the metric itself, those of the pair are left out, as the same
    devices may have sent both."""
    own: Metric = registry["plan"]
    rng = np.random.default_rng(3)
    counts = rng.multinomial(5000, TABLE.sum(axis=1))
    fill(sample_tally(own.scheme, counts, rng, metric="plan", window=DAYS[0]), own.scheme)
    found = read(Reader(store), Registry.parse(FORGOTTEN), Query("plan"))
    assert found.n == 5000 + (len(DAYS) - 1) * DEVICES


def test_windows_of_a_margin_are_looked_at(filled, store):
    """Anomalies of a pair look at its cells, and those of a margin at the margin."""
    selection = select(Reader(store), Registry.parse(FORGOTTEN), Query("plan"))
    found = _look(DAYS[0], selection.within({DAYS[0]}).read())
    assert found.values == ("free", "pro", "team")
    assert _look("2026-12-01", selection.within({"2026-12-01"}).read()).n == 0
    cells = _look(
        DAYS[0], select(Reader(store), filled, Query("plan_by_mode")).within({DAYS[0]}).read()
    )
    assert len(cells.values) == 6


def _false_cells(rows, columns, epsilon, n, runs):
    """The part of the cells that are said to carry the dependence and do not, in each of so many
    tables of which the first two rows and columns alone depend on each other; and how many of
    their four cells are found on average."""
    text = declared(
        first={"type": "category", "values": [f"a{row}" for row in range(rows)]},
        second={"type": "category", "values": [f"b{column}" for column in range(columns)]},
        both={"type": "pair", "of": ["first", "second"], "epsilon": epsilon},
    )
    kind = Registry.parse(text)["both"]
    table = np.outer(zipf_shares(rows, 1.0), zipf_shares(columns, 1.0))
    moved = 0.9 * min(table[0, 1], table[1, 0])
    table[:2, :2] += moved * np.array([[1, -1], [-1, 1]])
    truly = np.zeros(table.shape, np.bool_)
    truly[:2, :2] = True
    rng, false, found = np.random.default_rng(1), [], 0
    for _ in range(runs):
        tally = sample_tally(kind.scheme, rng.multinomial(n, table.ravel()), rng)
        carries = answer_of(tally, kind.scheme).carries
        false.append((carries & ~truly).sum() / max(1, carries.sum()))
        found += int((carries & truly).sum())
    return np.array(false), found / runs


@pytest.mark.parametrize(("rows", "columns", "n"), [(7, 5, 300), (15, 15, 1_000)])
def test_cells_that_carry_a_dependence_are_rarely_false(rows, columns, n):
    """At epsilon 6 at most 6% of them are false on average, within 4 standard errors of 40 tables,
    seed 1. As normal numbers, 20% and 79% were."""
    false, found = _false_cells(rows, columns, 6.0, n, 40)
    assert false.mean() <= 0.06 + 4 * false.std() / 40**0.5
    assert false.mean() <= 0.12
    assert found > 3


@pytest.mark.campaign
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 6.0, 8.0])
def test_cells_are_rarely_false_in_any_table(epsilon):
    """At most 6%, within 3 standard errors of 150 tables, from 300 to a million reports."""
    for rows, columns in ((7, 5), (15, 15)):
        for n in (300, 1_000, 10_000, 1_000_000):
            false, _ = _false_cells(rows, columns, epsilon, n, 150)
            least = 3 * false.std() / 150**0.5
            assert false.mean() <= 0.06 + least, (rows, columns, n, false.mean())


@pytest.mark.campaign
def test_false_changes_are_as_rare_as_asked(scheme):
    """Of crowds with the same joint table, of which few are in the last row, at most .05 and .001
    are said to have changed where that is asked: 1,500 pairs of crowds, three standard errors."""
    table, runs = np.array([[0.6, 0.3], [0.05, 0.02], [0.02, 0.01]]), 1500
    false = dict.fromkeys((0.05, 0.001), 0)
    for seed in range(runs):
        before = answered(scheme, 14_000, table, 2 * seed)
        after = answered(scheme, 3_500, table, 2 * seed + 1, DAYS[1])
        for alpha in false:
            found = compare(before, after, ChangeTest(adjust="bonferroni", alpha=alpha))
            false[alpha] += bool(found.changed.any())
    for alpha, count in false.items():
        assert count / runs <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / runs), false
