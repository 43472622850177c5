"""A metric over time: periods, and windows that have not ended."""

from datetime import UTC, date, datetime, timedelta
from unittest import mock

import pytest

from deniable.protocol import windows
from deniable_estimator.asking.comparison import period_number
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.trend import trend
from deniable_estimator.asking.trend_words import trend_frame
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.basis import unfinished

LATER = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
"""All of the weeks are over."""


TODAY = datetime(2026, 11, 18, 9, tzinfo=UTC).timestamp()
"""Nine o'clock on a Wednesday."""


@pytest.fixture
def filled(registry, fill, make_tally):
    """Reports of a Wednesday, the Monday and the Tuesday after it and the Wednesday that runs."""
    scheme = registry["browser"].scheme
    for day in ("2026-11-11", "2026-11-16", "2026-11-17", "2026-11-18"):
        fill(make_tally(scheme, 1000, [500, 500, 50, 50], (day,)), scheme)


@pytest.mark.usefixtures("filled")
def test_a_group_that_the_range_cuts_is_partial(store, registry):
    """A week of which the range holds some days counts those alone, and is marked; so is one
    that has not ended."""
    days = (date(2026, 11, 17), date(2026, 11, 22))
    found = trend(Reader(store), registry, Query("browser", Days(*days)), by="week", now=LATER)
    (week,) = found.periods
    assert week.partial
    assert (week.first, week.last, week.n) == (date(2026, 11, 17), date(2026, 11, 22), 2000)
    assert any("partial" in note for note in found.notes)
    days = (date(2026, 11, 16), date(2026, 11, 22))
    for now, partial in ((LATER, False), (windows.end("2026-11-22") - 1, True)):
        whole = trend(Reader(store), registry, Query("browser", Days(*days)), by="week", now=now)
        assert [(period.partial, period.n) for period in whole.periods] == [(partial, 3000)]


@pytest.mark.usefixtures("filled")
def test_a_long_range_is_shown_by_longer_periods(store, registry):
    """Without a period the finest of which there are not too many is taken."""
    for first, by in (("2025-11-01", "day"), ("2025-10-01", "week"), ("2010-01-01", "month")):
        asked = Query("browser", Days(date.fromisoformat(first)))
        assert trend(Reader(store), registry, asked, now=LATER).by == by


@pytest.mark.parametrize("by", ["day", "week", "month"])
def test_periods_are_counted_as_they_are_named(by):
    """The number of periods is that of their labels, wherever a range begins and ends."""
    for begin in range(0, 800, 13):
        for length in (0, 1, 5, 6, 7, 8, 27, 31, 366):
            first = date(2023, 12, 25) + timedelta(days=begin)
            last = first + timedelta(days=length)
            count = period_number(by, last) - period_number(by, first) + 1
            assert count == len(windows.span(by, first, last))


def test_a_window_is_unfinished_until_it_ends():
    """The last second of a day, week or month still belongs to it; its end does not."""
    for label in ("2026-11-18", "2026-W47", "2026-11"):
        end = windows.end(label)
        assert unfinished([label], end - 1) == (label,)
        assert unfinished([label], end) == ()


@pytest.mark.usefixtures("filled")
def test_a_blank_change_says_why(store, registry, fill, make_tally):
    """Reports of a week before are missing, or those of some days of a week; where the first
    reports are and of periods that are not whole nothing is said, as the table shows that."""
    scheme = registry["browser"].scheme
    for day in windows.span("day", date(2026, 11, 23), date(2026, 11, 29)):
        fill(make_tally(scheme, 1000, [500, 500, 50, 50], (day,)), scheme)

    def changes(by):
        found = trend(Reader(store), registry, Query("browser"), by=by, now=LATER)
        return {
            row[0].text: row[-1] and row[-1].text for row in trend_frame(found, ["chrome"]).rows
        }

    days, weeks = changes("day"), changes("week")
    assert days["2026-11-17"] is days["2026-11-11"] is weeks["2026-W46 (partial)"] is None
    assert days["2026-11-26"] == "no reports a week before"
    assert weeks["2026-W48"] == "not compared: reports of some days are missing"


@pytest.mark.usefixtures("filled")
def test_an_unknown_value_is_told_those_that_there_are(store, registry):
    """Twelve of them at most, and how many more."""
    found = trend(Reader(store), registry, Query("browser"), now=LATER)
    few = mock.patch("deniable_estimator.asking.trend_words._FEW", 2)
    with few, pytest.raises(EstimateError, match=r"choose one of \w+, \w+ and 2 more$"):
        trend_frame(found, ["netscape"])


@pytest.mark.usefixtures("filled")
def test_a_trend_marks_it_and_compares_it_with_none(store, registry):
    """The day that runs has its estimate and no change; once it has ended, it is compared with
    the same weekday before."""
    running = trend(Reader(store), registry, Query("browser"), now=TODAY).reported[-1]
    assert (running.label, running.unfinished, running.partial) == ("2026-11-18", True, True)
    assert running.change is None
    found = trend(Reader(store), registry, Query("browser"), now=TODAY)
    assert [each.unfinished for each in found.reported] == [False, False, False, True]
    assert any("an unfinished period will have more reports" in each for each in found.notes)
    assert not any("holds only some of its days" in each for each in found.notes)
    assert found.to_dict()["periods"][-1]["unfinished"] is True
    assert "2026-11-18,2026-11-18,2026-11-18,True,True,1000," in found.to_csv()
    ended = trend(Reader(store), registry, Query("browser"), now=TODAY + 86_400).reported[-1]
    assert not ended.unfinished
    assert ended.since == "2026-11-11"


@pytest.mark.usefixtures("filled")
def test_a_week_is_unfinished_if_one_of_its_days_is(store, registry):
    """A running week of ended days is partial; with reports of a day that runs, unfinished."""
    on_time = trend(Reader(store), registry, Query("browser"), by="week", now=TODAY).reported[-1]
    assert (on_time.unfinished, on_time.partial) == (True, True)
    assert on_time.change is None
    tomorrow = trend(
        Reader(store), registry, Query("browser"), by="week", now=TODAY + 86_400
    ).reported[-1]
    assert (tomorrow.unfinished, tomorrow.partial) == (False, True)


def test_periods_with_few_reports_are_called_rough(store, registry, fill, make_tally):
    """Five reports of which all say the same leave no spread: the standard error is 0."""
    scheme = registry["browser"].scheme
    fill(make_tally(scheme, 5, [5, 0, 0, 0], ("2026-11-11",)), scheme)
    few = trend(Reader(store), registry, Query("browser"), now=LATER)
    assert any("are rough" in note for note in few.notes)
    fill(make_tally(scheme, 1000, [500, 500, 50, 50], ("2026-11-11",)), scheme)
    many = trend(Reader(store), registry, Query("browser"), now=LATER)
    assert not any("are rough" in note for note in many.notes)
