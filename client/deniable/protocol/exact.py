"""Exponentials and logarithms that are rounded in the safe direction.

The guarantee of a mechanism is computed from integers. Only e**epsilon and ln(ratio) need
rounding, and both functions here round so that the printed epsilon is an upper bound of the
true one.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

_DIGITS = 60
_MORE_DIGITS = 80
"""For logarithms: their slack must be far below the last digit of an exponential."""


def exp_below(exponent: float) -> Fraction:
    """The largest 60-digit decimal that lies below e**exponent.

    The float is taken at its exact binary value. `Decimal.exp` is correctly
    rounded, so one step down is below the true value.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        return Fraction(Decimal(exponent).exp().next_minus())


@lru_cache(maxsize=1024)
def log_above(ratio: Fraction) -> float:
    """The smallest float that is no less than ln(ratio).

    Raises:
        ValueError: `ratio` is not positive.
    """
    if ratio <= 0:
        raise ValueError(f"a likelihood ratio is positive, not {ratio}")
    if ratio == 1:
        return 0.0
    with localcontext() as context:
        context.prec = _MORE_DIGITS
        # The quotient errs by less than 1e-79 of itself, which moves its logarithm by
        # no more than that; the logarithm errs by one unit in its own last digit.
        quotient = Decimal(ratio.numerator) / Decimal(ratio.denominator)
        log = quotient.ln().next_plus() + Decimal("1e-78")
    nearest = float(log)
    return nearest if Decimal(nearest) >= log else math.nextafter(nearest, math.inf)
