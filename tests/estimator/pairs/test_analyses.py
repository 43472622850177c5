"""A pair's covariances, conditionals, test of independence, effect size and shrunken table."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from tests.estimator.schemes import every_report

from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.pairs import Covariance, conditionals
from deniable_estimator.analyses.pairs.dependence import (
    _CUTS,
    _risk,
    effect,
    independence,
    residuals,
    shrunken,
)
from deniable_estimator.planning.population import pair_shares, zipf_shares

TABLE = np.outer([0.5, 0.3, 0.2], [0.4, 0.3, 0.2, 0.1]) + 0.05 * np.array(
    [[1, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 0, 0]]
)
"""The table of the published values."""

COVARIANCE = Covariance.of(SubsetSelection.design(12, 1.0), 100_000)


def test_the_published_values():
    """Of a 3 x 4 table at epsilon 1 and 100,000 reports: margins, a cell, a conditional, the test,
    a residual and the effect size."""
    errors = np.sqrt(COVARIANCE.noise(4, 3).at(TABLE.sum(axis=1)))
    assert errors == pytest.approx([0.009556, 0.009485, 0.009433], abs=5e-7)
    cell = COVARIANCE.noise(1, 1).at(TABLE[:1, 0])[0]
    assert math.sqrt(cell) == pytest.approx(0.0058423, abs=5e-8)
    given_row = conditionals(TABLE, COVARIANCE, 0.95)
    assert given_row.share[2, 3] == pytest.approx(0.1)
    ends = given_row.low[2, 3], given_row.high[2, 3]
    assert ends == pytest.approx((0.048527, 0.149341), abs=5e-7)
    assert 1.959964 * given_row.std_error[2, 3] == pytest.approx(0.0502, abs=5e-5)
    test = independence(TABLE, COVARIANCE)
    assert (test.statistic, test.freedom) == (pytest.approx(268.26695, abs=5e-6), 6)
    found = residuals(TABLE, COVARIANCE)
    assert found.value[0, 0] == pytest.approx(0.05)
    assert found.std_error[0, 0] == pytest.approx(0.0046056, abs=5e-8)
    size = effect(TABLE, COVARIANCE, 0.95)
    assert size.v == pytest.approx(0.19199, abs=5e-6)
    # Close to the ends of a normal interval, .16713 and .21398, which covers too seldom.
    assert (size.low, size.high) == pytest.approx((0.168785, 0.217843), abs=5e-6)


@given(st.integers(0, 2**32), st.integers(50, 10**6), st.sampled_from([0.5, 0.95, 0.999]))
def test_an_interval_holds_its_share(seed, n, level):
    """Whatever the estimated cells are, an interval that is shown holds its estimate, and leaves
    the shares that there can be only for an estimate that does; it solves Fieller's inequality,
    with the variance under t."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(6)).reshape(2, 3) + rng.normal(0, 0.1, (2, 3))
    covariance = Covariance.of(SubsetSelection.design(6, 1.0), n)
    found = conditionals(table, covariance, level)
    assert (found.low <= found.high).all()
    shown = found.known
    assert ((found.low <= found.share) & (found.share <= found.high))[shown].all()
    assert ((found.low >= 0) | (shown & (found.low == found.share))).all()
    assert ((found.high <= 1) | (shown & (found.high == found.share))).all()
    z = stats.norm.ppf((1 + level) / 2)
    for i, j in ((0, 0), (1, 2)):
        cell, row = np.zeros((2, 3)), np.zeros((2, 3))
        cell[i, j] = row[i] = 1
        f = table.ravel()
        for t in np.linspace(0, 1, 21):
            w = (cell - t * row).ravel()
            null = np.zeros((2, 3))  # the cells if the conditional is t
            null[i] = (1 - t) / 2
            null[i, j] = t
            null *= np.clip(table[i].sum(), 0.0, 1.0)
            spread = covariance.matrix(null.ravel(), np.ones(6))
            allowed = max(float(w @ spread @ w), 0.0) * z**2
            if (w @ f) ** 2 <= allowed * (1 - 1e-9) - 1e-15:
                assert found.low[i, j] - 1e-9 <= t <= found.high[i, j] + 1e-9


