"""Many ranges at once, and windows that were dropped, whose sums are kept."""

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial

import numpy as np
import pytest
import tests.registries

from deniable import Registry
from deniable.protocol import windows
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, TallyKey
from deniable_collector.stores.vectors import addition_of
from deniable_collector.tally import TallyRow
from deniable_estimator.asking.fetch import read, select
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.segments import by_segment
from deniable_estimator.asking.trend import read_ranges, trend
from deniable_estimator.errors import OnlyLongerError

LAST = date(2026, 3, 15)
FIRST = date(2025, 12, 1)
DAYS = [f"{FIRST + timedelta(each)}" for each in range((LAST - FIRST).days + 1)]
NOW = datetime(2026, 3, 16, 9, tzinfo=UTC).timestamp()


def declared(epsilon):
    """A metric whose days are kept for 60 days, and its months for ever."""
    keys = {"type": "boolean", "segments": ["plan"], "devices": 100_000, "sample_rate": 0.1}
    keys |= {"epsilon": epsilon, "lifetime_epsilon": 7.0}
    text = tests.registries.declared({"plan": ["free", "paid"]}, dark=keys)
    return Registry.parse(f'{text}keep = {{ day = "60 days", month = "forever" }}\n')


REGISTRY, EARLIER = declared(1.0), declared(2.0)


