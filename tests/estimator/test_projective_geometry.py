"""The decoder of projective geometry response against the incidence of points and hyperplanes."""

from __future__ import annotations

import numpy as np
import pytest

from deniable.mechanisms import ProjectiveGeometry
from deniable.mechanisms.projective_geometry import points
from deniable.randomness import PRECISION
from deniable_estimator.analyses import projective_geometry
from deniable_estimator.analyses.projective_geometry import MAX_REPORTS, space_support
from deniable_estimator.errors import EstimateError

SPACES = [
    (2, 2),
    (2, 5),
    (2, 8),
    (3, 2),
    (3, 4),
    (5, 3),
    (7, 3),
    (11, 2),
    (13, 3),
    (53, 3),
    (67, 3),
    (523, 2),
]


def whole(order: int, dimension: int) -> ProjectiveGeometry:
    """All points of a space."""
    threshold = (1 << PRECISION) * 9 // 10
    return ProjectiveGeometry(points(order, dimension), order, dimension, threshold)


@pytest.mark.parametrize(("order", "dimension"), SPACES)
def test_support_is_the_sum_over_the_hyperplane(order: int, dimension: int) -> None:
    """For every value, the decoder gives exactly the sum of the cells that support it."""
    space = whole(order, dimension)
    cells = np.random.default_rng(1).integers(0, 1000, space.messages)
    expected = [
        sum(int(cells[cell.column]) for cell in space.support(item))
        for item in range(space.messages)
    ]
    assert space_support(cells, order, dimension).tolist() == expected


@pytest.mark.parametrize(
    ("order", "dimension"), [(2, 8), (3, 5), (7, 5), (13, 3), (53, 3), (523, 2)]
)
def test_counts_may_be_small_or_huge(order: int, dimension: int) -> None:
    """Up to the most reports allowed, all of them on one cell or spread, sums stay exact."""
    space = whole(order, dimension)
    rng = np.random.default_rng(2)
    one = np.zeros(space.messages, np.int64)
    one[space.messages // 3] = MAX_REPORTS
    uneven = rng.integers(0, 1 << 62, space.messages) >> rng.integers(20, 62, space.messages)
    uneven = (uneven.astype(object) * MAX_REPORTS // int(uneven.sum())).astype(np.int64)
    for cells in (one, uneven, np.zeros(space.messages, np.int64)):
        found = space_support(cells, order, dimension)
        for item in range(0, space.messages, space.messages // 7):
            assert found[item] == sum(int(cells[cell.column]) for cell in space.support(item))


def test_more_reports_are_refused() -> None:
    """A tally in which rounding might err is refused instead of decoded."""
    cells = np.zeros(7, np.int64)
    cells[0] = MAX_REPORTS + 1
    with pytest.raises(EstimateError, match="exactly"):
        space_support(cells, 2, 3)


def test_blocks_of_directions_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result does not depend on how many directions are handled at a time, nor on tables."""
    cells = np.random.default_rng(3).integers(0, 1000, points(3, 6))
    expected = space_support(cells, 3, 6)
    monkeypatch.setattr(projective_geometry, "_BLOCK", 11)
    assert (space_support(cells, 3, 6) == expected).all()
    for table in (1, 9, 27, 243):
        monkeypatch.setattr(projective_geometry, "_TABLE", table)
        assert (space_support(cells, 3, 6) == expected).all()


@pytest.mark.parametrize(("order", "dimension"), [(2, 9), (3, 8), (5, 5), (7, 5), (31, 3)])
def test_matrices_and_fast_transforms_agree(
    order: int, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result does not depend on how axes are transformed, nor on how many at once, nor on how
    large the products are."""
    cells = np.random.default_rng(5).integers(0, 1000, points(order, dimension))
    expected = space_support(cells, order, dimension)
    for longest in (1, order, order**2):
        monkeypatch.setattr(projective_geometry, "_MATRIX", longest)
        for single in (1, 5000):
            monkeypatch.setattr(projective_geometry, "_SINGLE", single)
            assert (space_support(cells, order, dimension) == expected).all()
