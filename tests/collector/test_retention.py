"""Retention by the collector itself, and schemes that a store forgot."""

from __future__ import annotations

import logging
from contextlib import closing

import pytest
import redis

from deniable import wire
from deniable_collector.app import create_app
from deniable_collector.batches.catalogue import Catalogue
from deniable_collector.intake import Intake
from deniable_collector.settings import Settings
from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.stores.base import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.upkeep import retention
from deniable_collector.upkeep.retention import Retention

STORES = ["sqlite", "redis", "cluster"]

DAY = 86_400.0


@pytest.fixture
def scheme(store, shelf):
    scheme = shelf(8)
    store.publish({"m": [scheme]})
    return scheme


@pytest.fixture
def fill(store, scheme, new_id, noon):
    """Puts a report into each of some windows."""

    def fill(*windows):
        for window in windows:
            key = TallyRowKey(TallyKey("m", scheme.fingerprint, window), 0)
            store.fold(Commit((new_id(),), {key: Increment(8, 1, (1,), (1,))}), noon)

    return fill


def test_old_windows_go_and_others_stay(store, scheme, fill, noon):
    """A window is kept for the days that are set, counted from its end, and then is gone."""
    fill("2026-11-11", "2026-11-12", "2026-11-13", "2026-W45", "2026-10")
    # Noon of the 21st less eight days is noon of the 13th.
    assert Retention(store, 8, lambda: noon).apply() == DAY
    assert store.windows("m", scheme.fingerprint) == ["2026-11-13"]
    assert Retention(store, 8, lambda: noon + DAY).apply() == DAY
    assert store.windows("m", scheme.fingerprint) == []


def test_two_at_once_do_no_harm(store, scheme, fill, noon):
    """Every process may apply it: what is gone is gone, and what stays is whole."""
    fill("2026-10-11", "2026-11-13")
    each = [Retention(store, 8, lambda: noon) for _ in range(2)]
    assert [retention.apply() for retention in each + each] == [DAY] * 4
    assert store.tally("m", scheme.fingerprint, ["2026-10-11", "2026-11-13"]).reports == 1


@pytest.mark.parametrize(("error", "later"), [(StoreUnavailable("away"), 600), (StoreError(), DAY)])
def test_trouble_is_told_and_does_not_end_it(caplog, error, later):
    """A store that is away is asked again soon; one that refuses, a day later."""

    class Trouble:
        def drop(self, before):
            raise error

    with caplog.at_level(logging.ERROR):
        assert Retention(Trouble(), 8).apply() == later
    assert "nothing was dropped" in caplog.text


def test_a_collector_applies_it(store, scheme, fill, registry, until, monkeypatch):
    """An app whose setting says so drops old windows by itself, and else keeps them for ever."""
    monkeypatch.setattr(retention, "_FIRST_SECONDS", 0.0)
    started = []

    class Noted(Retention):
        def start(self):
            started.append(self)
            super().start()

    monkeypatch.setattr(retention, "Retention", Noted)
    fill("2020-01-01")
    create_app(Settings(), store, registry)
    assert not started
    create_app(Settings(keep_days=400), store, registry)
    try:
        until(lambda: not store.windows("m", scheme.fingerprint), "the window stays")
    finally:
        started[0].stop()


def test_a_store_that_lost_its_memory_gets_the_schemes_again(
    new_redis, registry, shelf, new_id, noon
):
    """When Redis came back empty, the collector publishes what it knows within a minute of its
    commits, schemes of earlier registries too, and readers find their way again."""
    server, now = new_redis(), [noon]
    with (
        closing(open_store(server.url, shards=2)) as store,
        closing(open_store(server.url, shards=2)) as reader,
        closing(redis.Redis.from_url(server.url)) as client,
    ):
        earlier, browser = shelf(8), registry["browser"]
        reader.publish({"browser": [earlier]})
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
        assert set(reader.schemes()["browser"]) == {earlier.fingerprint, browser.scheme.fingerprint}
        assert client.hget("deniable:layout", "shards") == b"2"


def test_publishing_again_does_not_stop_commits(registry, noon):
    """A store that cannot be asked when its schemes are due again is asked a minute later."""
    asked, now = [], [noon]

    class Away:
        def publish(self, schemes):
            asked.append(set(schemes))
            if len(asked) > 1:
                raise StoreUnavailable("away")

        def schemes(self):
            return {}

    catalogue = Catalogue(registry, Away(), lambda: now[0])
    for seconds in (0, 59, 61, 62, 122):
        now[0] = noon + seconds
        catalogue.prepare()
    assert asked == [set(registry.metrics)] * 3
