"""Strings hashed in cohorts: decoding a table whole, step by step and by mechanism."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from deniable import Scheme
from deniable.protocol.mechanisms import Mechanism
from deniable.protocol.mechanisms.hashed import CohortLocalHashing, MemoizedLocalHashing
from deniable.protocol.mechanisms.rappor import Bloom, OneTimeRappor, Rappor
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection, SubsetSelection
from deniable_collector.tally import Tally, empty_tally
from deniable_estimator.analyses import cohorts, oracle_analysis, sample_tally
from deniable_estimator.analyses.cohorts import decoder
from deniable_estimator.analyses.cohorts.decoder import decode
from deniable_estimator.analyses.cohorts.fit import (
    joint_fit,
    singly,
)
from deniable_estimator.analyses.cohorts.table import CohortTable, Design
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.registry import answer_of
from deniable_estimator.statistics.significance import adjust_p

P01, P11 = 0.5625, 0.6875
"""The published RAPPOR setting f = .5, p = .5, q = .75."""


def expected_table(positions, columns, shares, each, p01=0.0, p11=1.0):
    """The expected counts of strings with these shares, of so many reports a cohort."""
    cohorts = positions.shape[1]
    filled = np.zeros((cohorts, columns))
    for string, share in enumerate(shares):
        for cohort in range(cohorts):
            filled[cohort, np.unique(positions[string, cohort])] += share
    counts = np.rint(each * (p01 + (p11 - p01) * filled)).astype(np.int64)
    return counts, np.full(cohorts, each, np.int64)


def density(columns, hashes):
    return 1 - (1 - 1 / columns) ** hashes


def fading(size, scale):
    shares = np.exp(-np.arange(size) / scale)
    return shares / shares.sum()


def test_counts_without_noise_give_the_shares_back():
    """Where a report is the true filter and every string is a candidate, shares are exact."""
    rng = np.random.default_rng(1)
    positions = rng.integers(0, 64, (200, 16, 2))
    shares = np.zeros(200)
    shares[[3, 50, 120, 199]] = 0.4, 0.3, 0.2, 0.1
    counts, reports = expected_table(positions, 64, shares, 10_000)
    found = decode(counts, reports, Design.of(positions, 64), 0.0, 1.0, background=density(64, 2))
    assert np.flatnonzero(found.detected).tolist() == [3, 50, 120, 199]
    np.testing.assert_allclose(found.share, shares, atol=1e-9)
    assert found.explained_share == pytest.approx(1.0, abs=1e-9)


def test_empty_cohorts_weigh_nothing():
    """A cohort without reports changes no estimate: it is as if it were not there."""
    positions = np.random.default_rng(7).integers(0, 64, (100, 24, 2))
    counts, reports = expected_table(positions, 64, fading(100, 8), 4_000, P01, P11)
    kept = np.arange(24) != 5
    reports[~kept] = counts[~kept] = 0
    with_it, without = (
        decode(
            counts[cohorts],
            reports[cohorts],
            Design.of(positions[:, cohorts], 64),
            P01,
            P11,
            background=density(64, 2),
        )
        for cohorts in (np.arange(24), kept)
    )
    selected = with_it.detected
    assert selected.any()
    np.testing.assert_array_equal(selected, without.detected)
    # The winsor limit looks at the cells of a candidate, whether or not their cohort is empty.
    np.testing.assert_allclose(with_it.share[selected], without.share[selected], atol=1e-3)


def test_candidates_that_hash_alike_share_one_estimate():
    """The estimate is the sum of their shares, and is counted once in what is explained."""
    rng = np.random.default_rng(9)
    positions = rng.integers(0, 64, (40, 16, 2))
    positions[30] = positions[0][:, ::-1]
    shares = np.zeros(40)
    shares[[0, 1, 30]] = 0.2, 0.5, 0.3
    counts, reports = expected_table(positions, 64, shares, 10_000)
    found = decode(counts, reports, Design.of(positions, 64), 0.0, 1.0, background=density(64, 2))
    assert found.same_as[30] == 0
    assert found.share[0] == found.share[30] == pytest.approx(0.5, abs=1e-9)
    assert found.detected[0]
    assert found.detected[30]
    assert found.explained_share == pytest.approx(1.0, abs=1e-9)


def test_a_share_that_the_fit_determines_is_unknown():
    """A filter that is a sum and difference of fitted ones gets no number and no precision."""
    ring = Design.of(np.array([[[0, 1]], [[1, 2]], [[2, 3]], [[3, 0]], [[4, 5]]]), 8)
    counts, reports = np.array([[4_000, 6_000, 6_000, 4_000, 0, 0, 0, 0]]), np.array([10_000])
    table = CohortTable.of(counts, reports, 0.1, 0.9, density(8, 2), 20 / math.sqrt(2))
    fit = joint_fit(table, ring, np.arange(3), np.full(8, table.background))
    share, variance = singly(table, ring, fit)
    assert np.isnan(share[:4]).all()
    assert np.isinf(variance[:4]).all()
    assert np.isfinite([share[4], variance[4]]).all()
    assert np.isinf(joint_fit(table, ring, np.arange(4), fit.expected).variance).all()


def test_shares_of_own_cells_are_weighted_means():
    """With background 0 a share is the mean of the debiased counts of its cells, weighted by
    variances at the pooled share; p-values take the variance of a share of 0, and what several
    strings explain varies less, as a device has one of them."""
    p01, p11 = 0.25, 0.85
    counts = np.array([[520, 300, 260, 251], [740, 1180, 490, 530]])
    reports = np.array([1_000, 2_000])
    columns = np.array([[0, 1], [1, 0], [2, 3], [3, 2]])
    design = Design.of(columns[:, :, None], 4)
    found = decode(counts, reports, design, p01, p11, background=0)
    shares, variances, p = [], [], []
    for cells in columns:
        y = [(counts[i, j] / reports[i] - p01) / (p11 - p01) for i, j in enumerate(cells)]
        share = 0.0
        for _ in range(2):
            rate = p01 + (p11 - p01) * min(max(share, 0.0), 1.0)
            weight = reports * (p11 - p01) ** 2 / (rate * (1 - rate))
            share = float(weight @ y / weight.sum())
        shares.append(share)
        variances.append(1 / weight.sum())
        null = p01 * (1 - p01) / (3_000 * (p11 - p01) ** 2)
        p.append(stats.norm.sf(share / math.sqrt(null)))
    np.testing.assert_allclose(found.share, shares, rtol=1e-12)
    np.testing.assert_allclose(found.std_error, np.sqrt(variances), rtol=1e-12)
    np.testing.assert_allclose(found.p_value, p, rtol=1e-9)
    assert found.detected.tolist() == (adjust_p(np.array(p), "storey") <= 0.05).tolist()
    assert found.detected.tolist() == [True, True, False, False]
    one, two = shares[:2]
    assert found.explained_share == pytest.approx(one + two)
    expected = sum(variances[:2]) - 2 * one * two / 3_000
    assert found.explained_error == pytest.approx(math.sqrt(expected))


MECHANISMS: dict[str, Mechanism[Any]] = {
    "cohort local hashing": CohortLocalHashing("city", 64, SubsetSelection.design(8, 2.0, k=1)),
    "memoized local hashing": MemoizedLocalHashing(
        "city", 64, MemoizedSubsetSelection.design(8, 2.0, 4.0, k=1)
    ),
    "RAPPOR": Rappor.design("city", 2.0, 4.0),
    "RAPPOR, two hashes": Rappor.chromium("city"),
    "one-time RAPPOR": OneTimeRappor(Bloom("city", 32, 64, 2), 1 << 51),
}
STRINGS = [f"string {number}" for number in range(100)]

every = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)


def crowd(mechanism, held, devices, rng):
    """A tally of devices with one of the first `held` strings, and the shares of all of them."""
    truth = np.zeros(len(STRINGS))
    truth[:held] = np.arange(1, held + 1) ** -1.2
    truth /= truth.sum()
    scheme = Scheme("string", mechanism, ())
    counts = rng.multinomial(devices, truth)
    return sample_tally(scheme, counts, rng, values=STRINGS), truth


@pytest.mark.parametrize("limit", ["_MOST_SELECTED", "_MOST_ENTRIES"])
def test_a_fit_holds_so_many_at_most(limit, monkeypatch):
    """The search takes the strongest up to its limit: 600, or as many as 256 MB hold."""
    assert (decoder._MOST_SELECTED, decoder._MOST_ENTRIES * 8) == (600, 256 << 20)
    mechanism = MECHANISMS["RAPPOR"]
    tally, _ = crowd(mechanism, 20, 4_000_000, np.random.default_rng(6))
    most = {"_MOST_SELECTED": 5, "_MOST_ENTRIES": 6 * sum(row.width for row in mechanism.rows) - 1}
    fitted = []

    def recorded(table, design, selected, expected):
        fitted.append(sorted(selected.tolist()))
        return joint_fit(table, design, selected, expected)

    monkeypatch.setattr(decoder, limit, most[limit])
    monkeypatch.setattr(decoder, "joint_fit", recorded)
    answer_of(tally, Scheme("string", mechanism, ()), STRINGS)
    assert max(fitted, key=len) == [0, 1, 2, 3, 4]


def test_a_closed_list_may_be_hashed():
    """The values of a closed list are decoded by their texts, all of them or some."""
    mechanism = MECHANISMS["memoized local hashing"]
    open_tally, truth = crowd(mechanism, 20, 400_000, np.random.default_rng(6))
    scheme = Scheme("category", mechanism, tuple(STRINGS))
    tally = Tally("m", scheme.fingerprint, ("2026-11-01",), open_tally.rows)
    found = answer_of(tally, scheme)
    assert found.complete
    assert found.normalized.sum() == pytest.approx(1)
    assert (np.abs(found.share - truth) < 5 * found.std_error).all()
    some = answer_of(tally, scheme, STRINGS[1::-1])
    assert some.values == ("string 1", "string 0")
    assert some.detected.all()


@every
def test_no_reports(mechanism):
    """An empty tally is an answer without numbers."""
    scheme = Scheme("string", mechanism, ())
    tally = empty_tally("m", scheme.fingerprint, (), mechanism.rows)
    found = answer_of(tally, scheme, STRINGS)
    assert found.n == 0
    assert np.isnan(found.share).all()
    assert np.isnan(found.std_error).all()
    assert not found.detected.any()
    assert found.warnings == ("no reports in these days",)
    json.dumps(found.to_dict(), allow_nan=False)


def test_too_many_candidates(monkeypatch):
    """What does not fit into memory is refused, with how many would fit."""
    monkeypatch.setattr(cohorts, "_MOST_CELLS", 6400)

    def find(mechanism, strings):
        tally = empty_tally("m", "f" * 12, (), mechanism.rows)
        oracle_analysis(mechanism).find([tally], strings, 0.95, [1.0])

    hashing = MECHANISMS["cohort local hashing"]
    find(hashing, STRINGS)
    with pytest.raises(EstimateError, match="at most 100 at a time"):
        find(hashing, [*STRINGS, "one more"])
    with pytest.raises(EstimateError, match="at most 25 at a time"):
        find(MECHANISMS["RAPPOR, two hashes"], STRINGS)
