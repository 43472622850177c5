"""The days that a page looks at."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from deniable_estimator.dashboard.ranges import DayRange, RangeError, before, presets, read_range

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()


def test_what_is_left_out_is_thirty_days_until_today() -> None:
    """Without dates a page shows the last 30 days; with one, what leads up to it."""
    assert read_range({}, NOW) == DayRange(date(2026, 10, 23), date(2026, 11, 21))
    assert read_range({"to": "2026-10-30"}, NOW).first == date(2026, 10, 1)
    assert read_range({"from": "2026-11-20", "to": ""}, NOW).days == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"from": "x"},
        {"to": "2026-13-01"},
        {"from": "2026-11-22"},
        {"from": "1900-01-01"},
    ],
)
def test_bad_ranges_raise(arguments: dict[str, str]) -> None:
    """What is no date, ends before it begins or is over ten years long is refused."""
    with pytest.raises(RangeError):
        read_range(arguments, NOW)


def test_the_first_days_of_the_calendar_are_no_accident() -> None:
    """A range that would begin before the year 1 begins where it ends."""
    assert read_range({"to": "0001-01-05"}, NOW).days == 1


def test_presets_end_today_and_survive_the_address() -> None:
    """Each preset is a range that reads back as itself."""
    for preset in presets(NOW):
        assert preset.range.last == date(2026, 11, 21)
        assert read_range(preset.range.query, NOW) == preset.range
    assert read_range({}, NOW) in [preset.range for preset in presets(NOW)]


def test_the_days_before_share_no_window() -> None:
    """As many days, ending before the first window that the range touches; never before year 1."""
    days = DayRange(date(2026, 11, 18), date(2026, 11, 20))
    assert before(days, "day") == DayRange(date(2026, 11, 15), date(2026, 11, 17))
    assert before(days, "week") == DayRange(date(2026, 11, 13), date(2026, 11, 15))
    assert before(days, "month") == DayRange(date(2026, 10, 29), date(2026, 10, 31))
    early = DayRange(date(1, 1, 9), date(1, 1, 31))
    assert before(early, "day") == DayRange(date(1, 1, 8), date(1, 1, 8))
