"""The connection to Redis: one server or a cluster, optionally over TLS, with errors translated.

The driver is redis-py. A command that fails is not repeated here: the device retries under the
same batch id, so that the retry is recognized.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisClusterException
from redis.retry import Retry

from deniable_collector.stores.base import StoreError, StoreUnavailable

__all__ = ["ADDRESSES", "CLUSTER", "SINGLE", "Access", "Driver", "translated"]

SINGLE = ("redis", "rediss", "unix")
CLUSTER = ("redis+cluster", "rediss+cluster")

ADDRESSES = (
    "redis://host:port/0, rediss://... for TLS, unix:///path/to/socket, or for a cluster "
    "redis+cluster://host:port,host:port or rediss+cluster://..."
)
"""The forms of an address, for error messages."""

_TIMEOUT = 5.0
_CONNECT_TIMEOUT = 2.0
_WAIT_MILLISECONDS = 2_000
"""How long a commit waits for its replicas: well below the timeout of a command."""

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
"""Temporary errors, and errors that an operator can correct. The driver has no class for some of
them, and Redis 6 quotes the code of an error inside a script, with its dash, in the middle of
another message."""

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


@dataclass(frozen=True)
class Access:
    """How to connect to Redis, in addition to its address.

    `user` and `password` are an ACL user's. `ca`, `cert` and `key` are paths of PEM files: the
    trusted authority, our certificate and its key. `replicas` is how many replicas must have a
    commit before it counts as done.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    ca: str = ""
    cert: str = ""
    key: str = ""
    replicas: int = 0


class Driver:
    """The client of one Redis or of one cluster, created on first use.

    Raises:
        StoreError: the address cannot be read, or does not fit `access`.
    """

    def __init__(self, url: str, access: Access = Access()) -> None:
        self.cluster = url.partition("://")[0] in CLUSTER
        self._replicas = access.replicas
        self._make = _maker(url, access)
        self._made: redis.Redis | None = None
        self._lock = threading.Lock()

    @property
    def client(self) -> redis.Redis:
        """The client. Use it within `translated()`, because creating it connects to a cluster."""
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._make()
        return self._made

    def nodes(self) -> dict[str, redis.Redis]:
        """A client for each server, replicas of a cluster included, by the server's name."""
        client = self.client
        if not isinstance(client, RedisCluster):
            return {"": client}
        # The client refreshes its view of the cluster only after a misdirected command.
        slots = cast(dict[Any, Any], client.cluster_slots()).values()
        places = {place for each in slots for place in (each["primary"], *each["replicas"])}
        nodes = [client.get_node(*place) for place in places]
        return {each.name: client.get_redis_connection(each) for each in nodes}

    def script(self, text: str) -> Callable[[Sequence[str], Sequence[Any]], Any]:
        """Runs a script on keys of one slot, by its digest.

        A server that does not know it, because it was restarted or became master, gets the
        script with the keys. No other server is involved, because others may be down.
        """
        digest = sha1(text.encode(), usedforsecurity=False).hexdigest()

        def run(keys: Sequence[str], arguments: Sequence[Any]) -> Any:
            try:
                return self.client.evalsha(digest, len(keys), *keys, *arguments)
            except redis.exceptions.NoScriptError:
                return self.client.eval(text, len(keys), *keys, *arguments)

        return run

    def wait_for_replicas(self, key: str) -> None:
        """Wait until the last write to the slot of `key` has reached enough replicas.

        The key itself is written to, because WAIT is about the writes of its own connection.
        Replicas get all writes in order, so they then have the earlier ones as well. The key
        never expires, because that would write the time of each commit into Redis's log.

        Raises:
            StoreUnavailable: too few have it in time. It may reach them later.
        """
        if not self._replicas:
            return
        client = self.client
        if isinstance(client, RedisCluster):
            client = client.get_redis_connection(client.get_node_from_key(key))
        with client.pipeline(transaction=False) as pipeline:
            pipeline.set(key, b"")
            pipeline.wait(self._replicas, _WAIT_MILLISECONDS)
            reached = pipeline.execute()[1]
        if reached < self._replicas:
            raise StoreUnavailable(
                f"only {reached} of {self._replicas} replicas (DENIABLE_REDIS_REPLICAS) answer"
            )

    def close(self) -> None:
        """Close all connections; the next use would open others."""
        with self._lock:
            if self._made is not None:
                self._made.close()
            self._made = None


