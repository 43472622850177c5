"""Sealing: what keeps a window open, what is damaged, and how a collector does it by itself.

That sealed windows read as open ones is in `tests/contract/test_store.py`.
"""
# ruff: noqa: F811  (fixtures are imported, and are arguments)

import sqlite3
from contextlib import closing
from unittest.mock import Mock

import pytest
import redis as redis_driver
from tests.collector.filling import fill, scheme, whole  # noqa: F401  (fixtures)
from tests.ports import until

from deniable.protocol import windows
from deniable_collector.collector import Collector
from deniable_collector.inherited import Inherited
from deniable_collector.settings import Settings
from deniable_collector.stores import StoreUnavailable, life
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.sealed import DamagedBlock
from deniable_collector.upkeep import keeper
from deniable_collector.upkeep.keeper import SETTLED, Keeper, Sealer, seal_all

STORES = ["sqlite", "redis"]
DAYS = ["2026-11-01", "2026-11-02", "2026-11-03"]


@pytest.fixture
def between(monkeypatch):
    """Does something each time after a tally was read and before its block is written."""
    block_of = life.block_of

    def between(work):
        def after(*arguments):
            work()
            return block_of(*arguments)

        monkeypatch.setattr(life, "block_of", after)

    return between


def key_of(scheme, window):
    return TallyKey("m", scheme.fingerprint, window)


