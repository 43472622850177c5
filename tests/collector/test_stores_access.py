"""The least rights that the collector and its readers need in Redis, and what is said without."""

import re
import secrets
from contextlib import closing
from pathlib import Path

import pytest
import redis
from tests.ports import until
from tests.stores import window_reports

from deniable_collector.settings import Settings
from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.stores.commits import TallyKey

from .filling import commit, reports_in

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
        options = {"redis_prefix": prefix, "redis_password": PASSWORD}
        yield redis_server.url, options, client.execute_command


def test_a_reader_can_change_nothing(guarded, scheme, new_id, noon):
    """With the rights of the page a reader reads and can change nothing, and a collector clears its
    journal. Keys of another prefix, and another password, are refused with what to do."""
    url, options, _ = guarded
    with (
        closing(open_store(Settings(store=as_user(url, "collector"), **options))) as store,
        closing(open_store(Settings(store=as_user(url, "dashboard"), **options))) as reader,
    ):
        store.publish([("m", scheme)])
        store.fold(commit(scheme, new_id()), noon)
        for act in (
            lambda: reader.publish([("m", scheme)]),
            lambda: reader.fold(commit(scheme, new_id()), noon),
            lambda: reader.drop(noon),
        ):
            with pytest.raises(StoreUnavailable, match="NoPermission"):
                act()
        assert reports_in(reader, scheme) == reports_in(store, scheme) == 1
        assert store.drop(noon) == 1
        until(lambda: store.clear_journal(0.0) is None, "the journal is not cleared")
        with pytest.raises(StoreError, match=r"\+info and \+bgrewriteaof"):
            reader.clear_journal(0.0)
    for other, told in (
        ({"redis_prefix": "other"}, r"give it ~PREFIX:\*"),
        ({"redis_password": "hush"}, "check those in the address"),
    ):
        refused = open_store(Settings(store=as_user(url, "collector"), **options | other))
        with closing(refused), pytest.raises(StoreUnavailable, match=told) as caught:
            refused.publish([("m", scheme)])
        assert "hush" not in str(caught.value)


def fold_all(store, scheme, batches, noon):
    """Each batch has one report of a window of its own: one with few counters, and one with so
    many that the tally is swapped."""
    for day, (batch, columns) in enumerate(zip(batches, ((1,), range(8)), strict=True), 1):
        cells = dict.fromkeys(columns, 1)
        store.fold(commit(scheme, batch, cells=cells, window=f"2026-10-{day:02}"), noon)


def collect_everything(store, scheme, batches, noon):
    """All that collectors and their commands do."""
    store.publish([("m", scheme)])
    store.ping()
    fold_all(store, scheme, batches, noon)
    labels = store.windows("m", scheme.fingerprint)
    for label in labels:
        assert store.seal(TallyKey("m", scheme.fingerprint, label))
    assert store.sealed("m", scheme.fingerprint, labels) == set(labels)
    assert store.sums.add_up(("m", scheme.fingerprint), "day", "2026-10")
    assert ("m", scheme.fingerprint) in store.schemes()
    store.scheme("m", scheme.fingerprint)
    store.tally("m", scheme.fingerprint, labels)
    store.segment_reports("m", scheme.fingerprint, labels)
    store.versions({"m": labels})
    assert store.drop(noon) == len(labels) == len(batches)
    store.clear_journal(0.0)


AFTER_COMMITS = {"unlink", "srem", "multi", "exec", "info", "bgrewriteaof"}
ONCE = {"command", "cluster|slots"}
"""Rights that only a cluster's driver needs, when it connects."""


def read_everything(store, scheme, batches, noon):
    """All that the dashboard and the commands that only read ask a store."""
    store.schemes()
    store.scheme("m", scheme.fingerprint)
    labels = store.windows("m", scheme.fingerprint)
    store.tally("m", scheme.fingerprint, labels)
    store.segment_reports("m", scheme.fingerprint, labels)
    store.each_version("m", scheme.fingerprint, labels)
    store.versions({"m": labels})


@pytest.mark.parametrize(
    ("role", "act"), [("collector", collect_everything), ("dashboard", read_everything)]
)
def test_each_right_is_needed_and_named(guarded, scheme, noon, role, act):
    """Without any single right of its line on the page something fails and the error names the
    right. No batch is counted in part: sent again when the right is back, each is counted once."""
    url, options, everywhere = guarded
    listed = {right[1:] for right in rights(role) if right.startswith("+")}
    for right in sorted(listed - ONCE - {"wait"}):
        batches = [secrets.token_hex(16) for _ in range(2)]
        with closing(open_store(Settings(store=as_user(url, "collector"), **options))) as store:
            if role == "dashboard":
                store.publish([("m", scheme)])
                fold_all(store, scheme, batches, noon)
                store.seal(TallyKey("m", scheme.fingerprint, "2026-10-01"))
            everywhere("SCRIPT", "FLUSH")
            everywhere("ACL", "SETUSER", role, f"-{right}")
            with closing(open_store(Settings(store=as_user(url, role), **options))) as limited:
                with pytest.raises(StoreError) as caught:
                    act(limited, scheme, batches, noon)
                assert f"+{right}" in str(caught.value), str(caught.value)
            everywhere("ACL", "SETUSER", role, f"+{right}")
        with closing(open_store(Settings(store=as_user(url, "collector"), **options))) as store:
            store.publish([("m", scheme)])
            fold_all(store, scheme, batches, noon)
            labels = store.windows("m", scheme.fingerprint)
            counted = window_reports(store, ("m", scheme.fingerprint), labels)
            assert set(counted.values()) <= {1}, right
            assert len(counted) == len(batches) or right in AFTER_COMMITS
            store.drop(noon)
    with closing(open_store(Settings(store=as_user(url, role), **options))) as store:
        act(store, scheme, [secrets.token_hex(16) for _ in range(2)], noon)
