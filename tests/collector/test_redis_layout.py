"""The layout of a store in Redis: what an earlier version makes of a later one, and an upgrade of
collectors under load, with two versions side by side."""

from __future__ import annotations

from contextlib import closing

import pytest
import redis

from deniable_collector.stores import StoreError, StoreUnavailable
from deniable_collector.stores.errors import NewerStore
from deniable_collector.stores.redis import layout as module
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.forms import HEADER
from deniable_collector.stores.redis.layout import LAYOUT, RedisLayout

from .devices import Devices, fetch
from .store_calls import WINDOW

STORES = ["redis", "cluster"]
FUTURE = 99


def connect(home):
    """redis-py's own client of a store."""
    return Driver(home.url).client


@pytest.mark.parametrize("form", [0, 1, 2, 5, 16, 63, 65, 96, 127, 129, 384 + 1, 2**53, 2**63])
def test_a_form_from_the_future(home, calls, form):
    """A tally in a form of a later version is refused by its name, neither read as other numbers
    nor written over, even where the store's version says nothing."""
    scheme = calls.scheme
    key = f"{home.prefix}:{{0}}:tally:m:{scheme.fingerprint}:{WINDOW}"
    value = HEADER.pack(7, form) + bytes(range(64)) * 4
    with closing(connect(home)) as client:
        client.set(key, value)
        client.sadd(f"{home.prefix}:{{0}}:windows:m:{scheme.fingerprint}", WINDOW)
        for name in ("fold few", "fold many", "tally", "reports", "seal"):
            with pytest.raises(NewerStore, match="a newer version of deniable"):
                calls.all[name]()
        assert client.get(key) == value


def test_the_higher_of_two_versions_stays(home, store, monkeypatch):
    """Where two later versions raise the number, it ends with the higher one; the lower refuses."""
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.0)
    store.publish({})
    layouts = [RedisLayout(Driver(home.url), home.prefix) for _ in range(2)]
    for version, layout in zip((LAYOUT + 2, LAYOUT + 1), layouts, strict=True):
        monkeypatch.setattr(module, "LAYOUT", version)
        layout.upgrade()
    assert connect(home).hget(f"{home.prefix}:layout", "version") == b"%d" % (LAYOUT + 2)
    with pytest.raises(NewerStore):
        layouts[1].check()
    layouts[1]._driver.close()
    layouts[0]._driver.close()


def test_an_upgrade_waits_until_all_must_know(home, store, monkeypatch):
    """The process that raises the number waits for longer than others rely on what they have read;
    where there is nothing to raise, it does not wait."""
    waited = []
    monkeypatch.setattr(module.time, "sleep", waited.append)
    store.publish({})
    store.publish({})
    assert waited == []
    monkeypatch.setattr(module, "LAYOUT", LAYOUT + 1)
    later = home.open()
    later.publish({})
    later.publish({})
    assert waited == [module._WAIT_SECONDS]
    assert waited[0] > module.LOOK_SECONDS


class Flaky:
    """A driver whose Redis can be away."""

    def __init__(self):
        self.away, self.asked, self.version = False, 0, b"%d" % LAYOUT
        self.client = self

    def script(self, text):
        return None

    def hget(self, key, field):
        self.asked += 1
        if self.away:
            raise redis.ConnectionError
        return self.version


def test_the_node_of_the_layout_is_away(monkeypatch):
    """While the node that has the version is away, what was known counts, and it is asked once a
    minute; a process that knows nothing yet refuses. Then it is asked again."""
    driver, now = Flaky(), [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    layout = RedisLayout(driver, "x")
    driver.away = True
    with pytest.raises(StoreUnavailable):
        layout.check()
    driver.away = False
    layout.check()
    driver.away, now[0], driver.asked = True, now[0] + 1.5, 0
    for _ in range(10):
        layout.check()
        now[0] += 5
    assert driver.asked == 1
    driver.away, driver.version = False, b"%d" % FUTURE
    now[0] += 60
    for _ in range(2):
        with pytest.raises(NewerStore):
            layout.check()
    driver.version = b"1"
    with pytest.raises(StoreError, match="before its release"):
        layout.check()
    driver.version = None
    layout.check()


NEWER = f"""
from deniable_collector.stores.redis import layout
layout.LAYOUT = {LAYOUT + 1}
from deniable_collector import commands
from gunicorn.app.wsgiapp import run
import sys
sys.argv = ["gunicorn", "-c", "python:deniable_collector.gunicorn_conf",
            "deniable_collector.asgi:app()"]
run()
"""


def test_collectors_are_upgraded_under_load(home, new_collector, registry, until):
    """Two collectors run; a third of a later version, with another layout, joins them under load
    and takes the store over. The two answer 503 from then on, also to probes, so devices come to
    the third: every batch is counted, once. Then the two end cleanly."""
    earlier = [new_collector(**home.environ, DENIABLE_BIND="127.0.0.1:0") for _ in range(2)]
    devices = Devices(registry, 300, [each.address for each in earlier], pause=0.08)
    devices.start()
    devices.wait(30)
    later = new_collector("-c", NEWER, **home.environ, DENIABLE_BIND="127.0.0.1:0")
    devices.addresses.append(later.address)

    def refuses(collector):
        return fetch(f"{collector.address}/readyz")[0] == 503

    until(lambda: all(map(refuses, earlier)), "an earlier version still takes batches")
    assert devices.acknowledged < len(devices.batches), "nothing came after the upgrade"
    assert fetch(f"{later.address}/readyz")[0] == 200
    devices.finish()
    assert devices.statuses[503] > 0
    assert 500 not in devices.statuses
    for collector in earlier:
        assert collector.stop() == 0
        assert "store-lost: a newer version of deniable has written this store" in collector.log
    with closing(connect(home)) as client:
        client.hset(f"{home.prefix}:layout", "version", str(LAYOUT))
    devices.check(home.open())