def filled(path):
    """A store with some reports a day, more of `paid` and hardly any on each seventh; an
    earlier scheme overlaps with that of now."""
    store = open_store(Settings(store=f"sqlite:///{path}"))
    draw = np.random.default_rng(7)
    additions = {}
    for registry, days in ((EARLIER, DAYS[:20] + DAYS[44:50]), (REGISTRY, DAYS[15:40] + DAYS[43:])):
        scheme = registry["dark"].scheme
        store.publish([("dark", scheme)])
        for number, day in enumerate(days):
            rows = {
                row: TallyRow(reports, draw.multinomial(reports, [0.6, 0.4]))
                for row, reports in enumerate((300, 500) if number % 7 else (4, 5))
            }
            key = TallyKey("dark", scheme.fingerprint, day)
            additions[key] = addition_of(store.shape(key[:2]), rows)
    store.fold(Commit(("0" * 31 + "1",), additions), NOW)
    return store


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The store before anything was dropped."""
    store = filled(tmp_path_factory.mktemp("whole") / "tallies.db")
    yield Reader(store)
    store.close()


@pytest.fixture(scope="module")
def months(tmp_path_factory):
    """The same with the days before 15 January dropped, and their months kept."""
    store = filled(tmp_path_factory.mktemp("months") / "tallies.db")
    before = windows.end("2026-01-14")
    for registry in (EARLIER, REGISTRY):
        scheme = registry["dark"].scheme.fingerprint
        assert store.sums.drop_windows(("dark", scheme), before, ("month",))
    yield Reader(store)
    store.close()


@pytest.mark.parametrize(
    "ask",
    [
        *(
            partial(read, query=Query("dark", Days(first, last)))
            for first, last in (
                (FIRST, LAST),
                (date(2026, 1, 1), LAST),
                (date(2025, 12, 1), date(2025, 12, 31)),
            )
        ),
        partial(read, query=Query("dark", where={"plan": "paid"})),
        partial(by_segment, query=Query("dark"), by=["plan"]),
        partial(trend, query=Query("dark"), by="month"),
    ],
)
def test_whole_months_have_the_same_answer(whole, months, ask):
    """The answer over whole months is the same number for number, with its intervals: the reports
    of each day are known although the days are gone. So are segments, and a trend by month."""
    one, two = (ask(reader=store, registry=REGISTRY, now=NOW) for store in (whole, months))
    assert one.to_dict() == two.to_dict()


def test_changes_are_there_where_days_are_gone(months):
    """Of dropped days the changes between months are known, and a trend over them is by months
    where no period is asked for."""
    periods = trend(months, REGISTRY, Query("dark"), by="month", now=NOW).periods
    assert [each.since for each in periods] == [None, "2025-12", "2026-01", None]
    assert trend(months, REGISTRY, Query("dark"), now=NOW).by == "month"
    kept = Query("dark", Days(date(2026, 1, 15)))
    assert trend(months, REGISTRY, kept, now=NOW).by == "day"


def told(answer):
    """All that an answer says, to the last digit."""
    return repr((answer.to_dict(), answer.warnings, answer.unfinished, answer.participation))


@pytest.mark.parametrize("by", ["day", "week", "month"])
@pytest.mark.parametrize(
    ("query", "level"),
    [
        (Query("dark", Days(without=("2025-12-10", "2026-01-20"))), 0.9),
        (Query("dark", where={"plan": "free"}), 0.95),
        (Query("dark", candidates=["false"]), 0.95),
    ],
)
def test_ranges_together_are_as_each_alone(whole, by, query, level):
    """Days, weeks and months have the answers that each has alone: of one scheme or two, with few
    reports or none, without some windows, of one segment and of some values."""
    ranges = []
    for label in windows.span(by, FIRST + timedelta(1), LAST - timedelta(1)):
        ends = (windows.start(label), windows.end(label) - 1)
        ranges.append(Days(*(datetime.fromtimestamp(each, UTC).date() for each in ends)))
    now = windows.start("2026-02-07")
    found = list(read_ranges(whole, REGISTRY, query, ranges, level=level, now=now))
    each_query = (replace(query, days=query.days.over(each.first, each.last)) for each in ranges)
    alone = [read(whole, REGISTRY, each, level=level, now=now) for each in each_query]
    assert [told(each) for each in found] == [told(each) for each in alone]
    assert len({told(each) for each in found}) > 1
    assert list(read_ranges(whole, REGISTRY, Query("dark"), [], now=now)) == []


def test_an_error_stands_where_its_range_is(months):
    """Where single windows were dropped, the ranges before them are answered, and the error names
    the windows of the first that cannot be."""
    days = [date(2026, 2, 3), date(2026, 2, 4), date(2026, 1, 7), date(2026, 2, 5)]
    answers = read_ranges(
        months, REGISTRY, Query("dark"), [Days(each, each) for each in days], now=NOW
    )
    assert [next(answers).n for _ in range(2)] == [
        read(months, REGISTRY, Query("dark", Days(each, each)), now=NOW).n for each in days[:2]
    ]
    with pytest.raises(OnlyLongerError, match="the windows 2026-01-07 to 2026-01-07 were dropped"):
        next(answers)
    with pytest.raises(OnlyLongerError, match="Ask for 2026-01-01 to 2026-01-20"):
        read(months, REGISTRY, Query("dark", Days(days[2], date(2026, 1, 20))), now=NOW)


@pytest.mark.parametrize(
    ("ask", "first", "last"),
    [
        (read, date(2026, 1, 7), date(2026, 1, 10)),
        (read, date(2025, 12, 3), date(2026, 2, 3)),
        (partial(by_segment, by=["plan"]), date(2025, 12, 3), date(2025, 12, 6)),
        (partial(trend, by="day"), date(2025, 12, 3), date(2026, 2, 3)),
        (partial(trend, by="week"), date(2026, 1, 6), date(2026, 1, 8)),
    ],
)
def test_advice_is_answered(months, ask, first, last):
    """What an error advises, other days or longer periods, is answered, and all days that were
    asked for are in it."""

    def over(days, **more):
        return ask(reader=months, registry=REGISTRY, query=Query("dark", days), now=NOW, **more)

    with pytest.raises(OnlyLongerError) as error:
        over(Days(first, last))
    if group := re.search(r"Group it by (\w+)$", str(error.value)):
        assert over(Days(first, last), by=group[1]).periods[0].n
        return
    found = re.search(r"Ask for (\S+) to (\S+)$", str(error.value))
    begin, end = map(date.fromisoformat, found.groups())
    assert begin <= first
    assert last <= end
    assert over(Days(begin, end))


def test_a_period_of_dropped_days_is_whole(months):
    """Where the range cuts a month whose days were dropped, all of that month is told, also where
    no period is asked for; a month whose days are kept is cut."""
    asked = Query("dark", Days(date(2025, 12, 5), date(2026, 2, 20)))
    found = trend(months, REGISTRY, asked, now=NOW)
    ends = [(each.first, each.last) for each in found.periods]
    assert (ends[0], found.by) == ((date(2025, 12, 1), date(2025, 12, 31)), "month")
    assert ends[-1] == (date(2026, 2, 1), date(2026, 2, 20))


def test_days_that_can_be_read_are_around_those_asked_for(months):
    """They begin with a month of which days were dropped, and are the same where none were."""
    for first, begin in ((date(2025, 12, 5), date(2025, 12, 1)), (date(2026, 2, 1),) * 2):
        found = select(months, REGISTRY, Query("dark", Days(first, LAST))).kept_days()
        assert (found.first, found.last) == (begin, LAST)
