"""Retention by the collector itself, and schemes that a store forgot."""

import logging
from contextlib import closing
from unittest.mock import Mock

import pytest
import redis
from tests.registries import declared

from deniable import Registry
from deniable.protocol import wire
from deniable_collector.batches.catalogue import Catalogue
from deniable_collector.intake import Intake
from deniable_collector.settings import Settings
from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.sealed import DamagedBlock
from deniable_collector.stores.summing import Sums
from deniable_collector.upkeep.keeper import Keeper

from .filling import commit

STORES = ["sqlite", "redis"]

DAY = 86_400.0


@pytest.fixture
def scheme(store, shelf):
    scheme = shelf(8)
    store.publish([("m", scheme)])
    return scheme


@pytest.fixture
def fill(store, scheme, new_id, noon):
    """Puts a report into each of some windows."""

    def fill(*windows):
        for window in windows:
            store.fold(commit(scheme, new_id(), window=window), noon)

    return fill


def test_old_windows_go_and_others_stay(store, scheme, fill, noon):
    """A window is kept for the days that are set, counted from its end, and then is gone."""
    fill("2026-11-11", "2026-11-12", "2026-11-13", "2026-W45", "2026-10")
    # Noon of the 21st less eight days is noon of the 13th.
    assert Keeper(store, 8, lambda: noon).apply() == DAY
    assert store.windows("m", scheme.fingerprint) == ["2026-11-13"]
    assert Keeper(store, 8, lambda: noon + DAY).apply() == DAY
    assert store.windows("m", scheme.fingerprint) == []


def rules(*names):
    """A registry of metrics with a rule."""
    text = declared(**{name: {"type": "boolean"} for name in names})
    keep = 'keep = { day = "60 days", month = "forever" }'
    return Registry.parse(text.replace("[defaults]\n", f"[defaults]\n{keep}\n"))


@pytest.mark.parametrize(
    ("error", "later"), [(StoreUnavailable("away"), 600), (StoreError("refused"), DAY)]
)
@pytest.mark.parametrize("call", ["schemes", "drop"])
@pytest.mark.stores("sqlite")
def test_trouble_is_told(store, fill, noon, monkeypatch, caplog, error, later, call):
    """A store that is away is asked again soon; one that refuses, a day later."""
    fill("2026-08-11")

    monkeypatch.setattr(store, call, Mock(side_effect=error))
    with caplog.at_level(logging.ERROR):
        assert Keeper(store, 8, lambda: noon).apply() == later
    assert caplog.messages == [f"windows that are too old stay: {error}"]


@pytest.mark.stores("sqlite")
def test_rules_and_days_together(store, shelf, new_id, noon, monkeypatch, caplog):
    """Metrics with a rule keep their sums, others go by the days, if there are any; a window that
    cannot be read stays, and is named once."""
    scheme, names = shelf(8), ("alpha", "beta", "other")
    store.publish((name, scheme) for name in names)
    for name in names:
        for window in ("2026-08-11", "2026-08-12"):
            store.fold(commit(scheme, new_id(), metric=name, window=window), noon)
    assert Keeper(store, 0, lambda: noon, rules("gamma")).apply() == DAY
    assert all(len(store.windows(name, scheme.fingerprint)) == 2 for name in names)
    read = store.read

    def damaged(shard, of, names, take):
        if of[0] == "alpha" and "2026-08-11" in names:
            raise DamagedBlock("it is damaged", TallyKey(*of, "2026-08-11"))
        return read(shard, of, names, take)

    monkeypatch.setattr(store, "read", damaged)
    kept = Keeper(store, 8, lambda: noon, rules("alpha", "beta", "gamma"))
    with caplog.at_level(logging.INFO):
        assert [kept.apply() for _ in range(2)] == [DAY] * 2
    assert caplog.messages.count("it is damaged") == 1
    assert "dropped 2 tallies that ended 8 days ago or earlier" in caplog.messages
    assert "dropped 2 tallies and sums of beta, as its `keep` says" in caplog.messages
    left = {name: store.windows(name, scheme.fingerprint) for name in names}
    assert left == {"alpha": ["2026-08-11"], "beta": [], "other": []}
    sums = {name: list(map(str, store.sums.names((name, scheme.fingerprint)))) for name in names}
    assert sums == {"alpha": ["kept-day-2026-08"], "beta": ["kept-day-2026-08"], "other": []}


@pytest.mark.stores("sqlite")
def test_a_process_that_ends_leaves_the_rest(store, shelf, noon, monkeypatch):
    """Stopping waits for one metric, and not for all that are left."""
    store.publish((name, shelf(8)) for name in ("alpha", "beta", "gamma"))
    ending = Keeper(store, 0, lambda: noon, rules("alpha", "beta", "gamma"))
    asked = []

    def drop(self, metric, *arguments):
        asked.append(metric)
        ending.stop()
        return {}

    monkeypatch.setattr(Sums, "drop_windows", drop)
    assert ending.apply() == 600
    assert [metric for metric, _ in asked] == ["alpha"]


def test_a_store_that_lost_its_memory_gets_the_schemes_again(
    new_redis, registry, shelf, new_id, noon
):
    """When Redis came back empty, the collector publishes what it knows within a minute of its
    commits, schemes of earlier registries too, and readers find their way again."""
    server, now = new_redis(), [noon]
    with (
        closing(open_store(Settings(store=server.url, shards=2))) as store,
        closing(open_store(Settings(store=server.url, shards=2))) as reader,
        closing(redis.Redis.from_url(server.url)) as client,
    ):
        earlier, browser = shelf(8), registry["browser"]
        reader.publish([("browser", earlier)])
        intake = Intake(registry, store, clock=lambda: now[0])
        report = wire.SealedReport("browser", browser.scheme.fingerprint, "2026-11-20", 0, 1)

        def send():
            intake.take([intake.read(wire.encode_batch(new_id(), [report]))])

        send()
        client.flushall()
        send()
        with pytest.raises(StoreError):
            reader.scheme("browser", browser.scheme.fingerprint)
        now[0] += 61
        send()
        assert reader.tally("browser", browser.scheme.fingerprint, ["2026-11-20"]).reports == 2
        found = {scheme for metric, scheme in reader.schemes() if metric == "browser"}
        assert found == {earlier.fingerprint, browser.scheme.fingerprint}
        assert client.hget("deniable:layout", "shards") == b"2"


def test_publishing_again_does_not_stop_commits(registry, noon):
    """A store that cannot be asked when its schemes are due again is asked a minute later."""
    now, away = [noon], StoreUnavailable("away")
    store = Mock(**{"publish.side_effect": [None, away, away], "schemes.return_value": {}})
    catalogue = Catalogue(registry, store, lambda: now[0])
    for seconds in (0, 59, 61, 62, 122):
        now[0] = noon + seconds
        catalogue.prepare()
    asked = [{metric for metric, _ in call.args[0]} for call in store.publish.call_args_list]
    assert asked == [set(registry.metrics)] * 3
