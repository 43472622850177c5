"""The days since something happened, and what is said of them."""

from collections import Counter
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable_estimator.annotations import parse_annotations
from deniable_estimator.asking.comparison import days_since, find_moment, left_out_alike
from deniable_estimator.asking.query import Days
from deniable_estimator.errors import EstimateError

NOTED = parse_annotations("""
schema = 1
[[annotations]]
date = 2026-11-01
text = "Release 4.2"
[[annotations]]
date = 2026-11-10T23:30:00Z
text = "release 4.2"
metrics = ["browser"]
[[annotations]]
date = 2026-11-15
text = "Outage"
metrics = ["checkout_*"]
""")


def day(text):
    return date.fromisoformat(text)


@pytest.mark.parametrize(
    ("kind", "kept", "last", "expected"),
    [
        # Ten days with the weekdays of ten before; the day itself and three more are in neither.
        ("day", None, "2026-11-15", ("11-06", "11-15", "10-23", "11-01")),
        # Whole weeks need not begin on the same weekday: the day itself alone is in neither.
        ("day", None, "2026-11-12", ("11-06", "11-12", "10-29", "11-04")),
        ("day", None, "2026-11-19", ("11-06", "11-19", "10-22", "11-04")),
        ("day", None, "2026-11-13", ("11-06", "11-13", "10-23", "10-30")),
        ("day", None, "2026-11-06", ("11-06", "11-06", "10-30", "10-30")),
        # A Thursday: its week is in neither.
        ("week", None, "2026-11-22", ("11-09", "11-22", "10-19", "11-01")),
        ("month", None, "2026-12-31", ("12-01", "12-31", "10-01", "10-31")),
        # Nineteen days are left before it, and days of so many are two whole weeks.
        ("day", "2026-10-17", "2026-11-22", ("11-06", "11-19", "10-22", "11-04")),
        ("day", "2026-10-23", "2026-11-22", ("11-06", "11-18", "10-23", "11-04")),
        ("day", "2026-10-16", "2026-11-22", ("11-06", "11-22", "10-16", "11-01")),
        ("week", "2026-10-19", "2026-11-22", ("11-09", "11-22", "10-19", "11-01")),
        ("week", "2026-10-20", "2026-11-22", ("11-09", "11-15", "10-26", "11-01")),
        ("month", "2026-09-30", "2027-01-31", ("12-01", "12-31", "10-01", "10-31")),
    ],
)
def test_the_windows_after_are_compared_with_as_many_before(kind, kept, last, expected):
    """The window in which it happened, on 5 November, is in neither. Where the registry drops
    windows, the days before reach back no further, and both periods are as long as that allows."""
    kept = {kind: day(kept)} if kept else {}
    found = days_since("m", day("2026-11-05"), kind, day(last), kept)
    first, last, *before = (day(f"2026-{each}") for each in expected)
    assert found == Days(first, last, since="m", before=tuple(before))


@given(
    st.dates(date(2020, 1, 1), date(2030, 1, 1)),
    st.integers(1, 800),
    st.none() | st.integers(6, 900),
)
def test_days_before_hold_the_same_weekdays(happened, count, ago):
    """As many as after it, on the same weekdays, all before it and none of them dropped, and as
    late and as many as that allows."""
    last = happened + timedelta(count)
    kept = date.min if ago is None else happened - timedelta(ago)
    found = days_since("m", happened, "day", last, {"day": kept})
    assert found.first == happened + timedelta(1)
    assert kept <= found.earlier.first <= found.earlier.last
    assert found.earlier.days == found.days

    def held(days):
        return Counter((days.first + timedelta(each)).weekday() for each in range(days.days))

    assert held(found.earlier) == held(found)
    assert happened - found.earlier.last <= timedelta(6 if found.days % 7 else 1)
    # The next larger number of days would reach further back than what is kept.
    assert found.last == last or found.days + 7 > (happened - kept).days


@pytest.mark.parametrize(
    ("oldest", "expected"),
    [
        # Of 22 days before it, three weeks hold the weekdays of three weeks after it.
        ("2025-10-14", ("2025-11-06", "2025-11-26", "2025-10-15", "2025-11-04")),
        # Two days cannot hold the weekdays of as many after it: so all after it are taken, ...
        ("2025-11-03", ("2025-11-06", "2026-10-28", "2025-11-03", "2025-11-04")),
        # ... and where there are no reports before it too.
        ("2025-11-05", ("2025-11-06", "2026-10-28", "2024-11-13", "2025-11-04")),
    ],
)
def test_no_period_reaches_back_before_the_first_report(oldest, expected):
    """A year after a moment is not compared with a year of which the store has three weeks."""
    found = days_since("m", day("2025-11-05"), "day", day("2026-10-28"), {}, day(oldest))
    first, last, *before = map(day, expected)
    assert found == Days(first, last, since="m", before=tuple(before))


