"""Drawn tallies have the expectation of real ones, and decoders sum what the definition says."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deniable import Scheme
from deniable.mechanisms import Hashed, Mechanism, Packing, ProjectiveGeometry, Report
from deniable.mechanisms.projective_geometry import points
from deniable.randomness import PRECISION
from deniable_estimator.analyses import ANALYSES, oracle_analysis, projective_geometry
from deniable_estimator.analyses.base import OracleAnalysis
from deniable_estimator.analyses.candidates import support_counts
from deniable_estimator.analyses.hashed import HashedAnalysis
from deniable_estimator.analyses.sampling import sample_tally

from .test_outsider_enumeration import CASES

ORACLES = {
    name: (mechanism, items)
    for name, (mechanism, items, _) in CASES.items()
    if issubclass(ANALYSES[type(mechanism)], OracleAnalysis)
}
"""All mechanisms that count values, with a few strings for those without a list."""

cases = pytest.mark.parametrize(("mechanism", "items"), ORACLES.values(), ids=ORACLES)


def asked(mechanism: Mechanism[Any], items: list[Any]) -> tuple[Scheme, list[Any], Any]:
    """The scheme, its values, and how they are named where there is no list."""
    if mechanism.size is None:
        return Scheme("string", mechanism, ()), items, items
    every = list(range(mechanism.size))
    return Scheme("category", mechanism, tuple(map(str, every))), every, None


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
    mechanism: Mechanism[Any], items: list[Any], times: int
) -> None:
    """Each cell of one large tally is within six standard errors of its expectation: seed 9, some
    200 cells and two sizes, alpha below 1e-5 in all."""
    scheme, every, values = asked(mechanism, items)
    devices = (1 + np.arange(len(every)) % 3) * times
    tally = sample_tally(scheme, devices, np.random.default_rng(9), values=values)
    assert tally.reports == devices.sum()
    for number, row in enumerate(mechanism.rows):
        mean, variance = np.zeros(row.width), np.zeros(row.width)
        for item, count in zip(every, devices.tolist(), strict=True):
            chance = np.zeros(row.width)
            for bitmap, likelihood in messages(mechanism, number, item):
                chance += float(likelihood) * np.array(
                    [bitmap >> column & 1 for column in range(row.width)]
                )
            mean += count * chance
            variance += count * chance * (1 - chance)
        assert (np.abs(tally.rows[number].cells - mean) <= 6 * np.sqrt(variance) + 1e-9).all()


@cases
def test_decoders_agree_with_the_definition(mechanism: Mechanism[Any], items: list[Any]) -> None:
    """The fast decoder sums exactly the cells that support each value, for all and for some.

    Of hashed mechanisms the plain decoder, which leaves no collisions out.
    """
    scheme, every, values = asked(mechanism, items)
    counts = (1 + np.arange(len(every)) % 3) * 1000
    tally = sample_tally(scheme, counts, np.random.default_rng(6), values=values)
    for some in (every, every[::-1], every[1:]):
        texts = [str(each) for each in some]
        if isinstance(mechanism, Hashed):
            found = HashedAnalysis.support(oracle_analysis(mechanism), tally, texts)
        else:
            found = support_counts(tally, scheme, texts)
        expected = [
            sum(int(tally.rows[each.row].cells[each.column]) for each in mechanism.support(item))
            for item in some
        ]
        assert found.counts.tolist() == expected
        assert found.reports == tally.reports == counts.sum()


@pytest.mark.parametrize(
    "mechanism",
    [
        ProjectiveGeometry(points(order, dimension), order, dimension, (9 << PRECISION) // 10)
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
