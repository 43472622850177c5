"""dBitFlip: the design that is chosen, and its variances."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.dbitflip import BIT_CHOICES, DBITFLIP_CELLS, DBitFlip
from deniable.protocol.mechanisms.number_range import NumberRange

from .two_rounds import flip_chances

UNIT = NumberRange("0", "1")
FLIPS = ONE // 16, ONE // 5


def positions(mechanism):
    """One position in each cell that has any."""
    return [-1, *sorted(set(mechanism.edges))]


def pair_of_epsilons():
    """An epsilon, and one of a memo from 1.01 to 4 times as large."""
    return st.tuples(st.floats(0.01, 5.0), st.floats(1.01, 4.0)).map(lambda e: (e[0], e[0] * e[1]))


@given(pair_of_epsilons(), st.sampled_from(DBITFLIP_CELLS))
def test_the_design_has_the_least_variance_within_both_epsilons(epsilons, cells):
    """No number of bits that may be chosen does better; report and memo take all of their epsilon,
    and not more; of a report with less noise one would be exceeded."""
    epsilon, memo_epsilon = epsilons
    made = DBitFlip.design(UNIT, epsilon, memo_epsilon, cells)
    assert made.odds <= exp_below(epsilon)
    assert made.lifetime_odds <= exp_below(memo_epsilon)
    assert epsilon - 1e-6 < made.epsilon
    assert memo_epsilon - 1e-6 < made.lifetime_epsilon
    less = [
        (made.memo, made.fresh - 1),
        (made.memo - 1, made.fresh),
    ]
    for memo, fresh in less:
        if memo and fresh:
            other = DBitFlip(UNIT, cells, made.bits, memo, fresh)
            above = other.odds > exp_below(epsilon), other.lifetime_odds > exp_below(memo_epsilon)
            assert any(above)
    for bits in (each for each in BIT_CHOICES if each <= cells):
        apart = 1 if bits == 1 else 2
        s = 1 / (math.exp(epsilon / apart) + 1)
        variance = cells / bits * s * (1 - s) / (1 - 2 * s) ** 2
        assert float(made.share_variance) <= variance * (1 + 1e-9)


def test_the_variance_of_edges_is_that_of_independent_bits():
    """On average over edges: the sum over cells of the squared weights, less their mean, times the
    variance of one share, computed the long way from the covariance of the bits of a report."""
    mechanism = DBitFlip(UNIT, 16, 4, *FLIPS)
    s = mechanism.flipped
    expected = Fraction(0)
    for edge in range(1, 16):
        weights = [Fraction(cell < edge) - Fraction(edge, 16) for cell in range(16)]
        for row in range(4):
            own = [weights[cell] / (1 - 2 * s) for cell in range(row, 16, 4)]
            chance = flip_chances(0, 4, s)
            score = {b: sum(c for j, c in enumerate(own) if b >> j & 1) for b in chance}
            mean = sum(score[b] * chance[b] for b in chance)
            # A quarter of the reports are in each row.
            expected += 4 * sum((score[b] - mean) ** 2 * chance[b] for b in chance)
    assert mechanism.edge_variance == pytest.approx(float(expected / 15))


@pytest.mark.parametrize(
    ("epsilon", "memo_epsilon"), [(1.0, 1.0), (2.0, 1.0), (1.0, math.nan), (1.0, 21.0), (0.0, 1.0)]
)
def test_useless_epsilons_are_refused(epsilon, memo_epsilon):
    """A memo must be allowed to reveal more than one report does, and not everything."""
    with pytest.raises(SchemeError, match="epsilon"):
        DBitFlip.design(UNIT, epsilon, memo_epsilon)
