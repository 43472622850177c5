"""What all mechanisms have in common: the bytes of a report, and the limits of their numbers."""

import math
from fractions import Fraction

import pytest

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below, log_above
from deniable.protocol.mechanisms import Packing, Row, limits
from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.compatible import UnaryEncoding
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection


@pytest.mark.parametrize(
    ("row", "size"),
    [
        (Row(1, Packing.INDEX), 1),
        (Row(2, Packing.INDEX), 1),
        (Row(3, Packing.INDEX), 1),
        (Row(4, Packing.INDEX), 1),
        (Row(256, Packing.INDEX), 1),
        (Row(257, Packing.INDEX), 2),
        (Row(1 << 16, Packing.INDEX), 2),
        (Row(16, Packing.LIST, 2), 1),
        (Row(16, Packing.LIST, 3), 2),
        (Row(1024, Packing.LIST, 100), 125),
        (Row(1024, Packing.LIST, None), 2),
        (Row(1, Packing.BITMAP), 1),
        (Row(8, Packing.BITMAP, 3), 1),
        (Row(9, Packing.BITMAP, None), 2),
        (Row(1000, Packing.BITMAP, 500), 125),
    ],
)
def test_bytes_of_a_report(row, size):
    """An index has the bits of the last column, a list those of each, a bitmap one for each
    column; bytes are whole."""
    assert row.report_bytes == size


def test_total_variance_is_that_of_the_paper():
    """[p(1-p) + (d-1) q(1-q)] / (p-q)**2, exactly."""
    oracle = UnaryEncoding(5, ONE // 2, ONE // 4)
    assert oracle.total_variance(5) == (Fraction(1, 4) + 4 * Fraction(3, 16)) * Fraction(16)


def test_odds_are_within_what_was_declared():
    """Exactly as much as was declared is allowed, and a hair more is not, for a report and for a
    memo."""
    one, two, hair = exp_below(1.0), exp_below(2.0), Fraction(1, 1 << 200)
    fine = MemoizedSubsetSelection.design(2, 1.0, 2.0)
    fine.odds, fine.lifetime_odds = one, two
    assert fine.require_within(1.0) is fine
    assert fine.require_within(1.0, 2.0) is fine
    fine.odds = one + hair
    for memo_epsilon in (None, 2.0):
        with pytest.raises(SchemeError, match="above the declared 1"):
            fine.require_within(1.0, memo_epsilon)
    fine.odds, fine.lifetime_odds = one, two + hair
    assert fine.require_within(1.0) is fine
    with pytest.raises(SchemeError, match="above the declared lifetime_epsilon 2"):
        fine.require_within(1.0, 2.0)


def test_epsilons_are_logarithms_of_odds():
    """Each of the three is rounded up from its own odds."""

    three = MemoizedSubsetSelection.design(2, 1.0, 2.0)
    three.odds, three.lifetime_odds, three.fresh_odds = Fraction(2), Fraction(3), Fraction(5)
    assert three.epsilon == log_above(Fraction(2))
    assert three.lifetime_epsilon == log_above(Fraction(3))
    assert three.fresh_epsilon == log_above(Fraction(5))


@pytest.mark.parametrize(
    ("check", "arguments", "lowest", "highest", "below", "above"),
    [
        (UnaryEncoding.check_size, (), 2, limits.MAX_CELLS, 1, limits.MAX_CELLS + 1),
        (lambda size: UnaryEncoding.check_size(size, 10), (), 2, 10, 1, 11),
        (limits.check_epsilon, (), 1e-9, 10.0, 0.0, 10.000001),
        (limits.check_epsilon, (), 0.5, 1.0, -0.5, math.inf),
        (limits.check_epsilon, (), 0.5, 1.0, -1.0, math.nan),
        (limits.check_memo_epsilon, (1.0,), 1.000001, 20.0, 1.0, 20.000001),
        (limits.check_memo_epsilon, (10.0,), 10.1, 20.0, 9.0, math.nan),
    ],
)
def test_both_ends_of_a_limit(check, arguments, lowest, highest, below, above):
    """The lowest and the highest number are taken, and what lies beyond is refused."""
    check(*arguments, lowest)
    check(*arguments, highest)
    for beyond in (below, above):
        with pytest.raises(SchemeError, match=r"not|above the limit"):
            check(*arguments, beyond)


def test_a_memo_needs_an_epsilon_of_its_reports():
    """The epsilon of a report is checked before that of the memo."""
    with pytest.raises(SchemeError, match="epsilon must be above 0 and at most 10, not 0"):
        limits.check_memo_epsilon(0.0, 5.0)