@given(st.integers(1, 60), st.integers(0, 40))
def test_what_is_left_out_of_one_period_is_left_out_of_the_other(count, back):
    """Each day has another one of its weekday in the days before, where both hold the same
    weekdays; otherwise it has none. A week has none."""
    first = day("2026-11-01")
    days = Days(first, first + timedelta(count - 1))
    earlier = days.over(first - timedelta(count + back), first - timedelta(1 + back))
    left = [first + timedelta(each) for each in {0, count // 2, count - 1}]
    asked = days.leaving_out(*map(str, left), "2026-W45")
    gone = {*left_out_alike(earlier, asked).without} - {*asked.without}
    alike = (count + back) % 7 == 0 or count % 7 == 0
    weekdays = sorted(each.weekday() for each in left) if alike else []
    assert sorted(day(each).weekday() for each in gone) == weekdays
    assert all(map(earlier.touches, gone))


@pytest.mark.parametrize(
    ("moment", "months", "expected"),
    [
        # Days are kept since 22 September: three weeks before the moment are all there, ...
        ("2026-10-30", None, ("2026-10-31", "2026-11-20", "2026-10-09", "2026-10-29")),
        # ... one before this one is more than no whole month after it, ...
        ("2026-10-02", None, ("2026-10-03", "2026-10-09", "2026-09-25", "2026-10-01")),
        # ... one before this one is less than a month, ...
        ("2026-09-30", None, ("2026-10-01", "2026-10-31", "2026-08-01", "2026-08-31")),
        # ... and of earlier ones only months are there, or else quarters.
        ("2026-09-22", None, ("2026-10-01", "2026-10-31", "2026-08-01", "2026-08-31")),
        ("2025-11-20", None, ("2025-12-01", "2026-10-31", "2024-12-01", "2025-10-31")),
        ("2025-11-20", "2025-01-15", ("2025-12-01", "2026-08-31", "2025-02-01", "2025-10-31")),
        ("2025-11-20", "2025-10-02", ("2026-01-01", "2026-09-30", "2025-01-01", "2025-09-30")),
    ],
)
def test_kept_sums_are_compared_where_windows_were_dropped(moment, months, expected):
    """The calendar that compares the most days is taken: days, where enough of them are kept."""
    oldest = day(months) if months else date.min
    kept = {"day": day("2026-09-22"), "month": oldest, "quarter": date.min}
    first, last, *before = map(day, expected)
    found = days_since("m", day(moment), "day", day("2026-11-20"), kept)
    assert found == Days(first, last, since="m", before=tuple(before))


def test_a_moment_is_found_by_its_text_or_day():
    """The latest of a text, whatever its case, among those that concern the metric."""
    assert find_moment("release 4.2", NOTED, "browser") == ("release 4.2", day("2026-11-10"))
    assert find_moment("RELEASE 4.2", NOTED, "other") == ("Release 4.2", day("2026-11-01"))
    assert find_moment("outage", NOTED) == ("Outage", day("2026-11-15"))
    assert find_moment("2026-11-03", NOTED) == ("2026-11-03", day("2026-11-03"))
    with pytest.raises(EstimateError, match=r"Release 4.1.*did you mean Release 4\.2\?"):
        find_moment("Release 4.1", NOTED, "other")
    assert find_moment("Outage", NOTED, "browser") == ("Outage", day("2026-11-15"))
    with pytest.raises(EstimateError, match=r"no annotation and no day like 2026-11-20$"):
        find_moment("Outages", NOTED, "browser")


@pytest.mark.parametrize("kind", ["day", "week", "month"])
@pytest.mark.parametrize(
    ("moment", "told"),
    [
        ("0001-01-01", "before m is kept"),
        ("0001-01-03", "before m is kept"),
        ("2026-10-01", "before m is kept"),
        ("9999-12-31", "complete yet"),
    ],
)
def test_what_has_nothing_before_or_after_is_refused(kind, moment, told):
    """At the ends of the calendar, and before what is kept."""
    kept = {kind: day("2026-10-01")} if moment > "2000" else {}
    with pytest.raises(EstimateError, match=told):
        days_since("m", day(moment), kind, day("2026-11-30"), kept)
