"""The sliding window: its levels and scores, that they leave no bias, and what they lose."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from deniable.protocol.errors import SchemeError
from deniable.protocol.mechanisms import Report, rebuild
from deniable.protocol.mechanisms.number_range import TOP, NumberRange
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.randomness import PRECISION

ONE = 1 << PRECISION
UNIT = NumberRange("-1", "1")

DESIGNS = [
    (epsilon, columns)
    for epsilon in (1e-6, 0.01, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    for columns in (2, 4, 16, 64)
] + [(1.0, 256)]


def chances(window, position):
    """The chance of each column."""
    return [window.likelihood(Report(0, column), position) for column in range(window.columns)]


@pytest.mark.parametrize(("epsilon", "columns"), DESIGNS)
def test_the_mean_of_scores_is_the_number(epsilon, columns):
    """The expected score, over the exact chances of all columns, is the place of the number
    between -1 and 1 to within 2**-29, at every level and between levels."""
    window = SlidingWindow.design(UNIT, epsilon, columns)
    scores = [Fraction(score) for score in window.scores()]
    for position in {*window.levels, 1, TOP // 3, TOP // 2, TOP - 1}:
        expected = sum(map(lambda p, a: p * a, chances(window, position), scores))
        assert abs(expected - Fraction(2 * position - TOP, TOP)) < Fraction(1, 1 << 29)


@pytest.mark.parametrize(("epsilon", "columns"), DESIGNS)
def test_positions_outside_are_the_ends(epsilon, columns):
    """Whatever lies below or above is randomized as the end of the range is."""
    window = SlidingWindow.design(UNIT, epsilon, columns)
    assert chances(window, -1) == chances(window, 0)
    assert chances(window, TOP + 5) == chances(window, TOP)


def test_reference_scores():
    """All scores of the design with a closed form: with
    A = (e+1)/(e-1), four columns of width two score +-(A + 1/2) and +-(A - 1/2)."""
    a = (math.e + 1) / (math.e - 1)
    closed = SlidingWindow.design(UNIT, 1.0, 4).scores()
    assert closed == pytest.approx((-a - 0.5, -a + 0.5, a - 0.5, a + 0.5), abs=1e-12)
    one_bit = SlidingWindow.design(UNIT, 1.0, 2).scores()
    assert one_bit == pytest.approx((-a, a), abs=1e-12)


def test_rounding_between_levels_is_exact():
    """Of all numbers that can be drawn for the gap between two levels, exactly as many lead to the
    upper one as the position lies above the lower one."""
    window = SlidingWindow(UNIT, 4, 2, 3 * (ONE // 4), (0, 4, TOP))
    for position in range(5):
        gap, above = (4, position) if position < 4 else (TOP - 4, 0)
        columns = []
        for drawn in (0, 1, 2, 3):
            left = [((gap - 1).bit_length(), drawn), (PRECISION, 0), (1, 0)]

            def bits(count, left=left):
                asked, number = left.pop(0)
                assert asked == count
                return number

            columns.append(window.randomize(position, bits).columns)
        lowest = 0 if position < 4 else 1
        assert columns == [lowest + 1] * above + [lowest] * (4 - above)


GOOD: dict[str, Any] = dict(SlidingWindow.design(UNIT, 1.0, 8).parameters())


def test_scores_belong_to_their_levels():
    """Levels may be any that increase, but if they are not those of the threshold there are no
    scores: they would be biased."""
    levels = list(GOOD["levels"])
    levels[1] += 2
    moved = rebuild("sliding_window", GOOD | {"levels": levels})
    assert isinstance(moved, SlidingWindow)
    with pytest.raises(SchemeError, match="do not belong"):
        moved.scores()
