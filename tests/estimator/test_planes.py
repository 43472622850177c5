"""Mechanisms by name: simulated tallies have exactly the distribution of real ones, and decoders
sum what the definition says. Subset selection has tests of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deniable import Scheme
from deniable.mechanisms import (
    BasicRappor,
    Bloom,
    CohortLocalHashing,
    CountMeanSketch,
    HadamardCountMeanSketch,
    HadamardResponse,
    Hashed,
    HashedProjectiveGeometry,
    Mechanism,
    MemoizedLocalHashing,
    MemoizedSubsetSelection,
    OneTimeRappor,
    Packing,
    ProjectiveGeometry,
    Rappor,
    Report,
    Rounds,
    SubsetSelection,
    UnaryEncoding,
)
from deniable.mechanisms.projective_geometry import points
from deniable.randomness import PRECISION
from deniable_estimator.analyses import (
    ANALYSES,
    oracle_analysis,
    projective_geometry,
)
from deniable_estimator.analyses.base import OracleAnalysis
from deniable_estimator.analyses.candidates import support_counts
from deniable_estimator.analyses.hashed import HashedAnalysis
from deniable_estimator.analyses.sampling import sample_tally

ONE = 1 << PRECISION
DRAWS = 2500
ROUNDS = Rounds(ONE // 4, ONE // 4, ONE * 3 // 4)

Cells = tuple[tuple[int, ...], ...]

CASES: dict[str, tuple[Mechanism[Any], list[Any], list[int]]] = {
    "projective plane": (
        ProjectiveGeometry(7, 2, 3, ONE * 7 // 8),
        list(range(7)),
        [2, 0, 1] + [0] * 4,
    ),
    "part of a projective plane": (
        ProjectiveGeometry(5, 3, 3, ONE * 3 // 4),
        list(range(5)),
        [0, 1, 0, 0, 1],
    ),
    "Hadamard response": (HadamardResponse(3, ONE * 7 // 8), [0, 1, 2], [2, 0, 1]),
    "unary encoding": (UnaryEncoding(3, ONE * 3 // 4, ONE // 8), [0, 1, 2], [2, 1, 0]),
    "hashed projective geometry": (
        HashedProjectiveGeometry("city", 2, ProjectiveGeometry(4, 3, 2, ONE * 3 // 4)),
        ["Oslo", "Bergen"],
        [1, 1],
    ),
    "cohort local hashing": (
        CohortLocalHashing("city", 2, SubsetSelection(3, 1, ONE * 3 // 4)),
        ["Oslo", "Bergen"],
        [2, 1],
    ),
    "count mean sketch": (
        CountMeanSketch("city", 2, UnaryEncoding(3, ONE * 3 // 4, ONE // 4)),
        ["Oslo", "Bergen"],
        [1, 1],
    ),
    "Hadamard count mean sketch": (
        HadamardCountMeanSketch("city", 2, HadamardResponse(2, ONE * 3 // 4)),
        ["Oslo", "Bergen"],
        [1, 1],
    ),
    "memoized subset selection": (
        MemoizedSubsetSelection(4, 2, ONE * 7 // 8, ONE * 3 // 4),
        [0, 1, 2, 3],
        [2, 0, 1, 0],
    ),
    "memoized local hashing": (
        MemoizedLocalHashing("city", 2, MemoizedSubsetSelection(3, 1, ONE * 7 // 8, ONE * 3 // 4)),
        ["Oslo", "Bergen"],
        [2, 1],
    ),
    "basic RAPPOR": (BasicRappor(3, ROUNDS), [0, 1, 2], [2, 1, 0]),
    "RAPPOR": (Rappor(Bloom("b", 2, 4, 2), ROUNDS), ["Oslo", "Bergen"], [1, 1]),
    "one-time RAPPOR": (
        OneTimeRappor(Bloom("city", 2, 3, 1), ONE // 4),
        ["Oslo", "Bergen"],
        [1, 1],
    ),
}
"""Mechanisms with a crowd of two or three devices: values, and how many have each."""

cases = pytest.mark.parametrize(("mechanism", "items", "counts"), CASES.values(), ids=CASES)


def messages(mechanism: Mechanism[Any], number: int, item: Any) -> Iterator[tuple[int, Fraction]]:
    """All messages of a row, as bitmaps, and how likely a device with this value sends each."""
    row = mechanism.rows[number]
    index = row.packing is Packing.INDEX
    for bitmap in [1 << at for at in range(row.width)] if index else range(1 << row.width):
        if row.columns in (None, bitmap.bit_count()):
            columns = bitmap.bit_length() - 1 if index else bitmap
            yield bitmap, mechanism.likelihood(Report(number, columns), item)


@cases
@pytest.mark.parametrize("times", [30, 10_000])
def test_cells_come_as_often_as_the_likelihoods_say(
    mechanism: Mechanism[Any], items: list[Any], counts: list[int], times: int
) -> None:
    """Each cell of one large tally is within six standard errors of its expectation: seed 9, some
    130 cells and two sizes, alpha below 1e-5 in all."""
    closed = mechanism.size is not None
    values = tuple(map(str, items))
    scheme = Scheme("category" if closed else "string", mechanism, values if closed else ())
    devices = np.array(counts) * times
    tally = sample_tally(
        scheme, devices, np.random.default_rng(9), values=None if closed else values
    )
    assert tally.reports == devices.sum()
    for number, row in enumerate(mechanism.rows):
        mean, variance = np.zeros(row.width), np.zeros(row.width)
        for item, count in zip(items, devices.tolist(), strict=True):
            chance = np.zeros(row.width)
            for bitmap, likelihood in messages(mechanism, number, item):
                chance += float(likelihood) * np.array(
                    [bitmap >> column & 1 for column in range(row.width)]
                )
            mean += count * chance
            variance += count * chance * (1 - chance)
        assert (np.abs(tally.rows[number].cells - mean) <= 6 * np.sqrt(variance) + 1e-9).all()


@cases
def test_decoders_agree_with_the_definition(
    mechanism: Mechanism[Any], items: list[Any], counts: list[int]
) -> None:
    """The fast decoder sums exactly the cells that support each value, for all and for some.

    Of hashed mechanisms the plain decoder, which leaves no collisions out.
    """
    closed = mechanism.size is not None
    plain = not isinstance(mechanism, Hashed)
    values = tuple(map(str, items))
    scheme = Scheme("category" if closed else "string", mechanism, values if closed else ())
    rng = np.random.default_rng(6)
    tally = sample_tally(scheme, np.array(counts) * 1000, rng, values=None if closed else values)
    for asked in (values, values[::-1]):
        if plain:
            found = support_counts(tally, scheme, asked)
        else:
            found = HashedAnalysis.support(oracle_analysis(mechanism), tally, asked)
        expected = [
            sum(
                int(tally.rows[cell.row].cells[cell.column])
                for cell in mechanism.support(int(value) if closed else value)
            )
            for value in asked
        ]
        assert found.counts.tolist() == expected
        assert found.reports == tally.reports == sum(counts) * 1000


def test_every_sampler_is_tested() -> None:
    """Each frequency oracle that can be simulated is a case above, or has a test file of its
    own."""
    kinds = {type(mechanism) for mechanism, _, _ in CASES.values()}
    oracles = {kind for kind, found in ANALYSES.items() if issubclass(found, OracleAnalysis)}
    assert kinds | {SubsetSelection} == oracles


@pytest.mark.parametrize(
    "mechanism",
    [
        ProjectiveGeometry(points(order, dimension), order, dimension, ONE * 9 // 10)
        for order, dimension in [(2, 2), (2, 5), (3, 4), (7, 3), (13, 2)]
    ],
    ids=lambda mechanism: f"{mechanism.order}, {mechanism.dimension}",
)
def test_planes_are_supports(mechanism: ProjectiveGeometry) -> None:
    """The arrays of points by which tallies are drawn are the cells that support the value."""
    space = projective_geometry._Space(mechanism)
    for item in range(mechanism.size):
        expected = [cell.column for cell in mechanism.support(item)]
        assert space.plane(item).tolist() == expected
