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

from deniable_collector.stores.base import StoreError, StoreUnavailable

__all__ = ["translated"]

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
    "it does not take the user or the password: check DENIABLE_REDIS_USER and "
    "DENIABLE_REDIS_PASSWORD, or those in the address"
)
_MEMORY = "its memory is full: raise maxmemory, or drop old windows"
_REPLICA = "it is a replica, which takes no writes: name the master"
_HELP = {
    "AuthenticationError": _LOGIN,
    "AuthorizationError": _LOGIN,
    "WRONGPASS": _LOGIN,
    "BusyLoadingError": "it still reads its files",
    "MISCONF": "it cannot write to its disk, as its own log says",
    "NoPermissionError": "its user lacks a right: docs/operating-stores.md lists them",
    "OutOfMemoryError": _MEMORY,
    "OOM": _MEMORY,
    "ReadOnlyError": _REPLICA,
    "READONLY": _REPLICA,
}
"""What is wrong, by the driver's class or the server's code."""


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
    if isinstance(error.__context__, ssl.SSLError):
        return StoreUnavailable(
            f"Redis cannot be reached over TLS ({type(error.__context__).__name__}): check "
            "DENIABLE_REDIS_CA, DENIABLE_REDIS_CERT and that the certificate names the host "
            "of the address"
        )
    kind = type(error).__name__
    if kind in _HELP:
        return _unavailable(kind)
    return StoreUnavailable(f"Redis cannot be reached ({kind}): {_reason(error)}")


def _reason(error: Exception) -> str:
    below = error.__cause__ or error.__context__
    if isinstance(below, socket.gaierror):
        return "its host name is not known"
    if isinstance(error, redis.TimeoutError):
        return "it does not answer in time"
    number = below.errno if isinstance(below, OSError) else None
    return os.strerror(number).lower() if number else "the connection ended"


def _unavailable(kind: str) -> StoreUnavailable:
    why = f": {_HELP[kind]}" if kind in _HELP else ""
    return StoreUnavailable(f"Redis cannot answer now ({kind}){why}")


def _refused(error: redis.RedisError) -> StoreError:
    # Only the kind of an error is repeated: its message may hold keys, or what was sent.
    kind = type(error).__name__
    if isinstance(error, redis.exceptions.MovedError):
        return StoreUnavailable(
            f"Redis cannot answer now ({kind}): if it is a cluster, its address must begin "
            "with redis+cluster://"
        )
    if isinstance(error, _TEMPORARY):
        return _unavailable(kind)
    if found := _TEMPORARY_CODE.search(str(error)):
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
