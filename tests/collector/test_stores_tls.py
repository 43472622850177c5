"""TLS to Redis: who can show who he is, and who cannot."""

from contextlib import closing
from urllib.parse import urlencode

import pytest
from tests.ports import free_port

from deniable_collector.settings import Settings
from deniable_collector.stores import StoreUnavailable, open_store

from .filling import commit, reports_in

pytestmark = pytest.mark.campaign


FILES = {"ssl_ca_certs": "ca.pem", "ssl_certfile": "client.pem", "ssl_keyfile": "client.key"}


@pytest.fixture(scope="module")
def address(new_redis, certificates):
    """The address of a Redis that asks its clients for a certificate, with what a client needs to
    connect; with other files than usual, or none where one is ""."""
    port = free_port()
    options = ["--tls-port", str(port)]
    for name, file in (("ca-cert", "ca.pem"), ("cert", "server.pem"), ("key", "server.key")):
        options += [f"--tls-{name}-file", str(certificates / file)]
    new_redis(*options)

    def address(host="localhost", **changes):
        files = {name: certificates / file for name, file in (FILES | changes).items() if file}
        return f"rediss://{host}:{port}/0?{urlencode(files)}"

    return address


def test_a_store_over_tls(address, scheme, new_id, noon):
    """With the CA, a certificate and its key, everything goes over TLS."""
    with closing(open_store(Settings(store=address(), redis_prefix="tls"))) as store:
        store.publish([("m", scheme)])
        assert store.fold(commit(scheme, new_id()), noon) == frozenset()
        assert reports_in(store, scheme) == 1


ANNOUNCE = "does not name the host of the address; or, in a cluster, a node announces"
UNSIGNED = "signed by nobody whom we trust: set ssl_ca_certs"
OURS = "does not accept our certificate: check ssl_certfile and ssl_keyfile"


@pytest.mark.parametrize(
    ("host", "changes", "words"),
    [
        # The certificate is for localhost, and nobody else's name is taken for it.
        ("127.0.0.1", {}, ANNOUNCE),
        ("localhost", {"ssl_ca_certs": "stranger.pem"}, UNSIGNED),
        ("localhost", {"ssl_ca_certs": ""}, UNSIGNED),
        ("localhost", {"ssl_certfile": "", "ssl_keyfile": ""}, OURS),
        ("localhost", {"ssl_certfile": "expired.pem", "ssl_keyfile": "expired.key"}, OURS),
        ("localhost", {"ssl_certfile": "stranger.pem", "ssl_keyfile": "stranger.key"}, OURS),
        ("localhost", {"ssl_keyfile": "server.key"}, "ssl_keyfile is not the key of ssl_certfile"),
        ("localhost", {"ssl_ca_certs": "ca.key"}, "is not in PEM form|check ssl_ca_certs"),
    ],
)
def test_who_cannot_show_who_he_is(address, host, changes, words):
    """A server with another name or another CA, and a client without a good certificate, do not
    meet; the error says where to look and not where to."""
    with closing(open_store(Settings(store=address(host, **changes)))) as store:
        with pytest.raises(StoreUnavailable, match=words) as caught:
            store.ping()
        assert host not in str(caught.value)
