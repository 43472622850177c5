"""The blanket's bounds against the exact distributions of all reports of a small crowd."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.estimator.schemes import every_report

from deniable.protocol.mechanisms import MECHANISMS, Mechanism
from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.compatible import HadamardResponse, UnaryEncoding
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hashed import (
    CohortLocalHashing,
    CountMeanSketch,
    HadamardCountMeanSketch,
    HashedProjectiveGeometry,
    MemoizedLocalHashing,
)
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.number_range import TOP, NumberRange
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.rappor import BasicRappor, Bloom, OneTimeRappor, Rappor, Rounds
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection, SubsetSelection
from deniable_estimator.privacy.blanket import Blanket, favouring, hidden
from deniable_estimator.privacy.composition import Repeated, composed_delta, loss_of
from deniable_estimator.privacy.mechanism_blankets import blanket_of

_EPSILONS = (0.0, 0.3, 0.8, 1.5)
_RANGE = NumberRange("0", "10")
_EVEN = ONE // 2


def _channel(mechanism, items):
    """The exact likelihoods: a row for each item, a column for each report."""
    reports = [report for report, _ in every_report(mechanism)]
    exact = [[mechanism.likelihood(each, item) for each in reports] for item in items]
    assert all(sum(row) == 1 for row in exact)
    return np.array([[float(each) for each in row] for row in exact])


def _crowd(channel, values):
    """The distribution of how often each report is made by devices with these values. The counts
    are the digits of a number in base 16."""
    counts = {0: 1.0}
    for value in values:
        grown = {}
        for seen, chance in counts.items():
            for report, likelihood in enumerate(channel[value].tolist()):
                key = seen + (1 << 4 * report)
                grown[key] = grown.get(key, 0.0) + chance * likelihood
        counts = grown
    return counts


def _pair(channel, one, other, others):
    """The distributions of the crowd's reports if the device has one value or the other."""
    found = [_crowd(channel, (*others, value)) for value in (one, other)]
    keys = sorted(set(found[0]) | set(found[1]))
    return (
        np.array([found[0].get(key, 0.0) for key in keys]),
        np.array([found[1].get(key, 0.0) for key in keys]),
    )


def _exact(first, second, epsilon):
    """The least delta at epsilon."""
    return float(np.maximum(0.0, first - math.exp(epsilon) * second).sum())


