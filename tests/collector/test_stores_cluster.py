"""A Redis Cluster in trouble while it is written to: nothing acknowledged is lost or repeated."""

from __future__ import annotations

import random
import secrets
import signal
import threading
from collections import Counter
from contextlib import closing

import pytest

from deniable import wire
from deniable_collector.batches.batch import Receipt
from deniable_collector.intake import Intake
from deniable_collector.serving.group import commit_by_shard
from deniable_collector.stores import StoreUnavailable, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey, shard_of
from deniable_collector.stores.redis import driver

pytestmark = pytest.mark.campaign

WINDOW = "2026-11-20"
SHARDS = 8
"""Their slots are with all three masters: 1584 and 1716, 5649 to 9974, 13907 and more."""


def commit(scheme, batch, column=1):
    key = TallyRowKey(TallyKey("m", scheme.fingerprint, WINDOW), 0)
    return Commit((batch,), {key: Increment(8, 1, (column,), (1,))}, shard_of(batch, SHARDS))


class Writers:
    """Threads that fold batches, each until it is acknowledged, and count those that were.

    Those that are not `patient` leave their last batch in doubt when they are stopped. `shards`
    are those that they write to, by default all.
    """

    def __init__(self, url, prefix, scheme, now, *, patient=True, shards=range(SHARDS), **options):
        self.patient = patient
        self.shards = shards
        self.counts = Counter()
        self.troubles = Counter()
        self.stopped = threading.Event()
        self.failure = None
        self.lock = threading.Lock()
        self.threads = [
            threading.Thread(target=self.run, args=(url, prefix, scheme, now, options))
            for _ in range(4)
        ]

    def run(self, url, prefix, scheme, now, options):
        draw = random.Random(threading.get_ident())
        try:
            with closing(open_store(url, prefix=prefix, shards=SHARDS, **options)) as store:
                while not self.stopped.is_set():
                    batch, column = secrets.token_hex(16), draw.randrange(8)
                    if shard_of(batch, SHARDS) not in self.shards:
                        continue
                    while True:
                        try:
                            store.fold(commit(scheme, batch, column), now)
                            break
                        except StoreUnavailable as error:
                            with self.lock:
                                self.troubles[str(error)] += 1
                            if self.stopped.is_set() and not self.patient:
                                return
                            self.stopped.wait(0.02)
                    with self.lock:
                        self.counts[column] += 1
        except BaseException as error:
            self.failure = error

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exception):
        self.stopped.set()
        for thread in self.threads:
            thread.join(60)
        assert self.failure is None, self.failure

    def progress(self, until, more=200):
        """Wait until so many more batches are acknowledged."""
        goal = self.counts.total() + more
        until(lambda: self.failure or self.counts.total() >= goal, "the writers make no progress")


def sums(url, prefix, scheme):
    with closing(open_store(url, prefix=prefix)) as store:
        tally = store.tally("m", scheme.fingerprint, [WINDOW])
    return tally.reports, tally.rows[0].cells.tolist()


def counted(writers):
    return writers.counts.total(), [writers.counts[column] for column in range(8)]


@pytest.fixture
def scheme(shelf):
    return shelf(8)


@pytest.fixture
def prefix():
    return f"test-{secrets.token_hex(6)}"


@pytest.fixture(scope="module")
def harmed(new_cluster):
    """A cluster that these tests may harm: its nodes change their roles, and one is lost."""
    return new_cluster()


@pytest.fixture
def publish(scheme, prefix):
    def publish(cluster):
        with closing(open_store(cluster.url, prefix=prefix, shards=SHARDS)) as store:
            store.publish({"m": [scheme]})

    return publish


def test_shards_spread_over_the_masters(harmed, scheme, prefix, publish, noon):
    """Each shard's keys are in one slot, and the shards' slots are with all masters."""
    publish(harmed)
    owners = {harmed.owner(f"{prefix}:{{{shard}}}:x").port for shard in range(SHARDS)}
    assert len(owners) == 3
    with closing(open_store(harmed.url, prefix=prefix, shards=SHARDS)) as store:
        batches = [secrets.token_hex(16) for _ in range(40)]
        assert len({shard_of(batch, SHARDS) for batch in batches}) > 3
        for batch in batches:
            assert not store.fold(commit(scheme, batch), noon)
        assert store.windows("m", scheme.fingerprint) == [WINDOW]
        assert store.drop(noon) == 1
        assert store.windows("m", scheme.fingerprint) == []
        # A master that lost its scripts gets the fold again, with its keys.
        for node in harmed.nodes:
            node.ask("SCRIPT", "FLUSH")
        for batch in batches:
            assert store.fold(commit(scheme, batch), noon) == {batch}


def test_resharding_under_load(harmed, scheme, prefix, publish, noon, until):
    """Slots that move to a new master, with two of the shards, lose and repeat nothing."""
    publish(harmed)
    source = harmed.owner(f"{prefix}:{{2}}:x")
    with Writers(harmed.url, prefix, scheme, noon) as writers:
        writers.progress(until)
        new = harmed.add()
        place = f"127.0.0.1:{harmed.nodes[0].port}"
        harmed.cli("add-node", f"127.0.0.1:{new.port}", place)
        harmed.wait_for_agreement()
        # Slots of 5461 and more: those of the shards 2 and 6 are 5649 and 5781.
        harmed.cli(
            *("reshard", place, "--cluster-from", source.id, "--cluster-to", new.id),
            *("--cluster-slots", "400", "--cluster-yes"),
        )
        assert {harmed.owner(f"{prefix}:{{{shard}}}:x").port for shard in (2, 6)} == {new.port}
        writers.progress(until)
    assert sums(harmed.url, prefix, scheme) == counted(writers)


