"""The connection to Redis: one server or a cluster, optionally over TLS, with errors translated.

The driver is redis-py. A command that fails is not repeated here: the device retries under the
same batch id, so that the retry is recognized.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha1
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry

from deniable.protocol.coded_message import counted
from deniable_collector.settings import Settings
from deniable_collector.stores.errors import StoreError, StoreUnavailable

CLUSTER = ("redis+cluster", "rediss+cluster")

ADDRESSES = (
    "redis://host:port/0, rediss://... for TLS, unix:///path/to/socket, or for a cluster "
    "redis+cluster://host:port,host:port or rediss+cluster://..."
)
"""The forms of an address, for error messages."""

_PEM_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
"""What an address may say of TLS: whom we trust, the certificate that we show, and its key."""

_TIMEOUT = 5.0
_CONNECT_TIMEOUT = 2.0
_WAIT_MILLISECONDS = 2_000
"""How long a commit waits for its replicas: well below the timeout of a command."""


class Driver:
    """The client of the Redis or of the cluster that the settings name, created on first use.

    Raises:
        StoreError: the address cannot be read.
    """

    def __init__(self, settings: Settings) -> None:
        self._replicas = settings.redis_replicas
        self._make = _maker(settings.store, settings.redis_password)

    @cached_property
    def client(self) -> redis.Redis:
        """The client. Use it within `translated()`, because creating it connects to a cluster."""
        return self._make()

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

    def master_of(self, key: str) -> str:
        """The name of the master of a key's slot, as far as this client knows; "" if no batch
        waits for replicas, or there is but one server."""
        client = self.client
        if not self._replicas or not isinstance(client, RedisCluster):
            return ""
        return str(client.get_node_from_key(key).name)

    def wait_for_replicas(self, key: str, master: str = "") -> None:
        """Wait until the last write to the slot of `key` has reached enough replicas.

        The write went to `master`, by its name. If another one serves the slot by now, its
        replicas say nothing of the write.

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
            node = client.get_node_from_key(key)
            if master and node.name != master:
                raise StoreUnavailable("another master of the cluster has taken over meanwhile")
            client = client.get_redis_connection(node)
        with client.pipeline(transaction=False) as pipeline:
            pipeline.set(key, b"")
            pipeline.wait(self._replicas, _WAIT_MILLISECONDS)
            reached = pipeline.execute()[1]
        if reached < self._replicas:
            raise StoreUnavailable(
                f"only {reached} of {counted(self._replicas, 'replica')} "
                "(DENIABLE_REDIS_REPLICAS) answer"
            )

    def close(self) -> None:
        """Close all connections."""
        if "client" in vars(self):
            self.client.close()


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


def _maker(url: str, password: str) -> Callable[[], redis.Redis]:
    """Creates the client of an address, after checking everything that can be wrong with it."""
    scheme, _, rest = url.partition("://")
    if password and ":" in rest.rpartition("@")[0]:
        raise StoreError(
            "the store's address has a password, and DENIABLE_REDIS_PASSWORD is set too: keep one "
            "of them"
        )
    rest, _, query = rest.partition("?")
    options: dict[str, Any] = {
        "socket_timeout": _TIMEOUT,
        "socket_connect_timeout": _CONNECT_TIMEOUT,
        "retry": Retry(NoBackoff(), 0),
        **({"password": password} if password else {}),
        **_tls(scheme, query),
    }
    try:
        if scheme in CLUSTER:
            if not dict(parse_qsl(query)).keys() <= {*_PEM_FILES}:
                raise ValueError("a cluster has no other options")
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


def _tls(scheme: str, query: str) -> dict[str, Any]:
    """The TLS options. A certificate is always required and must name the host."""
    named = {name: path for name, path in parse_qsl(query) if name.startswith("ssl_")}
    if not scheme.startswith("rediss"):
        if named:
            raise StoreError(
                f"{', '.join(named)} is for TLS, which the store's address does not ask for: write "
                "rediss:// or rediss+cluster://"
            )
        return {}
    for name, path in named.items():
        if name not in _PEM_FILES:
            raise StoreError(
                "the store's address cannot choose how TLS is done, as a certificate is always "
                f"checked: it may name {', '.join(_PEM_FILES)}"
            )
        if not Path(path).is_file():
            raise StoreError(f"{name} names no file: give the path of a PEM file")
    return {**named, "ssl_cert_reqs": "required", "ssl_check_hostname": True}
