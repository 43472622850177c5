"""The shrunken table: what it is by its definition, and that it is nearer to the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.mechanisms import SubsetSelection
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.analyses.pairs.shrinkage import _CUTS, _risk, shrunken
from deniable_estimator.planning.population import pair_shares, zipf_shares
from deniable_estimator.statistics.intervals import FloatArray


def drawn(f: FloatArray, epsilon: float, n: int, rng: np.random.Generator) -> FloatArray:
    mechanism = SubsetSelection.design(f.size, epsilon)
    counts = rng.multinomial(n, f.ravel())
    (row,) = analysis_of(mechanism).sample_rows(range(f.size), counts, rng)
    p, q = float(mechanism.p), float(mechanism.q)
    found: FloatArray = ((row.cells / n - q) / (p - q)).reshape(f.shape)
    return found


def zipf(size: int, dependence: float) -> FloatArray:
    shares = zipf_shares(size, 1.0)
    return pair_shares(shares, shares, dependence).reshape(size, size)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32), st.integers(300, 10**6))
def test_it_is_a_distribution(rows: int, columns: int, seed: int, n: int) -> None:
    """No share is negative, they sum to 1, and turning the table turns the result."""
    rng = np.random.default_rng(seed)
    f = rng.dirichlet(np.full(rows * columns, 0.5)).reshape(rows, columns)
    model = Covariance.of(SubsetSelection.design(f.size, 1.0), n)
    table = drawn(f, 1.0, n, rng)
    found = shrunken(table, model)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1)
    assert np.allclose(shrunken(table.T, model), found.T)


def test_without_noise_nothing_is_shrunken() -> None:
    """With a thousand billion reports a table stays as it is; with hardly any, and nothing beyond
    chance, it is the product of its margins."""
    mechanism, f = SubsetSelection.design(12, 2.0), zipf(4, 0.5)[:3] / zipf(4, 0.5)[:3].sum()
    assert np.allclose(shrunken(f, Covariance.of(mechanism, 10**12)), f, atol=1e-6)
    product = np.outer(f.sum(axis=1), f.sum(axis=0))
    f = 0.98 * product + 0.02 * f
    assert np.allclose(shrunken(f, Covariance.of(mechanism, 300)), product)


@pytest.mark.parametrize("cut", _CUTS)
@pytest.mark.parametrize("mean", [0.0, 1.0, 3.0])
def test_the_estimate_of_the_error_is_unbiased(cut: float, mean: float) -> None:
    """Of a million normal residuals the estimated squared error is the true one on average: within
    5 standard errors, alpha 2e-5 for all 30 comparisons; seed 2."""
    z = np.random.default_rng(2).normal(mean, 1.0, 1_000_000)
    kept = np.maximum(1 - cut / z**2, 0.0) if math.isfinite(cut) else np.zeros_like(z)
    error = (z * kept - mean) ** 2
    # Each estimate by itself, to know how they vary.
    added = cut**2 + 2 * cut if math.isfinite(cut) else 0.0
    each = np.where(z**2 > cut, 1 + added / z**2, z**2 - 1) if cut else np.ones_like(z)
    assert _risk(cut, z**2, np.ones_like(z)) == pytest.approx(each.sum())
    apart = each - error
    assert abs(apart.mean()) < 5 * apart.std() / math.sqrt(len(z)) + 1e-12
