"""The hierarchical histogram: its cells, its levels, and how a row is drawn."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms import Report
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import TOP, NumberRange
from deniable.protocol.randomness import PRECISION

ONE = 1 << PRECISION
UNIT = NumberRange("0", "1")


def whole(low, high):
    """Whole numbers, `high` included."""
    return NumberRange(str(low), str(high), integer=True)


@pytest.mark.parametrize("cells", [4, 16, 64, 256, 1024])
@pytest.mark.parametrize("numbers", [UNIT, NumberRange("0.001", "50", "log")])
def test_edges_cut_the_scale_evenly(numbers, cells):
    """From position 0 to TOP, in steps that differ by one at most; one edge fewer than cells."""
    histogram = HierarchicalHistogram.design(numbers, 1.0, cells)
    assert histogram.cells == 4**histogram.height == cells
    assert len(histogram.edges) == cells - 1
    assert (histogram.edges[0], histogram.edges[-1]) == (0, TOP)
    assert len({upper - lower for lower, upper in pairwise(histogram.edges)}) <= 2


@pytest.mark.parametrize("numbers", [whole(0, 254), whole(-500, 999), whole(0, 10**9)])
def test_many_whole_numbers_are_never_cut(numbers):
    """Each cell begins at a whole number, and cells differ by one number at most."""
    histogram = HierarchicalHistogram.design(numbers, 1.0)
    low, count = int(numbers.low), int(numbers.span)
    firsts = [low + place * count // 254 for place in range(255)]
    assert [numbers.position(first) for first in firsts] == list(histogram.edges)
    for first in firsts[1:]:
        below, at = (histogram.cell(numbers.position(each)) for each in (first - 1, first))
        assert at == below + 1


def test_the_ends_of_the_range_have_cells_of_their_own():
    """Cell 0 is what lies below `low`, the last what is at `high` or above."""
    histogram = HierarchicalHistogram.design(UNIT, 1.0)
    for value, cell in ((-1e-9, 0), (0.0, 1), (0.5, 128), (1 - 1e-16, 254), (1.0, 255), (9.0, 255)):
        assert histogram.cell(UNIT.position(value)) == cell


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("cells", [4, 16, 64, 256, 1024])
def test_designs_keep_within_epsilon(cells, mean):
    """The odds of each row are within the declared epsilon, and those of the mechanism are the
    largest of them; 40 epsilons from 0.25 to 10."""
    for step in range(1, 41):
        histogram = HierarchicalHistogram.design(UNIT, step / 4, cells, mean)
        rows = [level.odds for level in histogram.levels]
        if histogram.mean is not None:
            rows.append(histogram.mean.odds)
        assert max(rows) == histogram.odds <= exp_below(step / 4)
        assert len(rows) == len(histogram.rows)
        assert max(row.width for row in histogram.rows) <= 4096


@pytest.mark.parametrize(
    ("cells", "weights"),
    [(4, (16,)), (16, (7, 9)), (64, (4, 5, 7)), (256, (3, 4, 4, 5)), (1024, (2, 3, 3, 3, 5))],
)
def test_the_row_does_not_depend_on_the_value(cells, weights):
    """Each row has its share of sixteenths whatever the value is, and with a mean 3/4 of that, the
    last row having the rest: exactly, by the sum of its likelihoods."""
    for mean in (False, True):
        histogram = HierarchicalHistogram.design(UNIT, 1.0, cells, mean)
        assert histogram.weights == weights
        shares = [Fraction(weight, 16) for weight in weights]
        if mean:
            shares = [share * Fraction(3, 4) for share in shares] + [Fraction(1, 4)]
        assert list(histogram.shares) == shares
        for position in (-1, 0, TOP // 3, TOP):
            found = [
                sum(histogram.likelihood(Report(row, column), position) for column in range(width))
                for row, width in enumerate(each.width for each in histogram.rows)
            ]
            assert found == shares


@pytest.mark.parametrize("cells", [0, 1, 2, 100, 255, 4096])
def test_cells_are_a_power_of_four(cells):
    """Any other number is refused with those that there are."""
    with pytest.raises(SchemeError, match=f"one of 4, 16, 64, 256, 1024, not {cells}"):
        HierarchicalHistogram.design(UNIT, 1.0, cells)
