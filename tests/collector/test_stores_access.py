"""The least rights that the collector and its readers need in Redis, and what is said without."""

import re
import secrets
from contextlib import closing
from pathlib import Path

import pytest
import redis
from tests.ports import until

from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.stores.commits import TallyKey

from .filling import WINDOW, commit, reports_in

PAGE = (Path(__file__).parents[2] / "docs/reference/store-export.md").read_text(encoding="utf-8")
PASSWORD = "p@ss/word"


def as_user(url, name):
    """The address with a user."""
    return url.replace("://", f"://{name}@", 1)


def rights(role):
    """The rules of a role, as the page gives them: ACL SETUSER deniable-ROLE on >PASSWORD ..."""
    found = re.search(rf"^ACL SETUSER deniable-{role} on >\S+ (.+)$", PAGE, re.MULTILINE)
    assert found
    return found[1].split()


@pytest.fixture
def guarded(redis_server):
    """A Redis with the users of the page: what `open_store` needs, and a function that gives a
    command."""
    redis_server.need_7()
    prefix = f"test-{secrets.token_hex(6)}"
    with closing(redis.Redis.from_url(redis_server.url)) as client:
        for role in ("collector", "dashboard"):
            rules = [each.replace("deniable:", f"{prefix}:") for each in rights(role)]
            client.execute_command("ACL", "SETUSER", role, "reset", "on", f">{PASSWORD}", *rules)
        options = {"prefix": prefix, "password": PASSWORD}
        yield redis_server.url, options, client.execute_command


