"""Sums over calendars: what `keep` drops and keeps, and how files carry it.

That a sum is that of its windows, also when they are gone, is in `tests/contract/test_store.py`.
"""

from contextlib import closing
from datetime import date, timedelta
from unittest.mock import Mock, call

import numpy as np
import pytest
from tests.registries import declared
from tests.stores import window_reports

from deniable import Registry
from deniable.protocol import windows
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, TallyKey, shard_of
from deniable_collector.stores.contract import Change
from deniable_collector.stores.sealed import DamagedBlock
from deniable_collector.stores.summing import Sums
from deniable_collector.upkeep.archive import ArchiveError, TallySelection, export
from deniable_collector.upkeep.importing import load
from deniable_collector.upkeep.keeper import Keeper

from .filling import added

WIDTH = 40
DAY = 86_400.0
FIRST = date(2025, 12, 1)
DAYS = [f"{FIRST + timedelta(each)}" for each in range(100)]
"""From Monday, 1 December, to 10 March."""


def months(*labels):
    """The days of some months that are among DAYS."""
    return [day for day in DAYS if day[:7] in labels]


@pytest.fixture
def crowd(home, shelf, new_id, noon):
    """A store with 100 days of counts, and what each day has."""
    return Crowd(home.open(1 if home.kind == "sqlite" else 2), shelf(WIDTH), new_id, noon)


class Crowd:
    """A store, and the truth of it."""

    def __init__(self, store, scheme, new_id, noon, days=DAYS):
        self.store, self.scheme, self.new_id, self.noon = store, scheme.fingerprint, new_id, noon
        self.truth = {}
        store.publish([("m", scheme)])
        for _ in range(2 * store.shards):
            self.add_many({
                day: (number + 5, number % WIDTH, number + 1) for number, day in enumerate(days)
            })  # fmt: skip

    def add_many(self, counts):
        """Reports, a column and its count for each day, in one commit."""
        batch = self.new_id()
        scheme = self.store.scheme("m", self.scheme)
        additions = {
            TallyKey("m", self.scheme, day): added(scheme, {0: (reports, {column: count})})
            for day, (reports, column, count) in counts.items()
        }
        commit = Commit((batch,), additions, shard_of(batch, self.store.shards))
        assert not self.store.fold(commit, self.noon)
        for day, (reports, column, count) in counts.items():
            right = self.truth.setdefault(day, np.zeros(WIDTH + 1, np.int64))
            right[0] += reports
            right[1 + column] += count

    def check(self, days, store=None):
        """Whether the store has exactly the sum of these days, to the last cell."""
        (row,) = (store or self.store).tally("m", self.scheme, days).rows
        right = sum((self.truth[day] for day in days), np.zeros(WIDTH + 1, np.int64))
        assert row.reports == right[0]
        assert np.array_equal(row.cells, right[1:])
        reports = window_reports(store or self.store, ("m", self.scheme), days)
        assert reports == {day: self.truth[day][0] for day in days}

    def drop(self, before, *calendars):
        return self.store.sums.drop_windows(("m", self.scheme), windows.start(before), calendars)


def test_months_go_when_their_quarter_has_them(crowd):
    """A kept month goes only where its quarter has all of it. Else the same step adds it to the
    quarter, or it stays, where that would count days twice."""
    crowd.drop("2026-01-10", "month")
    crowd.drop("2026-02-15", "month", "quarter")
    end = windows.end("2026-02")
    gone = crowd.store.sums.drop_sums(("m", crowd.scheme), "month", end, ("month", "quarter"))
    assert [*gone.values()].count("") == 2
    assert [tally.window for tally, why in gone.items() if why] == ["kept-day-2026-01"]
    crowd.check(months("2025-12"))
    crowd.check(months("2026-01"))
    assert [str(name) for name in crowd.store.sums.names(("m", crowd.scheme))] == [
        "kept-day-2025-Q4", "kept-day-2026-01", "kept-day-2026-Q1",
    ]  # fmt: skip


def test_a_month_stays_where_its_quarter_has_changed(crowd):
    """A change of sums is refused where one that it rests on is another by now, also one that it
    does not write."""
    crowd.drop("2026-01-01", "month", "quarter")
    store, of = crowd.store, ("m", crowd.scheme)
    month, quarter = ("kept-day-2025-12", "kept-day-2025-Q4")
    heads = store.heads(0, {of: [month, quarter]})[of]
    stamps = {name: head.stamp for name, head in heads.items()}
    changed = Change(stamps | {quarter: "00" * 8}, dropped=(month,))
    assert not store.change(0, of, changed)
    assert month in store.names(0, of)
    assert store.change(0, of, Change(stamps, dropped=(month,)))
    assert month not in store.names(0, of)


@pytest.mark.parametrize(
    ("first", "second"),
    [("month", "quarter"), ("quarter", "month"), ("week", "month"), ("month", "week")],
)
def test_an_edit_of_keep(crowd, first, second):
    """After `keep` names another calendar, all that was dropped before and after can be read, and a
    late report of a day stays in the sum that has this day."""
    crowd.drop("2026-01-12", first)
    crowd.drop("2026-02-16", second)
    crowd.check(DAYS)
    crowd.check(DAYS[: DAYS.index("2026-02-16")])
    for day, reports in (("2026-01-05", 3), ("2026-01-20", 900)):
        crowd.add_many({day: (reports, 2, 4)})
        crowd.check(DAYS)
    crowd.drop("2026-02-16", second)
    assert crowd.store.windows("m", crowd.scheme)[0] == "2026-02-16"
    crowd.check(DAYS)
    crowd.check(DAYS[: DAYS.index("2026-02-16")])


