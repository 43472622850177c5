"""Support counts and the decoder of projective geometry, and wrong questions."""

import numpy as np
import pytest
from tests.supports import support

from deniable import Scheme
from deniable.protocol.mechanisms.hashed import HashedProjectiveGeometry
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry, points
from deniable.protocol.randomness import PRECISION
from deniable_estimator.analyses import projective_geometry, sample_tally
from deniable_estimator.analyses.projective_geometry import MAX_REPORTS, space_support
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.registry import answer_of


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        (["v0", "opera"], "'opera' is not one of the metric's declared values"),
        (["v0", "v1", "v0"], "the list of candidates, line 3: repeats line 1"),
        (["v0", " "], "line 2: is blank"),
        (["v0", "v1\n"], "line 2: holds a control character"),
        (["x" * 1025], "line 1: is longer than 1024 bytes"),
        (["\ud800"], "line 1: is not valid Unicode"),
        ([], "the list of candidates holds no value"),
    ],
)
def test_wrong_candidates(candidates, message, make_scheme, make_tally):
    """Unknown, repeated and missing candidates are refused with what to do."""
    scheme = make_scheme(3, 1.0)
    tally = make_tally(scheme, 3, [1, 1, 1])
    with pytest.raises(EstimateError, match=message):
        answer_of(tally, scheme, candidates)


def test_candidates_are_found_in_any_spelling(make_scheme, make_tally):
    """Candidates are brought into the form that devices report; two spellings are one candidate."""
    closed = make_scheme(3, 1.0, values=["tea", "caf\u00e9", "milk"])
    answer = answer_of(make_tally(closed, 9, [5, 3, 1]), closed, ["cafe\u0301"])
    assert answer.values == ("caf\u00e9",)
    assert answer.share == answer_of(make_tally(closed, 9, [5, 3, 1]), closed).share[1]
    salted = Scheme("string", HashedProjectiveGeometry.design("drink", 1.0), ())
    tally = sample_tally(salted, [900], np.random.default_rng(1), values=["caf\u00e9"])
    assert answer_of(tally, salted, ["cafe\u0301"]).values == ("caf\u00e9",)
    for scheme, its in ((salted, tally), (closed, make_tally(closed, 9, [5, 3, 1]))):
        with pytest.raises(EstimateError, match="line 2: repeats line 1"):
            answer_of(its, scheme, ["caf\u00e9", "cafe\u0301"])


@pytest.mark.parametrize(("size", "k"), [(5, 1), (5, 2), (6, 4)])
def test_drawn_sets_hold_as_many_columns_as_sent_ones(size, k, make_scheme):
    """Of a million devices each reports k columns, and each column is as frequent as p and q say,
    within 5 standard errors."""
    scheme, counts = make_scheme(size, 1.0, k), np.arange(size) * 100_000
    (row,) = sample_tally(scheme, counts, np.random.default_rng(4)).rows
    n, p, q = row.reports, float(scheme.mechanism.p), float(scheme.mechanism.q)
    assert int(row.cells.sum()) == k * n == k * counts.sum()
    expected = counts * p + (n - counts) * q
    assert (np.abs(row.cells - expected) < 5 * np.sqrt(n) / 2).all()


def test_wrong_width_is_refused(make_scheme, make_tally):
    """A tally whose rows do not fit the mechanism is not read."""
    scheme = make_scheme(3, 1.0)
    with pytest.raises(EstimateError, match="widths"):
        answer_of(make_tally(scheme, 4, [1, 1, 1, 1]), scheme)


SPACES = [
    (2, 2),
    (2, 5),
    (3, 4),
    (5, 3),
    (7, 3),
    (11, 2),
    (13, 3),
    (67, 3),
    (523, 2),
]


def whole(order, dimension):
    """All points of a space."""
    threshold = (1 << PRECISION) * 9 // 10
    return ProjectiveGeometry(points(order, dimension), order, dimension, threshold)


@pytest.mark.parametrize(("order", "dimension"), SPACES)
def test_support_is_the_sum_over_the_hyperplane(order, dimension):
    """For every value, the decoder gives exactly the sum of the cells that support it."""
    space = whole(order, dimension)
    cells = np.random.default_rng(1).integers(0, 1000, space.messages)
    expected = [
        sum(int(cells[column]) for _, column in support(space, item))
        for item in range(space.messages)
    ]
    assert space_support(cells, order, dimension).tolist() == expected


@pytest.mark.parametrize(
    ("order", "dimension"), [(2, 8), (3, 5), (7, 5), (13, 3), (53, 3), (523, 2)]
)
def test_counts_may_be_small_or_huge(order, dimension):
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
            assert found[item] == sum(int(cells[column]) for _, column in support(space, item))


def test_more_reports_are_refused():
    """A tally in which rounding might err is refused instead of decoded."""
    cells = np.zeros(7, np.int64)
    cells[0] = MAX_REPORTS + 1
    with pytest.raises(EstimateError, match="exactly"):
        space_support(cells, 2, 3)


@pytest.mark.parametrize(("order", "dimension"), [(2, 9), (3, 8), (5, 5), (7, 5), (31, 3)])
def test_matrices_and_fast_transforms_agree(order, dimension, monkeypatch):
    """The result does not depend on how axes are transformed, nor on how many at once, nor on how
    large the products are, nor on how many directions are handled at a time, nor on tables."""
    cells = np.random.default_rng(5).integers(0, 1000, points(order, dimension))
    expected = space_support(cells, order, dimension)
    for longest in (1, order, order**2):
        monkeypatch.setattr(projective_geometry, "_MATRIX", longest)
        for single in (1, 5000):
            monkeypatch.setattr(projective_geometry, "_SINGLE", single)
            assert (space_support(cells, order, dimension) == expected).all()
    for block, table in ((11, 1), (11, 9), (11, 27), (11, 243)):
        monkeypatch.setattr(projective_geometry, "_BLOCK", block)
        monkeypatch.setattr(projective_geometry, "_TABLE", table)
        assert (space_support(cells, order, dimension) == expected).all()
