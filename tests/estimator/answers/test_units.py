"""Numbers as text: digits by their uncertainty, open ends in words, the unit once."""

import math

import pytest

from deniable_estimator.document.units import SHARES, NumberUnit, half_width

SECONDS = NumberUnit("s")


@pytest.mark.parametrize(
    ("number", "spread", "text"),
    [
        (0.3569, 0.033, "0.357 s"),
        (2.2113, 0.78, "2.21 s"),
        (1234.5, 200.0, "1,230 s"),
        (-1.5, 0.2, "−1.50 s"),
        (3.0, 0.5, "3 s"),
        (3.0, 0.0, "3 s"),
        (400.0, 12.0, "400 s"),
        (math.inf, 1.0, "no upper limit"),
        (-math.inf, 1.0, "no lower limit"),
        (math.nan, 1.0, "unknown"),
    ],
)
def test_a_number_has_the_digits_of_its_uncertainty(number, spread, text):
    """Down to a tenth of the half width, whole numbers among whole ends without decimals, and
    what is not finite in words without a unit."""
    assert SECONDS.full(number, spread) == text


def test_an_interval_has_its_unit_once():
    """Where an end has no limit the other one keeps the unit; without any limit nothing is
    known."""
    assert SECONDS.interval(0.316, 0.362, 0.023) == "0.316 to 0.362 s"
    assert SECONDS.interval(1.62, math.inf, 0.42) == "1.62 s to no upper limit"
    assert SECONDS.interval(-math.inf, math.inf, 1.0) == "unknown"
    assert SHARES.interval(0.1, 0.2, 0.05) == "10.0% to 20.0%"
    assert SHARES.interval(-math.inf, math.inf, 1.0) == "unknown"


def test_an_open_side_is_as_wide_as_the_other():
    """Digits come from what is known."""
    assert half_width(2.0, 1.5, 2.5) == 0.5
    assert half_width(2.0, 1.5, math.inf) == 0.5
    assert half_width(2.0, -math.inf, math.inf) == 2.0


@pytest.mark.parametrize(
    ("difference", "spread", "text"),
    [(0.0214, 0.01, "2.1"), (-0.0214, 0.01, "\N{MINUS SIGN}2.1"), (-0.0001, 0.01, "0.0"),
     (0.02141, 0.0001, "2.141"), (0.02141234, 1e-7, "2.1412"), (0.02141, 0.00099, "2.141"),
     (0.02141, 0.001, "2.1"), (0.02141, 0.0, "2.1")],
)  # fmt: skip
def test_points_have_the_digits_that_they_deserve(difference, spread, text):
    """No more digits than the uncertainty leaves, and no minus before nothing."""
    assert SHARES.text(difference, spread) == text


def test_a_unit_of_percent_takes_no_space():
    """A number that is measured in percent is written as a share is, other units with a space."""
    assert NumberUnit("%").full(12.5, 0.5) == "12.50%"
    assert NumberUnit("%").tick(20.0, 10.0) == "20%"
    assert NumberUnit("%").interval(1.5, 2.5, 0.5) == "1.50 to 2.50%"
    assert NumberUnit("ms").exact(3.0) == "3 ms"
