"""Subset selection: published reference values, packing, and what `design` chooses."""

import pytest

from deniable.protocol.mechanisms import Packing
from deniable.protocol.mechanisms.subset_selection import SubsetSelection


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
@pytest.mark.parametrize("size", [2, 3, 8, 31, 100])
def test_design_has_the_least_variance(size, epsilon):
    """No other subset size has less total variance at the same epsilon."""

    def variance(mechanism):
        return float(mechanism.total_variance(size))

    every = [variance(SubsetSelection.design(size, epsilon, k=k)) for k in range(1, size)]
    assert variance(SubsetSelection.design(size, epsilon)) == pytest.approx(min(every), rel=1e-12)


@pytest.mark.parametrize(
    ("size", "k", "packing", "size_in_bytes"),
    [
        (2, 1, Packing.INDEX, 1),
        (1024, 1, Packing.INDEX, 2),
        (1024, 18, Packing.LIST, 23),
        (1024, 102, Packing.LIST, 128),
        (1024, 103, Packing.BITMAP, 128),
        (1000, 119, Packing.BITMAP, 125),
    ],
)
def test_packing_is_the_shorter_one(size, k, packing, size_in_bytes):
    """A report is packed as an index, a list or a bitmap, whichever is shortest."""
    (row,) = SubsetSelection.design(size, 1.0, k=k).rows
    assert (row.width, row.packing, row.columns) == (size, packing, k)
    assert row.report_bytes == size_in_bytes
