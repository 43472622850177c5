"""From the tables of a `metrics.toml` to metrics, collecting every mistake on the way."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, cast

from deniable.errors import SchemeError, ValueListError
from deniable.keys import (
    DEFAULTS,
    KEYS,
    MAX_LIFETIME_EPSILON,
    REQUIRED,
    SCHEME_KEYS,
    TOP_KEYS,
    is_number,
    positive,
)
from deniable.mechanisms import (
    DESIGNS,
    MAX_MEMO_EPSILON,
    MEMOIZED_DESIGNS,
    MEMOIZED_STRING_DESIGNS,
    STRING_DESIGNS,
    names,
    require_name,
)
from deniable.metric import AGGREGATES, TYPES, Metric
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
"""It names a folder on the device, so it has no characters with a meaning in file systems."""


class Declarations:
    """Collects all problems of one document instead of stopping at the first."""

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
            if key not in TOP_KEYS:
                self.report((key,), "is unknown here; a metric belongs under [metrics.NAME]")
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
        if cap is not None and (wrong := positive(MAX_LIFETIME_EPSILON)(cap)):
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
            if key not in DEFAULTS:
                self.report(path, f"has no default; [defaults] may hold {', '.join(DEFAULTS)}")
            elif wrong := KEYS[key](value):
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
            if key not in KEYS:
                self.report((*path, key), f"is unknown; a metric may hold {', '.join(KEYS)}")
            elif wrong := KEYS[key](value):
                self.report((*path, key), wrong)
        settings = {**defaults, **{key: table[key] for key in KEYS if key in table}}
        for key in REQUIRED:
            if key not in settings:
                self.report(path, f"lacks {key}")
        kind, values = settings.get("type"), None
        if kind in TYPES:
            values = self._values(path, kind, settings)
            self._dependent(path, kind, settings, values)
        self._epsilons(path, settings)
        self._mechanism(path, kind, settings)
        # The mechanism is built even if other keys are wrong, to report all mistakes at once.
        refused = {problem.where for problem in self.problems[before:]}
        good = {key: settings[key] for key in settings if ".".join((*path, key)) not in refused}
        metric = None
        if self._can_design(settings, good, values):
            metric = self._build(path, name, good, values)
        return metric if len(self.problems) == before else None

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
        if KEYS[given[0]](settings[given[0]]):
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
                'limits what one memo reveals: set longitudinal = "memoize", or remove it',
            )
        if not (is_number(epsilon) and is_number(lifetime)) or not (
            memo is None or is_number(memo)
        ):
            return
        epsilon, lifetime = cast(float, epsilon), cast(float, lifetime)
        if lifetime < epsilon:
            self.report(
                (*path, "lifetime_epsilon"),
                f"is {lifetime}, below epsilon {epsilon}: the device could never report",
            )
        elif memoize and not epsilon < (lifetime if memo is None else memo) <= MAX_MEMO_EPSILON:
            key = "lifetime_epsilon" if memo is None else "memo_epsilon"
            self.report(
                (*path, key),
                f"is {settings[key]}: with memos it limits what one memo reveals, so it must be "
                f"above epsilon {epsilon} and at most {MAX_MEMO_EPSILON:g}",
            )
        elif memoize and memo is not None and memo > lifetime:
            self.report(
                (*path, "memo_epsilon"),
                f"is {memo}, above lifetime_epsilon {lifetime}: the device could never report",
            )

    def _mechanism(self, path: KeyPath, kind: Any, settings: Mapping[str, Any]) -> None:
        """Whether there is such a mechanism, for this type and with or without memory."""
        name, place = settings.get("mechanism"), (*path, "mechanism")
        memoize = settings.get("longitudinal") == "memoize"
        if not isinstance(name, str) or KEYS["mechanism"](name):
            return
        if memoize and name in {*DESIGNS, *STRING_DESIGNS}:
            self.report(
                place,
                f'is {name}, which has no memos: set longitudinal = "fresh", or remove it',
            )
        elif not memoize and name in {*MEMOIZED_DESIGNS, *MEMOIZED_STRING_DESIGNS}:
            self.report(
                place, f'is {name}, which has memos: set longitudinal = "memoize", or remove it'
            )
        elif kind in TYPES or name not in names(closed=False, memoize=memoize):
            # Of an unknown type the names for a closed domain are listed.
            try:
                require_name(name, closed=kind != "string", memoize=memoize)
            except SchemeError as error:
                self.report(place, str(error))

    @staticmethod
    def _can_design(
        settings: Mapping[str, Any], good: Mapping[str, Any], values: tuple[str, ...] | None
    ) -> bool:
        """Whether everything that the mechanism is made from was given and is right."""
        given = all(key in good for key in SCHEME_KEYS if key in settings)
        needed = all(key in good for key in ("type", "epsilon", "lifetime_epsilon"))
        return given and needed and values != ()

    def _build(
        self, path: KeyPath, name: str, settings: Mapping[str, Any], values: tuple[str, ...] | None
    ) -> Metric | None:
        """The metric, if its mechanism can be built; keys that are missing are left empty."""
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
            description=settings.get("description", ""),
            owner=settings.get("owner", ""),
            expires=settings.get("expires", date.max),
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
