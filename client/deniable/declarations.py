"""From the tables of a `metrics.toml` to metrics, collecting every mistake on the way."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias, cast

from deniable import windows
from deniable.errors import SchemeError, ValueListError
from deniable.mechanisms import (
    DESIGNS,
    MAX_EPSILON,
    MAX_MEMO_EPSILON,
    MEMOIZED_DESIGNS,
    MEMOIZED_STRING_DESIGNS,
    STRING_DESIGNS,
)
from deniable.metric import AGGREGATES, LONGITUDINAL, TYPES, Metric
from deniable.problem import Problem
from deniable.toml_lines import Path as KeyPath
from deniable.toml_lines import line_of
from deniable.value_list import read_values, value_text

__all__ = ["MAX_VALUES", "SCHEMA", "Declarations"]

SCHEMA = 1
"""The version of the registry's own format."""

MAX_VALUES = 1 << 20
"""The most values a closed domain may list."""

_BOOLEAN_VALUES = ("true", "false")
_WITHOUT_VALUES = {
    "boolean": "it is true or false",
    "string": "its candidates are named when it is estimated",
}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_APP = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)
"""It names a folder on the device, so it holds nothing that a file system reads otherwise."""

_Check: TypeAlias = Callable[[Any], str | None]
"""Says what is wrong with a value, or nothing."""


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) and value.strip() else "must be text that is not empty"


def _day(value: Any) -> str | None:
    return None if type(value) is date else "must be a date without quotes, like 2027-06-30"


def _positive(limit: float) -> _Check:
    def check(value: Any) -> str | None:
        if not _number(value) or not 0 < value <= limit:
            return f"must be a number above 0 and at most {limit:g}"
        return None

    return check


def _one_of(choices: tuple[str, ...]) -> _Check:
    return lambda value: None if value in choices else f"must be one of {', '.join(choices)}"


def _texts(value: Any) -> str | None:
    fine = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return None if fine else 'must be a list of texts, like ["checkout", "mobile"]'


MAX_DEVICES = 10**12
"""More than there can be; larger numbers are slips."""

MIN_SAMPLE_RATE = 1e-9
"""One device in a billion."""


def _tags(value: Any) -> str | None:
    return _texts(value) or (None if all(value) else "must not hold an empty text")


def _count(value: Any) -> str | None:
    fine = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_DEVICES
    return None if fine else f"must be a whole number above 0 and at most {MAX_DEVICES:,}"


def _rate(value: Any) -> str | None:
    if not _number(value) or not MIN_SAMPLE_RATE <= value <= 1:
        return f"must be a number above 0 and at most 1, and not below {MIN_SAMPLE_RATE:g}"
    return None


def _number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= MAX_DEVICES


MAX_LIFETIME_EPSILON = 10_000.0
"""The largest lifetime epsilon; anything near it promises nothing, which `lint` says."""

_KEYS: dict[str, _Check] = {
    "type": _one_of(TYPES),
    "description": _text,
    "owner": _text,
    "expires": _day,
    "epsilon": _positive(MAX_EPSILON),
    "lifetime_epsilon": _positive(MAX_LIFETIME_EPSILON),
    "memo_epsilon": _positive(MAX_MEMO_EPSILON),
    "values": _texts,
    "values_file": _text,
    "other": _text,
    "window": _one_of(windows.KINDS),
    "aggregate": _text,  # checked with the type
    "sample_rate": _rate,
    "longitudinal": _one_of(LONGITUDINAL),
    "mechanism": _text,  # checked when the scheme is built
    "tags": _tags,
    "devices": _count,
}
_REQUIRED = ("type", "description", "owner", "expires", "epsilon", "lifetime_epsilon")
_DEFAULTS = ("owner", "expires", "window", "sample_rate", "tags", "devices", "aggregate")
"""What [defaults] may hold. Not the epsilons: each metric states its own."""