CASES: dict[str, tuple[Mechanism[Any], list[Any], int]] = {
    "binary": (SubsetSelection.design(2, 1.0), [0, 1], 8),
    "one of three": (SubsetSelection.design(3, 2.0, k=1), [0, 1, 2], 6),
    "one of four": (SubsetSelection.design(4, 2.0, k=1), [0, 1, 2, 3], 5),
    "two of four": (SubsetSelection.design(4, 1.0, k=2), [0, 1, 2], 4),
    "two of five": (SubsetSelection.design(5, 1.5, k=2), [0, 1], 4),
    "geometry of order 2": (ProjectiveGeometry.calibrated(7, 2, 3, Fraction(3)), [0, 1, 2], 4),
    "geometry of order 3": (ProjectiveGeometry.calibrated(4, 3, 2, Fraction(3)), [0, 1, 2], 5),
    "symmetric bits": (UnaryEncoding.symmetric(2, 1.0), [0, 1], 7),
    "optimized bits": (UnaryEncoding.optimized(3, 1.5), [0, 1], 4),
    "Hadamard": (HadamardResponse.design(3, 1.0), [0, 1, 2], 5),
    "hashed geometry": (
        HashedProjectiveGeometry("a", 2, ProjectiveGeometry.calibrated(4, 3, 2, Fraction(3))),
        ["x", "y", "z"],
        4,
    ),
    "prefix tree": (
        PrefixTree("a", 1, "bytes", ProjectiveGeometry.calibrated(None, 2, 3, Fraction(3))),
        ["ab", "abc", "xy"],
        3,
    ),
    "cohorts": (CohortLocalHashing("a", 3, SubsetSelection.design(3, 1.0, k=1)), ["x", "y"], 4),
    "sketch": (CountMeanSketch("a", 2, UnaryEncoding.symmetric(2, 1.0)), ["x", "y", "z"], 4),
    "Hadamard sketch": (
        HadamardCountMeanSketch("a", 2, HadamardResponse.design(3, 1.0)),
        ["k", "l", "x"],
        4,
    ),
    "memoized": (MemoizedSubsetSelection.design(4, 1.0, 3.0, k=1), [0, 1, 2], 5),
    "memoized hashing": (
        MemoizedLocalHashing("a", 2, MemoizedSubsetSelection.design(3, 1.0, 3.0, k=1)),
        ["k", "l", "x"],
        4,
    ),
    "who comes back": (
        MemoizedRetention.design("week", 2, ("lifecycle", "cohorts"), 1.0, 3.0),
        [0, 4 + 1, 8 + 3],
        4,
    ),
    "basic RAPPOR": (BasicRappor.design(2, 1.0, 4.0), [0, 1], 7),
    "RAPPOR": (Rappor(Bloom("a", 1, 3, 1), Rounds.tuned(1.0, 4.0)), ["x", "y", "z"], 4),
    "RAPPOR of two hashes": (
        Rappor(Bloom("a", 1, 4, 2), Rounds(_EVEN, ONE // 2, ONE * 3 // 4)),
        ["k", "l", "x"],
        2,
    ),
    "one-time RAPPOR": (OneTimeRappor(Bloom("a", 2, 2, 1), ONE // 2), ["x", "y"], 4),
    "sliding window": (SlidingWindow.design(_RANGE, 1.0, 4), [0, TOP // 3, TOP], 5),
    "one bit": (SlidingWindow.design(_RANGE, 1.0, 2), [0, TOP], 8),
    "histogram": (HierarchicalHistogram.design(_RANGE, 1.0, 4), [0, TOP // 2, TOP], 5),
    "histogram of two levels": (HierarchicalHistogram.design(_RANGE, 1.0, 16), [0, TOP], 2),
    "dBitFlip": (DBitFlip(_RANGE, 16, 2, ONE // 8, ONE // 5), [0, TOP // 2, TOP], 2),
    "dBitFlip of one bit": (DBitFlip(_RANGE, 16, 1, ONE // 8, ONE // 5), [0, TOP], 2),
}
"""A mechanism, values of it, and the largest crowd that is enumerated."""


def test_every_mechanism_is_enumerated():
    """A mechanism that ships has a case here."""
    assert {mechanism.name for mechanism, _, _ in CASES.values()} == set(MECHANISMS)


@pytest.mark.parametrize("case", CASES)
def test_bound_is_never_below_the_exact_delta(case):
    """For all values of the device, whatever values the others have, up to eight devices. A known
    wrong bound, which takes n from the whole metric where two segments are published, fails."""
    mechanism, items, most = CASES[case]
    channel = _channel(mechanism, items)
    blanket = blanket_of(mechanism)
    wrong = 0
    for count in sorted({1, 2, most}):
        largest = dict.fromkeys(_EPSILONS, 0.0)
        for others in _worlds(len(items), count - 1):
            for one, other in product(range(len(items)), repeat=2):
                if one == other:
                    continue
                first, second = _pair(channel, one, other, others)
                for epsilon in _EPSILONS:
                    largest[epsilon] = max(largest[epsilon], _exact(first, second, epsilon))
        for epsilon, exact in largest.items():
            for bound in (blanket, hidden(mechanism.epsilon)):
                assert bound.delta(epsilon, count) >= exact - 1e-12, (count, epsilon)
            wrong += blanket.delta(epsilon, 2 * count) < exact - 1e-12
    assert wrong, "to count the reports of another segment too is wrong, and must fail here"


def _worlds(values, others):
    """What values the others can have: all alike, or as mixed as can be."""
    alike = [(value,) * others for value in range(values)]
    mixed = tuple(place % values for place in range(others))
    return sorted({*alike, mixed})


def test_bound_is_tight_for_one_report():
    """A sum of one report tells what the report does."""
    mechanism = SubsetSelection.design(2, 1.0)
    assert blanket_of(mechanism).delta(0.0, 1) == pytest.approx(math.tanh(0.5), rel=1e-3)
    assert blanket_of(mechanism).delta(1.0, 1) < 1e-9


def test_two_windows_compose():
    """Two windows of fresh reports reveal no more than the composed bound, of binary values."""
    mechanism = SubsetSelection.design(2, 1.0)
    channel = _channel(mechanism, [0, 1])
    loss = loss_of(blanket_of(mechanism), 4, 1e-9)
    for others in _worlds(2, 3):
        first, second = _pair(channel, 0, 1, others)
        both = np.outer(first, first).ravel(), np.outer(second, second).ravel()
        for epsilon in _EPSILONS:
            assert composed_delta([Repeated(loss, 2)], epsilon) >= _exact(*both, epsilon)


def test_within_is_the_worst_of_all_overlaps():
    """Shared columns only lower the bound."""
    deltas = [favouring(0.4, math.e, 1.0, both).delta(0.2, 50) for both in (0.0, 0.1, 0.2, 0.3)]
    assert deltas == sorted(deltas, reverse=True)


def test_one_direction_of_an_asymmetric_pair_is_not_enough():
    """A pair of which the one value is more telling gets the larger of both directions."""
    lopsided = Blanket(0.5, ((0.2, 2.0, 0.75), (0.8, 0.75, 1.0625)), 1.5)
    there, back = lopsided.delta(0.3, 20), lopsided.swapped().delta(0.3, 20)
    assert there == back


def _others_are_elsewhere(values, odds, count, epsilon):
    """A wrong bound, a clone bound with the mechanism's own chances: it takes the others to report
    both of the values compared at the lower chance, which they do not if they have one of them."""
    low = 1 / (odds + values - 1)
    channel = np.array(
        [[odds * low if place == own else low for place in range(values)] for own in range(values)]
    )
    return _exact(*_pair(channel, 0, 1, (2,) * (count - 1)), epsilon)


def test_a_known_wrong_bound_fails_the_enumeration():
    """A wrong bound is below the exact delta for four devices with one of four values, and the
    blanket's is not."""
    mechanism = SubsetSelection.design(4, 2.0, k=1)
    channel = _channel(mechanism, [0, 1, 2, 3])
    exact = max(
        _exact(*_pair(channel, 0, 1, others), 1.5) for others in product(range(4), repeat=3)
    )
    wrong = _others_are_elsewhere(4, math.exp(2.0), 4, 1.5)
    assert wrong < 0.96 * exact
    assert blanket_of(mechanism).delta(1.5, 4) >= exact
