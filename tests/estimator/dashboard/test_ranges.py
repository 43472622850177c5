"""The days that a page looks at."""

from datetime import UTC, date, datetime, timedelta

import pytest
from tests.registries import declared

from deniable import Registry
from deniable_estimator.asking.query import Days
from deniable_estimator.dashboard import ranges
from deniable_estimator.dashboard.overview.filters import Q
from deniable_estimator.dashboard.ranges import before, presets
from deniable_estimator.errors import EstimateError
from deniable_estimator.inputs import BEFORE_FROM, BEFORE_TO, DAYS, read_inputs

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()


def read_range(given, *more):
    """The range of an address."""
    return ranges.read_range(read_inputs(DAYS, given), *more)


def earlier_range(days, kind, given, now):
    """The range before it."""
    return ranges.earlier_range(days, kind, read_inputs((BEFORE_FROM, BEFORE_TO), given), now)


def metric(keep="", **keys):
    """A metric with these keys."""
    return Registry.parse(declared(m={"type": "boolean", **keys}) + keep)["m"]


def _ends(first, last):
    return {"before_from": first, "before_to": last}


def test_what_is_left_out_ends_with_the_last_complete_window():
    """Without dates a page shows 28 days up to yesterday, four weeks up to Sunday or three whole
    months; with one, what leads up to it, and today if nothing earlier is asked for."""
    assert read_range({}, NOW) == Days(date(2026, 10, 24), date(2026, 11, 20))
    assert read_range({}, NOW, "week") == Days(date(2026, 10, 19), date(2026, 11, 15))
    assert read_range({}, NOW, "month") == Days(date(2026, 8, 1), date(2026, 10, 31))
    assert read_range({"to": "2026-10-30"}, NOW).first == date(2026, 10, 3)
    assert read_range({"to": "2026-01-15"}, NOW, "month").first == date(2025, 11, 1)
    assert read_range({"from": "2026-11-20", "to": ""}, NOW).days == 1
    assert read_range({"from": "2026-11-21"}, NOW).days == 1


def test_forms_send_empty_fields_and_nothing_else_does():
    """What is empty in an address of the API, or on a command line, was meant to be something."""
    assert read_inputs(DAYS, {"from": "", "since": "", "without": ""})["since"] == ""
    for name in ("from", "since", "without"):
        with pytest.raises(EstimateError, match=f"“{name}”: Nothing is written"):
            read_inputs(DAYS, {name: ""}, blank=False)


def test_an_annotation_is_asked_for_by_its_own_text():
    """With whatever space, accents or signs it has."""
    for text in ("Version\u00a05\u202f: lance\u0301e", "\U0001f468\u200d\U0001f4bb out"):
        assert read_inputs(DAYS, {"since": text})["since"] == text


def test_windows_are_left_out_by_name():
    """They are kept in order, once each, and survive the address; what is no window of that kind
    is refused."""
    asked = read_range({"without": " 2026-11-12,2026-11-03,2026-11-12"}, NOW)
    assert asked.without == ("2026-11-03", "2026-11-12")
    assert read_range(asked.query, NOW) == asked
    assert read_range({"without": "2026-W46"}, NOW, "week").without == ("2026-W46",)
    for text in ("2026-W46", "2026-13-01", "yesterday"):
        with pytest.raises(EstimateError, match="without"):
            read_range({"without": text}, NOW)


@pytest.mark.parametrize("day", ["0001-01-01", "0001-12-31", "9999-01-01", "9999-12-31"])
def test_the_first_and_the_last_year_cannot_be_asked_for(day):
    """Their windows may have none before or after them; the message says which days there are."""
    for given in ({"from": day}, {"to": day}, {"before_to": day}):
        (name,) = given
        with pytest.raises(
            EstimateError, match=f"Days from .* can be asked for, and not {day}"
        ) as e:
            read_inputs((*DAYS, BEFORE_TO), given)
        assert e.value.fields == (name,)


