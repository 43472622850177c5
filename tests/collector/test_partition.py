"""A master of a Redis Cluster is cut off from the other nodes, and not from its collectors."""

from __future__ import annotations

import secrets
from contextlib import closing

import pytest
from tests.tools import leave_out

from deniable_collector.stores import open_store
from deniable_collector.stores.redis import driver

from .conftest import redis_binary
from .partitions import PartedCluster
from .test_stores_cluster import SHARDS, Writers, counted, sums

pytestmark = pytest.mark.campaign


@pytest.fixture
def cluster(tmp_path):
    binary = redis_binary()
    if binary is None:
        leave_out("redis-server")
    cluster = PartedCluster(binary, tmp_path)
    yield cluster
    cluster.stop()


def test_a_master_that_is_cut_off(cluster, shelf, noon, until, monkeypatch):
    """The cut-off master takes commits for as long as `cluster-node-timeout`, and they are gone
    when it comes back as a replica. Batches that waited for the replica are all counted, once; of
    those that did not, some are lost, and none is counted twice."""
    monkeypatch.setattr(driver, "_WAIT_MILLISECONDS", 300)
    scheme, sure, unsure = shelf(8), secrets.token_hex(6), secrets.token_hex(6)
    for prefix in (sure, unsure):
        with closing(open_store(cluster.url, prefix=prefix, shards=SHARDS)) as store:
            store.publish({"m": [scheme]})
    mine = [shard for shard in range(SHARDS) if owner(cluster, sure, shard) == 0]
    assert 0 < len(mine) < SHARDS
    with (
        Writers(cluster.url, sure, scheme, noon, replicas=1, shards=mine) as safe,
        Writers(cluster.url, unsure, scheme, noon, shards=mine) as unsafe,
    ):
        safe.progress(until)
        unsafe.progress(until)
        cluster.cut = True
        until(lambda: cluster.role(3) == "master", "the replica does not take over")
        unsafe.progress(until)
        cluster.cut = False
        until(lambda: cluster.follows(0), "the cut-off master does not come back")
        safe.progress(until)
    assert any("1 replica" in trouble for trouble in safe.troubles)
    assert sums(cluster.url, sure, scheme) == counted(safe)
    reports, cells = sums(cluster.url, unsure, scheme)
    assert reports < unsafe.counts.total(), "nothing was lost: was there a cut?"
    assert all(cells[column] <= unsafe.counts[column] for column in range(8))


def owner(cluster, prefix, shard):
    """The number of the master that serves a shard at the start."""
    slot = cluster.ask(1, "CLUSTER", "KEYSLOT", f"{prefix}:{{{shard}}}:x")
    return slot * 3 // 16_384
