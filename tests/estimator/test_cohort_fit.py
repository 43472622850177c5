"""Tables, designs and fits of cohorts beside the same sums written out cell by cell."""

from dataclasses import replace

import numpy as np
import pytest

from deniable_estimator.analyses.cohorts import fit as fit_module
from deniable_estimator.analyses.cohorts.fit import (
    covariance,
    joint_fit,
    scores,
    singly,
)
from deniable_estimator.analyses.cohorts.table import CohortTable, Design

COHORTS, COLUMNS, HASHES = 6, 10, 2
P01, P11 = 0.2, 0.7
BACKGROUND = 1 - (1 - 1 / COLUMNS) ** HASHES


@pytest.fixture
def design():
    """Twelve candidates, some of whose hashes collide."""
    positions = np.random.default_rng(1).integers(0, COLUMNS, (12, COHORTS, HASHES))
    return Design.of(positions, COLUMNS)


def dense(design):
    """Which cells each candidate sets, shape (cells, M), entry by entry."""
    found = np.zeros((design.size, len(design)))
    for candidate, cells in enumerate(design.cells):
        for cell in cells:
            if cell < design.size:
                found[cell, candidate] = 1
    return found


def drawn(design, *, exclusive=False, limit=2.5, reports=300):
    """A noisy table in which three candidates and a stranger's cells have shares; the last cohort
    is empty."""
    rng = np.random.default_rng(2)
    filled = dense(design)[:, :3] @ np.array([0.3, 0.2, 0.1])
    filled[[3, 17, 44]] += 0.4
    rate = (P01 + (P11 - P01) * filled).clip(0, 0.99).reshape(COHORTS, COLUMNS)
    each = rng.integers(reports // 2, reports, COHORTS)
    each[-1] = 0
    if exclusive:
        rate = rate / rate.sum(axis=1, keepdims=True)
    counts = rng.binomial(each[:, None], rate)
    return CohortTable.of(counts, each, P01, P11, BACKGROUND, limit, exclusive=exclusive)


def about_means(filters, weights):
    """Each column less its weighted mean, which is what a constant fitted alone would take off."""
    found = np.empty(filters.shape)
    for at, column in enumerate(filters.T):
        found[:, at] = column - np.average(column, weights=weights)
    return found


# --- designs ---


def test_shapes_of_a_design():
    """There may be no candidates, and each is counted once, whatever it sets."""
    empty = Design.of(np.zeros((0, 2, 1), np.int64), 4)
    assert (len(empty), empty.sums(np.ones(8)).shape, empty.filters().shape) == (0, (0,), (8, 0))
    assert len(Design.of(np.array([[[0]], [[3]]]), 4)) == 2
    assert len(Design.of(np.array([[[2]], [[2]]]), 4)) == 2


def test_candidates_with_the_same_cells_are_known():
    """Whatever the order of their hashes, and beside others whose cell numbers have the same sum;
    each names the first of its kind."""
    positions = np.array([[[0, 3]], [[1, 2]], [[2, 1]], [[3, 0]], [[0, 4]], [[1, 3]], [[1, 2]]])
    assert Design.of(positions, 5).same_as.tolist() == [0, 1, 1, 0, 4, 5, 1]
    # The last cell of the table is not the one that is not there.
    assert Design.of(np.array([[[0, 0]], [[0, 4]], [[4, 0]]]), 5).same_as.tolist() == [0, 1, 1]
    pairs = np.array([[[i, j]] for i in range(12) for j in range(12) if i != j])
    same = Design.of(pairs, 12).same_as
    cells = [frozenset(pair[0].tolist()) for pair in pairs]
    assert same.tolist() == [cells.index(each) for each in cells]


def test_different_cells_are_never_merged(monkeypatch):
    """Where sums are equal the cells themselves decide."""
    design = Design.of(np.array([[[0, 3]], [[3, 0]], [[1, 2]]]), 4)
    monkeypatch.setattr(Design, "sums", lambda self, values: np.zeros(len(self), values.dtype))
    assert design.same_as.tolist() == [0, 0, 2]


# --- tables ---


# --- fits ---


@pytest.fixture(params=[False, True], ids=["apart", "exclusive"])
def table(design, request):
    return drawn(design, exclusive=request.param)


@pytest.fixture
def fit(table, design):
    """Four candidates in a joint fit, one of which nobody has."""
    return joint_fit(table, design, np.array([1, 7, 0, 2]), np.full(design.size, BACKGROUND))


def test_a_large_overlap_is_averaged(table, design, fit, monkeypatch):
    """Above so many products the fit has used up its number of candidates over that of cells."""
    products = 12 * COHORTS * HASHES * 4
    exact, _ = singly(table, design, fit)
    monkeypatch.setattr(fit_module, "_MOST_PRODUCTS", products)
    np.testing.assert_array_equal(singly(table, design, fit)[0], exact)
    monkeypatch.setattr(fit_module, "_MOST_PRODUCTS", products - 1)
    score, information = scores(table, design, fit.expected, fit.weights)
    share, variance = singly(table, design, fit)
    np.testing.assert_allclose(share, score / (information * (1 - 4 / 50)))
    np.testing.assert_allclose(variance, table.loss / (information * (1 - 4 / 50)))


@pytest.mark.parametrize("left", [1.0, 0.5])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_the_covariance_of_fitted_shares(table, design, fit, left, scale):
    """The noise of the fit, over the square of what the search has left, and that of who was
    asked: N Cov(y_j, y_l) within each cohort, for each two cells, or if they are tied less the
    product of two rates, also of a cell with itself. Shares that sum to more than 1 leave none to
    random filters."""
    fit = replace(fit, share=fit.share * scale)
    reports = table.reports.copy()
    reports[COLUMNS : 2 * COLUMNS] = 0  # an empty cohort between others
    table = replace(table, reports=reports)
    found = covariance(table, design, fit, left)
    noise = fit.inverse * table.loss / left**2
    assert table.tied or (fit.share.sum() > 1) == (scale > 1)
    filters = dense(design)[:, fit.selected]
    linear = fit.inverse @ (about_means(filters, fit.weights) * fit.weights[:, None]).T
    rest = max(0.0, 1 - fit.share.sum())
    rate = P01 + (P11 - P01) * fit.expected
    sampling = np.zeros((design.size, design.size))
    for j in range(50):
        for k in range(50):
            if j // COLUMNS != k // COLUMNS or j // COLUMNS == 1:
                continue
            if table.tied:
                sampling[j, k] = -rate[j] * rate[k] / (P11 - P01) ** 2 / table.reports[j]
            elif j != k:
                both = (fit.share * filters[j] * filters[k]).sum() + rest * BACKGROUND**2
                sampling[j, k] = (both - fit.expected[j] * fit.expected[k]) / table.reports[j]
    added = linear @ sampling @ linear.T
    np.testing.assert_allclose(found, noise + added)
    assert abs(added).max() > (1e-4 if table.tied else 0.01) * noise.max()
