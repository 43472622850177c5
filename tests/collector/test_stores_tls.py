"""TLS to one Redis and to a cluster: who can show who he is, and who cannot."""

from __future__ import annotations

import socket
from contextlib import closing
from dataclasses import replace

import pytest
from tests.ports import free_port

from deniable_collector.stores import StoreUnavailable, open_store

from .certificates import HOST
from .filling import one_report, reports_in

pytestmark = pytest.mark.campaign


@pytest.fixture
def scheme(shelf):
    return shelf(8)


@pytest.fixture(scope="module")
def tls_server(new_redis, certificates):
    """A Redis that asks its clients for a certificate, and its port for TLS."""
    port = free_port()
    return new_redis("--tls-port", str(port), *certificates.server()), port


@pytest.fixture
def tls_port(tls_server):
    return tls_server[1]


@pytest.fixture
def tls(certificates):
    return certificates.access


def test_a_store_over_tls(tls_port, tls, scheme, new_id, noon):
    """With the CA, a certificate and its key, everything goes over TLS."""
    with closing(open_store(f"rediss://localhost:{tls_port}/0", prefix="tls", **tls)) as store:
        store.publish({"m": [scheme]})
        assert store.fold(one_report(scheme, new_id()), noon) == frozenset()
        assert reports_in(store, scheme) == 1


ANNOUNCE = "does not name the host of the address; or, in a cluster, a node announces"
UNSIGNED = "signed by nobody whom we trust: set DENIABLE_REDIS_CA"
OURS = "does not accept our certificate: check DENIABLE_REDIS_CERT and DENIABLE_REDIS_KEY"


@pytest.mark.parametrize(
    ("host", "changes", "words"),
    [
        # The certificate is for localhost, and nobody else's name is taken for it.
        ("127.0.0.1", {}, ANNOUNCE),
        ("localhost", {"ca": "stranger.pem"}, UNSIGNED),
        ("localhost", {"ca": ""}, UNSIGNED),
        ("localhost", {"cert": "", "key": ""}, OURS),
        ("localhost", {"cert": "expired.pem", "key": "expired.key"}, OURS),
        ("localhost", {"cert": "stranger.pem", "key": "stranger.key"}, OURS),
        ("localhost", {"key": "server.key"}, "REDIS_KEY is not the key of DENIABLE_REDIS_CERT"),
        ("localhost", {"ca": "ca.key"}, "is not in PEM form|check DENIABLE_REDIS_CA"),
    ],
)
def test_who_cannot_show_who_he_is(tls_port, tls, certificates, host, changes, words):
    """A server with another name or another CA, and a client without a good certificate, do not
    meet; the error says where to look and not where to."""
    changed = {name: path and certificates.path(path) for name, path in changes.items()}
    url = f"rediss://{host}:{tls_port}/0"
    with closing(open_store(url, **{**tls, **changed})) as store:
        with pytest.raises(StoreUnavailable, match=words) as caught:
            store.ping()
        assert host not in str(caught.value)


def show(client, certificates, name):
    """Let a running Redis show another certificate."""
    client.config_set(
        "tls-cert-file", certificates.path(f"{name}.pem"),
        "tls-key-file", certificates.path(f"{name}.key"),
    )  # fmt: skip


def each_node(cluster):
    for node in cluster.nodes:
        with closing(node.client()) as client:
            yield client


def knows_names(node):
    """Whether a node tells all nodes by their name: names get around by and by."""
    slots = node.ask("CLUSTER", "SLOTS")
    return {place[0] for _, _, *nodes in slots for place in nodes} == {HOST.encode()}


def test_a_cluster_that_announces_names(tls_cluster, tls, certificates, scheme, new_id, noon,
                                        until, monkeypatch):  # fmt: skip
    """A cluster whose certificates have names must announce them: before, no address of a node is
    taken for a name; then batches are counted over TLS, on every master."""
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo",
        lambda host, *more, **options: real("127.0.0.1" if host == HOST else host, *more,
                                            **options),
    )  # fmt: skip
    url = tls_cluster.url.replace("127.0.0.1", HOST)
    for client in each_node(tls_cluster):
        show(client, certificates, "server")
    try:
        with (
            closing(open_store(url, prefix="names", shards=8, **tls)) as store,
            pytest.raises(StoreUnavailable, match=ANNOUNCE),
        ):
            store.publish({"m": [scheme]})
        for client in each_node(tls_cluster):
            client.config_set("cluster-announce-hostname", HOST)
            client.config_set("cluster-preferred-endpoint-type", "hostname")
        until(lambda: all(map(knows_names, tls_cluster.nodes)), "the names do not get around")
        with closing(open_store(url, prefix="names", shards=8, **tls)) as store:
            store.publish({"m": [scheme]})
            for shard in range(8):
                assert not store.fold(replace(one_report(scheme, new_id()), shard=shard), noon)
            assert reports_in(store, scheme) == 8
    finally:
        for client in each_node(tls_cluster):
            show(client, certificates, "address")
            client.config_set("cluster-announce-hostname", "")
            client.config_set("cluster-preferred-endpoint-type", "ip")
