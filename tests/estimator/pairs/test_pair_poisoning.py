"""What fakes can do to a conditional share and to the test of independence: formulas against all
reports there are, and against attacked tallies."""

import math
from itertools import combinations

import numpy as np
import pytest

from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.analyses.pairs import Covariance
from deniable_estimator.analyses.pairs.dependence import independence, kernel
from deniable_estimator.analyses.pairs.poisoning import (
    Fake,
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
