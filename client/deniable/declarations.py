"""From the tables of a `metrics.toml` to metrics, collecting every mistake on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from deniable.checks import line, positive
from deniable.errors import Problem
from deniable.keys import (
    APP,
    COMMON_KEYS,
    DEFAULTS,
    MAX_LIFETIME_EPSILON,
    NAME,
    PEOPLE_KEYS,
    TOP_KEYS,
    reserved,
)
from deniable.metric import Metric
from deniable.metric_declaration import MetricDeclaration
from deniable.segments import (
    SEGMENT_KEYS,
    Segment,
    identifying,
    read_segment,
)
from deniable.toml_lines import Path as KeyPath
from deniable.toml_lines import line_of
from deniable.types import joins

SCHEMA = 1
"""The version of the registry's own format."""


class Declarations:
    """Collects all problems of one document instead of stopping at the first."""

    def __init__(
        self, document: Mapping[str, Any], lines: Mapping[KeyPath, int], folder: str
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
        for key in PEOPLE_KEYS:
            if key in self.document and (wrong := line(self.document[key])):
                self.report((key,), wrong)
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

    def _metric(
        self,
        name: str,
        table: Any,
        defaults: Mapping[str, Any],
        kinds: Mapping[str, Any],
        others: Mapping[str, Metric],
    ) -> Metric | None:
        path = ("metrics", name)
        named = NAME.fullmatch(name) is not None
        if not named:
            self.report(
                path,
                "a metric's name is a lower-case letter and up to 63 more of a-z, 0-9 and _",
            )
        if not isinstance(table, dict):
            self.report(path, f"must be a table: write [metrics.{name}]")
            return None
        declaration = MetricDeclaration(
            name,
            table,
            defaults,
            self.folder,
            lambda key, message: self.report(path if key is None else (*path, key), message),
        )
        segments = self.document.get("segments", {})
        declared = segments if isinstance(segments, dict) else {}
        metric = declaration.read(declared, self.segments, kinds, others)
        return metric if named else None
