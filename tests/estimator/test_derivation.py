"""The derivations of a report's odds, against the mechanisms' own likelihoods."""

from __future__ import annotations

from fractions import Fraction

import pytest

from deniable.mechanisms import Memoizing, Packing, Report
from deniable_estimator.privacy.derivation import derivation_of

from .test_outsider_enumeration import CASES


@pytest.mark.parametrize("case", CASES)
def test_derivation_leads_to_the_odds_in_force(case: str) -> None:
    """For every mechanism that ships, the two probabilities have the mechanism's odds, exactly."""
    mechanism = CASES[case][0]
    found = derivation_of(mechanism)
    assert found is not None
    assert found.odds == mechanism.odds
    assert 0 < found.low < found.high < 1
    assert (found.rounds is None) != isinstance(mechanism, Memoizing)
    assert found.made.endswith(".")
    assert found.source
    assert (found.times > 1) == bool(found.times_rule)


_WHOLE = [
    case
    for case, (mechanism, _, _) in CASES.items()
    if [row.packing for row in mechanism.rows] == [Packing.INDEX]
]


@pytest.mark.parametrize("case", _WHOLE)
def test_probabilities_are_those_of_whole_reports(case: str) -> None:
    """Where a report is one column of one row, the derivation has the largest and the smallest
    probability of any report, exactly."""
    mechanism, items, _ = CASES[case]
    found = derivation_of(mechanism)
    assert found is not None
    (row,) = mechanism.rows
    chances = [
        Fraction(mechanism.likelihood(Report(0, column), item))
        for column in range(row.width)
        for item in items
    ]
    assert max(chances) == found.high
    assert min(chances) == found.low