class Declarations:
    """Collects every problem of one document instead of stopping at the first."""

    def __init__(
        self, document: Mapping[str, Any], lines: Mapping[KeyPath, int], folder: Path
    ) -> None:
        self.document = document
        self.lines = lines
        self.folder = folder
        self.problems: list[Problem] = []

    def report(self, path: KeyPath, message: str) -> None:
        self.problems.append(Problem(line_of(self.lines, path), ".".join(path), message))

    def read(self) -> tuple[str, dict[str, Metric], float | None]:
        for key in self.document:
            if key not in ("schema", "app", "lifetime_epsilon", "defaults", "metrics"):
                self.report((key,), "is unknown here; a metric stands under [metrics.NAME]")
        if self.document.get("schema") != SCHEMA:
            self.report(("schema",), f"must be {SCHEMA}: write `schema = {SCHEMA}` at the top")
        app = self.document.get("app")
        if not (isinstance(app, str) and _APP.fullmatch(app)):
            self.report(
                ("app",),
                'must name the app, like app = "editor": a lower-case letter and up to 63 more of '
                "a-z, 0-9, _ and -",
            )
            app = ""
        cap = self.document.get("lifetime_epsilon")
        if cap is not None and (wrong := _positive(MAX_LIFETIME_EPSILON)(cap)):
            self.report(("lifetime_epsilon",), wrong)
        defaults = self._defaults()
        tables = self.document.get("metrics", {})
        if not isinstance(tables, dict) or not tables:
            self.report(("metrics",), "holds no metric: declare one under [metrics.NAME]")
            tables = {}
        metrics = {}
        for name, table in tables.items():
            metric = self._metric(name, table, defaults)
            if metric is not None:
                metrics[name] = metric
        self.problems.sort(key=lambda problem: problem.line or 0)
        return app, metrics, None if cap is None else cast(float, cap)

    def _defaults(self) -> dict[str, Any]:
        defaults = self.document.get("defaults", {})
        if not isinstance(defaults, dict):
            self.report(("defaults",), "must be a table: write [defaults]")
            return {}
        good = {}
        for key, value in defaults.items():
            path = ("defaults", key)
            if key not in _DEFAULTS:
                self.report(path, f"has no default; [defaults] may hold {', '.join(_DEFAULTS)}")
            elif wrong := _KEYS[key](value):
                self.report(path, wrong)
            else:
                good[key] = value
        return good

    def _metric(self, name: str, table: Any, defaults: Mapping[str, Any]) -> Metric | None:
        path = ("metrics", name)
        before = len(self.problems)
        if not _NAME.fullmatch(name):
            self.report(
                path,
                "a metric's name is a lower-case letter and up to 63 more of a-z, 0-9 and _",
            )
        if not isinstance(table, dict):
            self.report(path, f"must be a table: write [metrics.{name}]")
            return None
        for key, value in table.items():
            if key not in _KEYS:
                self.report((*path, key), f"is unknown; a metric may hold {', '.join(_KEYS)}")
            elif wrong := _KEYS[key](value):
                self.report((*path, key), wrong)
        settings = {**defaults, **{key: table[key] for key in _KEYS if key in table}}
        for key in _REQUIRED:
            if key not in settings:
                self.report(path, f"lacks {key}")
        kind = settings.get("type")
        if kind not in TYPES:
            return None
        values = self._values(path, kind, settings)
        self._dependent(path, kind, settings, values)
        if len(self.problems) > before:
            return None
        return self._build(path, name, settings, values)

    def _values(
        self, path: KeyPath, kind: str, settings: Mapping[str, Any]
    ) -> tuple[str, ...] | None:
        given = [key for key in ("values", "values_file") if key in settings]
        if kind in _WITHOUT_VALUES:
            for key in given:
                self.report((*path, key), f"does not belong to a {kind}: {_WITHOUT_VALUES[kind]}")
            return _BOOLEAN_VALUES if kind == "boolean" else None
        if len(given) != 1:
            self.report(
                path,
                'lacks values: list them, like ["yes", "no"], or name a values_file'
                if not given
                else "has both values and values_file: keep one of them",
            )
            return ()
        place = (*path, given[0])
        if _KEYS[given[0]](settings[given[0]]):
            return ()
        if "values" in settings:
            values = self._listed(place, settings["values"])
        else:
            try:
                values = read_values(self.folder / settings["values_file"])
            except ValueListError as error:
                self.report(place, str(error))
                return ()
        if not 2 <= len(values) <= MAX_VALUES:
            self.report(place, f"must list from 2 to {MAX_VALUES:,} values, not {len(values):,}")
        return tuple(values)

    def _listed(self, place: KeyPath, values: list[str]) -> list[str]:
        normal = [unicodedata.normalize("NFC", value) for value in values]
        seen: set[str] = set()
        for value in normal:
            if value in seen:
                self.report(place, f"lists {value!r} twice")
            seen.add(value)
            try:
                value_text(value)
            except ValueError as error:
                self.report(place, f"lists {value[:20]!r}, which {error}")
        return normal

    def _dependent(
        self, path: KeyPath, kind: str, settings: Mapping[str, Any], values: tuple[str, ...] | None
    ) -> None:
        """The checks that look at two keys at once."""
        aggregate = settings.get("aggregate", AGGREGATES[kind][0])
        if aggregate not in AGGREGATES[kind]:
            choices = ", ".join(AGGREGATES[kind])
            self.report((*path, "aggregate"), f"of a {kind} must be one of {choices}")
        self._epsilons(path, settings)
        self._memory(path, settings)
        other = settings.get("other")
        if other is not None:
            if kind != "category":
                self.report((*path, "other"), f"does not belong to a {kind}")
            elif unicodedata.normalize("NFC", str(other)) not in (values or ()):
                self.report((*path, "other"), f"is {other!r}, which is not one of the values")

    def _epsilons(self, path: KeyPath, settings: Mapping[str, Any]) -> None:
        epsilon, lifetime = settings.get("epsilon"), settings.get("lifetime_epsilon")
        memo, memoize = settings.get("memo_epsilon"), settings.get("longitudinal") == "memoize"
        if memo is not None and not memoize:
            self.report(
                (*path, "memo_epsilon"),
                'is what one memo may reveal: say longitudinal = "memoize", or leave it out',
            )
        if not (_number(epsilon) and _number(lifetime)) or not (memo is None or _number(memo)):
            return
        epsilon, lifetime = cast(float, epsilon), cast(float, lifetime)
        if lifetime < epsilon:
            self.report(
                (*path, "lifetime_epsilon"),
                f"is {lifetime}, below epsilon {epsilon}: the device could never answer once",
            )
        elif memoize and not epsilon < (lifetime if memo is None else memo) <= MAX_MEMO_EPSILON:
            key = "lifetime_epsilon" if memo is None else "memo_epsilon"
            self.report(
                (*path, key),
                f"is {settings[key]}: with memory it is what one memo may reveal, above epsilon "
                f"{epsilon} and at most {MAX_MEMO_EPSILON:g}",
            )
        elif memoize and memo is not None and memo > lifetime:
            self.report(
                (*path, "memo_epsilon"),
                f"is {memo}, above lifetime_epsilon {lifetime}: the device could never answer once",
            )

    def _memory(self, path: KeyPath, settings: Mapping[str, Any]) -> None:
        name, place = settings.get("mechanism"), (*path, "mechanism")
        memoize = settings.get("longitudinal") == "memoize"
        if memoize and name in {*DESIGNS, *STRING_DESIGNS}:
            self.report(
                place,
                f'is {name}, which has no memory: say longitudinal = "fresh", or leave it out',
            )
        elif not memoize and name in {*MEMOIZED_DESIGNS, *MEMOIZED_STRING_DESIGNS}:
            self.report(
                place, f'is {name}, which remembers: say longitudinal = "memoize", or leave it out'
            )

    def _build(
        self, path: KeyPath, name: str, settings: Mapping[str, Any], values: tuple[str, ...] | None
    ) -> Metric | None:
        kind = settings["type"]
        other = settings.get("other")
        if other is None and kind == "category" and "other" in (values or ()):
            other = "other"
        optional = (
            "window",
            "sample_rate",
            "longitudinal",
            "memo_epsilon",
            "mechanism",
            "devices",
        )
        metric = Metric(
            name=name,
            type=kind,
            description=settings["description"],
            owner=settings["owner"],
            expires=settings["expires"],
            epsilon=float(settings["epsilon"]),
            lifetime_epsilon=float(settings["lifetime_epsilon"]),
            values=values,
            other=None if other is None else unicodedata.normalize("NFC", other),
            aggregate=settings.get("aggregate", AGGREGATES[kind][0]),
            tags=tuple(settings.get("tags", ())),
            **{key: settings[key] for key in optional if key in settings},
        )
        try:
            metric.scheme  # noqa: B018  (builds the mechanism, which proves its epsilon)
        except SchemeError as error:
            where = "mechanism" if "mechanism" in settings else "epsilon"
            if where == "epsilon" and metric.longitudinal == "memoize":
                where = "lifetime_epsilon" if metric.memo_epsilon is None else "memo_epsilon"
            self.report((*path, where), str(error))
            return None
        return metric