def test_a_failover_that_is_asked_for(harmed, scheme, prefix, publish, noon, until):
    """A replica that takes over by CLUSTER FAILOVER has all that its master acknowledged."""
    publish(harmed)
    master = harmed.owner(f"{prefix}:{{0}}:x")
    replica = harmed.replica_of(master)
    with Writers(harmed.url, prefix, scheme, noon) as writers:
        writers.progress(until)
        replica.ask("CLUSTER", "FAILOVER")
        until(lambda: harmed.owner(f"{prefix}:{{0}}:x") is replica, "no failover")
        writers.progress(until)
        harmed.wait_for_agreement()
    assert sums(harmed.url, prefix, scheme) == counted(writers)


def test_a_batch_waits_for_its_replica(harmed, scheme, prefix, publish, noon, monkeypatch):
    """With replicas asked for, a batch that no replica has is not acknowledged; its retry is,
    once a replica has it, and it is counted once."""
    monkeypatch.setattr(driver, "_WAIT_MILLISECONDS", 300)
    publish(harmed)
    batch = f"{0:032x}"
    replica = harmed.replica_of(harmed.owner(f"{prefix}:{{0}}:x"))
    with closing(open_store(harmed.url, prefix=prefix, shards=SHARDS, replicas=1)) as store:
        # The replicas of a master that has taken over since the commit say nothing of it.
        with pytest.raises(StoreUnavailable, match="another master"):
            store._driver.wait_for_replicas(f"{prefix}:{{0}}:x", "127.0.0.1:1")
        replica.process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(2):
                with pytest.raises(StoreUnavailable, match="only 0 of 1 replica "):
                    store.fold(commit(scheme, batch), noon)
        finally:
            replica.process.send_signal(signal.SIGCONT)
        harmed.wait_for_agreement()
        assert store.fold(commit(scheme, batch), noon) == {batch}
    assert sums(harmed.url, prefix, scheme)[0] == 1


def test_a_master_that_is_killed(new_cluster, scheme, prefix, publish, noon, until):
    """When a master dies and its replica takes over, a batch that waited for the replica is in
    it. Of batches that did not wait the last may be lost, and none is counted twice."""
    cluster = new_cluster()
    publish(cluster)
    other = f"{prefix}-unsure"
    with closing(open_store(cluster.url, prefix=other, shards=SHARDS)) as store:
        store.publish({"m": [scheme]})
    master = cluster.owner(f"{prefix}:{{0}}:x")
    replica = cluster.replica_of(master)
    with (
        Writers(cluster.url, prefix, scheme, noon, replicas=1, patient=False) as sure,
        Writers(cluster.url, other, scheme, noon) as unsure,
    ):
        sure.progress(until)
        unsure.progress(until)
        master.kill()
        until(lambda: cluster.owner(f"{prefix}:{{0}}:x") is replica, "no failover")
        unsure.progress(until)
    # The shards whose master has lost its only replica acknowledge nothing to who waits for one.
    assert any("1 replica" in trouble for trouble in sure.troubles)
    reports, cells = sums(cluster.url, prefix, scheme)
    assert all(cells[column] >= sure.counts[column] for column in range(8))
    assert reports <= sure.counts.total() + len(sure.threads)
    _, cells = sums(cluster.url, other, scheme)
    assert all(cells[column] <= unsure.counts[column] for column in range(8))


def test_a_shard_whose_node_is_away(new_cluster, registry, prefix, noon, monkeypatch, until):
    """When one of the masters is away, the batches of the other shards are acknowledged; a retry
    of all of them, once it is back, counts each exactly once."""
    monkeypatch.setattr(driver, "_TIMEOUT", 0.5)
    monkeypatch.setattr(driver, "_CONNECT_TIMEOUT", 0.5)
    cluster = new_cluster(replicas=0, options=("--cluster-require-full-coverage", "no"))
    browser = registry["browser"]
    with closing(open_store(cluster.url, prefix=prefix, shards=SHARDS)) as store:
        intake = Intake(registry, store, clock=lambda: noon)
        intake.prepare()
        away = {node.port: node for node in cluster.nodes}[cluster.owner(f"{prefix}:{{0}}:x").port]
        lost = {
            shard for shard in range(SHARDS) if cluster.owner(f"{prefix}:{{{shard}}}:x") is away
        }
        report = wire.SealedReport("browser", browser.scheme.fingerprint, WINDOW, 0, 1)

        def batches():
            ids = [secrets.token_hex(16) for _ in range(60)]
            return [intake.read(wire.encode_batch(each, [report])) for each in ids]

        warm, sent = batches(), batches()
        assert all(isinstance(each, Receipt) for each in commit_by_shard(intake, warm))
        away.process.send_signal(signal.SIGSTOP)
        try:
            first = commit_by_shard(intake, sent)
        finally:
            away.process.send_signal(signal.SIGCONT)
        for batch, outcome in zip(sent, first, strict=True):
            if shard_of(batch.id, SHARDS) in lost:
                assert isinstance(outcome, StoreUnavailable)
            else:
                assert outcome.accepted == 1
        assert {type(outcome) for outcome in first} == {Receipt, StoreUnavailable}
        cluster.wait_for_agreement()

        def again():
            return [each for each in commit_by_shard(intake, sent) if isinstance(each, Exception)]

        until(lambda: not again(), "the shard does not come back")
        assert store.tally("browser", browser.scheme.fingerprint, [WINDOW]).reports == 120
    cluster.stop()
