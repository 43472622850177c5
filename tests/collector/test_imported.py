"""The memory of imports: no window counts twice because it came as a day and in a sum."""

from contextlib import closing
from datetime import date

import pytest
from tests.stores import window_reports

from deniable.protocol import windows
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_collector.stores.summing import (
    TALLY,
    Imported,
    brought_before,
)
from deniable_collector.stores.sums import bounds
from deniable_collector.upkeep import importing
from deniable_collector.upkeep.archive import ArchiveError, TallySelection, check, export
from deniable_collector.upkeep.importing import load

from .filling import commit

STORES = ["sqlite", "redis"]
DAYS = ["2026-01-05", "2026-01-06", "2026-02-03"]


class Origin:
    """A store with one report in each of DAYS."""

    def __init__(self, url, scheme, new_id, noon):
        self.url = url
        self.store = open_store(Settings(store=url))
        self.of = "m", scheme.fingerprint
        self.store.publish([("m", scheme)])
        for day in DAYS:
            self.store.fold(commit(scheme, new_id(), window=day), noon)

    def drop(self, day, *calendars):
        """Drop what had ended by the end of a day into sums of these calendars."""
        self.store.sums.drop_windows(self.of, windows.end(day), calendars)

    def file(self, path, **chosen):
        """Its tallies as a file."""
        told = export(self.store, path, TallySelection(**chosen))
        assert check(path) == told
        return path


@pytest.fixture
def origin(scheme, new_id, noon, tmp_path):
    found = Origin(f"sqlite:///{tmp_path}/origin.db", scheme, new_id, noon)
    with closing(found.store):
        yield found


def counted(store, scheme):
    """The reports of each window of a store, whatever has them."""
    labels = store.all_windows("m", scheme.fingerprint)
    return window_reports(store, ("m", scheme.fingerprint), labels)


ALL = dict.fromkeys(DAYS, 1)


def test_a_sum_after_its_days_is_refused(origin, store, scheme, tmp_path, noon):
    """Days that were imported are not added once more in the sum of their month, also weeks later,
    when the ids of imports are forgotten. The rest of the file is added where it is chosen."""
    days = origin.file(tmp_path / "days.gz")
    load(days, store, noon)
    origin.drop(DAYS[1], "month")
    late = noon + 60 * 86_400
    with pytest.raises(ArchiveError, match=r"window 2026-01-05 of metric m came .* of its month"):
        load(origin.file(tmp_path / "sums.gz"), store, late)
    assert counted(store, scheme) == ALL
    february = TallySelection(since=windows.start("2026-02-01"))
    done = load(origin.file(tmp_path / "sums.gz"), store, noon, february)
    assert (done.added.reports, done.known.reports, done.added.sums) == (0, 1, 0)
    assert load(days, store, noon).known.reports == len(DAYS)
    assert counted(store, scheme) == ALL


def test_days_after_their_sum_are_refused(origin, store, scheme, tmp_path, noon):
    """A sum that was imported keeps the days of an earlier file out, and a file of other days is
    added."""
    days = origin.file(tmp_path / "days.gz")
    origin.drop(DAYS[1], "month", "quarter")
    load(origin.file(tmp_path / "sums.gz"), store, noon)
    with pytest.raises(ArchiveError, match=r"another form \(as a tally\).* Nothing was added"):
        load(days, store, noon)
    assert counted(store, scheme) == ALL
    assert (
        load(days, store, noon, TallySelection(since=windows.start("2026-02-01"))).added.reports
        == 0
    )


@pytest.mark.parametrize("cut", ["2026-10-01", "2026-10-05", "2026-11-14"])
def test_files_that_follow_each_other_have_every_window_once(cut):
    """Also a week or a month that lies on both sides of the day at which one file ends."""
    before, after = (
        TallySelection(before=windows.start(cut)),
        TallySelection(since=windows.start(cut)),
    )
    for kind in ("day", "week", "month"):
        for label in windows.span(kind, date(2026, 9, 1), date(2026, 12, 31)):
            assert before.takes("m", label) != after.takes("m", label), label


