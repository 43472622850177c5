"""The picture of what releases spend: what is drawn where."""

import re
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from deniable_estimator.dashboard.release_pages import HEIGHT, spending_of
from deniable_estimator.releasing.charge import MOST_STEPS, Charge, ReleaseAccount

FIRST = date(2026, 11, 2)


def charge(epsilon, metric="browser", window="2026-10-01"):
    return Charge(metric, (window,), None, "laplace", epsilon, 0.0, epsilon)


def account(*made, budget=None):
    """Releases, each so many days after the first day."""
    rows = [(FIRST + timedelta(days), each, True) for days, each in made]
    return ReleaseAccount.of(rows, 1e-6, budget)


def test_the_line_climbs_by_what_each_day_spends():
    """Stairs from nothing: half of the height at the half of the time, and the top at the end."""
    found = spending_of(
        account((0, charge(1.0)), (5, charge(1.0)), budget=2.0), FIRST + timedelta(10)
    )
    assert found["line"] is not None
    assert found["line"].lines[0].paths[0] == f"M0 {HEIGHT}H0V75H500V0H1000"
    assert found["line"].rules[0].start == (0, 0)
    assert [each.text for each in found["line"].levels] == ["", "0.5", "1.0", "1.5", "2.0"]
    assert (found["part"], found["total"].refused, found["epsilon"]) == (100.0, False, "2.000")


@given(
    st.lists(st.tuples(st.integers(0, 400), st.floats(1e-6, 50.0)), max_size=60),
    st.none() | st.floats(1e-3, 1e4),
)
def test_everything_is_drawn_inside_and_nothing_goes_down(made, budget):
    """Whatever was released: bars are from 0 to 100%, and the line stays in its plot, never
    descends, and ends at the total."""
    whole = account(*((days, charge(epsilon)) for days, epsilon in made), budget=budget)
    found = spending_of(whole, FIRST + timedelta(3))
    assert len(whole.steps) <= MOST_STEPS
    assert all(0 <= width <= 100 for *_, width in found["bars"])
    assert found["part"] is None or 0 <= found["part"] <= 100
    if whole.steps:
        assert whole.steps[-1][1] == whole.total.epsilon
    if found["line"] is not None:
        downs = [float(each) for each in re.findall(r"V([0-9.]+)", found["line"].lines[0].paths[0])]
        assert all(0 <= each <= HEIGHT for each in downs)
        assert downs == sorted(downs, reverse=True)


def test_of_many_days_the_first_and_the_last_stay():
    """Of 93 days every fourth, and what each of them had spent."""
    whole = account(*((day, charge(1.0)) for day in range(93)), budget=None)
    assert [(day - FIRST).days for day, _ in whole.steps] == [4 * step for step in range(24)]
    assert [spent for _, spent in whole.steps[:3]] == [1.0, 5.0, 9.0]