@pytest.mark.parametrize("repeats", [1.0, 3.0])
def test_standard_errors_of_conditionals_are_the_delta_methods(repeats):
    """From the whole covariance, also where noise brings a row above 1 or below 0."""
    table = np.array([[0.7, 0.3, 0.1], [0.05, -0.1, -0.05]])
    covariance = Covariance.of(SubsetSelection.design(6, 1.0), 2000, repeats)
    whole = covariance.matrix(table.ravel(), np.ones(6))
    found = conditionals(table, covariance, 0.95)
    for i, j in np.ndindex(2, 3):
        slope = np.zeros((2, 3))
        slope[i] = -found.share[i, j]
        slope[i, j] += 1
        slope = slope.ravel() / table[i].sum()
        expected = max(0.0, float(slope @ whole @ slope)) ** 0.5
        assert found.std_error[i, j] == pytest.approx(expected)


def test_too_few_devices_give_no_conditional():
    """A condition below 3 standard errors is not known; its interval may be all of [0, 1]."""
    covariance = Covariance.of(SubsetSelection.design(6, 1.0), 200)
    table = np.array([[0.4, 0.3, 0.25], [0.02, 0.02, 0.01]])
    found = conditionals(table, covariance, 0.95)
    assert found.known[0].all()
    assert not found.known[1].any()
    assert (found.low[1, 0], found.high[1, 0]) == (0, 1)


def test_the_statistic_is_the_dense_one():
    """The closed form is the quadratic form of the contrasts with their full covariance under
    independence."""
    rng = np.random.default_rng(5)
    rows, columns = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(3))
    covariance = Covariance.of(SubsetSelection.design(12, 1.5), 20_000, 2.0)
    table = np.outer(rows, columns)
    shift = rng.normal(0, 0.01, (4, 3))
    shift -= shift.mean(axis=0) + shift.mean(axis=1, keepdims=True) - shift.mean()
    table = table + shift  # the margins stay
    basis = np.kron(*(np.linalg.svd(each[None, :])[2][1:] for each in (rows, columns)))
    cells = covariance.matrix(np.outer(rows, columns).ravel(), np.ones(12))
    y = basis @ table.ravel()
    expected = y @ np.linalg.solve(basis @ cells @ basis.T, y)
    assert independence(table, covariance).statistic == pytest.approx(expected)


def test_residuals_have_the_dense_errors():
    """Each standard error is that of the weighted sum of all cells that the residual is."""
    rows, columns = TABLE.sum(axis=1), TABLE.sum(axis=0)
    first = np.eye(3) - np.outer(rows, np.ones(3))
    second = np.eye(4) - np.outer(columns, np.ones(4))
    weights = np.kron(first, second)
    cells = COVARIANCE.matrix(TABLE.ravel(), np.ones(12))
    errors = np.sqrt(np.diag(weights @ cells @ weights.T)).reshape(3, 4)
    assert residuals(TABLE, COVARIANCE).std_error == pytest.approx(errors)


def test_values_that_hardly_occur_are_lumped():
    """Values below 5 standard errors become one for the effect size, which names them, with the
    least of the others if they hardly occur together; where fewer than two stand out, there is
    none."""
    covariance = Covariance.of(SubsetSelection.design(12, 1.0), 20_000)
    table = np.outer([0.6, 0.38, 0.02], [0.5, 0.46, 0.02, 0.02])
    found = effect(table, covariance, 0.95)
    assert found.lumped == ((1, 2), (1, 2, 3))
    assert found.low == 0
    few = Covariance.of(SubsetSelection.design(12, 1.0), 300)
    nothing = effect(table, few, 0.95)
    assert math.isnan(nothing.v)
    assert (nothing.low, nothing.high) == (0.0, 1.0)


