"""Drawn tallies have the expectation of real ones, and decoders sum what the definition says."""

import numpy as np
import pytest
from tests.estimator.schemes import every_report
from tests.supports import support

from deniable import Scheme
from deniable.protocol.mechanisms.hashed import Hashed
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.analyses import (
    ANALYSES,
    oracle_analysis,
    own_columns,
    sample_tally,
)
from deniable_estimator.analyses.base import OracleAnalysis
from deniable_estimator.analyses.hashed import HashedAnalysis
from deniable_estimator.errors import EstimateError

from .test_outsider_enumeration import CASES

ORACLES = {
    name: (mechanism, items)
    for name, (mechanism, items, _) in CASES.items()
    if issubclass(ANALYSES[mechanism.name], OracleAnalysis)
}
"""All mechanisms that count values, with a few strings for those without a list."""

cases = pytest.mark.parametrize(("mechanism", "items"), ORACLES.values(), ids=ORACLES)


def asked(mechanism, items):
    """The scheme, its values, and how they are named where there is no list."""
    if mechanism.size is None:
        return Scheme("string", mechanism, ()), items, items
    every = list(range(mechanism.size))
    return Scheme("category", mechanism, tuple(map(str, every))), every, None


@cases
@pytest.mark.parametrize("times", [30, 10_000])
def test_cells_come_as_often_as_the_likelihoods_say(mechanism, items, times):
    """Each cell of one large tally is within six standard errors of its expectation: seed 9, some
    200 cells and two sizes, alpha below 1e-5 in all."""
    scheme, every, values = asked(mechanism, items)
    devices = (1 + np.arange(len(every)) % 3) * times
    tally = sample_tally(scheme, devices, np.random.default_rng(9), values=values)
    assert tally.reports == devices.sum()
    chances = [np.zeros((len(every), row.width)) for row in mechanism.rows]
    for report, columns in every_report(mechanism):
        likely = [float(mechanism.likelihood(report, item)) for item in every]
        for column in columns:
            chances[report.row][:, column] += likely
    for row, chance in zip(tally.rows, chances, strict=True):
        mean, variance = devices @ chance, devices @ (chance * (1 - chance))
        assert (np.abs(row.cells - mean) <= 6 * np.sqrt(variance) + 1e-9).all()


@cases
def test_decoders_agree_with_the_definition(mechanism, items):
    """The fast decoder sums exactly the cells that support each value, for all and for some.

    Of hashed mechanisms the plain decoder, which leaves no collisions out.
    """
    scheme, every, values = asked(mechanism, items)
    counts = (1 + np.arange(len(every)) % 3) * 1000
    tally = sample_tally(scheme, counts, np.random.default_rng(6), values=values)
    for some in (every, every[::-1], every[1:]):
        texts = [str(each) for each in some]
        if isinstance(mechanism, Hashed):
            found = HashedAnalysis.support(oracle_analysis(mechanism), tally, texts)
        else:
            found = oracle_analysis(mechanism).support(tally, np.array(some))
        expected = [
            sum(int(tally.rows[row].cells[column]) for row, column in support(mechanism, item))
            for item in some
        ]
        assert found.counts.tolist() == expected
        assert found.reports == tally.reports == counts.sum()


@pytest.mark.parametrize(("size", "epsilon"), [(2, 1.0), (100, 4.0), (100, 1.0)])
def test_billions_of_devices(size, epsilon, make_scheme):
    """5,000,000,000 devices are one draw, with every report in it and within 6 errors of truth."""
    scheme = make_scheme(size, epsilon)
    counts = np.full(size, 5 * 10**9 // size)
    row = sample_tally(scheme, counts, np.random.default_rng(1)).rows[0]
    assert row.reports == counts.sum()
    assert row.cells.sum() == row.reports * scheme.mechanism.k
    rate = float(scheme.mechanism.q + (scheme.mechanism.p - scheme.mechanism.q) / size)
    error = np.sqrt(row.reports * rate * (1 - rate))
    assert (np.abs(row.cells - row.reports * rate) < 6 * error).all()


def test_crowds_beyond_one_draw_are_split(make_scheme, monkeypatch):
    """A crowd that numpy cannot draw at once is drawn in parts that lose no device."""
    monkeypatch.setattr(own_columns, "_CROWD", 100)
    scheme = make_scheme(20, 1.0)
    row = sample_tally(scheme, np.full(20, 77), np.random.default_rng(1)).rows[0]
    assert row.reports == 20 * 77
    assert row.cells.sum() == row.reports * scheme.mechanism.k


def test_wrong_questions(make_scheme, monkeypatch):
    """Counts that do not fit, an open domain without values, and no sampler are each refused."""
    scheme, rng = make_scheme(3, 1.0), np.random.default_rng(1)
    with pytest.raises(EstimateError, match="2 counts for 3 values"):
        sample_tally(scheme, np.ones(2, int), rng)
    with pytest.raises(EstimateError, match="open"):
        sample_tally(Scheme("string", scheme.mechanism, ()), np.ones(3, int), rng)
    monkeypatch.delitem(ANALYSES, SubsetSelection.name)
    with pytest.raises(EstimateError, match="cannot be simulated"):
        sample_tally(scheme, np.ones(3, int), rng)
