"""Where a number lies: its position, exactly on a linear scale, and back."""

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deniable.protocol.mechanisms.number_range import BELOW, TOP, NumberRange, number_text

INFINITE = math.inf

bounds = st.floats(-1e12, 1e12).map(lambda value: value + 0.0)


@st.composite
def ranges(draw):
    """Any range: linear, of whole numbers, or logarithmic over a factor of 1.2 or more."""
    kind = draw(st.sampled_from(["linear", "integer", "log"]))
    if kind == "log":
        low = draw(st.floats(1e-9, 1e9))
        return NumberRange(number_text(low), number_text(low * draw(st.floats(1.2, 1e12))), "log")
    if kind == "integer":
        least = draw(st.integers(-(10**12), 10**12))
        return NumberRange(str(least), str(least + draw(st.integers(1, 10**9))), integer=True)
    low, high = sorted(draw(st.lists(bounds, min_size=2, max_size=2, unique=True)))
    assume(high - low >= max(1e-100, max(abs(low), abs(high)) * 2.0**-40))
    return NumberRange(number_text(low), number_text(high))


@given(ranges(), bounds, bounds)
def test_positions_rise_with_the_number(numbers, one, other):
    """A larger number never has a smaller position, and only numbers outside are -1 or TOP."""
    lower, upper = sorted((one, other))
    assert numbers.position(lower) <= numbers.position(upper)
    for value in (one, other):
        inside = numbers.start <= value < numbers.end
        assert (0 <= numbers.position(value) < TOP) == inside


@given(ranges(), st.floats(0, 1))
def test_linear_positions_are_exact(numbers, part):
    """A position is the rounded-down fraction of the range, computed from the floats as they are;
    on a logarithmic scale it is the same to within a step."""
    value = numbers.value(part * TOP)
    if not numbers.start <= value < numbers.end:
        return
    if numbers.scale == "log":
        parts = math.log(value / numbers.start) / math.log(numbers.end / numbers.start)
        assert abs(numbers.position(value) - parts * TOP) <= 1
    else:
        parts = (Fraction(value) - Fraction(numbers.start)) / numbers.span
        assert numbers.position(value) == math.floor(parts * TOP)


@given(ranges(), st.integers(0, TOP - 1))
def test_a_position_leads_back_to_itself(numbers, position):
    """The number at the middle of a step has the position of that step, if floats are fine enough
    to tell the step's ends apart."""
    ends = [numbers.value(position + part) for part in (0.25, 0.5, 0.75)]
    if math.ulp(ends[2]) * 8 < ends[2] - ends[0]:
        assert numbers.position(ends[1]) == position
    assert numbers.start <= ends[1] <= numbers.end


def test_numbers_on_an_edge_fall_into_the_upper_step():
    """Powers of ten over twelve decades fall on the step that begins there, although their
    logarithms are rounded."""
    numbers = NumberRange("1e-6", "1e6", "log")
    for place in range(12):
        assert numbers.position(10.0 ** (place - 6)) == place * TOP // 12


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (10.0, "10"),
        (0.05, "0.05"),
        (-2.5, "-2.5"),
        (1e300, "1e+300"),
        (2.0**53, "9007199254740992"),
        (2.0**53 + 2, "9007199254740994.0"),
        (5e-324, "5e-324"),
    ],
)
def test_the_text_of_a_number(value, text):
    """The shortest text; whole numbers have no point as long as all of them are floats."""
    assert number_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_text_reads_back_as_the_number(value):
    """No digit is lost."""
    assert float(number_text(value)) == value


def test_whole_numbers_need_two_of_them_at_least():
    """`high` is the largest whole number inside, so two are the least that low < high allows."""
    numbers = NumberRange("4", "5", integer=True)
    assert (numbers.start, numbers.end) == (4, 6)
    assert [numbers.position(each) for each in (3, 4, 5, 6)] == [BELOW, 0, TOP // 2, TOP]
