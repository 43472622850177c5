"""The registry: `metrics.toml` becomes frozen metrics, or a list of every mistake in it.

Metrics must be declared first: a metric outside the registry cannot be recorded.

The `metrics.json` that was compiled from one holds the same tables, which have the same checks. A
compiled metric also has its mechanism with all integers, from which it is built
(`deniable.protocol.metric_reading`). No other claim of a compiled registry is trusted: what was
read from it must compile to it again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from deniable.protocol import keys
from deniable.protocol.checks import Report, accepted
from deniable.protocol.errors import MetricError, Problem, RegistryError, Severity
from deniable.protocol.frozen import frozen
from deniable.protocol.metric import Metric
from deniable.protocol.metric_reading import MetricReading, declared
from deniable.protocol.segments import Segment, identifying, read_segment
from deniable.protocol.types import Context
from deniable.protocol.wire import strict_json

if TYPE_CHECKING:
    from pathlib import Path

_NONE: Mapping[Any, Any] = {}

_ABSENT = object()


@frozen
class Registry:
    """All metrics of one `metrics.toml`, or of the `metrics.json` that was compiled from it.

    `app` is the name of the app: a device keeps one state, with one ledger, for each app.
    `lifetime_epsilon`, if given, caps what all metrics together reveal about a device.
    """

    app: str
    metrics: Mapping[str, Metric]
    lifetime_epsilon: float | None = None
    source: str = "metrics.toml"
    lines: Mapping[tuple[str, ...], int] = _NONE
    """The line of each table and key of the source by its path, for messages
    (`deniable.protocol.toml_lines`); nothing of a compiled registry."""
    segments: Mapping[str, Segment] = _NONE
    """The declared segments, by name."""
    recipient: str | None = None
    """Who receives the reports and answers for them, as people know them."""
    contact: str | None = None
    """Where people ask about their data."""

    @classmethod
    def load(cls, path: str | Path) -> Registry:
        """Read a registry from a file: one that `deniable compile` wrote if its name ends in
        `.json`, else a `metrics.toml`.

        Raises:
            RegistryError: the file cannot be read, or holds mistakes (all of them are listed).
        """
        source = str(path)
        folder, name = os.path.split(path)
        compiled = os.path.splitext(name)[1] == ".json"
        try:
            with open(path, encoding="utf-8" if compiled else "utf-8-sig") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            problem = Problem(None, "", f"cannot be read: {reason}")
            raise RegistryError([problem], source) from error
        if not compiled:
            return cls.parse(text, source, folder)
        try:
            document = strict_json(text)
        except (ValueError, RecursionError) as error:
            problem = Problem(getattr(error, "lineno", None), "", f"is not JSON: {error}")
            raise RegistryError([problem], source) from None
        return cls.from_document(document, source)

    @classmethod
    def from_document(cls, document: Any, source: str = "metrics.json") -> Registry:
        """The registry that `compile` describes. None of its claims is trusted.

        Raises:
            RegistryError: the document holds mistakes, reveals more than it declares, or is not
                what compiling its registry gives (everything that is wrong is listed).
        """
        registry = _Reading(document, source, compiled=True).read()
        if wrong := [*_differences(document, registry.compile(keep=True))]:
            raise RegistryError(wrong, source)
        return registry

    def compile(self, *, keep: bool = False) -> dict[str, Any]:
        """What a device needs of the registry, as `metrics.json` holds it, with its keys in the
        order of the format. It has each mechanism with its integers in force, so that an SDK
        designs nothing, and ships inside the app. `keep` adds how long windows are kept, for a
        collector. `compiled.schema.json` describes the form, and `client/vectors/compiled.json`
        holds test vectors.
        """
        cap, segmented = self.lifetime_epsilon, bool(self.segments)
        segments = {
            each.name: {"values": list(each.values), "other": each.other}
            for each in self.segments.values()
        }
        return {
            "format": keys.FORMAT,
            "app": self.app,
            **{key: told for key in keys.PEOPLE_KEYS if (told := getattr(self, key)) is not None},
            "lifetime_epsilon": None if cap is None else float(cap),
            **({"segments": segments} if segmented else {}),
            "metrics": {each.name: each.compile(segmented=segmented, keep=keep) for each in self},
        }

    @classmethod
    def parse(cls, text: str, source: str = "metrics.toml", folder: str | Path = "") -> Registry:
        """Read a registry from TOML text; a `values_file` is looked for in `folder`, by
        default the working directory.

        Raises:
            RegistryError: the text holds mistakes (all of them are listed).
        """
        # Imported here: an app that ships a compiled registry needs nothing of it.
        import tomllib

        from deniable.protocol.toml_lines import locate

        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also a number of thousands of digits
            found = re.search(r"line (\d+)", str(error))
            problem = Problem(int(found[1]) if found else None, "", f"is not TOML: {error}")
            raise RegistryError([problem], source) from None
        return _Reading(document, source, locate(text), os.fspath(folder)).read()

    @cached_property
    def pairs(self) -> Mapping[str, tuple[Metric, ...]]:
        """The pairs that take the values of a metric, by its name, in the order of the registry."""
        found: dict[str, tuple[Metric, ...]] = {}
        for metric in self:
            for name in metric.type.of:
                found[name] = (*found.get(name, ()), metric)
        return found

    @cached_property
    def unasked(self) -> Mapping[str, Metric]:
        """The metrics that devices do not report by themselves, each with the pair that gives
        their shares (`forget = "marginals"`)."""
        return {
            name: pair
            for name, pairs in self.pairs.items()
            for pair in reversed(pairs)
            if pair.type.forget is not None
        }

    def about(self, metric: Metric) -> tuple[Metric, ...]:
        """All metrics whose reports of a window are about a value that `metric` reports; their
        epsilons add up."""
        names = {metric.name, *metric.type.of}
        return tuple(
            each
            for each in self
            if each.name not in self.unasked and names.intersection((each.name, *each.type.of))
        )

    def problem(
        self, metric: Metric, message: str, severity: Severity, key: str | None = None
    ) -> Problem:
        """A remark about a metric, or one of its keys, at its line."""
        from deniable.protocol.toml_lines import line_of

        path = ("metrics", metric.name) if key is None else ("metrics", metric.name, key)
        return Problem(line_of(self.lines, path), ".".join(path), message, severity)

    def __getitem__(self, name: str) -> Metric:
        """The metric of that name.

        Raises:
            MetricError: there is none.
        """
        try:
            return self.metrics[name]
        except (KeyError, TypeError):  # TypeError: a name that is not even a text
            raise MetricError(name, f"is not declared in {self.source}; declare it there") from None

    def __iter__(self) -> Iterator[Metric]:
        return iter(self.metrics.values())

    def __len__(self) -> int:
        return len(self.metrics)


def _differences(given: Any, made: Any, path: tuple[str, ...] = ()) -> Iterator[Problem]:
    """Each place where a compiled document does not say what compiling its registry gives (`made`):
    the ledger charges its figures, and other SDKs trust its lists."""
    if isinstance(given, dict) and isinstance(made, dict):
        for key in {**made, **given}:
            yield from _differences(given.get(key, _ABSENT), made.get(key, _ABSENT), (*path, key))
    elif given != made or isinstance(given, bool) != isinstance(made, bool):
        told = "is not what compiling this registry gives: compile metrics.toml again"
        yield Problem(None, ".".join(path), "is missing" if given is _ABSENT else told)


_NAME_FORM = "a lower-case letter and up to 63 more of a-z, 0-9 and _"


class _Reading:
    """Collects all problems of one document instead of stopping at the first."""

    def __init__(
        self,
        document: Any,
        source: str,
        lines: Mapping[tuple[str, ...], int] = _NONE,
        folder: str = "",
        *,
        compiled: bool = False,
    ) -> None:
        self._document: Mapping[str, Any] = document if isinstance(document, dict) else {}
        self._source = source
        self._lines = lines
        self._folder = folder
        self._compiled = compiled
        self._problems: list[Problem] = []

    def _at(self, *path: str) -> Report:
        """What takes a key of the table at this path, and what is wrong with it."""

        def report(key: str | None, message: str) -> None:
            from deniable.protocol.toml_lines import line_of

            whole = path if key is None else (*path, key)
            self._problems.append(Problem(line_of(self._lines, whole), ".".join(whole), message))

        return report

    def read(self) -> Registry:
        """The registry.

        Raises:
            RegistryError: there are problems.
        """
        document, known, report = self._document, keys.TOP_KEYS, self._at()
        if self._compiled:
            # Another format has other keys, so complaints about these would mislead.
            if wrong := keys.IS_FORMAT(document.get("format")):
                report("format", wrong)
                raise RegistryError(self._problems, self._source)
            # What else is in it, is compared with what compiling gives.
            known = {key: check for key, check in known.items() if key != "schema"}
            document = {key: document[key] for key in known if document.get(key) is not None}
        for key in ("schema", "app", "metrics"):
            if key in known and key not in document:
                report(key, str(known[key](None)))
        unknown = "is unknown here; a metric belongs under [metrics.NAME]"
        held = accepted(document, known, unknown, report)
        usual = accepted(
            held.get("defaults", {}),
            {key: keys.COMMON_KEYS[key] for key in keys.DEFAULTS},
            f"has no default; [defaults] may hold {', '.join(keys.DEFAULTS)}",
            self._at("defaults"),
        )
        # None for one that cannot be read. Others with mistakes are kept where metrics can name
        # them.
        segments = {
            name: self._read_segment(name, table)
            for name, table in held.get("segments", {}).items()
        }
        tables = held.get("metrics", {})
        kinds = {
            name: table.get("type") if isinstance(table, dict) else None
            for name, table in tables.items()
        }
        found: dict[str, Metric] = {}
        context = Context(self._folder, usual, segments, kinds, found)
        # A pair is read after the metrics that it is of.
        for name in sorted(tables, key=lambda each: kinds[each] == "pair"):
            metric = self._read_metric(name, tables[name], context)
            if metric is not None:
                found[name] = metric
        if self._problems:
            self._problems.sort(key=lambda problem: problem.line or 0)
            raise RegistryError(self._problems, self._source)
        return Registry(
            app=held["app"],
            metrics={name: found[name] for name in tables if name in found},
            lifetime_epsilon=held.get("lifetime_epsilon"),
            source=self._source,
            lines=self._lines,
            segments={name: each for name, each in segments.items() if each is not None},
            **{key: held.get(key) for key in keys.PEOPLE_KEYS},
        )

    def _read_metric(self, name: str, table: Any, context: Context) -> Metric | None:
        report = self._at("metrics", name)
        if not keys.NAME.fullmatch(name):
            report(None, f"a metric's name is {_NAME_FORM}")
        if not isinstance(table, dict):
            report(None, f"must be a table: write [metrics.{name}]")
            return None
        mechanism = None
        if self._compiled:
            if (found := declared(table, report)) is None:
                return None
            table, mechanism = found
        return MetricReading(name, table, context, report, mechanism).read()

    def _read_segment(self, name: str, table: Any) -> Segment | None:
        report, metrics = self._at("segments", name), self._document.get("metrics")
        if not keys.NAME.fullmatch(name):
            report(None, f"a segment's name is {_NAME_FORM}")
        elif not self._compiled and keys.reserved(name):
            report(None, "is a key of the registry itself: give the segment another name")
        elif isinstance(metrics, dict) and name in metrics:
            report(
                None,
                "is also the name of a metric. A segment is told in clear and a metric is not: "
                "give the segment another name",
            )
        if not isinstance(table, dict):
            report(None, f"must be a table: write [segments.{name}]")
            return None
        segment = read_segment(name, table, report)
        if segment is None:
            return None
        if self._compiled:
            if segment.other not in (None, *table["values"]):
                report("other", f"is {segment.other!r}, which is not a value")
        elif segment.why is None and (looks := identifying(segment)):
            report(
                None,
                f"{looks}. A segment travels in clear with each report: use groups of many "
                'devices, or say why it must be so with why = "..."',
            )
        return segment
