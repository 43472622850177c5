"""Windows: labels, bounds and ranges of UTC days, ISO weeks and months."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import WindowError
from deniable.protocol import windows

VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "windows.json").read_text()
)

kinds = st.sampled_from(windows.KINDS)
times = st.datetimes(
    datetime(1971, 1, 1),  # noqa: DTZ001  (hypothesis takes naive bounds)
    datetime(9998, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
).map(datetime.timestamp)


@pytest.mark.parametrize("case", VECTORS["valid"], ids=lambda case: case["label"])
def test_vectors(case):
    """Every published label has its kind, start and end."""
    label = str(case["label"])
    assert windows.kind_of(label) == case["kind"]
    assert datetime.fromtimestamp(windows.start(label), UTC).isoformat() == case["start"]
    assert datetime.fromtimestamp(windows.end(label), UTC).isoformat() == case["end"]
    assert windows.number(label) == case["number"]


@pytest.mark.parametrize("kind", windows.KINDS)
def test_windows_are_numbered_without_gaps(kind):
    """Over 400 years each window has the number after the one before it."""
    labels = windows.span(kind, date(1890, 1, 1), date(2290, 1, 1))
    numbers = [windows.number(label) for label in labels]
    assert numbers == list(range(numbers[0], numbers[0] + len(labels)))


@pytest.mark.parametrize("label", VECTORS["invalid"])
def test_invalid_labels(label):
    """A label that names no window is refused, with the label in the error."""
    with pytest.raises(WindowError) as caught:
        windows.end(label)
    assert caught.value.label == label


@given(kinds, times)
def test_a_time_lies_in_its_window(kind, timestamp):
    """The window at a time holds that time, and its label says its kind."""
    label = windows.window_at(kind, timestamp)
    assert windows.start(label) <= timestamp < windows.end(label)
    assert windows.kind_of(label) == kind


@given(kinds, st.dates(date(1990, 1, 1), date(2200, 1, 1)), st.integers(0, 400))
def test_span_covers_every_day_once(kind, first, days):
    """A span lists each window that touches the range, in order and without gaps."""
    last = first + timedelta(days=days)
    labels = windows.span(kind, first, last)
    expected = dict.fromkeys(
        windows.window_at(kind, datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        for day in (first + timedelta(days=each) for each in range(days + 1))
    )
    assert labels == list(expected)


def test_a_reversed_span_is_refused():
    """A range that ends before it begins is an error that shows both days."""
    with pytest.raises(ValueError, match=r"2026-01-01.*2026-01-02"):
        windows.span("day", date(2026, 1, 2), date(2026, 1, 1))


@given(kinds, times)
def test_windows_follow_each_other(kind, timestamp):
    """One window ends exactly where the next one begins."""
    label = windows.window_at(kind, timestamp)
    following = windows.window_at(kind, windows.end(label))
    assert windows.start(following) == windows.end(label)