def damage(home, scheme, window):
    """Change a byte in the middle of what is kept for a sealed window."""
    if home.kind == "sqlite":
        with closing(sqlite3.connect(home.url.removeprefix("sqlite:///"))) as file, file:
            where = "WHERE id = (SELECT id FROM tallies WHERE window = ?)"
            (content,) = file.execute(f"SELECT block FROM blocks {where}", (window,)).fetchone()
            changed = bytearray(content)
            changed[len(changed) // 2] ^= 1
            file.execute(f"UPDATE blocks SET block = ? {where}", (bytes(changed), window))
        return
    with closing(redis_driver.Redis.from_url(home.url)) as client:
        key = f"{home.prefix}:{{0}}:tally:m:{scheme.fingerprint}:{window}"
        changed = bytearray(client.get(key))
        changed[len(changed) // 2] ^= 1
        client.set(key, bytes(changed))


def test_a_damaged_block_is_refused_in_words(home, store, scheme, fill, new_id, noon):
    """One damaged block is named with its metric and window wherever it is read, and added to by
    nobody; all other windows are read as before, and all are dropped."""
    fill(*DAYS)
    for label in DAYS:
        store.seal(key_of(scheme, label))
    damage(home, scheme, DAYS[1])
    of = "m", scheme.fingerprint
    for read in (
        lambda: store.tally(*of, DAYS),
        lambda: store.segment_reports(*of, DAYS),
        lambda: store.each_tally(*of, DAYS),
        lambda: fill(DAYS[1]),
        lambda: store.sums.add_up(of, "day", "2026-11"),
    ):
        with pytest.raises(DamagedBlock, match=f"metric m, window {DAYS[1]} is damaged") as caught:
            read()
        assert caught.value.tally == key_of(scheme, DAYS[1])
    assert whole(store, scheme.fingerprint, [DAYS[0], DAYS[2]], 2)
    gone = store.sums.drop_windows(of, windows.end(DAYS[2]), ("month",))
    assert [bool(gone[(*of, day)]) for day in DAYS[:3]] == [False, True, False]
    assert store.drop(windows.end(DAYS[2])) == 1
    assert store.windows(*of) == []


def test_counts_between_reading_and_sealing_keep_a_window_open(store, scheme, fill, between):
    """Counts that come after a tally was read and before it is sealed keep it open, whole, and the
    next attempt seals it."""
    fill(DAYS[0])
    late = iter([lambda: fill(DAYS[0]), lambda: None])
    between(lambda: next(late)())
    tally = key_of(scheme, DAYS[0])
    assert store.seal(tally) is None
    assert not store.sealed(*tally[:2], [DAYS[0]])
    assert whole(store, scheme.fingerprint, DAYS[:1], 2)
    done = store.seal(tally)
    assert done.after < done.before / 2
    assert whole(store, scheme.fingerprint, DAYS[:1], 2)


def test_a_window_that_is_dropped_while_it_is_sealed(store, scheme, fill, between, noon):
    """A window that retention drops in the middle of its sealing does not come back."""
    fill(DAYS[0])
    between(lambda: store.drop(noon))
    assert store.seal(key_of(scheme, DAYS[0])) is None
    assert store.windows("m", scheme.fingerprint) == []
    assert store.tally("m", scheme.fingerprint, DAYS).reports == 0


def test_only_settled_windows_are_sealed(store, scheme, fill):
    """A window is sealed from the moment on at which no clock can bring a report for it; its sums
    are made when all windows of their period are sealed and settled, once."""
    fill(*DAYS)
    of = "m", scheme.fingerprint
    moment = windows.end(DAYS[1]) + SETTLED
    assert seal_all(store, moment - 1).tallies == 1
    outcome = seal_all(store, moment)
    assert (outcome.tallies, outcome.sums, outcome.failed) == (1, 0, {})
    assert 0 < outcome.after < outcome.before
    assert store.sealed(*of, DAYS) == set(DAYS[:2])
    # 2026-W45 begins on the 2nd.
    week = windows.end("2026-W45") + SETTLED
    assert seal_all(store, week - 1).sums == 0
    outcome = seal_all(store, week)
    assert (outcome.tallies, outcome.sums) == (0, 1)
    assert [str(each) for each in store.sums.names(of)] == ["copy-day-2026-W45"]
    month = windows.end("2026-11") + SETTLED
    assert seal_all(store, month).sums == 1
    fill(DAYS[1])
    assert seal_all(store, month).sums == 2
    assert seal_all(store, month).sums == 0


def test_what_cannot_be_sealed_keeps_nothing_else(home, store, scheme, fill):
    """A damaged window is named, and so are its sums; the others are sealed and added up."""
    fill("2026-09-01", "2026-09-02", *DAYS)
    store.seal(key_of(scheme, DAYS[2]))
    damage(home, scheme, DAYS[2])
    outcome = seal_all(store, windows.end("2026-12-31") + SETTLED)
    assert (outcome.tallies, outcome.sums) == (4, 3)
    failed = {tally.window: why for tally, why in outcome.failed.items()}
    assert set(failed) == {"2026-W45", "2026-11", "2026-Q4"}
    assert all("is damaged" in why for why in failed.values())


def test_a_run_ends_where_it_is_told_to(store, scheme, fill):
    """The rest after each tally may end a run; the next one does the others."""
    fill(*DAYS)
    now = windows.end(DAYS[2]) + SETTLED
    spent = []
    assert seal_all(store, now, lambda seconds: bool(spent.append(seconds)) or True).tallies == 1
    assert spent[0] > 0
    assert seal_all(store, now).tallies == 2


def test_a_sealer_works_and_says_so(store, scheme, fill, caplog, monkeypatch):
    """A pass seals what is due, tells how many bytes that saved, and comes again in an hour; what
    cannot be sealed is told once; a store that is away is asked again sooner."""
    monkeypatch.setattr(keeper, "_LEAST_REST", 0.0)
    fill(*DAYS)
    sealer = Sealer(store, lambda: windows.end("2026-11") + SETTLED)
    with caplog.at_level("INFO"):
        assert sealer.apply() == 3_600
        assert "sealed 3 tallies" in caplog.text
        assert "made 2 sums of weeks, months or quarters" in caplog.text
        assert sealer.apply() == 3_600
    assert caplog.text.count("sealed 3") == 1
    monkeypatch.setattr(keeper, "seal_all", lambda *each: keeper.Outcome(
        failed={key_of(scheme, DAYS[0]): "it is damaged"}))  # fmt: skip
    for _ in range(2):
        sealer.apply()
    assert caplog.messages.count("it is damaged") == 1

    monkeypatch.setattr(keeper, "seal_all", Mock(side_effect=StoreUnavailable("away")))
    assert sealer.apply() == 600
    assert "windows stay open, with all of their counts: away" in caplog.text


def test_a_collector_keeps_its_store(store, scheme, fill, registry, monkeypatch):
    """A collector seals what is due by itself, drops old windows if its setting says so, and else
    keeps them for ever; and stops when it is told to."""
    for each in (Keeper, Sealer):
        monkeypatch.setattr(each, "first_seconds", 0.0)
    fill("2020-01-01", *DAYS)
    idle, *_ = Collector(Inherited(Settings(), registry), store).upkeep
    kept, sealer, _ = Collector(Inherited(Settings(keep_days=400), registry), store).upkeep
    kept._clock = sealer._clock = lambda: windows.end(DAYS[2]) + SETTLED
    for each in (idle, kept, sealer):
        each.start()
    try:
        until(lambda: len(store.sealed("m", scheme.fingerprint, DAYS)) == 3, "nothing is sealed")
        until(lambda: store.windows("m", scheme.fingerprint) == DAYS, "the old window stays")
        assert idle._thread is None
    finally:
        for each in (kept, sealer):
            each.stop()
    assert whole(store, scheme.fingerprint, DAYS, 3)
