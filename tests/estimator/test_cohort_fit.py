"""Tables, designs and fits of cohorts beside the same sums written out cell by cell."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, optimize, stats

from deniable_estimator.analyses.cohorts import design as design_module
from deniable_estimator.analyses.cohorts import fit as fit_module
from deniable_estimator.analyses.cohorts.design import Design
from deniable_estimator.analyses.cohorts.fit import (
    Fit,
    covariance,
    joint_fit,
    left_out,
    scores,
    singly,
    skewness,
)
from deniable_estimator.analyses.cohorts.table import CohortTable, Winsor

COHORTS, COLUMNS, HASHES = 6, 10, 2
P01, P11 = 0.2, 0.7
BACKGROUND = 1 - (1 - 1 / COLUMNS) ** HASHES

Array = NDArray[np.float64]


@pytest.fixture
def design() -> Design:
    """Twelve candidates, some of whose hashes collide."""
    positions = np.random.default_rng(1).integers(0, COLUMNS, (12, COHORTS, HASHES))
    return Design.of(positions, COLUMNS)


def dense(design: Design) -> Array:
    """Which cells each candidate sets, shape (cells, M), entry by entry."""
    found = np.zeros((design.size, len(design)))
    for candidate, cells in enumerate(design.cells):
        for cell in cells:
            if cell < design.size:
                found[cell, candidate] = 1
    return found


def drawn(
    design: Design, *, exclusive: bool = False, limit: float = 2.5, reports: int = 300
) -> CohortTable:
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
    return CohortTable.of(counts, each, P01, P11, BACKGROUND, Winsor(limit), exclusive=exclusive)


def about_means(filters: Array, weights: Array) -> Array:
    """Each column less its weighted mean, which is what a constant fitted alone would take off."""
    found = np.empty(filters.shape)
    for at, column in enumerate(filters.T):
        found[:, at] = column - np.average(column, weights=weights)
    return found


# --- designs ---


def test_cells_are_numbered_cohort_by_cohort() -> None:
    """A cell is cohort * columns + column; what collides with an earlier hash of its cohort is a
    cell that is not there."""
    positions = np.array([[[0, 3, 0], [2, 2, 2]], [[1, 1, 3], [0, 1, 2]]])
    design = Design.of(positions, 4)
    assert design.cells.tolist() == [[0, 3, 8, 6, 8, 8], [1, 8, 3, 4, 5, 6]]
    assert design.cells.dtype == np.int32
    assert (design.cohorts, design.columns, design.size, len(design)) == (2, 4, 8, 2)
    assert design.take(np.array([1, 0, 1])).cells.tolist() == [
        design.cells[at].tolist() for at in (1, 0, 1)
    ]
    assert (design.filters() == dense(design)).all()
    assert design.filters().shape == (8, 2)


def test_shapes_of_a_design() -> None:
    """Positions have three axes, of which only the first may be empty, and lie in their rows."""
    empty = Design.of(np.zeros((0, 2, 1), np.int64), 4)
    assert (len(empty), empty.sums(np.ones(8)).shape, empty.filters().shape) == (0, (0,), (8, 0))
    assert len(Design.of(np.array([[[0]], [[3]]]), 4)) == 2
    assert len(Design.of(np.array([[[2]], [[2]]]), 4)) == 2
    for shape in ((2, 2), (1, 0, 1), (1, 1, 0), (1, 1, 1, 1)):
        with pytest.raises(ValueError, match="positions are"):
            Design.of(np.zeros(shape, np.int64), 4)
    for wrong in (-1, 4):
        with pytest.raises(ValueError, match="positions lie from 0 to 3"):
            Design.of(np.array([[[0]], [[wrong]]]), 4)


@pytest.mark.parametrize("block", [1, 12, 30, 1 << 15])
@pytest.mark.parametrize("width", [None, 1, 3])
def test_sums_over_cells(
    design: Design, block: int, width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum of each column of values over a candidate's cells, however many are gathered at a
    time; whole numbers stay whole."""
    monkeypatch.setattr(design_module, "_BLOCK", block)
    shape = (design.size,) if width is None else (design.size, width)
    values = np.random.default_rng(3).integers(0, 100, shape)
    found = design.sums(values)
    assert found.dtype == values.dtype
    assert (found == (dense(design).T @ values)).all()


def test_candidates_with_the_same_cells_are_known() -> None:
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


