"""Periods of calendars, and the fewest reads that add up to a range."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable import WindowError
from deniable.protocol import windows
from deniable.protocol.keep import CALENDARS, mistakes, read_keep, well_formed
from deniable_collector.stores.errors import NotKept
from deniable_collector.stores.sums import (
    Holding,
    SumName,
    SumRecord,
    bounds,
    cover,
    is_sum,
    period_of,
)

FIRST = date(2025, 12, 29)
DAYS = [f"{FIRST + timedelta(each)}" for each in range(100)]


@pytest.mark.parametrize(
    ("calendar", "window", "period", "first", "after"),
    [
        ("week", "2026-01-01", "2026-W01", "2025-12-29", "2026-01-05"),
        ("month", "2026-12-31", "2026-12", "2026-12-01", "2027-01-01"),
        ("quarter", "2026-12-31", "2026-Q4", "2026-10-01", "2027-01-01"),
        ("quarter", "2026-04", "2026-Q2", "2026-04-01", "2026-07-01"),
        ("quarter", "2026-01-01", "2026-Q1", "2026-01-01", "2026-04-01"),
    ],
)
def test_a_window_lies_in_its_period(calendar, window, period, first, after):
    """The period of a window begins and ends as the calendar says."""
    assert period_of(calendar, window) == period
    assert [datetime.fromtimestamp(each, UTC).date().isoformat() for each in bounds(period)] == [
        first, after,
    ]  # fmt: skip


@pytest.mark.parametrize("label", ["2026-Q0", "2026-Q5", "0000-Q1", "2026-Q", "x"])
def test_no_period(label):
    """What names no period is refused."""
    with pytest.raises(WindowError):
        bounds(label)


@given(st.dates(date(1, 1, 1), date(9999, 9, 30)), st.sampled_from(["week", "month", "quarter"]))
def test_each_day_lies_in_one_period(day, calendar):
    """The period of a day contains it, and is that of its first day too."""
    label = day.isoformat()
    try:
        begin, end = bounds(period_of(calendar, label))
    except WindowError:
        assert calendar == "week"  # the last weeks of the year 9999 end after it
        return
    assert begin <= windows.start(label) < windows.end(label) <= end
    first = datetime.fromtimestamp(begin, UTC).date().isoformat()
    assert period_of(calendar, first) == period_of(calendar, label)


def holding(there, gone, copies, kept):
    """Windows with a tally, dropped ones, the calendars that have valid copies, and those that
    have kept sums."""
    sums = {}
    for calendar in CALENDARS["day"]:
        for form, members, chosen in (("copy", there, copies), ("kept", gone, kept)):
            if calendar in chosen:
                for day in members:
                    name = SumName(form, "day", period_of(calendar, day))
                    record = sums.setdefault(name, SumRecord({}, {}, []))
                    record.reports[day] = [1]
                    if form == "copy":
                        record.stamps[day] = "s"
    return Holding(dict.fromkeys(there, "s"), sums)


_calendars = st.sets(st.sampled_from(CALENDARS["day"]))


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), _calendars, _calendars,
    st.sets(st.integers(0, 99), max_size=4), st.sets(st.integers(0, 99), max_size=3),
)  # fmt: skip
def test_a_cover_counts_each_window_once(one, two, dropped, copies, kept, again, absent):
    """Whatever sums there are, a cover has each window that was asked for exactly once, and none
    else with reports. Where there is none, a kept period has windows that were not asked for."""
    first, last = min(one, two), max(one, two)
    days = [day for place, day in enumerate(DAYS) if place not in absent]
    gone = [day for day in days if day < DAYS[dropped]] if kept else []
    there = [day for day in days if day >= DAYS[dropped] or DAYS.index(day) in again]
    held = holding(there, gone, copies, kept)
    asked = DAYS[first : last + 1]
    try:
        found = cover(asked, held)
    except NotKept as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert set(refused.windows) == set(gone) & set(asked)
        if len(kept) == 1:
            (calendar,) = kept
            cut = {period_of(calendar, day) for day in refused.windows}
            assert any(period_of(calendar, day) in cut for day in {*gone, *there} - {*asked})
        return
    unknown = set(asked) - {*there, *gone}
    own, from_sums = [day for day in found if not is_sum(day) and day not in unknown], []
    for name in map(SumName.parse, filter(is_sum, found)):
        record = held.sums[name]
        (from_sums if name.kept else own).extend(record.reports)
    assert sorted(own) == sorted(set(there) & set(asked))
    assert sorted(from_sums) == sorted(set(gone) & set(asked))


def test_a_year_is_a_dozen_reads():
    """A year with copies of all calendars takes four reads, with those of months a dozen, and a
    range that begins within a month takes its days beside."""
    year = [f"{date(2026, 1, 1) + timedelta(each)}" for each in range(365)]
    all_of_them = holding(year, [], CALENDARS["day"], [])
    assert len(cover(year, all_of_them)) == 4
    found = cover(year, holding(year, [], ["month"], []))
    assert [is_sum(each) for each in found] == [True] * 12
    found = cover(year[20:], holding(year, [], ["month"], []))
    assert sorted(is_sum(each) for each in found) == [False] * 11 + [True] * 11
    assert len(cover(year[20:], all_of_them)) == 5 + 11


def test_sums_of_one_calendar_alone():
    """A week that lacks what its month has is not read: an import may have brought the month
    alone."""
    gone = [day for day in DAYS if "2026-01-05" <= day < "2026-03-01"]
    held = holding([], gone, [], ["week", "month"])
    held.sums[SumName("kept", "day", "2026-01")].reports["2026-01-05"] = [5]
    assert "kept-day-2026-W02" not in cover(gone, held)
    with pytest.raises(NotKept):
        cover([day for day in gone if day < "2026-01-12"], held)


KEEPS = [
    ("day", {"day": "90 days", "month": "forever"}),
    ("day", {"day": 60, "week": "1 year", "month": "2 years", "quarter": "forever"}),
    ("day", {"month": "forever"}),
    ("week", {"week": "30 days"}),
    ("month", {"month": "1 year", "quarter": "forever"}),
    ("day", {"day": "59 days", "month": "forever"}),
    ("month", {"month": "199 days", "quarter": "forever"}),
    ("month", {"week": "forever"}),
    ("week", {"day": "90 days"}),
    ("day", {"day": "90 days", "month": "70 days"}),
    ("day", {"month": "forever", "quarter": "2 years"}),
    *(("day", {"day": each}) for each in (None, "7 days", 7, True, 90.5, "90", "101 years")),
    *(("day", {"day": each}) for each in ("-9 days", "<script>", "9" * 10_000)),
    *(("day", each) for each in (None, {}, [], "forever", {"year": "forever"})),
    ("day", {"\u202eday": "forever"}),
]


def test_what_a_metric_may_keep(stays):
    """A longer period is not kept for a shorter time, and only what windows add up to is kept; what
    is no duration, or names no calendar, is refused in few words, which `keeps.txt` has."""
    lines = []
    for window, keep in KEEPS:
        told = well_formed(keep) or mistakes(read_keep(keep), window) or "fine"
        assert len(told) < 250
        lines.append(f"{window} {str(keep)[:80]!a}: {told}")
    stays("keeps.txt", lines)
