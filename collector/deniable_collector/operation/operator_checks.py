"""The operator's side of `deniable doctor`: settings, registry, store, disk and running collector.

It changes nothing: it makes no store that is not there, and what it writes to one that is, to see
whether a commit would succeed, it takes back.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import redis

from deniable import Registry, TransportError
from deniable.device.transport import HttpTransport, problem_code
from deniable.protocol.coded_message import counted
from deniable.tools.commands import examined
from deniable.tools.doctor import CheckResult, listed
from deniable.tools.doctor.command import check_registry
from deniable.tools.doctor.endpoint import check_clock, skew_of
from deniable_collector.settings import Settings, SettingsError
from deniable_collector.stores import StoreError, open_store
from deniable_collector.stores.redis.driver import Driver
from deniable_collector.stores.redis.errors import translated

FEW_BYTES = 1 << 30
"""With less free space on the store's disk there is a warning, with a tenth of it an error."""

LARGEST_REGISTRY = 1 << 26
"""Bytes of a collector's public registry: several lists of a million values."""

_LOOPBACK = ("127.", "localhost:", "[::1]:", "unix:")


def check_operator(environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """What a collector with this environment would meet here, and what it meets if it runs."""
    try:
        settings = Settings.from_env(environ)
    except SettingsError as error:
        for each in error.problems:
            told = "docs/reference/settings.md lists every setting"
            yield CheckResult("settings", "setting", "error", each, told)
        return
    for told in Settings.strangers(environ):
        yield CheckResult("settings", "unknown_setting", "warning", told, "correct or remove it")
    path = Path(settings.registry)
    registry, problems = examined(path)
    yield from check_registry(path, registry, problems)
    yield from _reached_by(settings)
    yield from _store(settings)
    if registry is not None and not settings.bind.startswith("unix:"):
        yield from _running(settings, registry)


def _reached_by(settings: Settings) -> Iterator[CheckResult]:
    """What the settings say of who reaches the collector."""
    if not settings.bind.startswith(_LOOPBACK) and not settings.trusted_proxies:
        yield CheckResult(
            "settings", "open_bind", "warning",
            f"DENIABLE_BIND {settings.bind} can be reached from other machines, and the collector "
            "speaks plain HTTP",
            "bind it to 127.0.0.1 behind a proxy with TLS, and set DENIABLE_TRUSTED_PROXIES to the "
            "number of proxies (docs/how-to/deploy.md)",
        )  # fmt: skip
    if settings.cors_origins:
        message = f"web pages may send that are of: {listed(list(settings.cors_origins))}"
        yield CheckResult("pages", "origins", "ok", message)
    else:
        yield CheckResult(
            "pages", "no_pages", "note", "no web page may send: DENIABLE_CORS_ORIGINS is not set",
            "if a page reports, name its origin, like DENIABLE_CORS_ORIGINS=https://acme.example; "
            "the collector's log names each origin that it has refused (origin-refused)",
        )  # fmt: skip


def _store(settings: Settings) -> Iterator[CheckResult]:
    """Whether the store takes a commit, and what survives a crash of it."""
    if settings.store.startswith("sqlite:///"):
        path = Path(unquote(settings.store.removeprefix("sqlite:///")))
        yield from check_disk(
            path.absolute().parent, "the store is",
            "make room: a full disk refuses all batches. DENIABLE_KEEP_DAYS drops old windows",
        )  # fmt: skip
        if not path.exists() and os.access(path.absolute().parent, os.W_OK | os.X_OK):
            yield CheckResult(
                "store", "new_store", "note",
                f"there is no store at {path} yet: a collector makes it when it starts",
                "if there should be one, start this command in the collector's folder, or write an "
                "absolute path: sqlite:////var/lib/deniable/tallies.db",
            )  # fmt: skip
            return
    try:
        with closing(open_store(settings)) as store:
            store.ping()
    except StoreError as error:
        yield CheckResult(
            "store", "store_away", "error", f"the store cannot take a commit: {error}",
            "correct DENIABLE_STORE, or start the store; devices keep their reports meanwhile",
        )  # fmt: skip
        return
    yield CheckResult("store", "store", "ok", "the store takes commits")
    if settings.store.startswith("sqlite:"):
        yield CheckResult(
            "store", "durable", "ok", "SQLite: an acknowledged batch survives a power cut"
        )
        return
    try:
        yield from _redis(settings)
    except (StoreError, redis.RedisError) as error:
        yield CheckResult(
            "store", "not_checked", "note", f"the settings of Redis cannot be read: {error}",
            "give the collector's user +config|get, +info and +time, or check appendonly, "
            "appendfsync, save and maxmemory-policy yourself (docs/reference/store-export.md)",
        )  # fmt: skip


def check_disk(folder: Path, what: str, advice: str) -> Iterator[CheckResult]:
    """Whether there is room in a folder, where `what` says."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return  # that the folder is not there is said elsewhere
    if free < FEW_BYTES:
        yield CheckResult(
            "disk", "disk_full", "error" if free < FEW_BYTES // 10 else "warning",
            f"{free / (1 << 20):,.0f} MiB are free where {what}", advice,
        )  # fmt: skip


def _redis(settings: Settings) -> Iterator[CheckResult]:
    """What a crash of Redis, a full memory and its clock would do."""
    with closing(Driver(settings)) as driver, translated():
        for name, node in driver.nodes().items():
            where = f"Redis {name}".strip()
            yield from _durability(where, node.config_get("*"))
            yield from _failover(where, node.info("replication"), settings.redis_replicas)
            seconds, micros = node.time()
            yield from check_clock(f"that of {where}", time.time() - seconds - micros / 1e6)


def _durability(where: str, config: Mapping[Any, Any]) -> Iterator[CheckResult]:
    if config.get("appendonly") != "yes":
        yield CheckResult(
            "store", "not_durable", "warning",
            f"{where}: appendonly is off, so a restart of Redis loses all tallies since its last "
            "snapshot",
            "start Redis with --appendonly yes --appendfsync everysec",
        )  # fmt: skip
    elif (sync := config.get("appendfsync")) == "no":
        yield CheckResult(
            "store", "not_durable", "warning",
            f"{where}: appendfsync is no, so a power cut may lose half a minute of batches",
            "set appendfsync to everysec, or to always",
        )  # fmt: skip
    else:
        lost = "nothing" if sync == "always" else "up to a second of batches"
        yield CheckResult(
            "store", "durable", "ok", f"{where}: appendfsync is {sync}: a power cut loses {lost}"
        )
    if config.get("maxmemory-policy", "noeviction") != "noeviction":
        yield CheckResult(
            "store", "eviction", "error",
            f"{where}: maxmemory-policy is {config['maxmemory-policy']}, so a full memory deletes "
            "tallies",
            "set maxmemory-policy to noeviction",
        )  # fmt: skip
    if config.get("save"):
        yield CheckResult(
            "store", "snapshots", "note",
            f"{where}: save is on: two snapshots of one minute apart show what came between",
            "set save to \"\" if the append-only file is on (docs/reference/store-export.md)",
        )  # fmt: skip


def _failover(where: str, info: Mapping[Any, Any], waited_for: int) -> Iterator[CheckResult]:
    """Whether a replica that takes over has all batches that were acknowledged."""
    replicas = info.get("connected_slaves", 0)
    if info.get("role") == "master" and replicas > waited_for:
        yield CheckResult(
            "store", "failover", "warning",
            f"{where}: it has {counted(replicas, 'replica')}, and a batch is acknowledged when "
            f"{waited_for} of them have it (DENIABLE_REDIS_REPLICAS): if another one takes over, "
            "batches that were acknowledged shortly before are lost",
            f"set DENIABLE_REDIS_REPLICAS={replicas}, or accept it "
            "(docs/reference/store-export.md, A cluster)",
        )  # fmt: skip


def _running(settings: Settings, registry: Registry) -> Iterator[CheckResult]:
    """Whether the collector that listens here has read this registry."""
    host, _, port = settings.bind.rpartition(":")
    if port == "0":
        return
    everywhere = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  (nothing is bound here)
    address = f"http://{everywhere.get(host, host)}:{port}"
    transport = HttpTransport(address, timeout=5)
    try:
        ready, headers = transport.ask("/readyz")
        declared, _ = transport.ask("/v1/registry", largest=LARGEST_REGISTRY)
        state: Any = json.loads(ready.body)
        metrics: Any = json.loads(declared.body)["metrics"]
        schemes = {name: each["scheme"] for name, each in metrics.items()}
    except TransportError as error:
        yield CheckResult(
            "collector", "not_running", "note", f"no collector responds at {address}: {error}",
            "start it with `deniable collect`, or set DENIABLE_BIND to where it listens",
        )  # fmt: skip
        return
    except (ValueError, KeyError, TypeError, AttributeError):
        yield CheckResult(
            "collector", "not_a_collector", "error",
            f"what responds at {address} is not a collector",
            "end that program, or let the collector listen elsewhere (DENIABLE_BIND)",
        )  # fmt: skip
        return
    if ready.status != 200:
        problem = problem_code(ready.body) or "no reason"
        yield CheckResult(
            "collector", "not_ready", "error",
            f"the collector at {address} is not ready (status {ready.status}): {problem}",
            "its log says why",
        )  # fmt: skip
    for mistake in state.get("mistakes", ()):
        yield CheckResult(
            "collector", "reload_refused", "warning",
            f"the last SIGHUP changed nothing: {mistake}", "correct it and send SIGHUP again",
        )  # fmt: skip
    mine = {metric.name: metric.scheme.fingerprint for metric in registry}
    differs = sorted(n for n in {*mine, *schemes} if mine.get(n) != schemes.get(n))
    if differs:
        yield CheckResult(
            "collector", "old_registry", "warning",
            f"the collector at {address} runs with another registry than {settings.registry}; "
            f"these differ: {listed(differs)}",
            "check it with `deniable lint`, and send the collector SIGHUP",
        )  # fmt: skip
    else:
        yield CheckResult(
            "collector", "running", "ok", f"a collector with this registry runs at {address}"
        )
    yield from check_clock("the collector's", skew_of(headers.get("Date"), time.time()))
