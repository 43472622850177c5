"""Ticks: four or five at round numbers, Mondays, first days of months."""

import math
from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable_estimator.dashboard.trends import _dates
from deniable_estimator.document.plot.scales import (
    date_ticks,
    levels_from_zero,
    round_levels,
)

LAST = date(2026, 11, 20)


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e7))
def test_a_linear_axis_has_four_or_five_round_ticks(lowest, span):
    """The ticks are multiples of 1, 2, 2.5 or 5 times a power of ten, hold both ends, and are four
    or five; three only where an end lies within a billionth of one of them."""
    highest = lowest + span
    levels, step = round_levels(lowest, highest)
    near = min(abs(each / step - round(each / step)) for each in (lowest, highest)) < 1e-6
    assert len(levels) in ((3, 4, 5) if near else (4, 5))
    assert levels[0] <= lowest + 1e-6 * step
    assert levels[-1] >= highest - 1e-6 * step
    mantissa = step / 10.0 ** math.floor(math.log10(step) + 1e-12)
    assert any(math.isclose(mantissa, each, rel_tol=1e-9) for each in (1, 2, 2.5, 5))
    for one, two in pairwise(levels):
        assert two - one == pytest.approx(step, rel=1e-4)


@given(st.floats(1e-6, 10))
def test_bars_begin_at_zero(highest):
    """The scale of bars has zero and three or four round ticks more, and hardly longer than the
    longest bar."""
    levels, step = levels_from_zero(highest)
    assert levels[0] == 0
    assert len(levels) in (4, 5)
    assert levels[-1] <= 1.2001 * highest
    assert levels[-1] > highest - step * 1.0001


def texts(days, shortest="day"):
    return [text for _, text in date_ticks(LAST - timedelta(days - 1), LAST, shortest)]


def test_four_weeks_have_their_mondays():
    """A month of days shows its Mondays, a quarter every third one, half a year and a year the
    first days of months, with the year where one begins."""
    assert texts(28) == ["26 Oct", "2 Nov", "9 Nov", "16 Nov"]
    assert texts(91) == ["24 Aug", "14 Sep", "5 Oct", "26 Oct", "16 Nov"]
    assert texts(182) == ["Jun", "Jul", "Aug", "Sep", "Oct", "Nov"]
    assert texts(364, "week") == ["Jan 2026", "Mar", "May", "Jul", "Sep", "Nov"]
    assert texts(7) == ["14 Nov", "16 Nov", "18 Nov", "20 Nov"]


@given(st.dates(date(2000, 1, 1), date(2090, 1, 1)), st.integers(2, 3660))
def test_dates_are_few_and_inside(first, days):
    """Of any range there are two to six dates, all of them inside, ascending and equally spaced in
    days, Mondays or months."""
    last = first + timedelta(days - 1)
    found = [day for day, _ in date_ticks(first, last, "day")]
    assert 2 <= len(found) <= 6
    assert first <= found[0]
    assert found[-1] <= last
    gaps = {(two - one).days for one, two in pairwise(found)}
    months = {12 * (two.year - one.year) + two.month - one.month for one, two in pairwise(found)}
    assert len(gaps) == 1 or (len(months) == 1 and {each.day for each in found} == {1})
    if days > 20 and len(gaps) == 1 and min(gaps) >= 7:
        assert {each.weekday() for each in found} == {0} or {each.day for each in found} == {1}


def test_every_second_date_is_spare():
    """A narrow plot leaves it out; a picture has the year in each."""
    dates, years = _dates(tuple(f"2026-11-{day}" for day in range(10, 17)))
    assert [each.spare for each in dates] == [False, True, False, True]
    assert [f"{each.text} 2026" for each in dates] == [each.text for each in years]