def test_a_value_that_no_device_has_leaves_the_effect():
    """A row without devices is lumped with the least of the others: V is that of the table without
    it, and not of its noise."""
    mechanism = SubsetSelection.design(9, 4.0)
    covariance = Covariance.of(mechanism, 100_000)
    table = np.array([[40, 20, 10], [10, 20, 40.1], [0, 0, 0]]) / 140.1
    noise = np.random.default_rng(0).multivariate_normal(
        np.zeros(9), covariance.matrix(table.ravel(), np.ones(9)), method="svd"
    )
    found = effect(table + noise.reshape(3, 3), covariance, 0.95)
    assert found.lumped == ((0, 2), ())
    assert found.low < math.sqrt(36 / 140) < found.high < found.low + 0.1


@pytest.mark.parametrize(("errors", "lumped"), [(4.95, (2, 3)), (5.05, ())])
def test_a_value_stands_out_by_five_standard_errors(errors, lumped):
    """Two rows a little below five standard errors are lumped, a little above they are not."""
    share = 0.0
    for _ in range(50):
        share = errors * math.sqrt(COVARIANCE.noise(3, 4).at(np.array([share]))[0])
    table = np.outer([0.6, 0.4 - 2 * share, share, share], [0.5, 0.3, 0.2])
    assert effect(table, COVARIANCE, 0.95).lumped == (lumped, ())


@given(
    st.integers(0, 2**32),
    st.integers(50, 10**6),
    st.sampled_from([0.5, 0.68, 0.95, 0.999]),
    st.sampled_from([(2, 2), (3, 4)]),
)
def test_the_interval_of_the_effect_holds_it(seed, n, level, shape):
    """Whatever the estimated cells are, and however nearly independent, Cramer's V lies in its
    interval."""
    rng = np.random.default_rng(seed)
    size = shape[0] * shape[1]
    table = np.outer(rng.dirichlet(np.full(shape[0], 9)), rng.dirichlet(np.full(shape[1], 9)))
    table = table + rng.normal(0, rng.choice([0.001, 0.01, 0.05]), shape)
    found = effect(table, Covariance.of(SubsetSelection.design(size, 1.0), n), level)
    if math.isfinite(found.v):
        assert 0 <= found.low <= found.v <= found.high <= 1


CASES = [(4, 1, 0.5), (4, 2, 1.0), (6, 2, 1.0), (6, 3, 4.0), (9, 2, 2.0)]


def enumerated(mechanism, f):
    """The covariance of the estimates of one report, from the probability of every set."""
    d, p, q = mechanism.size, mechanism.p, mechanism.q
    both = [[Fraction(0)] * d for _ in range(d)]
    for report, chosen in every_report(mechanism):
        chance = sum(share * mechanism.likelihood(report, item) for item, share in enumerate(f))
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
def test_the_covariance_is_that_of_every_report(size, k, epsilon):
    """The five numbers give the covariance that the enumeration of all k-sets gives, for a crowd
    that is spread unevenly, to 13 digits."""
    mechanism = SubsetSelection.design(size, epsilon, k)
    total = size * (size + 1) // 2
    f = [Fraction(each + 1, total) for each in range(size)]
    found = Covariance.of(mechanism, 1).matrix(np.array([float(x) for x in f]), np.ones(size))
    assert np.allclose(found, enumerated(mechanism, f), rtol=1e-13, atol=1e-13)


@given(st.integers(0, 2**32), st.floats(1, 5))
def test_sums_of_cells_agree_with_the_matrix(seed, repeats):
    """Groups of cells and their noise have the covariance that the whole matrix gives, also where
    the same devices report again."""
    rng = np.random.default_rng(seed)
    found = Covariance.of(SubsetSelection.design(12, 1.0), 5000, repeats)
    f = rng.dirichlet(np.ones(12))
    whole = found.matrix(f, np.ones(12))
    row = np.zeros(12)
    row[4:8] = 1
    assert found.noise(4, 1).at(np.array([row @ f]))[0] == pytest.approx(row @ whole @ row)
    groups = np.kron(np.eye(3), np.ones(4))
    merged = found.matrix(groups @ f, groups.sum(axis=1))
    assert np.allclose(merged, groups @ whole @ groups.T, rtol=1e-9, atol=1e-14)