def test_a_change_that_comes_too_late(crowd, home, monkeypatch):
    """Counts that come between reading a day and dropping it are in the sum, because the step is
    refused and begun again."""
    store = crowd.store
    change = store.change
    late = iter([True])

    def after_a_commit(*arguments):
        if next(late, False):
            crowd.add_many({"2025-12-03": (2, 1, 9)})
        return change(*arguments)

    monkeypatch.setattr(store, "change", after_a_commit)
    assert [*crowd.drop("2026-01-01", "month").values()] == [""] * 31
    crowd.check(months("2025-12"))


def keeping(keep, window="day"):
    """The metric `m` with this `keep`."""
    text = declared(m={"type": "boolean", "window": window})
    return Registry.parse(f"{text}keep = {keep}\n")


def moment(day):
    """Noon of a day."""
    return windows.start(day) + DAY / 2


def test_sums_are_kept_for_their_time(crowd, home):
    """Days go after the days of `keep`, also where DENIABLE_KEEP_DAYS has fewer. A sum of a
    calendar goes when its own time is over; one without an end stays."""
    metrics = keeping('{ day = "60 days", month = "62 days", quarter = "forever" }')
    for day, first in (("2026-03-03", "2026-01-02"), ("2026-04-09", "2026-02-08"),
                       ("2026-05-06", "2026-03-07"), ("2026-07-20", None)):  # fmt: skip
        assert Keeper(crowd.store, 8, lambda day=day: moment(day), metrics).apply() == DAY
        assert next(iter(crowd.store.windows("m", crowd.scheme)), None) == first
        crowd.check(DAYS)
    assert [str(name) for name in crowd.store.sums.names(("m", crowd.scheme))] == [
        "kept-day-2025-Q4", "kept-day-2026-Q1",
    ]  # fmt: skip
    metrics = keeping('{ day = "60 days", quarter = "1 year" }')
    Keeper(crowd.store, 0, lambda: moment("2027-03-01"), metrics).apply()
    assert [str(name) for name in crowd.store.sums.names(("m", crowd.scheme))] == [
        "kept-day-2026-Q1"
    ]
    crowd.check(months("2026-01", "2026-02", "2026-03"))


@pytest.mark.parametrize(
    ("keep", "window", "days", "own", "calendars", "ending"),
    [
        ('{ month = "forever" }', "day", 400, 400, ["month"], {}),
        ('{ day = "90 days", month = "5 years" }', "day", 400, 90, ["month"], {"month": 1830}),
        ('{ day = "forever" }', "day", 400, None, [], {}),
        ('{ month = "2 years", quarter = "forever" }', "month", 0, 732, ["quarter"], {}),
        ('{ quarter = "3 years" }', "month", 0, None, ["quarter"], {"quarter": 1098}),
    ],
)
def test_what_a_metric_keeps(keep, window, days, own, calendars, ending):
    """Its windows go by its own rule, or else by the setting; sums of calendars that it names stay,
    as long as it says."""
    of, dropped = ("m", "scheme"), {}
    store = Mock(**{"schemes.return_value": {of: None}, "sums.drop_windows.return_value": dropped})
    store.sums.drop_sums.return_value = dropped
    Keeper(store, days, lambda: 0.0, keeping(keep, window)).apply()
    wanted = [call(of, -own * DAY, calendars)] if own else []
    assert store.sums.drop_windows.call_args_list == wanted
    assert store.sums.drop_sums.call_args_list == [
        call(of, calendar, -days * DAY, calendars) for calendar, days in ending.items()
    ]
    store.drop.assert_not_called()


def test_sums_of_other_calendars_are_refused(crowd, tmp_path, noon, shelf):
    """A file that has dropped days in sums of weeks is refused, and nothing of it is added, where
    they are in sums of months; the days that it has in tallies are added where they are chosen."""
    crowd.drop("2026-02-03", "month")
    path = tmp_path / "tallies.gz"
    with closing(open_store(Settings(store=f"sqlite:///{tmp_path}/other.db"))) as other:
        weeks = Crowd(other, shelf(WIDTH), crowd.new_id, noon)
        weeks.drop("2026-01-05", "week")
        export(other, path)
        with pytest.raises(ArchiveError, match=r"2025-12-01 .* its week, .* its month"):
            load(path, crowd.store, noon)
        crowd.check(DAYS)
        later = TallySelection(since=windows.start("2026-01-05"))
        assert load(path, crowd.store, noon, later).added.rows == 65
    for day in DAYS[DAYS.index("2026-01-05") :]:
        crowd.truth[day] = crowd.truth[day] + weeks.truth[day]
    crowd.check(DAYS)


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_a_part_that_stays_in_one_shard_is_told(order, monkeypatch):
    """A window that could be dropped in one shard and not in another has stayed, whichever of them
    is asked first."""
    of = "browser", "f" * 8
    damaged = DamagedBlock("it is damaged", TallyKey(*of, DAYS[0]))
    parts = [Mock(**{"ended.return_value": DAYS[:1], "sums.return_value": []}) for _ in range(2)]
    parts[0].drop_together.side_effect = damaged
    parts[1].drop_together.return_value = {DAYS[0]: ""}
    monkeypatch.setattr(Sums, "parts", lambda self, of: parts[order])
    found = Sums(Mock()).drop_windows(of, 0.0, ())
    assert found == {TallyKey(*of, DAYS[0]): "it is damaged"}
