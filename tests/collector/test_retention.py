"""Retention by the collector itself, and schemes that a store forgot."""

from __future__ import annotations

import logging
from contextlib import closing

import pytest
import redis

from deniable import Registry, wire
from deniable_collector.app import create_app
from deniable_collector.batches.catalogue import Catalogue
from deniable_collector.intake import Intake
from deniable_collector.settings import Settings
from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.stores.summed.summing import Sums
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


class Trouble:
    """A store of many metrics that drops no windows of some of them."""

    def __init__(self, error, failing, metrics, *, away_after=10**9):
        self.error, self.failing, self.metrics = error, failing, metrics
        self.dropped, self.away_after, self.pings = [], away_after, 0

    def schemes(self):
        return {metric: {} for metric in self.metrics}

    def drop(self, before, metrics):
        if self.failing.intersection(metrics):
            raise self.error
        self.dropped += metrics
        return len(metrics)

    def ping(self):
        self.pings += 1
        if self.pings > self.away_after:
            raise StoreUnavailable("Redis cannot answer now")


@pytest.mark.parametrize(("error", "later"), [(StoreUnavailable("away"), 600), (StoreError(), DAY)])
def test_trouble_is_told_and_does_not_end_it(caplog, error, later):
    """A store that is away is asked again soon; one that refuses, a day later. The metrics behind
    those that fail are dropped all the same, and one line names all that fail."""
    store = Trouble(error, {"a", "c"}, "abcd")
    with caplog.at_level(logging.ERROR):
        assert Retention(store, 8).apply() == later
    assert store.dropped == ["b", "d"]
    (told,) = caplog.messages
    assert f"windows that are too old stay, of 2 metrics (a, c): {error}" in told
    caplog.clear()
    with caplog.at_level(logging.ERROR):
        assert Retention(Trouble(error, {"a"}, "a"), 8).apply() == later
    assert "of 1 metric (a)" in caplog.text


def test_a_store_that_is_away_is_not_asked_for_each_metric(caplog):
    """When the store does not answer at all, the metrics that are left do not wait for it."""
    store = Trouble(StoreUnavailable("away"), {"a", "b", "c"}, "abcd", away_after=1)
    with caplog.at_level(logging.ERROR):
        assert Retention(store, 8).apply() == 600
    assert store.dropped == []
    assert caplog.messages == [
        "not every metric was tried: Redis cannot answer now",
        "windows that are too old stay, of 2 metrics (a, b): away",
    ]


def test_a_store_that_cannot_be_asked_at_all(caplog):
    """Where even the schemes cannot be read, this is said, and tried again soon."""

    class Away:
        def schemes(self):
            raise StoreUnavailable("away")

    with caplog.at_level(logging.ERROR):
        assert Retention(Away(), 8).apply() == 600
    assert caplog.messages == ["not every metric was tried: away"]


def test_many_failures_are_one_short_line(caplog):
    """A line names ten metrics and three reasons at most, and says how many failed."""
    names = [f"m{number}" for number in range(200)]
    store = Trouble(StoreError("no"), set(names), names)
    with caplog.at_level(logging.ERROR):
        Retention(store, 8).apply()
    (told,) = caplog.messages
    assert "of 200 metrics (m0, " in told
    assert len(told) < 200
    assert caplog.records[0].fields["metrics"] == names


def test_a_process_that_ends_leaves_the_rest():
    """Stopping waits for one metric, and not for all that are left."""
    store = Trouble(StoreError("no"), {"a", "b"}, "abcd")
    retention = Retention(store, 8)
    drop = store.drop

    def ends(before, metrics):
        if list(metrics) == ["a"]:
            retention.stop()
        return drop(before, metrics)

    store.drop = ends
    retention.apply()
    assert store.dropped == []


RULES = """
schema = 1
app = "calm"
[defaults]
expires = 2027-06-30
owner = "tests@example.org"
keep = { day = "60 days", month = "forever" }
""" + "".join(
    f"""[metrics.{name}]
type = "boolean"
description = "A test."
epsilon = 1.0
lifetime_epsilon = 20.0
"""
    for name in ("alpha", "beta", "gamma")
)


@pytest.mark.parametrize("rules", [False, True])
def test_a_metric_that_cannot_be_dropped_keeps_no_other(
    home, store, shelf, new_id, noon, tmp_path, caplog, rules
):
    """Windows in a folder that is away stay, and are named; those of all other metrics go, and the
    same happens where `keep` has rules. When the folder is back, the rest goes."""
    folder, scheme = tmp_path / "archive", shelf(8)
    metrics = ["alpha", "beta", "gamma"]
    store.publish({metric: [scheme] for metric in metrics})
    keys = {each: TallyKey(each, scheme.fingerprint, "2026-08-11") for each in metrics}
    for key in keys.values():
        increments = {TallyRowKey(key, 0): Increment(8, 1, (1,), (1,))}
        store.fold(Commit((new_id(),), increments), noon)
    declared = Registry.parse(RULES) if rules else ()
    with closing(open_store(home.url, prefix=home.prefix, archive=str(folder))) as opened:
        for metric in ("alpha", "beta"):
            assert opened.seal(keys[metric]) is not None
        folder.rename(tmp_path / "elsewhere")
        retention = Retention(opened, 8, lambda: noon, declared)
        with caplog.at_level(logging.ERROR):
            retention.apply()
        left = [each for each in metrics if store.windows(each, scheme.fingerprint)]
        assert left == ["alpha", "beta"]
        for metric in left:
            assert f"metric {metric}, window 2026-08-11" in caplog.text
        assert "gamma" not in caplog.text
        kept = ["kept-day-2026-08"] * rules
        assert [str(each) for each in store.sums.names("gamma", scheme.fingerprint)] == kept
        (tmp_path / "elsewhere").rename(folder)
        opened._archive._away = "", 0.0
        assert retention.apply() == DAY
        assert not any(store.windows(each, scheme.fingerprint) for each in metrics)


def test_each_step_of_a_rule_is_tried(store, shelf, fill, scheme, noon, monkeypatch, caplog):
    """Where the windows of one scheme cannot be dropped, those of the others are."""
    other = shelf(9)
    store.publish({"m": [scheme, other]})
    fill("2026-08-11")
    drop = Sums.drop_windows

    def refused(self, metric, fingerprint, before, calendars):
        if fingerprint == other.fingerprint:
            raise StoreUnavailable("away")
        return drop(self, metric, fingerprint, before, calendars)

    monkeypatch.setattr(Sums, "drop_windows", refused)
    declared = Registry.parse(RULES.replace("alpha", "m"))
    with caplog.at_level(logging.ERROR):
        assert Retention(store, 0, lambda: noon, declared).apply() == 600
    assert store.windows("m", scheme.fingerprint) == []
    assert "windows that are too old stay, of 1 metric (m): away" in caplog.text


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
