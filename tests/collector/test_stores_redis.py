"""What is particular to Redis: the server's moods, the script's cache, shards and keys."""

import dataclasses
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
import redis
from tests.stores import window_reports

from deniable_collector.settings import Settings
from deniable_collector.stores import StoreError, StoreUnavailable, ids, open_store
from deniable_collector.stores.commits import Commit, TallyKey
from deniable_collector.stores.redis import driver

from .filling import added, commit, reports_in


@contextmanager
def opened(server, prefix="own", *schemes, **options):
    """A store with these schemes of the metric `m`."""
    with closing(open_store(Settings(store=server.url, redis_prefix=prefix, **options))) as store:
        if schemes:
            store.publish(("m", each) for each in schemes)
        yield store


@pytest.fixture
def client(redis_server):
    with closing(redis.Redis.from_url(redis_server.url)) as client:
        yield client


@pytest.fixture
def own_server(new_redis):
    """A server that the test may harm."""
    server = new_redis()
    yield server
    server.kill()


def test_the_number_of_shards_cannot_change(redis_server, scheme):
    """A retry must meet the shard that knows its id, so another number is refused."""
    with opened(redis_server, "fixed", shards=4) as store:
        store.publish(())
    # A reader need not be told the number of shards: the store knows.
    with opened(redis_server, "fixed") as reader:
        assert reader.shards == 4
    with opened(redis_server, "fixed", shards=3) as store:
        with pytest.raises(StoreError, match="DENIABLE_SHARDS=4"):
            store.publish([("m", scheme)])
        assert store.schemes() == {}


def test_a_reader_from_before_the_first_publish(redis_server, scheme, new_id, noon):
    """A reader that looked at an empty store finds the shards that come later."""
    with opened(redis_server, "early") as reader, opened(redis_server, "early", shards=2) as store:
        assert reader.windows("m", scheme.fingerprint) == []
        store.publish([("m", scheme)])
        store.fold(commit(scheme, new_id(), shard=1), noon)
        assert reports_in(reader, scheme) == 1


@pytest.mark.parametrize("version", [0, 1, 99])
def test_another_layout_is_refused(redis_server, client, scheme, version):
    """A store that another version laid out is refused, by readers and writers, and left alone."""
    prefix = f"layout{version}"
    client.hset(f"{prefix}:layout", mapping={"version": version, "shards": 1})
    with opened(redis_server, prefix) as store:
        for act in (
            lambda: store.publish([("m", scheme)]),
            store.schemes,
            lambda: store.windows("m", scheme.fingerprint),
            lambda: store.shards,
            store.ping,
        ):
            with pytest.raises(StoreError, match="DENIABLE_REDIS_PREFIX"):
                act()
    assert client.keys(f"{prefix}:*") == [f"{prefix}:layout".encode()]


@pytest.mark.parametrize(("term", "name"), [(0, "8d:"), (1, "14d:"), (2, "38d:")])
def test_ids_leave_by_themselves(redis_server, client, scheme, new_id, noon, term, name):
    """Every generation of ids of each term has an expiry, beyond the last moment at which it is
    asked."""
    period, prefix = ids.PERIODS[term], f"generations{term}"
    with opened(redis_server, prefix, scheme) as store:
        for moment in (noon, noon + 1, noon + period, noon + 2 * period):
            one = commit(scheme, new_id())
            store.fold(dataclasses.replace(one, remember={one.ids[0]: ids.TERMS[term]}), moment)
            generation = ids.generation_at(moment, term)
            asked_until = next(
                later * period
                for later in range(generation, generation + 9)
                if generation not in ids.generations_at(later * period, term)
            )
            left = client.ttl(f"{prefix}:{{0}}:ids:{name}{generation}")
            assert asked_until - moment <= left <= (1 + ids.KEPT) * period + 1
            assert left > ids.TERMS[term]
        assert len(client.keys(f"{prefix}:{{0}}:ids:*")) == 3 + len(["seed"])


def test_a_generation_lives_for_the_last_of_its_ids(redis_server, client, scheme, new_id, noon):
    """Where a clock had jumped ahead, the first id of a generation came long before its time: ids
    that come later, by clocks that are right, prolong its life, and none shortens it."""
    start = ids.generation_at(noon) * ids.PERIODS[0]
    with opened(redis_server, "prolonged", scheme) as store:
        for part, left in ((0.99, 4.01), (0.01, 4.99), (0.5, 4.99)):
            store.fold(commit(scheme, new_id()), start + part * ids.PERIODS[0])
            found = client.ttl(f"prolonged:{{0}}:ids:8d:{ids.generation_at(noon)}")
            assert found == pytest.approx(left * ids.PERIODS[0], abs=30)


def test_ids_move_to_deeper_levels(redis_server, client, scheme, new_id, noon, monkeypatch):
    """When a level holds enough ids the next one takes them; ids of all levels are known, with
    eight bytes for each."""
    monkeypatch.setattr(ids, "FIRST_LEVEL", 256)
    batches = [new_id() for _ in range(6_000)]
    with opened(redis_server, "levels", scheme) as store:
        expected = Counter()
        for first in range(0, len(batches), 128):
            some = tuple(batches[first : first + 128])
            expected[3 + ids.level_of(first)] += ids.TAG * len(some)
            assert not store.fold(Commit(some, {}), noon)
        slots = client.hgetall(f"levels:{{0}}:ids:8d:{ids.generation_at(noon)}")
        assert int(slots.pop(b"n")) == len(batches)
        held = Counter()
        for slot, tags in slots.items():
            held[len(slot)] += len(tags)
        assert held == expected
        assert held.keys() == {3, 4, 5}
        assert sum(map(len, slots.values())) == ids.TAG * len(batches)
        for first in range(0, len(batches), 1_000):
            some = batches[first : first + 1_000]
            assert store.fold(Commit((new_id(), *some), {}), noon) == set(some)


