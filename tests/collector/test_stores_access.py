"""Redis over TLS, and the least rights that the collector and its readers need."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import redis

from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.stores.base import Commit, Increment, TallyKey, TallyRowKey

from .conftest import free_port, missing

PAGE = (Path(__file__).parents[2] / "docs" / "operating-stores.md").read_text(encoding="utf-8")
WINDOW = "2026-11-20"


def commit(scheme, batch):
    key = TallyRowKey(TallyKey("m", scheme.fingerprint, WINDOW), 0)
    return Commit((batch,), {key: Increment(8, 1, (1,), (1,))})


def total(store, scheme):
    return store.tally("m", scheme.fingerprint, [WINDOW]).reports


@pytest.fixture
def scheme(shelf):
    return shelf(8)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A CA, a server's certificate for localhost, and a client's; and a stranger's CA."""
    if shutil.which("openssl") is None:
        missing("openssl")
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    for ca in ("ca", "stranger"):
        openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-keyout", f"{ca}.key", "-out", f"{ca}.pem", "-days", "2", "-subj", f"/CN={ca}"),
            *("-addext", "keyUsage=critical,keyCertSign"),
        )
    for name in ("server", "client"):
        (folder / f"{name}.ext").write_text("subjectAltName=DNS:localhost\n")
        openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}"),
        )
        openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key"),
            *("-out", f"{name}.pem", "-days", "2", "-extfile", f"{name}.ext"),
        )
    return folder


@pytest.fixture(scope="module")
def tls_port(new_redis, certificates):
    """A Redis that asks its clients for a certificate."""
    port = free_port()
    new_redis(
        *("--tls-port", str(port), "--tls-ca-cert-file", str(certificates / "ca.pem")),
        *("--tls-cert-file", str(certificates / "server.pem")),
        *("--tls-key-file", str(certificates / "server.key")),
    )
    return port


@pytest.fixture
def tls(certificates):
    return {
        "ca": str(certificates / "ca.pem"),
        "cert": str(certificates / "client.pem"),
        "key": str(certificates / "client.key"),
    }


def test_a_store_over_tls(tls_port, tls, scheme, new_id, noon):
    """With the CA, a certificate and its key, everything goes over TLS."""
    with closing(open_store(f"rediss://localhost:{tls_port}/0", prefix="tls", **tls)) as store:
        store.publish({"m": [scheme]})
        assert store.fold(commit(scheme, new_id()), noon) == frozenset()
        assert total(store, scheme) == 1


@pytest.mark.parametrize(
    ("host", "changes", "words"),
    [
        # The certificate is for localhost, and nobody else's name is taken for it.
        ("127.0.0.1", {}, "over TLS"),
        ("localhost", {"ca": "stranger.pem"}, "over TLS"),
        ("localhost", {"ca": ""}, "over TLS"),
        ("localhost", {"cert": "", "key": ""}, "reached"),
    ],
)
def test_who_cannot_show_who_he_is(tls_port, tls, certificates, host, changes, words):
    """A server with another name or another CA, and a client without a certificate, do not
    meet; the error says where to look and not where to."""
    changed = {name: path and str(certificates / path) for name, path in changes.items()}
    url = f"rediss://{host}:{tls_port}/0"
    with closing(open_store(url, **{**tls, **changed})) as store:
        with pytest.raises(StoreUnavailable, match=words) as caught:
            store.ping()
        assert host not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("redis://localhost", {"ca": __file__}, "DENIABLE_REDIS_CA is for TLS"),
        ("redis+cluster://localhost", {"key": __file__}, "DENIABLE_REDIS_KEY is for TLS"),
        ("rediss://localhost", {"ca": "/nowhere"}, "DENIABLE_REDIS_CA names no file"),
        ("rediss://localhost?ssl_cert_reqs=none", {}, "always checked"),
        ("redis://me:hush@localhost", {"user": "app"}, "keep one of them"),
        ("redis://me:hush@localhost", {"password": "other"}, "keep one of them"),
    ],
)
def test_what_does_not_go_together(url, options, words):
    """A mistake that would leave TLS or the user aside is told before anything is sent."""
    with pytest.raises(StoreError, match=words) as caught:
        open_store(url, **options)
    assert "hush" not in str(caught.value)