class _Cluster(RedisCluster):
    """The driver's cluster, which also finds nodes that have joined since its last refresh."""

    def get_node(
        self, host: str | None = None, port: int | None = None, node_name: str | None = None
    ) -> Any:
        found = super().get_node(host, port, node_name)  # type: ignore[no-untyped-call]
        if found is None:
            # For a slot that moves to a new node, Redis answers with ASK and that node's name.
            self.nodes_manager.initialize()
            found = super().get_node(host, port, node_name)  # type: ignore[no-untyped-call]
        if found is None:
            raise redis.exceptions.TryAgainError("the node is not known yet")
        return found


@contextmanager
def translated() -> Iterator[None]:
    """Translates the driver's errors into ours, without what was sent and without the address."""
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError) as error:
        # The driver's message may contain the address, so only the types are used.
        raise _unreachable(error) from error
    except redis.RedisError as error:
        raise _refused(error) from error
    except RedisClusterException as error:
        # Unlike all its other errors, this one is not a RedisError.
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
    # Only the kind of an error is repeated: its message may contain keys, or what was sent.
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


def _maker(url: str, access: Access) -> Callable[[], redis.Redis]:
    """Creates the client of an address, after checking everything that can be wrong with it."""
    scheme, _, rest = url.partition("://")
    options: dict[str, Any] = {
        "socket_timeout": _TIMEOUT,
        "socket_connect_timeout": _CONNECT_TIMEOUT,
        "retry": Retry(NoBackoff(), 0),
        **_credentials(rest, access),
        **_tls(scheme, rest, access),
    }
    try:
        if scheme in CLUSTER:
            nodes, more = _cluster(rest)
            options |= more
            if scheme.startswith("rediss"):
                options["ssl"] = True
            return lambda: cast(
                # It supports all commands that a store uses.
                redis.Redis,
                _Cluster(
                    startup_nodes=[ClusterNode(*node) for node in nodes],  # type: ignore[no-untyped-call]
                    # If some nodes are missing, the shards of the others must still work.
                    require_full_coverage=False,
                    **options,
                ),
            )
        client = redis.Redis.from_url(url, **options)
    except (ValueError, TypeError):
        # The address may contain a password, which must not reach a log.
        raise StoreError(f"the Redis address cannot be read: write {ADDRESSES}") from None
    return lambda: client


def _cluster(rest: str) -> tuple[list[tuple[str, int]], dict[str, str]]:
    """The start nodes of user:password@host:port,host:port, and its user and password."""
    authority, _, database = rest.partition("/")
    credentials, _, hosts = authority.rpartition("@")
    if database not in ("", "0"):
        raise ValueError("a cluster has one database, and no options")
    user, _, password = credentials.partition(":")
    named = {"username": unquote(user), "password": unquote(password)}
    nodes = []
    for host in hosts.split(","):
        parts = urlsplit(f"//{host}")
        if not parts.hostname or parts.query or parts.fragment:
            raise ValueError("a start node is host:port")
        nodes.append((parts.hostname, parts.port or 6379))
    return nodes, {name: text for name, text in named.items() if text}


def _credentials(rest: str, access: Access) -> dict[str, str]:
    named = {"username": access.user, "password": access.password}
    given = {name: text for name, text in named.items() if text}
    if given and "@" in rest:
        raise StoreError(
            "the store's address has a user or a password, and DENIABLE_REDIS_USER or "
            "DENIABLE_REDIS_PASSWORD is set too: keep one of them"
        )
    return given


def _tls(scheme: str, rest: str, access: Access) -> dict[str, Any]:
    """The TLS options. A certificate is always required and must name the host."""
    files = {
        "DENIABLE_REDIS_CA": access.ca,
        "DENIABLE_REDIS_CERT": access.cert,
        "DENIABLE_REDIS_KEY": access.key,
    }
    for name, path in files.items():
        if path and not Path(path).is_file():
            raise StoreError(f"{name} names no file: give the path of a PEM file")
    if not scheme.startswith("rediss"):
        if any(files.values()):
            raise StoreError(
                f"{', '.join(name for name, path in files.items() if path)} is for TLS, which "
                "the store's address does not ask for: write rediss:// or rediss+cluster://"
            )
        return {}
    if "ssl_" in rest.partition("?")[2]:
        raise StoreError(
            "the store's address cannot choose how TLS is done, as a certificate is always "
            "checked: set DENIABLE_REDIS_CA, DENIABLE_REDIS_CERT and DENIABLE_REDIS_KEY"
        )
    return {
        "ssl_ca_certs": access.ca or None,
        "ssl_certfile": access.cert or None,
        "ssl_keyfile": access.key or None,
        "ssl_cert_reqs": "required",
        "ssl_check_hostname": True,
    }
