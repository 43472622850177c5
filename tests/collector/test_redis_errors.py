"""What the driver says of trouble, in our words, without a server."""

import errno
import os
import socket
import ssl
from itertools import pairwise

import pytest
import redis
from redis import exceptions
from redis.exceptions import RedisClusterException

from deniable_collector.stores import StoreError, StoreUnavailable
from deniable_collector.stores.redis.errors import translated

SECRET = "redis://me:hush@10.1.2.3"


def said(error, cause=None, context=None):
    """The error that becomes of one of the driver's, with what lies below it."""
    error.__cause__, error.__context__ = cause, context
    with pytest.raises(StoreError) as caught, translated():
        raise error
    assert caught.value.__cause__ is error
    assert "hush" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("error", "under", "words"),
    [
        (redis.ConnectionError, ConnectionRefusedError(errno.ECONNREFUSED, SECRET),
         "Redis cannot be reached (ConnectionError): connection refused"),
        (redis.ConnectionError, OSError(errno.EHOSTUNREACH, SECRET),
         f"Redis cannot be reached (ConnectionError): {os.strerror(errno.EHOSTUNREACH).lower()}"),
        (redis.ConnectionError, socket.gaierror(-2, SECRET),
         "Redis cannot be reached (ConnectionError): its host name is not known"),
        (redis.TimeoutError, None,
         "Redis cannot be reached (TimeoutError): it does not answer in time"),
        (redis.ConnectionError, None,
         "Redis cannot be reached (ConnectionError): the connection ended"),
    ],
)  # fmt: skip
def test_why_a_server_cannot_be_reached(error, under, words):
    """The reason is that of the error below the driver's, as its cause or as its context."""
    for place in ("cause", "context"):
        found = said(error(SECRET), **{place: under})
        assert isinstance(found, StoreUnavailable)
        assert str(found) == words
    # The cause comes first.
    other = OSError(errno.EPIPE, SECRET)
    if under is not None:
        assert str(said(error(SECRET), cause=under, context=other)) == words


def tls_error(kind=ssl.SSLError, **more):
    error = kind(1, SECRET)
    for name, value in more.items():
        setattr(error, name, value)
    return error


OURS = (
    "Redis does not accept our certificate: check ssl_certfile and ssl_keyfile, and "
    "that an authority of Redis has signed it"
)
UNSIGNED = "its certificate is signed by nobody whom we trust: set ssl_ca_certs to the authority's"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (tls_error(ssl.SSLCertVerificationError), UNSIGNED),
        (tls_error(ssl.SSLCertVerificationError, verify_code=10),
         "its certificate has expired: give it a new one"),
        (tls_error(ssl.SSLCertVerificationError, verify_code=9),
         "its certificate is not valid yet: check the clocks"),
        (tls_error(ssl.SSLEOFError), OURS),
        (tls_error(reason="TLSV13_ALERT_CERTIFICATE_REQUIRED"), OURS),
        (tls_error(reason="KEY_VALUES_MISMATCH"),
         "ssl_keyfile is not the key of ssl_certfile"),
        (tls_error(reason="WRONG_VERSION_NUMBER"),
         "this port does not speak TLS: write redis://, or name another port"),
        (tls_error(reason="hush"), "check ssl_ca_certs, ssl_certfile and the port"),
        (tls_error(), "check ssl_ca_certs, ssl_certfile and the port"),
    ],
)  # fmt: skip
def test_tls_is_told_apart(error, words):
    """An error of TLS says what is wrong and names the settings to look at, and the kind of
    error, whether it is the cause or the context."""
    for place in ("cause", "context"):
        found = said(redis.ConnectionError(SECRET), **{place: error})
        assert isinstance(found, StoreUnavailable)
        assert str(found) == f"Redis cannot be reached over TLS ({type(error).__name__}): {words}"


@pytest.mark.parametrize("code", [62, 64])
def test_a_certificate_of_another_host(code):
    """A name or an address that the certificate lacks is one of the address or of a node."""
    error = tls_error(ssl.SSLCertVerificationError, verify_code=code)
    assert "cluster-announce-hostname" in str(said(redis.ConnectionError(SECRET), context=error))


LOGIN = (
    "it does not take the user or the password: check those in the address, "
    "and DENIABLE_REDIS_PASSWORD"
)
MEMORY = "its memory is full: raise maxmemory, or drop old windows"
REPLICA = "it is a replica, which takes no writes: name the master"


@pytest.mark.parametrize(
    ("error", "kind", "help"),
    [
        (redis.AuthenticationError(SECRET), "AuthenticationError", LOGIN),
        (redis.BusyLoadingError(SECRET), "BusyLoadingError", "it still reads its files"),
        (exceptions.NoPermissionError(SECRET), "NoPermissionError",
         "its user lacks a right: docs/reference/store-export.md lists them"),
        (exceptions.OutOfMemoryError(SECRET), "OutOfMemoryError", MEMORY),
        (redis.ReadOnlyError(SECRET), "ReadOnlyError", REPLICA),
        (exceptions.AskError("1 10.1.2.3:6379"), "AskError", None),
        (exceptions.ClusterDownError(SECRET), "ClusterDownError", None),
        (redis.ResponseError("BUSY hush"), "BUSY", None),
        (redis.ResponseError("MISCONF hush"), "MISCONF",
         "it cannot write to its disk, as its own log says"),
        (redis.ResponseError("OOM hush"), "OOM", MEMORY),
        (redis.ResponseError("ERR running script hush: -OOM command not allowed"), "OOM", MEMORY),
        (redis.ResponseError("ERR hush @user_script: -READONLY You can't write"), "READONLY",
         REPLICA),
        (redis.ResponseError("WRONGPASS hush"), "WRONGPASS", LOGIN),
    ],
)  # fmt: skip
def test_what_passes_is_unavailable(error, kind, help):
    """An error that passes, or that an operator can mend, is unavailable with what to do; of one
    that the driver has no class for, the code at the beginning, or with its dash in the middle,
    says what it is."""
    found = said(error)
    assert isinstance(found, StoreUnavailable)
    assert str(found) == f"Redis cannot answer now ({kind})" + (f": {help}" if help else "")


@pytest.mark.parametrize("text", ["WRONGTYPE hush", "ERR hush OOM", "BUSYKEY hush", ""])
def test_anything_else_is_refused(text):
    """Other errors do not pass, and only their kind is told."""
    found = said(redis.ResponseError(text))
    assert not isinstance(found, StoreUnavailable)
    assert str(found) == "Redis refused (ResponseError): check its version and its keys"


NO_CLUSTER = "Redis does not say which nodes its cluster has"


@pytest.mark.parametrize(
    ("causes", "words"),
    [
        ([], "the Redis cluster cannot answer now (RedisClusterException)"),
        ([RedisClusterException(SECRET)], NO_CLUSTER),
        ([redis.ConnectionError(SECRET)], "Redis cannot be reached (ConnectionError)"),
        ([redis.TimeoutError(SECRET)], "Redis cannot be reached (TimeoutError): it does not"),
        ([RedisClusterException(SECRET), KeyError(SECRET)],
         "the Redis cluster cannot answer now (RedisClusterException)"),
    ],
)  # fmt: skip
def test_a_cluster_that_does_not_answer(causes, words):
    """What lies below all errors of the cluster says why: an error of a connection, or that the
    server is no cluster."""
    for above, cause in pairwise(causes):
        above.__cause__ = cause
    found = said(RedisClusterException(SECRET), cause=causes[0] if causes else None)
    assert isinstance(found, StoreUnavailable)
    assert str(found).startswith(words)
