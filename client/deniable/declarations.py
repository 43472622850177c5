"""From the tables of a `metrics.toml` to metrics, collecting every mistake on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, cast

from deniable.checks import Check, is_number, positive
from deniable.errors import SchemeError
from deniable.keys import (
    APP,
    COMMON_KEYS,
    DEFAULTS,
    MAX_LIFETIME_EPSILON,
    NAME,
    REQUIRED,
    SCHEME_KEYS,
    TOP_KEYS,
    all_keys,
    reserved,
)
from deniable.mechanisms import MAX_MEMO_EPSILON
from deniable.metric import Metric
from deniable.problem import Problem
from deniable.segments import (
    LEAST_REPORTS,
    MAX_COMBINATIONS,
    MAX_SEGMENTS,
    SEGMENT_KEYS,
    Segment,
    combinations,
    identifying,
    read_segment,
)
from deniable.toml_lines import Path as KeyPath
from deniable.toml_lines import line_of
from deniable.types import TYPES, MetricType, Table, joins

__all__ = ["SCHEMA", "Declarations"]

SCHEMA = 1
"""The version of the registry's own format."""


class Declarations:
    """Collects all problems of one document instead of stopping at the first."""

    def __init__(
        self, document: Mapping[str, Any], lines: Mapping[KeyPath, int], folder: Path
    ) -> None:
        self.document = document
        self.lines = lines
        self.folder = folder
        self.problems: list[Problem] = []
        self.segments: dict[str, Segment] = {}

    def report(self, path: KeyPath, message: str) -> None:
        self.problems.append(Problem(line_of(self.lines, path), ".".join(path), message))

    def read(self) -> tuple[str, dict[str, Metric], float | None]:
        for key in self.document:
            if key not in TOP_KEYS:
                self.report((key,), "is unknown here; a metric belongs under [metrics.NAME]")
        if self.document.get("schema") != SCHEMA:
            self.report(("schema",), f"must be {SCHEMA}: write `schema = {SCHEMA}` at the top")
        app = self.document.get("app")
        if not (isinstance(app, str) and APP.fullmatch(app)):
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
        self._read_segments()
        tables = self.document.get("metrics", {})
        if not isinstance(tables, dict) or not tables:
            self.report(("metrics",), "holds no metric: declare one under [metrics.NAME]")
            tables = {}
        kinds = {
            name: table.get("type") if isinstance(table, dict) else None
            for name, table in tables.items()
        }
        found: dict[str, Metric] = {}
        # A metric that joins others is read after them.
        for name in sorted(tables, key=lambda each: joins(kinds[each])):
            metric = self._metric(name, tables[name], defaults, kinds, found)
            if metric is not None:
                found[name] = metric
        metrics = {name: found[name] for name in tables if name in found}
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
            elif wrong := COMMON_KEYS[key](value):
                self.report(path, wrong)
            else:
                good[key] = value
        return good

    def _read_segments(self) -> None:
        """The declared segments; those with mistakes are kept where metrics can name them."""
        tables = self.document.get("segments", {})
        if not isinstance(tables, dict):
            self.report(("segments",), "must hold tables: write [segments.NAME]")
            return
        for name, table in tables.items():
            path = ("segments", name)
            if not NAME.fullmatch(name):
                self.report(
                    path,
                    "a segment's name is a lower-case letter and up to 63 more of a-z, 0-9 and _",
                )
            elif reserved(name):
                self.report(path, "is a key of the registry itself: give the segment another name")
            elif name in (self.document.get("metrics") or ()):
                self.report(
                    path,
                    "is also the name of a metric. A segment is told in clear and a metric is not: "
                    "give the segment another name",
                )
            if not isinstance(table, dict):
                self.report(path, f"must be a table: write [segments.{name}]")
                continue
            for key in table:
                if key not in SEGMENT_KEYS:
                    known = ", ".join(SEGMENT_KEYS)
                    self.report((*path, key), f"is unknown; a segment may hold {known}")
            segment = read_segment(
                name,
                table,
                lambda key, message, path=path: self.report(  # type: ignore[misc]
                    path if key is None else (*path, key), message
                ),
            )
            if segment is None:
                continue
            self.segments[name] = segment
            if segment.why is None and (looks := identifying(segment)):
                self.report(
                    path,
                    f"{looks}. A segment travels in clear with each report: use groups of many "
                    'devices, or say why it must be so with why = "..."',
                )

    def _segments(self, path: KeyPath, settings: Mapping[str, Any]) -> tuple[Segment, ...]:
        """The segments that a metric names, if it may be counted by them."""
        names, place = settings.get("segments", []), (*path, "segments")
        if COMMON_KEYS["segments"](names):
            return ()
        if len(names) > MAX_SEGMENTS or len(set(names)) < len(names):
            self.report(place, f"must name {MAX_SEGMENTS} different segments at most")
            return ()
        declared = self.document.get("segments", {})
        for name in names:
            if not isinstance(declared, dict) or name not in declared:
                known = f"; declared: {', '.join(declared)}" if declared else ""
                self.report(
                    place, f"names {name!r}, which is not declared: write [segments.{name}]{known}"
                )
        found = tuple(self.segments[name] for name in names if name in self.segments)
        count = combinations(found)
        if count > MAX_COMBINATIONS:
            self.report(
                place,
                f"has {count} combinations, above the limit of {MAX_COMBINATIONS}: drop a segment, "
                "or group values",
            )
            return ()
        devices, rate = settings.get("devices"), settings.get("sample_rate", 1.0)
        known_crowd = not (COMMON_KEYS["devices"](devices) or COMMON_KEYS["sample_rate"](rate))
        explained = any(each.why is not None for each in found)
        if found and known_crowd and not explained and devices * rate < LEAST_REPORTS * count:
            self.report(
                place,
                f"has {count} combinations, but {devices:,} devices at sample_rate {rate:g} give "
                f"{devices * rate / count:,.0f} reports each on average, below {LEAST_REPORTS}: so "
                "few say nothing and hide nobody. Use fewer values, or say why it must be so with "
                'why = "..." in the segment',
            )
        return found

    def _metric(
        self,
        name: str,
        table: Any,
        defaults: Mapping[str, Any],
        kinds: Mapping[str, Any],
        others: Mapping[str, Metric],
    ) -> Metric | None:
        path = ("metrics", name)
        before = len(self.problems)
        if not NAME.fullmatch(name):
            self.report(
                path,
                "a metric's name is a lower-case letter and up to 63 more of a-z, 0-9 and _",
            )
        if not isinstance(table, dict):
            self.report(path, f"must be a table: write [metrics.{name}]")
            return None
        kind = TYPES.get(str(table.get("type")))
        known: Mapping[str, Check] = COMMON_KEYS if kind is None else {**COMMON_KEYS, **kind.keys}
        if not known.keys() >= table.keys():
            known = all_keys()
        for key, value in table.items():
            if key not in known:
                self.report((*path, key), f"is unknown; a metric may hold {', '.join(known)}")
            elif wrong := known[key](value):
                self.report((*path, key), wrong)
        unmeant = frozenset() if kind is None else kind.undefaulted
        settings = {
            **{key: value for key, value in defaults.items() if key not in unmeant},
            **{key: table[key] for key in known if key in table},
        }
        for key in REQUIRED:
            if key not in settings:
                self.report(path, f"lacks {key}")
        metric_type = None
        if kind is not None:
            metric_type = self._type(path, kind, settings, kinds, others)
        self._epsilons(path, settings)
        self._mechanism(path, kind, settings)
        segments = self._segments(path, settings)
        # The mechanism is built even if other keys are wrong, to report all mistakes at once.
        refused = {problem.where for problem in self.problems[before:]}
        good = {key: settings[key] for key in settings if ".".join((*path, key)) not in refused}
        metric = None
        if metric_type is not None and self._can_design(settings, good):
            metric = self._build(path, name, good, metric_type, segments)
        return metric if len(self.problems) == before else None

    def _type(
        self,
        path: KeyPath,
        kind: type[MetricType],
        settings: Mapping[str, Any],
        kinds: Mapping[str, Any],
        others: Mapping[str, Metric],
    ) -> MetricType | None:
        """The type as the table declares it, if it may be asked for with what was given."""
        for key in settings:
            if key in kind.undefaulted or (key not in COMMON_KEYS and key not in kind.keys):
                why = f": {kind.foreign[key]}" if key in kind.foreign else ""
                self.report((*path, key), f"does not belong to a {kind.name}{why}")
        if settings.get("aggregate", kind.aggregates[0]) not in kind.aggregates:
            choices = ", ".join(kind.aggregates)
            self.report((*path, "aggregate"), f"of a {kind.name} must be one of {choices}")
        elif (
            settings.get("answer") == "at_once"
            and settings.get("aggregate", kind.aggregates[0]) != "first"
        ):
            self.report(
                (*path, "answer"),
                "is at_once, so the first value of a window is the one that counts: set "
                'aggregate = "first"',
            )
        return kind.read(
            Table(
                settings,
                self.folder,
                lambda key, message: self.report(path if key is None else (*path, key), message),
                kinds,
                others,
            )
        )

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

    def _mechanism(
        self, path: KeyPath, kind: type[MetricType] | None, settings: Mapping[str, Any]
    ) -> None:
        """Whether there is such a mechanism, for this type and with or without memory."""
        name, place = settings.get("mechanism"), (*path, "mechanism")
        memoize = settings.get("longitudinal") == "memoize"
        if not isinstance(name, str) or COMMON_KEYS["mechanism"](name):
            return
        if kind is not None and name in kind.mechanisms(memoize=memoize):
            return
        with_memos, without = (
            {each for known in TYPES.values() for each in known.mechanisms(memoize=either)}
            for either in (True, False)
        )
        if memoize and name in without - with_memos:
            self.report(
                place,
                f'is {name}, which has no memos: set longitudinal = "fresh", or remove it',
            )
        elif not memoize and name in with_memos - without:
            self.report(
                place, f'is {name}, which has memos: set longitudinal = "memoize", or remove it'
            )
        elif kind is not None or name not in (with_memos if memoize else without):
            # Of an unknown type the names for a closed domain are listed.
            known = (kind or TYPES["boolean"]).mechanisms(memoize=memoize)
            if name not in known:
                self.report(
                    place,
                    f"there is no mechanism {name!r} here: choose one of {', '.join(known)}",
                )

    @staticmethod
    def _can_design(settings: Mapping[str, Any], good: Mapping[str, Any]) -> bool:
        """Whether everything that the mechanism is made from was given and is right."""
        given = all(key in good for key in SCHEME_KEYS if key in settings)
        needed = all(key in good for key in ("type", "epsilon", "lifetime_epsilon"))
        return given and needed

    def _build(
        self,
        path: KeyPath,
        name: str,
        settings: Mapping[str, Any],
        metric_type: MetricType,
        segments: tuple[Segment, ...],
    ) -> Metric | None:
        """The metric, if its mechanism can be built; keys that are missing are left empty."""
        optional = (
            "window",
            "answer",
            "sample_rate",
            "longitudinal",
            "memo_epsilon",
            "mechanism",
            "devices",
        )
        metric = Metric(
            name=name,
            type=metric_type,
            description=settings.get("description", ""),
            owner=settings.get("owner", ""),
            expires=settings.get("expires", date.max),
            epsilon=float(settings["epsilon"]),
            lifetime_epsilon=float(settings["lifetime_epsilon"]),
            aggregate=settings.get("aggregate", metric_type.aggregates[0]),
            tags=tuple(settings.get("tags", ())),
            platform=_named(settings.get("platform", ())),
            segments=segments,
            **{key: settings[key] for key in optional if key in settings},
        )
        try:
            metric.scheme  # noqa: B018  (builds the mechanism, which proves its epsilon)
        except SchemeError as error:
            where = "mechanism" if "mechanism" in settings else "epsilon"
            if error.code == "segment_cells":
                self.report((*path, "segments"), str(error))
                return None
            if where == "epsilon" and metric.longitudinal == "memoize":
                where = "lifetime_epsilon" if metric.memo_epsilon is None else "memo_epsilon"
            self.report((*path, where), str(error))
            return None
        return metric


def _named(value: str | Sequence[str]) -> tuple[Any, ...]:
    """One text or several, in the order given."""
    return (value,) if isinstance(value, str) else tuple(value)
