"""What Redis and its driver say of trouble, in our words: what is wrong and what to do, and nothing
that was sent, nor the address.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import redis
from redis.exceptions import RedisClusterException

from deniable_collector.stores.errors import StoreError, StoreUnavailable

_TEMPORARY = (
    redis.exceptions.AskError,
    redis.exceptions.ClusterError,
    redis.exceptions.NoPermissionError,
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.TryAgainError,
)
_TEMPORARY_CODE = re.compile(
    r"(?:^|-)(BUSY|MASTERDOWN|MISCONF|NOREPLICAS|OOM|READONLY|UNKILLABLE|WRONGPASS)\b"
)
"""Errors that pass by themselves, or when an operator has helped. The driver has no class
for some, and Redis 6 quotes the code of an error inside a script, with its dash, in the
middle of another message."""

_LOGIN = (
    "it does not take the user or the password: check those in the address, "
    "and DENIABLE_REDIS_PASSWORD"
)
_MEMORY = "its memory is full: raise maxmemory, or drop old windows"
_REPLICA = "it is a replica, which takes no writes: name the master"
_HELP = {
    "AuthenticationError": _LOGIN,
    "AuthorizationError": _LOGIN,
    "WRONGPASS": _LOGIN,
    "BusyLoadingError": "it still reads its files",
    "MISCONF": "it cannot write to its disk, as its own log says",
    "MovedError": "if it is a cluster, its address must begin with redis+cluster://",
    "NoPermissionError": "its user lacks a right: docs/reference/store-export.md lists them",
    "OutOfMemoryError": _MEMORY,
    "OOM": _MEMORY,
    "ReadOnlyError": _REPLICA,
    "READONLY": _REPLICA,
}
"""What is wrong, by the driver's class or the server's code."""

_COMMAND = re.compile(r"permissions to run the '([a-z|-]+)' command")
_KEY = re.compile(r"permissions to access (?:one of the keys|a key)|can't access at least one")
_IN_SCRIPT = re.compile(r"can't run this command")
"""How Redis says what a user may not do; Redis 7.0 does not name a command inside a script."""

_FOREIGN = (
    "its user may not use these keys: give it ~PREFIX:* for the prefix in DENIABLE_REDIS_PREFIX, "
    "or %R~PREFIX:* if it only reads"
)
_NOT_NAMED = "its user lacks a right that a script needs: docs/reference/store-export.md lists them"

_ANNOUNCE = (
    "its certificate does not name the host of the address; or, in a cluster, a node announces "
    "another name than its certificate has: set cluster-announce-hostname and "
    "cluster-preferred-endpoint-type hostname"
)
_CERTIFICATE = {
    9: "its certificate is not valid yet: check the clocks",
    10: "its certificate has expired: give it a new one",
    62: _ANNOUNCE,
    64: _ANNOUNCE,
}
"""What is wrong with a certificate, by OpenSSL's number (X509_V_ERR_...): its words have hosts."""

_UNSIGNED = "its certificate is signed by nobody whom we trust: set ssl_ca_certs to the authority's"
_OURS = (
    "Redis does not accept our certificate: check ssl_certfile and ssl_keyfile, and "
    "that an authority of Redis has signed it"
)
_NO_PEM = "a file of ssl_ca_certs, ssl_certfile or ssl_keyfile is not in PEM form"
_TLS = {
    "KEY_VALUES_MISMATCH": "ssl_keyfile is not the key of ssl_certfile",
    "NO_CERTIFICATE_OR_CRL_FOUND": _NO_PEM,
    "NO_START_LINE": _NO_PEM,
    "PEM_LIB": _NO_PEM,
    "WRONG_VERSION_NUMBER": "this port does not speak TLS: write redis://, or name another port",
}
"""Other trouble with TLS, by OpenSSL's reason."""


def lacks_right(command: str) -> StoreUnavailable:
    """The error for a command that Redis's user may not call."""
    why = f"its user lacks the right +{command}: docs/reference/store-export.md lists all"
    return _unavailable("NoPermissionError", why)


@contextmanager
def translated() -> Iterator[None]:
    """Turns the driver's errors into ours, which hold nothing that was sent, nor the address."""
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError) as error:
        # The driver's own words may hold the address; the types say enough.
        raise _unreachable(error) from error
    except redis.RedisError as error:
        raise _refused(error) from error
    except RedisClusterException as error:
        # No RedisError, though its driver says so of all others.
        raise _no_cluster(error) from error


def _unreachable(error: Exception) -> StoreUnavailable:
    below = error.__cause__ or error.__context__
    if isinstance(below, ssl.SSLError):
        return _tls(below)
    kind = type(error).__name__
    if kind in _HELP:
        return _unavailable(kind)
    return StoreUnavailable(f"Redis cannot be reached ({kind}): {_reason(error)}")


def _tls(error: ssl.SSLError) -> StoreUnavailable:
    reason = getattr(error, "reason", None) or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        what = _CERTIFICATE.get(getattr(error, "verify_code", 0), _UNSIGNED)
    elif isinstance(error, ssl.SSLEOFError) or "_ALERT_" in reason:
        # Which of the two comes depends on what Redis sends first, its alert or the end.
        what = _OURS
    else:
        what = _TLS.get(reason, "check ssl_ca_certs, ssl_certfile and the port")
    return StoreUnavailable(f"Redis cannot be reached over TLS ({type(error).__name__}): {what}")


def _reason(error: Exception) -> str:
    below = error.__cause__ or error.__context__
    if isinstance(below, socket.gaierror):
        return "its host name is not known"
    if isinstance(error, redis.TimeoutError):
        return "it does not answer in time"
    number = below.errno if isinstance(below, OSError) else None
    return os.strerror(number).lower() if number else "the connection ended"


def _unavailable(kind: str, why: str = "") -> StoreUnavailable:
    why = why or _HELP.get(kind, "")
    return StoreUnavailable(f"Redis cannot answer now ({kind})" + (why and f": {why}"))


def _refused(error: redis.RedisError) -> StoreError:
    # Only the kind of an error is repeated, and a command's name: its message may hold keys, or
    # what was sent.
    kind, words = type(error).__name__, str(error)
    if found := _COMMAND.search(words):
        return lacks_right(found[1])
    if words.startswith("EXEC without MULTI"):
        return lacks_right("multi")
    if _KEY.search(words):
        return _unavailable("NoPermissionError", _FOREIGN)
    if _IN_SCRIPT.search(words):
        return _unavailable("NoPermissionError", _NOT_NAMED)
    if isinstance(error, _TEMPORARY):
        return _unavailable(kind)
    if found := _TEMPORARY_CODE.search(words):
        return _unavailable(found[1])
    return StoreError(f"Redis refused ({kind}): check its version and its keys")


def _no_cluster(error: Exception) -> StoreUnavailable:
    inner = error.__cause__
    while isinstance(inner, RedisClusterException) and inner.__cause__ is not None:
        inner = inner.__cause__
    if isinstance(inner, RedisClusterException):
        return StoreUnavailable(
            "Redis does not say which nodes its cluster has: it needs cluster-enabled yes, and "
            "a user who may call CLUSTER SLOTS"
        )
    if isinstance(inner, redis.ConnectionError | redis.TimeoutError):
        return _unreachable(inner)
    return StoreUnavailable(f"the Redis cluster cannot answer now ({type(error).__name__})")
