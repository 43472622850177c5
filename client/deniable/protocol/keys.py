"""The keys of a metric in `metrics.toml`, and which values each accepts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from deniable.protocol import checks, windows
from deniable.protocol.checks import Check
from deniable.protocol.keep import well_formed
from deniable.protocol.mechanisms import MAX_EPSILON, MAX_MEMO_EPSILON
from deniable.protocol.metric import ANSWERS, LONGITUDINAL, PLATFORMS
from deniable.protocol.types import TYPES

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
"""The name of a metric."""

APP = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)
"""The name of an app. It names a folder on the device, so it has no characters with a meaning in
file systems."""

PEOPLE_KEYS = ("recipient", "contact")
"""The keys at the top of the file that people read: who receives the reports, and where to ask."""

SCHEMA = 1
"""The version of the registry's own format."""

FORMAT = 1
"""The version of the compiled registry's format."""

MAX_LIFETIME_EPSILON = 10_000.0
"""The largest lifetime epsilon; a number near it protects nothing."""


def _app(value: Any) -> str | None:
    if isinstance(value, str) and APP.fullmatch(value):
        return None
    return (
        'must name the app, like app = "editor": a lower-case letter and up to 63 more of '
        "a-z, 0-9, _ and -"
    )


def _metrics(value: Any) -> str | None:
    fine = isinstance(value, dict) and value
    return None if fine else "holds no metric: declare one under [metrics.NAME]"


IS_FORMAT = checks.exactly(FORMAT, "compile metrics.toml with this version")

TOP_KEYS: dict[str, Check] = {
    "schema": checks.exactly(SCHEMA, f"write `schema = {SCHEMA}` at the top"),
    "app": _app,
    **dict.fromkeys(PEOPLE_KEYS, checks.line),
    "lifetime_epsilon": checks.positive(MAX_LIFETIME_EPSILON),
    "defaults": checks.table("must be a table: write [defaults]"),
    "segments": checks.table("must hold tables: write [segments.NAME]"),
    "metrics": _metrics,
}
"""The keys at the top of the file."""


def _segment_names(value: Any) -> str | None:
    fine = value and checks.texts(value) is None
    return None if fine else 'must name declared segments, like ["platform"]'


COMMON_KEYS: dict[str, Check] = {
    "type": checks.one_of(tuple(TYPES)),
    "description": checks.text,
    "owner": checks.text,
    "expires": checks.day,
    "epsilon": checks.positive(MAX_EPSILON),
    "lifetime_epsilon": checks.positive(MAX_LIFETIME_EPSILON),
    "memo_epsilon": checks.positive(MAX_MEMO_EPSILON),
    "window": checks.one_of(windows.KINDS),
    "aggregate": checks.text,  # checked with the type
    "answer": checks.one_of(ANSWERS),
    "sample_rate": checks.rate,
    "one_in": checks.one_in,
    "longitudinal": checks.one_of(LONGITUDINAL),
    "mechanism": checks.text,  # checked when the scheme is built
    "tags": checks.tags,
    "platform": checks.some_of(PLATFORMS),
    "devices": checks.count,
    "segments": _segment_names,
    "keep": well_formed,
}
"""What a metric of any type may hold."""


@cache
def all_keys() -> Mapping[str, Check]:
    """What metrics of all types together may hold. It imports every type, which a device with
    a registry without mistakes does not need."""
    return COMMON_KEYS | {key: check for each in TYPES.values() for key, check in each.keys.items()}


def reserved(name: str) -> bool:
    """Whether no segment may have this name, as readers would take it for a key. `platform` is the
    name that most segments have; where a metric is recorded and where a device belongs seldom
    differ."""
    return name != "platform" and (name in TOP_KEYS or name in all_keys())


REQUIRED = ("type", "description", "owner", "expires", "epsilon", "lifetime_epsilon")
DEFAULTS = (
    "owner",
    "expires",
    "window",
    "sample_rate",
    "tags",
    "platform",
    "devices",
    "aggregate",
    "answer",
    "keep",
)
"""The keys of [defaults]. Not the epsilons, which each metric must state."""