def test_different_cells_are_never_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sums are equal the cells themselves decide."""
    design = Design.of(np.array([[[0, 3]], [[3, 0]], [[1, 2]]]), 4)
    monkeypatch.setattr(Design, "sums", lambda self, values: np.zeros(len(self), values.dtype))
    assert design.same_as.tolist() == [0, 0, 2]


# --- tables ---


@pytest.mark.parametrize(
    ("count", "limit"), [(1, 20), (16, 5), (63, 20 / 63**0.5), (64, 2.5), (900, 2.5)]
)
def test_residuals_are_cut_off_at(count: int, limit: float) -> None:
    """2.5 standard deviations, or where all cells of a candidate at it give a z of 20."""
    assert Winsor.for_cells(count).limit == pytest.approx(limit)


@pytest.mark.parametrize("limit", [0.7, 1.3, 2.5])
def test_moments_of_a_cut_normal(limit: float) -> None:
    """slope is the part within the limit, square the mean square, and loss how much variance
    cutting adds."""
    winsor = Winsor(limit)
    assert winsor.slope == pytest.approx(stats.norm.cdf(limit) - stats.norm.cdf(-limit))
    inside, _ = integrate.quad(lambda z: z**2 * stats.norm.pdf(z), -limit, limit)
    assert winsor.square == pytest.approx(inside + 2 * limit**2 * stats.norm.sf(limit))
    assert winsor.loss == pytest.approx(winsor.square / winsor.slope**2)


@pytest.mark.parametrize("exclusive", [False, True])
def test_cells_are_debiased(exclusive: bool) -> None:
    """(t/N - p01) / (p11 - p01), and 0 without reports; cohorts with reports are tied if each
    report sets one column."""
    counts, reports = np.array([[3, 6], [0, 0], [20, 5]]), np.array([10, 0, 40])
    table = CohortTable.of(counts, reports, 0.2, 0.7, 0.3, Winsor(2.5), exclusive=exclusive)
    assert table.y == pytest.approx([0.2, 0.8, 0, 0, 0.6, (0.125 - 0.2) / 0.5])
    assert table.reports.tolist() == [10, 10, 0, 0, 40, 40]
    assert (table.p01, table.p11, table.background) == (0.2, 0.7, 0.3)
    assert table.live == 4
    assert table.tied == (2 if exclusive else 0)
    assert table._left == (0.5 if exclusive else 1)
    empty = CohortTable.of(counts * 0, reports * 0, 0.2, 0.7, 0.3, Winsor(2.5), exclusive=exclusive)
    assert (empty.live, empty.tied, empty._left) == (0, 0, 1)


@pytest.mark.parametrize("exclusive", [False, True])
def test_the_variance_of_a_cell_by_the_model(exclusive: bool) -> None:
    """It is the binomial's at the expected rate, which stays half a report from 0 and 1; of tied
    cells it is the rate's; without reports it is infinite."""
    reports, expected = (
        [4.0, 100.0, 100.0, 100.0, 1.0, 2.0, 0.0],
        [0.3, 0.3, -0.5, 1.5, 0, 1.5, 0.3],
    )
    table = CohortTable(
        np.zeros(7), np.array(reports), 0.05, 0.8, 0.3, Winsor(2.5), tied=int(exclusive)
    )
    variance = table.variance(np.array(expected))
    for at, (n, fit) in enumerate(zip(reports, expected, strict=True)):
        if n == 0:
            assert variance[at] == math.inf
            continue
        r = min(max(0.05 + 0.75 * min(max(fit, 0), 1), 0.5 / n), 1 - 0.5 / n)
        noise = r if exclusive else r * (1 - r)
        assert variance[at] == pytest.approx(noise / (n * 0.75**2))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("parameters", [0, 5])
def test_weights_give_residuals_their_size(
    design: Design, exclusive: bool, parameters: int
) -> None:
    """The spread is that at which the cut squares of the residuals sum to what the degrees of
    freedom leave; every weight is one over variance and spread."""
    table = drawn(design, exclusive=exclusive)
    reports = table.reports.copy()
    reports[:COLUMNS] = 1  # of the first cohort, which counts with one report as well
    table = replace(table, reports=reports)
    fit = np.full(design.size, BACKGROUND)
    variance, live = table.variance(fit), table.reports > 0
    left = 1 - 5 / 50 if exclusive else 1
    square = (table.y - fit)[live] ** 2 / left
    target = (50 - (5 if exclusive else 0) - parameters) / left * table.winsor.square

    def excess(spread: float) -> float:
        return float(np.minimum(square / (variance[live] + spread), 2.5**2).sum()) - target

    spread = optimize.brentq(excess, 1e-9, 100.0)
    weights = table.weights(fit, parameters)
    assert (1 / weights[live] - variance[live]).tolist() == pytest.approx([spread] * 50, rel=2e-3)
    assert (weights[~live] == 0).all()