def test_an_interrupted_import_is_completed(origin, store, scheme, tmp_path, noon, monkeypatch):
    """An import that ends after it has noted what it brings is completed by the same command, and
    a second one adds nothing."""
    origin.drop(DAYS[1], "month", "quarter")
    file = origin.file(tmp_path / "all.gz")
    with monkeypatch.context() as patch:
        patch.setattr(importing, "addition_of", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            load(file, store, noon)
    assert counted(store, scheme) == {}
    assert load(file, store, noon).added.sums == 2
    assert load(file, store, noon).added.sums == 0
    assert counted(store, scheme) == ALL


def test_what_was_dropped_may_come_again(origin, store, scheme, tmp_path, noon):
    """When nothing of the days is left, not even in a sum, they may come in another form."""
    load(origin.file(tmp_path / "days.gz"), store, noon)
    origin.drop(DAYS[1], "month")
    sums = origin.file(tmp_path / "sums.gz")
    store.drop(windows.end("2026-02-28"))
    with pytest.raises(ArchiveError, match="came from the same store before"):
        load(sums, store, noon)
    store.drop(windows.end("2026-03-31"), ("other",))
    assert len(store.sums.imported(("m", scheme.fingerprint))) == len(DAYS)
    store.drop(windows.end("2026-03-31"))
    assert store.sums.imported(("m", scheme.fingerprint)) == []
    assert load(sums, store, noon).added.sums == 1


def test_a_store_refuses_its_own_windows(origin, tmp_path, noon, scheme):
    """A file that a store wrote, or a copy of it, is refused while the store has the windows; what
    it has dropped may come back."""
    file = origin.file(tmp_path / "own.gz")
    with pytest.raises(ArchiveError, match="2026-01-05 of metric m comes from this very store"):
        load(file, origin.store, noon)
    later = TallySelection(since=windows.start("2026-02-01"))
    with pytest.raises(ArchiveError, match="2026-02-03 of metric m comes from this very store"):
        load(file, origin.store, noon, later)
    assert origin.store.drop(windows.end("2026-01-31")) == 2
    assert load(file, origin.store, noon, TallySelection(before=later.since)).added.reports == 2
    assert counted(origin.store, scheme) == ALL
    assert load(file, origin.store, noon, TallySelection(before=later.since)).known.reports == 2
    origin.drop(DAYS[1], "month")
    with pytest.raises(ArchiveError, match="counted twice"):
        load(origin.file(tmp_path / "again.gz"), origin.store, noon)


@pytest.mark.parametrize(
    ("known", "new", "twice"),
    [
        ([], (TALLY, ""), False),
        ([(TALLY, "")], (TALLY, ""), False),
        ([(TALLY, "")], ("month", "1"), True),
        ([("month", "1")], (TALLY, ""), True),
        ([("month", "1")], ("month", "1"), False),
        ([("month", "1")], ("month", "2"), True),
        ([("month", "1")], ("quarter", "2"), False),
        ([(TALLY, ""), ("month", "1")], ("month", "1"), False),
        ([(TALLY, ""), ("month", "1")], (TALLY, ""), False),
    ],
)
def test_what_counts_twice(known, new, twice):
    """A window may come in the same form again, and in sums of several calendars, but not in two
    forms from one store; another store and another window are never in the way."""
    there = [Imported("a", form, batch, DAYS[0]) for form, batch in known]
    brought = Imported("a", *new, DAYS[0])
    assert brought_before([brought], there) == (brought if twice else None)
    assert brought_before([brought._replace(source="b")], there) is None
    assert brought_before([brought._replace(window=DAYS[1])], there) is None


@pytest.mark.parametrize(
    ("window", "last"), [("2026-01-05", "2026-Q1"), ("2026-02", "2026-Q1"), ("2026-W05", "")]
)
def test_an_import_is_remembered_while_a_sum_may_have_it(window, last):
    """What is remembered of a window is forgotten when its quarter had ended by a drop. A week is
    in no sum, and forgotten with itself."""
    ended = bounds(last)[1] if last else windows.end(window)
    brought = Imported("a", TALLY, "", window)
    assert (brought.ended(ended - 1), brought.ended(ended)) == (False, True)
