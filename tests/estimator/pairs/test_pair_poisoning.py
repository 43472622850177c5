"""What fakes can do to a conditional share and to the test of independence: formulas against all
reports there are, and against attacked tallies."""

import itertools
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.analyses.pairs.dependence import independence, kernel
from deniable_estimator.analyses.pairs.poisoning import (
    Fake,
    faked_effect,
    fakes_to_move,
    moved,
    worst_cells,
)

SMALL = [
    ((2, 2), SubsetSelection.design(4, 1.0, 1)),
    ((2, 2), SubsetSelection.design(4, 0.5, 2)),
    ((2, 3), SubsetSelection.design(6, 1.0, 2)),
    ((3, 2), SubsetSelection.design(6, 1.0, 4)),
    ((3, 3), SubsetSelection.design(9, 0.5, 3)),
]


def reports(shape, fake):
    """What every report there is shows of the cells."""
    size = math.prod(shape)
    for places in combinations(range(size), fake.cells):
        cells = np.zeros(size)
        cells[list(places)] = 1
        yield fake.table(cells).reshape(shape)


@pytest.mark.parametrize(("shape", "mechanism"), SMALL)
@pytest.mark.parametrize("fakes", [0.001, 0.02, 0.3])
def test_no_report_moves_a_conditional_further(shape, mechanism, fakes):
    """Of all reports there are, and of mixtures of them, none moves a conditional beyond the ends
    that are told, and some report reaches them; seed 3."""
    rng = np.random.default_rng(3)
    table, fake = rng.dirichlet(np.ones(math.prod(shape))).reshape(shape), Fake.of(mechanism)
    low, high = moved(table, fake, fakes)
    shown = list(reports(shape, fake))
    mixed = [np.tensordot(rng.dirichlet(np.full(len(shown), 0.1)), shown, 1) for _ in range(50)]
    every = np.array([(1 - fakes) * table + fakes * each for each in (*shown, *mixed)])
    given = every.sum(axis=2, keepdims=True)
    ratios = np.where(given > 0, every / given, np.nan)
    assert (np.nanmax(ratios, axis=0) <= high + 1e-12).all()
    assert (np.nanmin(ratios, axis=0) >= low - 1e-12).all()
    for ends, reached in ((high, np.fmax.reduce), (low, np.fmin.reduce)):
        bounded = np.isfinite(ends)
        kept = np.concatenate([(table / table.sum(axis=1, keepdims=True))[None], ratios])
        assert np.allclose(reached(kept[: len(shown) + 1], axis=0)[bounded], ends[bounded])
        # Infinite only where fakes bring the row to nothing.
        emptied = np.broadcast_to((given <= 0).any(axis=0), table.shape)
        assert (bounded | emptied).all()


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(SMALL),
    st.floats(0.02, 0.9),
    st.floats(0.05, 0.6),
    st.floats(-0.5, 0.5).filter(lambda by: abs(by) > 1e-3),
)
def test_so_many_fakes_and_no_fewer(case, share, given_share, by):
    """With the fraction that `fakes_to_move` says a conditional reaches its target, and with a
    little less it does not."""
    assume(0 <= share + by <= 1)
    shape, mechanism = case
    rows, columns = shape
    fake = Fake.of(mechanism)
    needed = fakes_to_move(share, given_share, by, fake, shape)
    table = np.full(shape, (1 - given_share) / ((rows - 1) * columns))
    table[0] = given_share * (1 - share) / (columns - 1)
    table[0, 0] = given_share * share
    assert needed is not None

    def reached(fakes):
        low, high = moved(table, fake, fakes)
        return float(high[0, 0] - share if by > 0 else share - low[0, 0])

    assert reached(min(1.0, needed * 1.001)) >= abs(by) * 0.999
    assert reached(needed * 0.99) < abs(by)


@pytest.mark.parametrize(("shape", "mechanism"), SMALL)
def test_the_worst_report_is_the_worst(shape, mechanism):
    """With equally frequent values no report moves the test further than the one that is built."""
    rows, columns = (np.full(size, 1 / size) for size in shape)
    fake, model = Fake.of(mechanism), Covariance.of(mechanism, 10_000)
    weights = kernel(rows, columns, model)
    found = fake.table(worst_cells(weights, fake))
    every = [each.ravel() @ weights @ each.ravel() for each in reports(shape, fake)]
    assert np.isclose(found @ weights @ found, max(every))


def test_the_kernel_is_the_test():
    """x'Kx is the statistic of the table x; seed 5."""
    rng = np.random.default_rng(5)
    table = rng.dirichlet(np.ones(12)).reshape(3, 4)
    model = Covariance.of(SubsetSelection.design(12, 1.0), 5_000)
    weights = kernel(table.sum(axis=1), table.sum(axis=0), model)
    told = independence(table, model).statistic
    assert np.isclose(table.ravel() @ weights @ table.ravel(), told)


@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (3, 4), (5, 3)])
@pytest.mark.parametrize("cells", [1, 2, 3, 4, 5, 6])
def test_the_effect_of_cells_that_are_spread(shape, cells):
    """Fakes whose cells fill rows and columns as evenly as can be bring the effect that is told,
    also where they do not fill them alike."""
    rows, columns = shape
    if cells > rows * columns:
        return
    fake, fakes = Fake(3.0, -1.0, cells, 0.9), 0.02

    def chi(places):
        table = np.zeros(shape)
        for place in places:
            table[place] = 1
        found = fake.table(table)
        apart = found - found.mean(0) - found.mean(1, keepdims=True) + found.mean()
        return math.sqrt(rows * columns * float((apart**2).sum()) / (min(shape) - 1))

    every = itertools.combinations(itertools.product(range(rows), range(columns)), cells)
    worst = fakes * fake.rate * max(map(chi, every))
    assert math.isclose(faked_effect(*shape, fake, fakes), min(1.0, worst), abs_tol=1e-9)