def test_independent_schemes_add_up():
    """A weighted sum of two estimates has the sum of their covariances."""
    one, two = (Covariance.of(SubsetSelection.design(6, each), 1000) for each in (1.0, 2.0))
    f, ones = np.full(6, 1 / 6), np.ones(6)
    found = (one.weighted(0.25) + two.weighted(0.75)).matrix(f, ones)
    assert np.allclose(found, one.matrix(f, ones) / 16 + two.matrix(f, ones) * 9 / 16)


def drawn(f, epsilon, n, rng):
    mechanism = SubsetSelection.design(f.size, epsilon)
    counts = rng.multinomial(n, f.ravel())
    (row,) = analysis_of(mechanism).sample_rows(range(f.size), counts, rng)
    p, q = float(mechanism.p), float(mechanism.q)
    return ((row.cells / n - q) / (p - q)).reshape(f.shape)


def zipf(size, dependence):
    shares = zipf_shares(size, 1.0)
    return pair_shares(shares, shares, dependence).reshape(size, size)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32), st.integers(300, 10**6))
def test_it_is_a_distribution(rows, columns, seed, n):
    """No share is negative, they sum to 1, and turning the table turns the result."""
    rng = np.random.default_rng(seed)
    f = rng.dirichlet(np.full(rows * columns, 0.5)).reshape(rows, columns)
    model = Covariance.of(SubsetSelection.design(f.size, 1.0), n)
    table = drawn(f, 1.0, n, rng)
    found = shrunken(table, residuals(table, model))
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1)
    assert np.allclose(shrunken(table.T, residuals(table.T, model)), found.T)


def test_without_noise_nothing_is_shrunken():
    """With a thousand billion reports a table stays as it is; with hardly any, and nothing beyond
    chance, it is the product of its margins."""
    mechanism, f = SubsetSelection.design(12, 2.0), zipf(4, 0.5)[:3] / zipf(4, 0.5)[:3].sum()
    assert np.allclose(shrunken(f, residuals(f, Covariance.of(mechanism, 10**12))), f, atol=1e-6)
    product = np.outer(f.sum(axis=1), f.sum(axis=0))
    f = 0.98 * product + 0.02 * f
    assert np.allclose(shrunken(f, residuals(f, Covariance.of(mechanism, 300))), product)


@pytest.mark.parametrize("cut", _CUTS)
@pytest.mark.parametrize("mean", [0.0, 1.0, 3.0])
def test_the_estimate_of_the_error_is_unbiased(cut, mean):
    """Integrated over normal residuals, the estimated squared error is the true one."""

    def average(what):
        ends = [-(cut**0.5), cut**0.5] if math.isfinite(cut) else None
        law = stats.norm(mean).pdf
        return float(integrate.quad(lambda z: what(z) * law(z), -9, 12, points=ends, limit=200)[0])

    def error(z):
        kept = max(1 - cut / max(z**2, 1e-99), 0.0) if math.isfinite(cut) else 0.0
        return (z * kept - mean) ** 2

    told = average(lambda z: float(_risk(cut, np.array([max(z * z, 1e-99)]), np.ones(1))))
    assert told == pytest.approx(average(error), rel=1e-6)


def test_two_by_two():
    """Of two lists of two values the effect size is phi: (ad - bc) over the root of the product of
    all four margins, whatever the margins, and its interval holds it."""
    table = np.array([[0.55, 0.15], [0.1, 0.2]])
    phi = (0.55 * 0.2 - 0.15 * 0.1) / math.sqrt(0.7 * 0.3 * 0.65 * 0.35)
    found = effect(table, Covariance.of(SubsetSelection.design(4, 4.0), 10**7), 0.95)
    assert found.v == pytest.approx(phi, abs=1e-3)
    assert found.low < phi < found.high < found.low + 0.01
    assert found.lumped == ((), ())