def test_without_excess_there_is_no_spread(design: Design) -> None:
    """Residuals that are no larger than their noise, or of no degree of freedom, add none."""
    table = drawn(design)
    fit = np.where(table.reports > 0, table.y, 0.0)
    np.testing.assert_array_equal(table.weights(fit, 3), 1 / table.variance(fit))
    far = fit + 1
    for parameters in (50, 60):
        np.testing.assert_array_equal(table.weights(far, parameters), 1 / table.variance(far))
    assert (table.weights(far, 49)[:50] < 1 / table.variance(far)[:50]).all()


def uneven(limit: float = 1.5) -> CohortTable:
    """A table of which only the winsorizing matters."""
    return CohortTable(np.zeros(1), np.ones(1), P01, P11, BACKGROUND, Winsor(limit))


def test_the_lift_at_the_median_is_that_of_the_quiet_half() -> None:
    """Where the quiet half is at the median no noise is added, and louder cells do not count; at
    the widest scale less of the same is cut off."""
    residual = np.array([0.0, 0.5, -1, 4, 6, 100, -100, 7])
    scale = np.array([1.0] * 5 + [2, 2, 4])
    found = uneven()._lifted(residual, scale)
    at_median = np.mean([0, 0.5, -1, 1.5, 1.5])
    assert found[:5].tolist() == pytest.approx([at_median] * 5)
    assert (found[5:] > at_median).all()
    # So large a residual of one sign that no node of the noise brings it below the limit.
    far = uneven()._lifted(np.full(8, 1000.0), scale)
    assert far[[0, 7]].tolist() == pytest.approx([1.5, 1.5 * 4])
    # Noise about 0 lifts nothing, however much is cut off.
    none = uneven()._lifted(np.zeros(8), scale)
    assert abs(none).max() < 1e-12


def test_residuals_are_cut_freed_and_scaled(design: Design) -> None:
    """Cut off at the limit times their standard deviation, freed of what others lift, and divided
    by the slope."""
    table = drawn(design, exclusive=True, reports=40, limit=1.0)
    fit = np.full(design.size, BACKGROUND)
    weights = table.weights(fit, 2) / np.random.default_rng(4).uniform(0.1, 2, design.size)
    scale, raw = np.sqrt((1 - 5 / 50) / weights[:50]), (table.y - fit)[:50]
    lifted = table._lifted(raw, scale)
    assert lifted.any()
    expected = (np.clip(raw, -scale, scale) - lifted) / table.winsor.slope
    np.testing.assert_allclose(table.residual(fit, weights), [*expected, *[0] * 10])


# --- fits ---


@pytest.fixture(params=[False, True], ids=["apart", "exclusive"])
def table(design: Design, request: pytest.FixtureRequest) -> CohortTable:
    return drawn(design, exclusive=request.param)


@pytest.fixture
def fit(table: CohortTable, design: Design) -> Fit:
    """Four candidates in a joint fit, one of which nobody has."""
    return joint_fit(table, design, np.array([1, 7, 0, 2]), np.full(design.size, BACKGROUND))


@pytest.mark.parametrize("limit", [0.6, 1.0, 2.5])
def test_a_joint_fit_is_generalized_least_squares(
    table: CohortTable, design: Design, limit: float
) -> None:
    """Fitted once for the weights, again with those, and then until no step of the cut residuals
    moves a share by a thousandth of its error."""
    table = replace(table, winsor=Winsor(limit))
    fit = joint_fit(table, design, np.array([1, 7, 0, 2]), np.full(design.size, BACKGROUND))
    filters = dense(design)[:, [1, 7, 0, 2]]
    above = filters - BACKGROUND
    # A constant is fitted as well: the shares are those of the least squares with a column of 1.
    columns = np.column_stack([filters, np.ones(design.size)])
    weights = table.weights(np.full(design.size, BACKGROUND), 4)
    for _ in range(2):
        information = columns.T @ np.diag(weights) @ columns
        share = np.linalg.solve(information, columns.T @ (weights * table.y))[:4]
        used = weights
        weights = table.weights(BACKGROUND + above @ share, 4)
    np.testing.assert_allclose(fit.weights, used)
    inverse = np.linalg.inv(information)
    np.testing.assert_allclose(fit.inverse, inverse[:4, :4], rtol=1e-6)
    variance = np.diag(fit.inverse) * table.winsor.loss
    np.testing.assert_allclose(fit.variance, variance)
    waited = 0
    for _ in range(20):
        expected = BACKGROUND + above @ share
        step = (inverse @ columns.T @ (used * table.residual(expected, used)))[:4]
        share = share + step
        small = abs(step) <= 1e-3 * np.sqrt(variance)
        if small.all():
            break
        waited += int(small.any())
    # Where much is cut off, one share has settled before another.
    assert waited or limit > 0.6
    np.testing.assert_allclose(fit.share, share, rtol=1e-9)
    np.testing.assert_allclose(fit.expected, BACKGROUND + above @ share)
    assert fit.selected.tolist() == [1, 7, 0, 2]