def test_a_tag_counts_at_its_own_place_alone(redis_server, client, scheme, new_id, noon):
    """Bytes of two tags side by side that happen to read as a third are not taken for it, before
    the real one or without it."""
    with opened(redis_server, "aligned", scheme) as store:
        store.fold(commit(scheme, new_id()), noon)
        seed = client.get("aligned:{0}:ids:seed")
        key = f"aligned:{{0}}:ids:8d:{ids.generation_at(noon)}"
        for real in (False, True):
            batch = new_id()
            name = ids.name([batch], seed)
            across = b"\0" * 3 + name.tags + b"\0" * 5
            client.hset(key, name.slots[:3], across + (name.tags if real else b""))
            assert store.fold(commit(scheme, batch), noon) == ({batch} if real else set())
            assert store.fold(commit(scheme, batch), noon) == {batch}


def test_stores_agree_on_the_seed_of_ids(own_server, scheme, new_id, noon):
    """Stores that were opened apart, also before the server lost its memory, know each other's
    ids: the first commit decides how ids are spread."""
    with opened(own_server) as one, opened(own_server) as other:
        for _ in range(2):
            one.publish([("m", scheme)])
            first, second = new_id(), new_id()
            assert not one.fold(commit(scheme, first), noon)
            assert other.fold(commit(scheme, first), noon) == {first}
            assert not other.fold(commit(scheme, second), noon)
            assert one.fold(commit(scheme, second), noon) == {second}
            with closing(redis.Redis.from_url(own_server.url)) as client:
                client.flushall()


def test_wide_commits_that_race_are_all_added(redis_server, shelf, new_id, noon):
    """Threads that swap the same tally at once lose no commit: one that is always overtaken
    adds in place."""
    scheme = shelf(*[64] * 100)
    tally = TallyKey("m", scheme.fingerprint, "2026-11-20")
    rows = dict.fromkeys(range(100), (1, dict.fromkeys(range(64), 1)))
    parts = {tally: added(scheme, rows)}
    with opened(redis_server, "swaps", scheme) as store:
        work = [Commit((new_id(),), parts) for _ in range(80)]
        with ThreadPoolExecutor(8) as pool:
            assert not any(pool.map(lambda each: store.fold(each, noon), work))
        for row in store.tally("m", scheme.fingerprint, ["2026-11-20"]).rows:
            assert row.reports == 80
            assert set(row.cells.tolist()) == {80}


def test_many_tallies_are_merged_at_once(redis_server, scheme, new_id, noon, monkeypatch):
    """Where more tallies of a commit must be merged than it has attempts, all are by the next."""
    days = [f"2026-{month:02}-{day:02}" for month in range(1, 11) for day in range(1, 16)]
    tallies = [TallyKey("m", scheme.fingerprint, day) for day in days]
    parts = dict.fromkeys(tallies, added(scheme, {0: (1, {2: 1})}))
    monkeypatch.setattr("deniable_collector.stores.increments.LEAST", 16)
    with opened(redis_server, "together", scheme) as store:
        for _ in range(4):
            assert not store.fold(Commit((new_id(),), parts), noon)
        of = "m", scheme.fingerprint
        assert window_reports(store, of, days) == dict.fromkeys(days, 4)


def test_a_swap_that_is_always_overtaken(redis_server, scheme, new_id, noon, monkeypatch):
    """A commit that can only swap gives up when others change the tally each time, adds
    nothing, and may be tried again."""
    batch = new_id()
    both = (opened(redis_server, "overtaken", scheme) for _ in range(2))
    with next(both) as store, next(both) as other:
        read = store._values

        def overtake(keys):
            found = read(keys)
            if keys:
                other.fold(commit(scheme, new_id()), noon)
            return found

        monkeypatch.setattr(store, "_values", overtake)
        with pytest.raises(StoreUnavailable, match="all the time"):
            store.fold(commit(scheme, batch, cells={0: 2**40}), noon)
        monkeypatch.undo()
        tally = store.tally("m", scheme.fingerprint, ["2026-11-20"])
        assert tally.rows[0].cells.tolist() == [0, 100, 0, 0, 0, 0, 0, 0]
        assert not store.fold(commit(scheme, batch, cells={0: 2**40}), noon)


def test_a_server_whose_memory_is_full(own_server, scheme, new_id, noon):
    """A Redis at maxmemory that evicts nothing refuses a ping as it refuses a commit, and says
    why; it can still be read, and takes both when it has room again."""
    one = closing(redis.Redis.from_url(own_server.url))
    with opened(own_server, "own", scheme) as store, one as one:
        store.fold(commit(scheme, new_id()), noon)
        one.config_set("maxmemory-policy", "noeviction")
        one.config_set("maxmemory", 1)
        for act in (lambda: store.fold(commit(scheme, new_id()), noon), store.ping):
            with pytest.raises(StoreUnavailable, match="maxmemory"):
                act()
        assert reports_in(store, scheme) == 1
        one.config_set("maxmemory", 0)
        store.ping()
        assert store.fold(commit(scheme, new_id()), noon) == frozenset()


def test_replicas_that_are_not_there(own_server, scheme, new_id, noon, monkeypatch):
    """A batch that must reach a replica is not acknowledged without one, and counted once."""
    monkeypatch.setattr(driver, "_WAIT_MILLISECONDS", 100)
    batch = new_id()
    with opened(own_server, "own", scheme, redis_replicas=1) as store:
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="DENIABLE_REDIS_REPLICAS"):
                store.fold(commit(scheme, batch), noon)
        assert reports_in(store, scheme) == 1
