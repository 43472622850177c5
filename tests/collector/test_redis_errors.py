"""What the driver says of trouble, in our words, without a server: `redis-errors.txt` has them."""

import errno
import socket
import ssl
from itertools import pairwise

import pytest
import redis
from redis import exceptions
from redis.exceptions import RedisClusterException, ResponseError

from deniable_collector.stores import StoreError, StoreUnavailable
from deniable_collector.stores.redis.errors import translated

SECRET = "redis://me:hush@10.1.2.3"


def said(error, cause=None, context=None):
    """What becomes of an error of the driver's, with what lies below it, and whether it passes."""
    error.__cause__, error.__context__ = cause, context
    with pytest.raises(StoreError) as caught, translated():
        raise error
    assert caught.value.__cause__ is error
    assert "hush" not in str(caught.value)
    passes = isinstance(caught.value, StoreUnavailable)
    return f"{'unavailable' if passes else 'refused'}: {caught.value}"


BELOW = [
    (ConnectionRefusedError(errno.ECONNREFUSED, SECRET), {}),
    (OSError(errno.EHOSTUNREACH, SECRET), {}),
    (socket.gaierror(-2, SECRET), {}),
    (None, {}),
    (ssl.SSLCertVerificationError(1, SECRET), {}),
    *((ssl.SSLCertVerificationError(1, SECRET), {"verify_code": code}) for code in (9, 10, 62, 64)),
    (ssl.SSLEOFError(1, SECRET), {}),
    (ssl.SSLError(1, SECRET), {"reason": "TLSV13_ALERT_CERTIFICATE_REQUIRED"}),
    (ssl.SSLError(1, SECRET), {"reason": "KEY_VALUES_MISMATCH"}),
    (ssl.SSLError(1, SECRET), {"reason": "WRONG_VERSION_NUMBER"}),
    (ssl.SSLError(1, SECRET), {"reason": "hush"}),
    (ssl.SSLError(1, SECRET), {}),
]
"""What may lie below an error of a connection."""

ALONE = [
    redis.TimeoutError(SECRET),
    redis.AuthenticationError(SECRET),
    redis.BusyLoadingError(SECRET),
    exceptions.NoPermissionError(SECRET),
    exceptions.OutOfMemoryError(SECRET),
    redis.ReadOnlyError(SECRET),
    exceptions.AskError("1 10.1.2.3:6379"),
    exceptions.ClusterDownError(SECRET),
    *map(ResponseError, ("BUSY hush", "MISCONF hush", "OOM hush", "WRONGPASS hush")),
    ResponseError("ERR running script hush: -OOM command not allowed"),
    ResponseError("ERR hush @user_script: -READONLY You can't write"),
    *map(ResponseError, ("WRONGTYPE hush", "ERR hush OOM", "BUSYKEY hush", "")),
]

OF_CLUSTERS = [
    [],
    [RedisClusterException(SECRET)],
    [redis.ConnectionError(SECRET)],
    [redis.TimeoutError(SECRET)],
    [RedisClusterException(SECRET), KeyError(SECRET)],
]
"""What lies below an error of a cluster, each below the one before."""


def test_what_is_told_of_each_error(stays):
    """An error that passes, or that an operator can mend, is unavailable with what to do; others do
    not pass, and only their kind is told. Why a server cannot be reached is said by the error below
    the driver's, as its cause, which comes first, or as its context; of a cluster by what lies
    below all others. Nothing that was sent is repeated."""
    lines = []
    for under, more in BELOW:
        for name, value in more.items():
            setattr(under, name, value)
        told = said(redis.ConnectionError(SECRET), cause=under)
        assert told == said(redis.ConnectionError(SECRET), context=under)
        if under is not None:
            other = OSError(errno.EPIPE, SECRET)
            assert told == said(redis.ConnectionError(SECRET), cause=under, context=other)
        lines.append(f"ConnectionError, below it {type(under).__name__} {more or ''}: {told}")
    lines += [
        f"{type(each).__name__} {str(each).replace(SECRET, '...')}: {said(each)}" for each in ALONE
    ]
    for causes in OF_CLUSTERS:
        for above, cause in pairwise(causes):
            above.__cause__ = cause
        told = said(RedisClusterException(SECRET), cause=next(iter(causes), None))
        names = ", ".join(type(each).__name__ for each in causes)
        lines.append(f"RedisClusterException, below it {names or 'nothing'}: {told}")
    stays("redis-errors.txt", lines)
