"""Reads `rules.toml`: all rules of `deniable watch`, or a list of every mistake in the file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

from deniable_estimator.dashboard.language import LANGUAGES
from deniable_estimator.files import TomlChecker, read_text
from deniable_estimator.judging.newest_window import WAIT_DAYS, FalseAlarms, MetricRules, Per
from deniable_estimator.watching.channels import CHANNEL_KEYS, NoticeChannel, unusable

ONE_A_MONTH = FalseAlarms(1.0, "month")


@dataclass(frozen=True, slots=True)
class WatchRules:
    """All rules of one file."""

    defaults: MetricRules
    metrics: Mapping[str, MetricRules]
    channels: tuple[NoticeChannel, ...]
    only: tuple[str, ...]
    """The metrics that are watched; none: all."""
    dashboard: str = ""
    language: str = "en"
    false_alarms: FalseAlarms = ONE_A_MONTH
    wait_days: int = WAIT_DAYS
    digest: int | None = None
    """The weekday (UTC) on which a digest is sent; Monday is 0."""

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

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ALARMS = re.compile(r"([0-9]+(?:\.[0-9]+)?) an? (run|week|month|year)")

_Read: TypeAlias = Callable[[Any], Any]
"""Takes what stands in the file, and returns what it means; a ValueError says what it must be."""


def load_rules(path: Path, metrics: Collection[str]) -> WatchRules:
    """Read the rules from a file.

    Raises:
        CheckedFileError: the file cannot be read, or has mistakes (all of them are listed).
    """
    return parse_rules(read_text(path), metrics, os.environ, str(path))


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
    checker.check_schema(SCHEMA)
    known = "schema", *TOP_KEYS, "only", "defaults", "metrics", "channels"
    checker.check_keys((), checker.document, known)
    good = _good(checker, (), checker.document, TOP_KEYS)
    if "dashboard" not in checker.document:
        checker.report(("dashboard",), "is missing: name the address that links lead to")
    defaults = _metric_rules(
        checker, ("defaults",), checker.table("defaults"), beside=MetricRules()
    )
    own = {}
    for name, table in checker.table("metrics").items():
        path = ("metrics", name)
        if name not in metrics:
            checker.report(path, "is not declared in the registry")
        own[name] = _metric_rules(checker, path, table, beside=defaults)
    rules = WatchRules(
        defaults, own, tuple(_channels(checker, environ)), _only(checker, metrics), **good
    )
    checker.finish()
    return rules


def _number(low: float, high: float, unit: str, kind: type[int] | type[float] = float) -> _Read:
    def read(value: Any) -> Any:
        if type(value) in (int, kind) and low <= value <= high:
            return value
        raise ValueError(f"must be {unit} from {low:g} to {high:g}")

    return read


def _days(low: int, high: int) -> _Read:
    return _number(low, high, "a whole number of days", int)


def _choice(choices: Sequence[str]) -> _Read:
    def read(value: Any) -> Any:
        if value in choices:
            return value
        raise ValueError(f"must be one of {', '.join(choices)}")

    return read


def _weekday(value: Any) -> int:
    return WEEKDAYS.index(_choice(WEEKDAYS)(value))


def _address(value: Any) -> str:
    if isinstance(value, str):
        with suppress(ValueError):
            parts = urlsplit(value)
            if parts.scheme in ("http", "https") and parts.hostname and not parts.query:
                return value.rstrip("/")
    raise ValueError('must be the address of the dashboard, like "https://deniable.acme.example"')


def _alarms(value: Any) -> FalseAlarms:
    number, per = value, "run"
    if isinstance(value, str) and (found := _ALARMS.fullmatch(value)):
        number, per = float(found[1]), found[2]
    if type(number) in (int, float) and 0 < number <= MOST_ALARMS:
        return FalseAlarms(float(number), cast(Per, per))
    raise ValueError(
        f'must be like "1 a month" (or a run, a week, a year), or a number for each run, above 0 '
        f"and at most {MOST_ALARMS:g}"
    )


TOP_KEYS: dict[str, _Read] = {
    "dashboard": _address,
    "language": _choice([*LANGUAGES]),
    "false_alarms": _alarms,
    "wait_days": _days(0, MOST_WAIT),
    "digest": _weekday,
}
"""The keys at the top that can be read one by one."""

DEFAULT_KEYS: dict[str, _Read] = {
    "points": _number(0, 100, "a number of percentage points"),
    "percent": _number(0, 1000, "a percentage"),
    "expires_days": _days(0, MOST_DAYS),
    "stale_days": _days(1, MOST_DAYS),
    "share": _number(0.0001, 1, "a share"),
}
"""The keys of [defaults], and of each [metrics.NAME]."""


def _good(
    checker: TomlChecker,
    path: tuple[str, ...],
    table: Mapping[str, Any],
    readers: Mapping[str, _Read],
) -> dict[str, Any]:
    """What is right in a table; the rest is reported."""
    good = {}
    for key in table.keys() & readers.keys():
        try:
            good[key] = readers[key](table[key])
        except ValueError as error:
            checker.report((*path, key), str(error))
    return good


def _metric_rules(
    checker: TomlChecker, path: tuple[str, ...], table: Any, beside: MetricRules
) -> MetricRules:
    """Those of a table; what it does not say is as `beside`."""
    if isinstance(table, dict):
        checker.check_keys(path, table, DEFAULT_KEYS)
        return replace(beside, **_good(checker, path, table, DEFAULT_KEYS))
    checker.report(path, f"must be a table: write [{'.'.join(path)}]")
    return beside


def _only(checker: TomlChecker, known: Collection[str]) -> tuple[str, ...]:
    only = checker.document.get("only", [])
    if not isinstance(only, list) or not all(isinstance(each, str) for each in only):
        checker.report(("only",), 'must be a list of metrics, like ["browser"]')
        return ()
    for name in only:
        if name not in known:
            told = f"names {name!r}, which is not declared in the registry"
            checker.report(("only",), told)
    return tuple(only)


def _channels(checker: TomlChecker, environ: Mapping[str, str]) -> Iterator[NoticeChannel]:
    """The channels, with what the environment says in their addresses; the messages never do."""
    tables = checker.table("channels")
    if len(tables) > MOST_CHANNELS:
        checker.report(("channels",), f"holds more than {MOST_CHANNELS} channels")
    for name, table in tables.items():
        if not isinstance(table, dict) or len(table) != 1 or not table.keys() <= {*CHANNEL_KEYS}:
            told = f"must be a table with one of {' and '.join(CHANNEL_KEYS)}"
            checker.report(("channels", name), told)
            continue
        ((kind, value),) = table.items()
        path = ("channels", name, kind)
        if not isinstance(value, str) or not value:
            checker.report(path, "must be an address as text")
            continue
        missing = [each for each in _VARIABLE.findall(value) if not environ.get(each)]
        for each in missing:
            checker.report(path, f"needs the environment variable {each}, which is not set")
        address = _VARIABLE.sub(lambda found: environ.get(found[1], ""), value)
        channel = NoticeChannel(name, kind, address)
        if not missing and (wrong := unusable(channel)):
            checker.report(path, wrong)
        yield channel
