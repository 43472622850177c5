"""TLS to Redis: who can show who he is, and who cannot."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.ports import free_port

from deniable_collector.stores import StoreUnavailable, open_store

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