def test_the_least_rights(guarded, scheme, shelf, new_id, noon):
    """With exactly the rights of the page, a collector does all of its work, retention and the
    clearing of the journal included, and a reader reads, pings and can change nothing."""
    url, options, _ = guarded
    batch, wide = new_id(), shelf(20_000)
    with (
        closing(open_store(as_user(url, "collector"), **options)) as store,
        closing(open_store(as_user(url, "dashboard"), **options)) as reader,
    ):
        store.publish({"m": [scheme]})
        assert store.shards == 1
        store.ping()
        assert store.fold(commit(scheme, batch), noon) == frozenset()
        assert store.fold(commit(scheme, batch), noon) == {batch}
        # Many counters at once, and few of many, take other ways.
        store.publish({"m": [wide]})
        for count in (20_000, 20, 2_000):
            cells = dict.fromkeys(range(0, 20_000, 20_000 // count), 2**31)
            assert not store.fold(commit(wide, new_id(), cells=cells), noon)
        assert reader.tally("m", wide.fingerprint, [WINDOW]).reports == 3
        assert scheme.fingerprint in store.schemes()["m"]
        assert reader.windows("m", scheme.fingerprint) == [WINDOW]
        assert reports_in(reader, scheme) == reports_in(store, scheme) == 1
        assert reader.scheme("m", scheme.fingerprint).fingerprint == scheme.fingerprint
        assert reader.shards == 1
        for act in (
            lambda: reader.publish({"m": [scheme]}),
            lambda: reader.fold(commit(scheme, new_id()), noon),
            lambda: reader.drop(noon),
        ):
            with pytest.raises(StoreUnavailable, match="NoPermission"):
                act()
        assert reports_in(store, scheme) == 1
        assert store.drop(noon) == 2
        until(lambda: store.clear_journal(0.0) is None, "the journal is not cleared")
        with pytest.raises(StoreError, match=r"\+info and \+bgrewriteaof"):
            reader.clear_journal(0.0)
    other = open_store(as_user(url, "collector"), **{**options, "prefix": "other"})
    with closing(other), pytest.raises(StoreUnavailable, match=r"give it ~PREFIX:\*"):
        other.publish({"m": [scheme]})
    wrong = open_store(as_user(url, "collector"), **{**options, "password": "hush"})
    with (
        closing(wrong),
        pytest.raises(StoreUnavailable, match="check those in the address") as caught,
    ):
        wrong.ping()
    assert "hush" not in str(caught.value)


def fold_all(store, scheme, batches, noon):
    """Each batch has one report of a window of its own: one with few counters, and one with so
    many that the tally is swapped."""
    for day, (batch, columns) in enumerate(zip(batches, ((1,), range(8)), strict=True), 1):
        cells = dict.fromkeys(columns, 1)
        store.fold(commit(scheme, batch, cells=cells, window=f"2026-10-{day:02}"), noon)


def collect_everything(store, scheme, batches, noon):
    """All that collectors and their commands do."""
    store.publish({"m": [scheme]})
    store.ping()
    fold_all(store, scheme, batches, noon)
    labels = store.windows("m", scheme.fingerprint)
    for label in labels:
        assert store.seal(TallyKey("m", scheme.fingerprint, label))
    assert store.sealed("m", scheme.fingerprint, labels) == set(labels)
    assert store.sums.add_up("m", scheme.fingerprint, "day", "2026-10")
    assert scheme.fingerprint in store.schemes()["m"]
    store.scheme("m", scheme.fingerprint)
    store.tally("m", scheme.fingerprint, labels)
    store.reports("m", scheme.fingerprint, labels)
    store.versions({"m": labels})
    assert store.drop(noon) == len(labels) == len(batches)
    store.clear_journal(0.0)


AFTER_COMMITS = {"unlink", "srem", "multi", "exec", "info", "bgrewriteaof"}
ONCE = {"command", "cluster|slots"}
"""Rights that only a cluster's driver needs, when it connects."""


def test_each_right_is_needed_and_named(guarded, scheme, noon):
    """Without any single right of the page something fails and the error names the right. No batch
    is counted in part: sent again when the right is back, each is counted once."""
    url, options, everywhere = guarded
    url = as_user(url, "collector")
    listed = {right[1:] for right in rights("collector") if right.startswith("+")}
    assert len(listed) > 20
    for right in sorted(listed - ONCE - {"wait"}):
        batches = [secrets.token_hex(16) for _ in range(2)]
        everywhere("SCRIPT", "FLUSH")
        everywhere("ACL", "SETUSER", "collector", f"-{right}")
        with closing(open_store(url, **options)) as store:
            with pytest.raises(StoreError) as caught:
                collect_everything(store, scheme, batches, noon)
            assert f"+{right}" in str(caught.value), str(caught.value)
        everywhere("ACL", "SETUSER", "collector", f"+{right}")
        with closing(open_store(url, **options)) as store:
            store.publish({"m": [scheme]})
            fold_all(store, scheme, batches, noon)
            labels = store.windows("m", scheme.fingerprint)
            counted = store.reports("m", scheme.fingerprint, labels)
            assert set(counted.values()) <= {1}, right
            assert len(counted) == len(batches) or right in AFTER_COMMITS
            store.drop(noon)
    with closing(open_store(url, **options)) as store:
        collect_everything(store, scheme, [secrets.token_hex(16) for _ in range(2)], noon)


def read_everything(store, scheme):
    """All that the dashboard and the commands that only read ask a store."""
    store.schemes()
    store.scheme("m", scheme.fingerprint)
    labels = store.windows("m", scheme.fingerprint)
    store.tally("m", scheme.fingerprint, labels)
    store.reports("m", scheme.fingerprint, labels)
    store.version("m", scheme.fingerprint, labels)
    store.versions({"m": labels})


def test_each_right_of_a_reader(guarded, scheme, noon):
    """A reader needs each right of its line, and the error names the one that is missing."""
    url, options, everywhere = guarded
    listed = {right[1:] for right in rights("dashboard") if right.startswith("+")}
    with closing(open_store(as_user(url, "collector"), **options)) as store:
        store.publish({"m": [scheme]})
        fold_all(store, scheme, [secrets.token_hex(16) for _ in range(2)], noon)
        store.seal(TallyKey("m", scheme.fingerprint, "2026-10-01"))
    for right in sorted(listed - ONCE):
        everywhere("ACL", "SETUSER", "dashboard", f"-{right}")
        with closing(open_store(as_user(url, "dashboard"), **options)) as reader:
            with pytest.raises(StoreError) as caught:
                read_everything(reader, scheme)
            assert f"+{right}" in str(caught.value), str(caught.value)
        everywhere("ACL", "SETUSER", "dashboard", f"+{right}")
    with closing(open_store(as_user(url, "dashboard"), **options)) as reader:
        read_everything(reader, scheme)
    with closing(open_store(as_user(url, "collector"), **options)) as store:
        store.drop(noon)
