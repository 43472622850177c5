"""Decoding cohort tables: exactness, bias, coverage, false discoveries and odd tables."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable_estimator.analyses.cohorts.decoder import decode
from deniable_estimator.analyses.cohorts.design import Design
from deniable_estimator.analyses.cohorts.fit import joint_fit, singly
from deniable_estimator.analyses.cohorts.table import CohortTable, Winsor

P01, P11 = 0.5625, 0.6875
"""The published RAPPOR setting f = .5, p = .5, q = .75."""


def expected_table(
    positions: NDArray[np.int64],
    columns: int,
    shares: NDArray[np.float64],
    each: int,
    p01: float = 0.0,
    p11: float = 1.0,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The expected counts of strings with these shares, of so many reports a cohort."""
    cohorts = positions.shape[1]
    filled = np.zeros((cohorts, columns))
    for string, share in enumerate(shares):
        for cohort in range(cohorts):
            filled[cohort, np.unique(positions[string, cohort])] += share
    counts = np.rint(each * (p01 + (p11 - p01) * filled)).astype(np.int64)
    return counts, np.full(cohorts, each, np.int64)


def density(columns: int, hashes: int) -> float:
    return 1 - (1 - 1 / columns) ** hashes


def fading(size: int, scale: float) -> NDArray[np.float64]:
    shares = np.exp(-np.arange(size) / scale)
    return shares / shares.sum()


def test_counts_without_noise_give_the_shares_back() -> None:
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


def test_no_signal_is_an_answer() -> None:
    """Counts that are exactly what noise gives detect nothing and explain nothing."""
    reports = np.full(16, 1_600)
    filled = round(1_600 * (P01 + (P11 - P01) * density(32, 2)))
    counts = np.full((16, 32), filled)
    positions = np.random.default_rng(6).integers(0, 32, (50, 16, 2))
    found = decode(counts, reports, Design.of(positions, 32), P01, P11, background=density(32, 2))
    assert not found.detected.any()
    assert found.explained_share == 0
    assert found.unexplained == (1.0, 1.0, 1.0)
    assert np.isfinite(found.share).all()


def test_empty_cohorts_weigh_nothing() -> None:
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


def test_candidates_that_hash_alike_share_one_estimate() -> None:
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


def test_a_share_that_the_fit_determines_is_unknown() -> None:
    """A filter that is a sum and difference of fitted ones gets no number and no precision."""
    ring = Design.of(np.array([[[0, 1]], [[1, 2]], [[2, 3]], [[3, 0]], [[4, 5]]]), 8)
    counts, reports = np.array([[4_000, 6_000, 6_000, 4_000, 0, 0, 0, 0]]), np.array([10_000])
    table = CohortTable.of(counts, reports, 0.1, 0.9, density(8, 2), Winsor.for_cells(2))
    fit = joint_fit(table, ring, np.arange(3), np.full(8, table.background))
    share, variance = singly(table, ring, fit)
    assert np.isnan(share[:4]).all()
    assert np.isinf(variance[:4]).all()
    assert np.isfinite([share[4], variance[4]]).all()
    assert np.isinf(joint_fit(table, ring, np.arange(4), fit.expected).variance).all()