def rights(role):
    """The rules of a role, as the page gives them: ACL SETUSER deniable-ROLE on >PASSWORD ..."""
    found = re.search(rf"^ACL SETUSER deniable-{role} on >\S+ (.+)$", PAGE, re.MULTILINE)
    assert found
    return found[1].split()


@pytest.fixture
def users(request):
    """Makes the users of the page in a Redis."""

    def users(client):
        for role in ("collector", "dashboard"):
            client.execute_command("ACL", "SETUSER", role, "on", ">p@ss/word", *rights(role))

    return users


@pytest.fixture(params=["redis", "cluster"])
def guarded(request, users):
    """The address of a Redis, and of a cluster, with the users of the page."""
    if request.param == "redis":
        server = request.getfixturevalue("redis_server")
        clients = [redis.Redis.from_url(server.url)]
        url = server.url
    else:
        cluster = request.getfixturevalue("redis_cluster")
        clients = [node.client() for node in cluster.nodes]
        url = cluster.url
    for client in clients:
        with client:
            users(client)
    return url


def test_the_least_rights(guarded, scheme, shelf, new_id, noon, until):
    """With exactly the rights of the page, a collector does all of its work, retention and the
    clearing of the journal included, and a reader reads, pings and can change nothing."""
    options = {"prefix": "deniable", "password": "p@ss/word"}
    batch, wide, replicas = new_id(), shelf(20_000), int("cluster" in guarded)
    with (
        closing(open_store(guarded, user="collector", replicas=replicas, **options)) as store,
        closing(open_store(guarded, user="dashboard", **options)) as reader,
    ):
        store.publish({"m": [scheme]})
        assert store.shards == 1
        store.ping()
        assert store.fold(commit(scheme, batch), noon) == frozenset()
        assert store.fold(commit(scheme, batch), noon) == {batch}
        # Many counters at once, and few of many, take other ways.
        store.publish({"m": [wide]})
        for count in (20_000, 20, 2_000):
            key = TallyRowKey(TallyKey("m", wide.fingerprint, WINDOW), 0)
            step = 20_000 // count
            columns = np.arange(0, 20_000, step)
            increment = Increment(20_000, 1, columns, np.full(count, 2**31))
            assert not store.fold(Commit((new_id(),), {key: increment}), noon)
        assert reader.tally("m", wide.fingerprint, [WINDOW]).reports == 3
        assert scheme.fingerprint in store.schemes()["m"]
        assert reader.windows("m", scheme.fingerprint) == [WINDOW]
        assert total(reader, scheme) == total(store, scheme) == 1
        assert reader.scheme("m", scheme.fingerprint).fingerprint == scheme.fingerprint
        assert reader.shards == 1
        for act in (
            lambda: reader.publish({"m": [scheme]}),
            lambda: reader.fold(commit(scheme, new_id()), noon),
            lambda: reader.drop(noon),
        ):
            with pytest.raises(StoreUnavailable, match="NoPermission"):
                act()
        assert total(store, scheme) == 1
        assert store.drop(noon) == 2
        until(lambda: store.clear_journal(0.0) is None, "the journal is not cleared")
        with pytest.raises(StoreError, match=r"\+info and \+bgrewriteaof"):
            reader.clear_journal(0.0)
    other = open_store(guarded, prefix="other", user="collector", password="p@ss/word")
    with closing(other), pytest.raises(StoreUnavailable, match="NoPermission"):
        other.publish({"m": [scheme]})
    wrong = open_store(guarded, prefix="deniable", user="collector", password="hush")
    with closing(wrong), pytest.raises(StoreUnavailable) as caught:
        wrong.ping()
    assert "hush" not in str(caught.value)
