"""The watched store: what it tells of a store that goes, half goes, and comes back."""

from contextlib import suppress
from unittest.mock import Mock

import pytest

from deniable_collector.operation import store_watch
from deniable_collector.operation.store_watch import WatchedStore
from deniable_collector.stores import StoreUnavailable
from deniable_collector.stores.commits import Commit
from deniable_collector.stores.contract import Change


@pytest.fixture
def moody():
    """A store whose calls fail with the messages that are put into `moods`, by shard; -1 is for
    reading."""
    store = Mock(shards=1, moods={})

    def answer(shard, given):
        if shard in store.moods:
            raise StoreUnavailable(store.moods[shard])
        return given

    store.fold.side_effect = lambda commit, now: answer(commit.shard, frozenset())
    store.schemes.side_effect = lambda: answer(-1, {})
    # A ping goes well where any shard answers.
    store.ping.side_effect = lambda: [answer(each, None) for each in range(store.shards)
                                      if {*range(store.shards)} <= store.moods.keys()]  # fmt: skip
    return store


@pytest.fixture
def store(moody):
    return WatchedStore(moody)


@pytest.fixture
def clock(monkeypatch):
    """The seconds that the watched store goes by; they stand still until they are moved."""
    now = [100.0]
    monkeypatch.setattr(store_watch.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def told(caplog):
    """What the log has told since the test began."""
    caplog.set_level("INFO", "deniable_collector")
    return lambda: [(each.event, each.getMessage()) for each in caplog.records]


def fold(store, shard=0):
    """Whether a commit to the shard is taken."""
    with suppress(StoreUnavailable):
        store.fold(Commit((), {}, shard), 0.0)
        return True
    return False


def test_a_store_that_fails_now_and_then_is_told_once(store, moody, clock, told):
    """A full disk that takes a commit now and then is lost once, and back after five seconds
    without a failure, however often it changes."""
    for turn in range(100):
        moody.moods = {0: "full"} if turn % 2 else {}
        assert fold(store) is not bool(turn % 2)
        clock[0] += 1
    assert [event for event, _ in told()] == ["store-lost"]
    moody.moods = {}
    assert fold(store)
    clock[0] += 5
    assert fold(store)
    assert told()[1:] == [("store-recovered", "the store is back after 98.0 s")]


def test_each_cause_is_told_once(store, moody, clock, told):
    """A cause that changes while the store is away is told too, once; and anew after a return."""
    for cause in ("away", "away", "password", "away", "password"):
        moody.moods = {0: cause}
        assert not fold(store)
    assert [message.partition(";")[0] for _, message in told()] == ["away", "password"]
    clock[0] += 10
    moody.moods = {}
    assert fold(store)
    moody.moods = {0: "away"}
    assert not fold(store)
    assert [event for event, _ in told()[2:]] == ["store-recovered", "store-lost"]


def test_reading_is_no_sign_that_the_store_is_back(store, moody, clock, told):
    """A store that can be read but not written is away until it takes a commit."""
    moody.moods = {0: "full"}
    assert not fold(store)
    clock[0] += 10
    assert store.schemes() == {}
    assert len(told()) == 1
    moody.moods = {}
    store.ping()
    assert [event for event, _ in told()] == ["store-lost", "store-recovered"]


def test_one_shard_of_several(store, moody, clock, told):
    """While one shard is away the store is not back, though another one answers."""
    moody.shards = 2
    moody.moods = {0: "node down"}
    assert not fold(store, 0)
    clock[0] += 10
    assert fold(store, 1)
    store.ping()
    assert len(told()) == 1
    moody.moods = {}
    assert fold(store, 0)
    assert [event for event, _ in told()] == ["store-lost", "store-recovered"]


def test_a_store_that_could_not_be_read_is_back_when_it_answers(store, moody, clock, told):
    """Where only reading has failed, the next write that goes well says that the store is back,
    whatever the number of its shards."""
    moody.shards = 2
    moody.moods = {-1: "away"}
    with pytest.raises(StoreUnavailable):
        store.schemes()
    clock[0] += 10
    moody.moods = {}
    store.ping()
    assert [event for event, _ in told()] == ["store-lost", "store-recovered"]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [("change", (0, ("m", "scheme"), Change())), ("merge", ()), ("clear_journal", (60.0,))],
)
def test_upkeep_that_fails_does_not_mean_that_the_store_is_lost(
    store, moody, told, call, arguments
):
    """A window that cannot be dropped and a journal that cannot be cleared now say nothing of
    commits; the call goes on to the store as it was made."""
    made = getattr(moody, call)
    made.side_effect = StoreUnavailable("a reader holds the file")
    with pytest.raises(StoreUnavailable):
        getattr(store, call)(*arguments)
    made.assert_called_once_with(*arguments)
    assert told() == []


def test_a_ping_stands_for_a_second(store, moody, clock):
    """However many ask /readyz, the store is written to once a second; what it answered is
    repeated meanwhile, in its words."""
    for _ in range(5):
        store.ping()
    assert moody.ping.call_count == 1
    moody.moods = {0: "full"}
    clock[0] += 1
    for _ in range(5):
        with pytest.raises(StoreUnavailable, match="full"):
            store.ping()
    assert moody.ping.call_count == 2
    moody.moods = {}
    clock[0] += 1
    store.ping()
    assert moody.ping.call_count == 3


def test_a_failure_ends_what_a_ping_has_said(store, moody, clock):
    """A commit that fails is known to /readyz at once."""
    store.ping()
    moody.moods = {0: "full"}
    assert not fold(store)
    with pytest.raises(StoreUnavailable, match="full"):
        store.ping()