def test_scores_are_sums_over_all_cells(table: CohortTable, design: Design, fit: Fit) -> None:
    """Of the weighted residuals times what the candidate has above its weighted mean."""
    centred = about_means(dense(design), fit.weights)
    score, information = scores(table, design, fit.expected, fit.weights)
    pull = fit.weights * table.residual(fit.expected, fit.weights)
    np.testing.assert_allclose(score, centred.T @ pull, atol=1e-9)
    np.testing.assert_allclose(information, (centred**2).T @ fit.weights)


def test_a_share_that_joins_the_fit(table: CohortTable, design: Design, fit: Fit) -> None:
    """The score over the information that the fitted ones leave; of themselves nothing is known."""
    centred = about_means(dense(design), fit.weights)
    weighted = centred * fit.weights[:, None]
    cross = weighted.T @ centred[:, fit.selected]
    left = (centred * weighted).sum(axis=0) - np.einsum("ij,jk,ik->i", cross, fit.inverse, cross)
    score, _ = scores(table, design, fit.expected, fit.weights)
    share, variance = singly(table, design, fit)
    others = np.delete(np.arange(12), fit.selected)
    np.testing.assert_allclose(share[others], score[others] / left[others])
    np.testing.assert_allclose(variance[others], table.winsor.loss / left[others])
    assert np.isnan(share[fit.selected]).all()
    assert np.isinf(variance[fit.selected]).all()


def test_a_large_overlap_is_averaged(
    table: CohortTable, design: Design, fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above so many products the fit has used up its number of candidates over that of cells."""
    products = 12 * COHORTS * HASHES * 4
    exact, _ = singly(table, design, fit)
    monkeypatch.setattr(fit_module, "_MOST_PRODUCTS", products)
    np.testing.assert_array_equal(singly(table, design, fit)[0], exact)
    monkeypatch.setattr(fit_module, "_MOST_PRODUCTS", products - 1)
    score, information = scores(table, design, fit.expected, fit.weights)
    share, variance = singly(table, design, fit)
    np.testing.assert_allclose(share, score / (information * (1 - 4 / 50)))
    np.testing.assert_allclose(variance, table.winsor.loss / (information * (1 - 4 / 50)))


def test_a_fitted_string_without_itself(table: CohortTable, design: Design, fit: Fit) -> None:
    """Its z is the score of what only it explains, in the residual without its share."""
    z = left_out(table, design, fit)
    centred = about_means(dense(design)[:, fit.selected], fit.weights)
    for at in range(4):
        own = centred @ fit.inverse[:, at] / fit.inverse[at, at]
        residual = table.residual(fit.expected - fit.share[at] * own, fit.weights)
        error = math.sqrt(table.winsor.loss / fit.inverse[at, at])
        assert z[at] == pytest.approx((own * fit.weights * residual).sum() / error)


def test_the_skewness_of_a_random_score(table: CohortTable, design: Design, fit: Fit) -> None:
    """Cumulants of a cell that is uniform in each cohort, summed over cohorts and hashes."""
    pull = fit.weights * table.residual(fit.expected, fit.weights)
    third = second = 0.0
    for cohort in range(COHORTS):
        own = pull[cohort * COLUMNS : (cohort + 1) * COLUMNS]
        third += HASHES * ((own - own.mean()) ** 3).mean()
        weights = fit.weights[cohort * COLUMNS : (cohort + 1) * COLUMNS]
        second += HASHES * weights.mean() * (1 - BACKGROUND)
    assert skewness(table, design, fit) == pytest.approx(third / second**1.5)


@pytest.mark.parametrize("left", [1.0, 0.5])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_the_covariance_of_fitted_shares(
    table: CohortTable, design: Design, fit: Fit, left: float, scale: float
) -> None:
    """The noise of the fit, over the square of what the search has left, and that of who was
    asked: N Cov(y_j, y_l) within each cohort, for each two cells, or if they are tied less the
    product of two rates, also of a cell with itself. Shares that sum to more than 1 leave none to
    random filters."""
    fit = replace(fit, share=fit.share * scale)
    reports = table.reports.copy()
    reports[COLUMNS : 2 * COLUMNS] = 0  # an empty cohort between others
    table = replace(table, reports=reports)
    found = covariance(table, design, fit, left)
    noise = fit.inverse * table.winsor.loss / left**2
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