@pytest.mark.parametrize(
    ("kind", "last", "lengths"),
    [
        ("day", date(2026, 11, 20), [7, 28, 91, 364]),
        ("week", date(2026, 11, 15), [7, 28, 91, 364]),
        ("month", date(2026, 10, 31), [31, 92, 365]),
    ],
)
def test_presets_end_with_the_last_complete_window(kind, last, lengths):
    """Each preset is whole windows that are over, reads back as itself, and is compared with
    others of the same weekdays that end where it begins."""
    found = presets(NOW, metric(window=kind))
    assert [days.days for _, days in found] == lengths
    for _, days in found:
        assert days.last == last
        assert read_range(days.query, NOW) == days
        earlier = before(days, kind)
        assert earlier.last == days.first - timedelta(days=1)
        assert kind == "month" or earlier.days == days.days
    assert read_range({}, NOW, kind) in [days for _, days in found]


@pytest.mark.parametrize(
    ("keep", "lengths", "last"),
    [
        ('day = "90 days"', [7, 28, 91, 364], date(2026, 11, 20)),
        ('day = "90 days", month = "forever"', [7, 28], date(2026, 11, 20)),
        ('day = "90 days", week = "forever"', [7, 28, 91, 364], date(2026, 11, 15)),
        ('day = "90 days", week = "1 year", month = "5 years"', [7, 28, 91], date(2026, 11, 15)),
    ],
)
def test_presets_are_kept(keep, lengths, last):
    """Where sums of dropped days are kept, long presets are whole weeks, or are not there."""
    found = [days for _, days in presets(NOW, metric(f"keep = {{ {keep} }}"))]
    assert [days.days for days in found] == lengths
    assert found[1].last == date(2026, 11, 20)
    assert len(found) < 3 or found[-1].last == last


def test_the_days_before_share_no_window_and_have_the_same_weekdays():
    """As many whole weeks back as it takes; of months, as many whole ones; never before year 1."""
    days = Days(date(2026, 11, 18), date(2026, 11, 20))
    assert before(days, "day") == Days(date(2026, 11, 11), date(2026, 11, 13))
    assert before(days, "week") == Days(date(2026, 11, 11), date(2026, 11, 13))
    assert before(days, "month") == Days(date(2026, 10, 1), date(2026, 10, 31))
    across = Days(date(2026, 11, 14), date(2026, 11, 17))
    assert before(across, "week") == Days(date(2026, 10, 31), date(2026, 11, 3))
    day = Days(date(2026, 11, 20), date(2026, 11, 20))
    assert before(day, "day") == Days(date(2026, 11, 13), date(2026, 11, 13))
    thirty = Days(date(2026, 10, 22), date(2026, 11, 20))
    assert before(thirty, "day") == Days(date(2026, 9, 17), date(2026, 10, 16))
    early = Days(date(1, 1, 9), date(1, 1, 31))
    assert before(early, "day") == Days(date(1, 1, 1), date(1, 1, 1))


def test_other_days_before_can_be_named():
    """One end alone names as many days; only days that hold the same weekdays leave the same
    ones out."""
    days = Days(date(2026, 11, 14), date(2026, 11, 20), ("2026-11-18",))
    assert earlier_range(days, "day", {}, NOW) == before(days, "day")
    alike = earlier_range(days, "day", _ends("2026-10-31", "2026-11-06"), NOW)
    assert alike.without == ("2026-11-04", "2026-11-18")
    assert earlier_range(days, "day", {"before_from": "2026-11-07"}, NOW) == before(days, "day")
    for named in ({"before_from": "2026-11-01"}, {"before_to": "2026-11-07"}):
        found = earlier_range(days, "day", named, NOW)
        assert (found.first, found.last) == (date(2026, 11, 1), date(2026, 11, 7))
    other = earlier_range(days, "day", _ends("2026-11-01", "2026-11-13"), NOW)
    assert other == Days(date(2026, 11, 1), date(2026, 11, 13), ("2026-11-18",))
    with pytest.raises(EstimateError):
        earlier_range(days, "day", {"before_from": "x"}, NOW)


def test_a_search_finds_letters_however_they_are_written():
    """What is looked for is in normal form C, as values are, and has no space around it."""
    assert Q.parse(" Cafe\u0301 ") == "Caf\u00e9"
