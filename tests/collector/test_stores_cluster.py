"""A Redis Cluster in trouble while it is written to: nothing acknowledged is lost or repeated."""

import random
import secrets
import threading
from collections import Counter
from contextlib import closing

import pytest
from tests.ports import until

from deniable_collector.settings import Settings
from deniable_collector.stores import StoreUnavailable, open_store
from deniable_collector.stores.commits import shard_of

from .filling import WINDOW, commit

pytestmark = pytest.mark.campaign

SHARDS = 8
"""Their slots are with all three masters: 1584 and 1716, 5649 to 9974, 13907 and more."""


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
            with closing(
                open_store(Settings(store=url, redis_prefix=prefix, shards=SHARDS, **options))
            ) as store:
                while not self.stopped.is_set():
                    batch, column = secrets.token_hex(16), draw.randrange(8)
                    if (shard := shard_of(batch, SHARDS)) not in self.shards:
                        continue
                    while True:
                        try:
                            store.fold(commit(scheme, batch, cells={column: 1}, shard=shard), now)
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

    def progress(self, more=200):
        """Wait until so many more batches are acknowledged."""
        goal = self.counts.total() + more
        until(lambda: self.failure or self.counts.total() >= goal, "the writers make no progress")


def sums(url, prefix, scheme):
    with closing(open_store(Settings(store=url, redis_prefix=prefix))) as store:
        tally = store.tally("m", scheme.fingerprint, [WINDOW])
    return tally.reports, tally.rows[0].cells.tolist()


def counted(writers):
    return writers.counts.total(), [writers.counts[column] for column in range(8)]


@pytest.fixture
def prefix():
    return f"test-{secrets.token_hex(6)}"


def publish(url, prefix, scheme):
    with closing(open_store(Settings(store=url, redis_prefix=prefix, shards=SHARDS))) as store:
        store.publish([("m", scheme)])


def test_resharding_under_load(new_cluster, scheme, prefix, noon):
    """Slots that move to a new master, with two of the shards, lose and repeat nothing."""
    harmed = new_cluster()
    publish(harmed.url, prefix, scheme)
    source = harmed.owner(f"{prefix}:{{2}}:x")
    with Writers(harmed.url, prefix, scheme, noon) as writers:
        writers.progress()
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
        writers.progress()
    assert sums(harmed.url, prefix, scheme) == counted(writers)


def test_a_master_that_is_killed(new_cluster, scheme, prefix, noon):
    """When a master dies and its replica takes over, a batch that waited for the replica is in
    it. Of batches that did not wait the last may be lost, and none is counted twice."""
    cluster = new_cluster()
    other = f"{prefix}-unsure"
    for each in (prefix, other):
        publish(cluster.url, each, scheme)
    master = cluster.owner(f"{prefix}:{{0}}:x")
    replica = cluster.replica_of(master)
    with (
        Writers(cluster.url, prefix, scheme, noon, redis_replicas=1, patient=False) as sure,
        Writers(cluster.url, other, scheme, noon) as unsure,
    ):
        sure.progress()
        unsure.progress()
        master.kill()
        until(lambda: cluster.owner(f"{prefix}:{{0}}:x") is replica, "no failover")
        unsure.progress()
    # The shards whose master has lost its only replica acknowledge nothing to who waits for one.
    assert any("1 replica" in trouble for trouble in sure.troubles)
    reports, cells = sums(cluster.url, prefix, scheme)
    assert all(cells[column] >= sure.counts[column] for column in range(8))
    assert reports <= sure.counts.total() + len(sure.threads)
    _, cells = sums(cluster.url, other, scheme)
    assert all(cells[column] <= unsure.counts[column] for column in range(8))
