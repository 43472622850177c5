"""Reads `rules.toml`: all rules of `deniable watch`, or a list of every mistake in the file."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from deniable_estimator.files import TomlChecker, read_text
from deniable_estimator.judging.levels import FalseAlarms, MetricRules, Per


@dataclass(frozen=True, slots=True)
class NoticeChannel:
    """Where messages are sent. `address` may hold a secret: it is never shown."""

    name: str
    kind: Literal["webhook", "apprise"]
    address: str

    def __repr__(self) -> str:
        """Without the address."""
        return f"NoticeChannel({self.name!r}, {self.kind!r})"


@dataclass(frozen=True, slots=True)
class WatchRules:
    """All rules of one file."""

    dashboard: str
    language: str
    false_alarms: FalseAlarms
    wait_days: int
    digest: int | None
    """The weekday (UTC) on which a digest is sent; Monday is 0."""
    only: tuple[str, ...]
    """The metrics that are watched; none: all."""
    defaults: MetricRules
    metrics: Mapping[str, MetricRules]
    channels: tuple[NoticeChannel, ...]

    def of(self, metric: str) -> MetricRules:
        """The rules of a metric."""
        return self.metrics.get(metric, self.defaults)

    def watches(self, metric: str) -> bool:
        """Whether a metric is watched."""
        return not self.only or metric in self.only


SCHEMA = 1
"""The version of the format."""

MOST_ALARMS = 1000.0
MOST_DAYS = 366
MOST_WAIT = 6
"""The collector accepts reports for six days after a window, so more waiting brings nothing."""
MOST_CHANNELS = 20
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LANGUAGE_TAGS = ("en", "zh-Hans")

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ALARMS = re.compile(r"([0-9]+(?:\.[0-9]+)?) an? (run|week|month|year)")

_Check: TypeAlias = Callable[[Any], str | None]


def load_rules(
    path: Path, metrics: Collection[str], environ: Mapping[str, str] = os.environ
) -> WatchRules:
    """Read the rules from a file.

    Raises:
        CheckedFileError: the file cannot be read, or has mistakes (all of them are listed).
    """
    return parse_rules(read_text(path), metrics, environ, str(path))


def parse_rules(
    text: str,
    metrics: Collection[str],
    environ: Mapping[str, str],
    source: str = "rules.toml",
) -> WatchRules:
    """Read the rules from TOML text. `metrics` are those of the registry; `environ` holds what
    `${NAME}` in a channel's address stands for.

    Raises:
        CheckedFileError: the text has mistakes (all of them are listed).
    """
    checker = TomlChecker(text, source)
    rules = _RulesReader(checker, metrics, environ).read()
    checker.finish()
    return rules


def _number(low: float, high: float, unit: str) -> _Check:
    def check(value: Any) -> str | None:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if number and math.isfinite(value) and low <= value <= high:
            return None
        return f"must be {unit} from {low:g} to {high:g}"

    return check


def _whole(low: int, high: int) -> _Check:
    def check(value: Any) -> str | None:
        if type(value) is int and low <= value <= high:
            return None
        return f"must be a whole number of days from {low} to {high}"

    return check


def _choice(choices: Sequence[str]) -> _Check:
    return lambda value: None if value in choices else f"must be one of {', '.join(choices)}"


def _address(value: Any) -> str | None:
    if isinstance(value, str):
        parts = urlsplit(value)
        if parts.scheme in ("http", "https") and parts.hostname and not parts.query:
            return None
    return 'must be the address of the dashboard, like "https://deniable.acme.example"'


def _alarms(value: Any) -> str | None:
    found = _read_alarms(value)
    if found is not None and 0 < found.number <= MOST_ALARMS:
        return None
    return (
        f'must be like "1 a month" (or a run, a week, a year), or a number for each run, above 0 '
        f"and at most {MOST_ALARMS:g}"
    )


def _read_alarms(value: Any) -> FalseAlarms | None:
    if isinstance(value, str) and (found := _ALARMS.fullmatch(value)):
        return FalseAlarms(float(found[1]), cast(Per, found[2]))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return FalseAlarms(float(value), "run")
    return None


TOP_KEYS: dict[str, _Check | None] = {
    "schema": None,
    "dashboard": _address,
    "language": _choice(LANGUAGE_TAGS),
    "false_alarms": _alarms,
    "wait_days": _whole(0, MOST_WAIT),
    "digest": _choice(WEEKDAYS),
    "only": None,
    "defaults": None,
    "metrics": None,
    "channels": None,
}
"""The keys at the top; None where the reader checks them itself."""

DEFAULT_KEYS: dict[str, _Check] = {
    "points": _number(0, 100, "a number of percentage points"),
    "percent": _number(0, 1000, "a percentage"),
    "expires_days": _whole(0, MOST_DAYS),
    "stale_days": _whole(1, MOST_DAYS),
    "share": _number(0.0001, 1, "a share"),
}
"""The keys of [defaults], and of each [metrics.NAME]."""

CHANNEL_KEYS = ("webhook", "apprise")
"""The keys of a channel: it has exactly one of them."""


class _RulesReader:
    def __init__(
        self, checker: TomlChecker, known: Collection[str], environ: Mapping[str, str]
    ) -> None:
        self.checker, self.known, self.environ = checker, known, environ
        self.document, self.report = checker.document, checker.report

    def read(self) -> WatchRules:
        self.checker.check_schema(SCHEMA)
        good = self._checked((), self.document, TOP_KEYS)
        if "dashboard" not in self.document:
            self.report(("dashboard",), "is missing: name the address that links lead to")
        defaults = MetricRules(**self._metric_keys(("defaults",), self.checker.table("defaults")))
        metrics = {}
        for name, table in self.checker.table("metrics").items():
            path = ("metrics", name)
            if name not in self.known:
                self.report(path, "is not declared in the registry")
            own = self._metric_keys(path, table)
            metrics[name] = MetricRules(
                **{key: own.get(key, getattr(defaults, key)) for key in DEFAULT_KEYS}
            )
        return WatchRules(
            dashboard=str(good.get("dashboard", "")).rstrip("/"),
            language=good.get("language", "en"),
            false_alarms=_read_alarms(good.get("false_alarms", "1 a month"))
            or FalseAlarms(1.0, "month"),
            wait_days=good.get("wait_days", 1),
            digest=WEEKDAYS.index(good["digest"]) if "digest" in good else None,
            only=self._only(),
            defaults=defaults,
            metrics=metrics,
            channels=self._channels(),
        )

    def _checked(
        self, path: tuple[str, ...], table: Mapping[str, Any], checks: Mapping[str, _Check | None]
    ) -> dict[str, Any]:
        """What is right in a table; the rest is reported."""
        self.checker.check_keys(path, table, checks)
        good = {}
        for key in table.keys() & checks.keys():
            check = checks[key]
            if check and (wrong := check(table[key])):
                self.report((*path, key), wrong)
            else:
                good[key] = table[key]
        return good

    def _metric_keys(self, path: tuple[str, ...], table: Any) -> dict[str, Any]:
        if isinstance(table, dict):
            return self._checked(path, table, DEFAULT_KEYS)
        self.report(path, f"must be a table: write [{'.'.join(path)}]")
        return {}

    def _only(self) -> tuple[str, ...]:
        only = self.document.get("only", [])
        if not isinstance(only, list) or not all(isinstance(each, str) for each in only):
            self.report(("only",), 'must be a list of metrics, like ["browser"]')
            return ()
        for name in only:
            if name not in self.known:
                self.report(("only",), f"names {name!r}, which is not declared in the registry")
        return tuple(only)

    def _channels(self) -> tuple[NoticeChannel, ...]:
        tables = self.checker.table("channels")
        if len(tables) > MOST_CHANNELS:
            self.report(("channels",), f"holds more than {MOST_CHANNELS} channels")
        found = []
        for name, table in tables.items():
            path = ("channels", name)
            keys = list(table) if isinstance(table, dict) else []
            if len(keys) != 1 or keys[0] not in CHANNEL_KEYS:
                self.report(path, f"must be a table with one of {' and '.join(CHANNEL_KEYS)}")
                continue
            if channel := self._channel(path, name, keys[0], table[keys[0]]):
                found.append(channel)
        return tuple(found)

    def _channel(
        self, path: tuple[str, ...], name: str, kind: str, value: Any
    ) -> NoticeChannel | None:
        """The channel, with what the environment says in its address; the messages never do."""
        path = (*path, kind)
        if not isinstance(value, str) or not value:
            self.report(path, "must be an address as text")
            return None
        missing = [each for each in _VARIABLE.findall(value) if not self.environ.get(each)]
        for each in missing:
            self.report(path, f"needs the environment variable {each}, which is not set")
        address = _VARIABLE.sub(lambda found: self.environ.get(found[1], ""), value)
        wrong = _unusable(kind, address) if not missing else None
        if wrong:
            self.report(path, wrong)
        return None if missing or wrong else NoticeChannel(name, kind, address)  # type: ignore[arg-type]


def _unusable(kind: str, address: str) -> str | None:
    if kind == "webhook":
        try:
            parts = urlsplit(address)
        except ValueError:
            return "must be an address, like https://chat.acme.example/hook"
        fine = parts.scheme in ("http", "https") and parts.hostname
        return None if fine else "must begin with https:// or http:// and name a host"
    return None if "://" in address else "must be an address of Apprise, like mailtos://..."
