"""The covariance of all cells: exact, against an enumeration of every report."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.mechanisms import SubsetSelection
from deniable.mechanisms.base import Report
from deniable_estimator.analyses.pairs.covariance import Covariance

CASES = [(4, 1, 0.5), (4, 2, 1.0), (6, 2, 1.0), (6, 3, 4.0), (9, 2, 2.0)]


def enumerated(mechanism: SubsetSelection, f: list[Fraction]) -> np.ndarray:
    """The covariance of the estimates of one report, from the probability of every set."""
    d, k, p, q = mechanism.size, mechanism.k, mechanism.p, mechanism.q
    both = [[Fraction(0)] * d for _ in range(d)]
    for chosen in combinations(range(d), k):
        columns = chosen[0] if k == 1 else sum(1 << each for each in chosen)
        chance = sum(
            share * mechanism.likelihood(Report(0, columns), item) for item, share in enumerate(f)
        )
        for one in chosen:
            for two in chosen:
                both[one][two] += chance
    scale = (p - q) ** 2
    return np.array(
        [
            [float((both[y][z] - both[y][y] * both[z][z]) / scale) for z in range(d)]
            for y in range(d)
        ]
    )


@pytest.mark.parametrize(("size", "k", "epsilon"), CASES)
def test_the_covariance_is_that_of_every_report(size: int, k: int, epsilon: float) -> None:
    """The five numbers give the covariance that the enumeration of all k-sets gives, for a crowd
    that is spread unevenly, to 13 digits."""
    mechanism = SubsetSelection.design(size, epsilon, k)
    total = size * (size + 1) // 2
    f = [Fraction(each + 1, total) for each in range(size)]
    found = Covariance.of(mechanism, 1).matrix(np.array([float(x) for x in f]), np.ones(size))
    assert np.allclose(found, enumerated(mechanism, f), rtol=1e-13, atol=1e-13)


def test_the_published_parameters() -> None:
    """Over 36 cells at epsilon 1, each report has 10 of them, and the numbers are those of the
    derivation."""
    mechanism = SubsetSelection.design(36, 1.0)
    found = Covariance.of(mechanism, 1)
    rise = float(mechanism.p - mechanism.q)
    assert mechanism.k == 10
    assert found.own * rise**2 == pytest.approx(0.2032118278, abs=1e-10)
    assert found.own_share * rise**2 == pytest.approx(0.1129456265, abs=1e-10)
    assert found.all * rise**2 == pytest.approx(-0.005602, abs=1e-6)


@given(st.integers(0, 2**32), st.floats(1, 5))
def test_sums_of_cells_agree_with_the_matrix(seed: int, repeats: float) -> None:
    """Weighted sums, groups of cells and their noise have the covariance that the whole matrix
    gives, also where the same devices report again."""
    rng = np.random.default_rng(seed)
    found = Covariance.of(SubsetSelection.design(12, 1.0), 5000, repeats)
    f = rng.dirichlet(np.ones(12))
    whole = found.matrix(f, np.ones(12))
    w, v = rng.normal(size=(2, 12))
    assert found.between(f, w, v) == pytest.approx(w @ whole @ v, rel=1e-9, abs=1e-14)
    row = np.zeros(12)
    row[4:8] = 1
    assert found.noise(4, 1).at(np.array([row @ f]))[0] == pytest.approx(row @ whole @ row)
    groups = np.kron(np.eye(3), np.ones(4))
    merged = found.matrix(groups @ f, groups.sum(axis=1))
    assert np.allclose(merged, groups @ whole @ groups.T, rtol=1e-9, atol=1e-14)


def test_independent_schemes_add_up() -> None:
    """A weighted sum of two estimates has the sum of their covariances."""
    one, two = (Covariance.of(SubsetSelection.design(6, each), 1000) for each in (1.0, 2.0))
    f, ones = np.full(6, 1 / 6), np.ones(6)
    found = (one.weighted(0.25) + two.weighted(0.75)).matrix(f, ones)
    assert np.allclose(found, one.matrix(f, ones) / 16 + two.matrix(f, ones) * 9 / 16)
