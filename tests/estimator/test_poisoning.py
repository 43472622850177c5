"""The poisoning budget: formulas against all reports there are, and against published ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.estimator.schemes import every_report
from tests.supports import support

from deniable.protocol.mechanisms import Mechanism
from deniable.protocol.mechanisms.compatible import HadamardResponse, UnaryEncoding
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.rappor import BasicRappor, Bloom, OneTimeRappor, Rappor, Rounds
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable.protocol.randomness import PRECISION
from deniable_estimator.analyses import oracle_analysis

ONE = 1 << PRECISION

SMALL: list[Mechanism[int]] = [
    SubsetSelection.design(4, 1.0, 2),
    SubsetSelection.design(5, 1.0, 1),
    SubsetSelection.design(2, 1.0, 1),
    ProjectiveGeometry.design(7, 1.0),
    ProjectiveGeometry.best(1.0, 13, 13, size=9),
    ProjectiveGeometry.best(1.0, 13, 13, size=11),
    ProjectiveGeometry.best(1.0, 15, 15, size=13),
    *(HadamardResponse.design(size, 1.0) for size in (3, 4, 5, 9, 10)),
    UnaryEncoding.optimized(4, 1.0),
    BasicRappor(4, Rounds(ONE // 4, ONE // 4, ONE * 3 // 4)),
]


@pytest.mark.parametrize(
    ("mechanism", "targets"),
    [(each, count) for each in SMALL for count in (1, 2, 3, 4, 5, 7) if count <= (each.size or 0)],
)
def test_no_report_moves_its_targets_further(mechanism, targets):
    """The pull is what the best of all well-formed reports shows, exactly: all are tried, on
    all sets of so many targets."""
    planes = [{column for _, column in support(mechanism, x)} for x in range(mechanism.size)]
    p, q = mechanism.p, mechanism.q
    supported = {
        sum(not columns.isdisjoint(planes[x]) for x in chosen)
        for _, columns in every_report(mechanism)
        for chosen in itertools.combinations(range(mechanism.size), targets)
    }
    found = oracle_analysis(mechanism).pull(targets)
    assert found.most == (max(supported) - targets * q) / (p - q)
    assert found.least == (min(supported) - targets * q) / (p - q)


def test_known_figures():
    """The gains of 1% fakes on 5 of 100 values, less the targets' own share, by the published
    formulas of maximal gain attacks: generalized randomized response and unary encoding.
    """
    e = np.exp(1.0)
    for mechanism, known in (
        (SubsetSelection.design(100, 1.0, 1), 0.01 * (1 - 0.2) + 0.01 * (100 - 5) / (e - 1)),
        (UnaryEncoding.optimized(100, 1.0), 0.01 * (2 * 5 - 0.2) + 2 * 0.01 * 5 / (e - 1)),
    ):
        most = float(oracle_analysis(mechanism).pull(5).most)
        assert 0.01 * (most - 0.2) == pytest.approx(known, rel=1e-9)


@pytest.mark.parametrize("targets", [1, 3])
def test_filters_of_one_hash_pull_as_far_in_both_directions(targets):
    """Of strings that set one bit each, the best fake sets their bits and no other and shows
    1 / (p11 - p01) of each, and the worst sets all others and shows as much below zero."""
    permanent = Rappor(Bloom("city", 2, 16, 1), Rounds.tuned(1.0, 3.0))
    once = OneTimeRappor(Bloom("city", 2, 16, 1), ONE // 2)
    for mechanism, p11, p01 in (
        (permanent, permanent.rounds.p11, permanent.rounds.p01),
        (once, once.p, 1 - once.p),
    ):
        found = oracle_analysis(mechanism).pull(targets)
        assert found == (targets / (p11 - p01), -targets / (p11 - p01))
