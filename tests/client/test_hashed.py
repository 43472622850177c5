"""Hashed mechanisms: q over all hash functions, rows, salts and what they refuse."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from tests.supports import support

from deniable.protocol.errors import SchemeError
from deniable.protocol.mechanisms import Mechanism, Report
from deniable.protocol.mechanisms.compatible import HadamardResponse, UnaryEncoding
from deniable.protocol.mechanisms.hashed import (
    CohortLocalHashing,
    CountMeanSketch,
    HadamardCountMeanSketch,
    Hashed,
    HashedProjectiveGeometry,
)
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable.protocol.randomness import PRECISION

HALF = 1 << PRECISION - 1

HASHED: list[tuple[type[Hashed], Mechanism[int]]] = [
    (HashedProjectiveGeometry, ProjectiveGeometry(13, 3, 3, HALF)),
    (CohortLocalHashing, SubsetSelection.design(4, 1.0, k=1)),
    (CountMeanSketch, UnaryEncoding.symmetric(4, 1.0)),
    (HadamardCountMeanSketch, HadamardResponse.design(8, 1.0)),
]


@pytest.mark.parametrize(("kind", "channel"), HASHED)
def test_q_is_the_average_over_all_hash_functions(kind, channel):
    """Averaged over every pair of places that two strings can have, a report of the one
    supports the other with probability exactly q; with its own place, p.
    """
    mechanism = kind("city", 2, channel)
    total = Fraction(0)
    (row,) = channel.rows
    for place, other in itertools.product(range(channel.size), repeat=2):
        if row.packing == "bitmap":
            supporting = [each for each in range(1 << row.width) if each >> other & 1]
        else:
            supporting = [column for _, column in support(channel, other)]
        total += sum(channel.likelihood(Report(0, each), place) for each in supporting)
    assert total / channel.size**2 == mechanism.q
    assert mechanism.p == channel.p


@pytest.mark.parametrize("width", [4, 64, 1000, 1 << 20])
def test_the_most_rows_are_those_of_the_largest_tally(width):
    """From one row on, up to 65,536 and up to 2**23 cells in all."""
    channel = SubsetSelection.design(width, 1.0, k=1)
    most = min(1 << 16, (1 << 23) // width)
    for rows in (1, most):
        mechanism = CohortLocalHashing("city", rows, channel)
        assert len(mechanism.rows) == mechanism.hashes == rows
    for rows in (0, most + 1):
        with pytest.raises(SchemeError, match="cells in all"):
            CohortLocalHashing("city", rows, channel)


def test_cohorts_of_a_design():
    """There are 1,024 of them, or as many as a tally has room for."""
    assert len(CohortLocalHashing.design("city", 1.0).rows) == 1024
    wide = CohortLocalHashing.design("city", 10.0)
    assert len(wide.rows) == (1 << 23) // wide.channel.size < 1024
