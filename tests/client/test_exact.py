"""Exponentials and logarithms err on the safe side, and hardly."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deniable.protocol.exact import exp_below, log_above

epsilons = st.floats(1e-9, 10.0)


@given(epsilons)
def test_exp_is_below_and_close(epsilon):
    """The bound is under e**epsilon, by less than one part in 10**57."""
    with localcontext() as context:
        context.prec = 90
        true = Fraction(Decimal(epsilon).exp())
    assert 0 < true - exp_below(epsilon) < true / 10**57


@given(epsilons)
def test_log_undoes_exp_without_exceeding_it(epsilon):
    """ln of the lower bound of e**epsilon, rounded up, is epsilon itself again."""
    assert log_above(exp_below(epsilon)) == epsilon


@example(Fraction(1))
@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_log_is_the_smallest_float_above(ratio):
    """The float is no less than the logarithm, and the next one down is less."""
    bound = log_above(ratio)
    with localcontext() as context:
        context.prec = 90
        true = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
    assert Decimal(bound) >= true
    assert Decimal(math.nextafter(bound, -math.inf)) < true


def test_exp_has_sixty_digits():
    """Thresholds are computed from exactly these digits, which another implementation must find:
    e and its root rounded to 60 digits, and one step down."""
    known = {
        1.0: "2.71828182845904523536028747135266249775724709369995957496696",
        0.5: "1.64872127070012814684865078781416357165377610071014801157507",
    }
    for exponent, digits in known.items():
        assert exp_below(exponent) == Fraction(digits)


@given(epsilons, st.sampled_from([80, 84, 100]))
def test_log_of_a_little_more_is_the_next_float(epsilon, digits):
    """A ratio above e**epsilon by less than the calculation resolves is not rounded down."""
    with localcontext() as context:
        context.prec = 140
        more = Fraction(Decimal(epsilon).exp() * (1 + Decimal(f"1e-{digits}")))
    assert log_above(more) == math.nextafter(epsilon, math.inf)


@pytest.mark.parametrize("ratio", [Fraction(0), Fraction(-1)])
def test_log_of_no_ratio(ratio):
    """A likelihood ratio is positive."""
    with pytest.raises(ValueError, match="positive"):
        log_above(ratio)
