"""The days that a page looks at."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from hearsay_estimator.dashboard.ranges import DayRange, RangeError, presets, read_range

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
