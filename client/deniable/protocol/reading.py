"""Reads a registry: a `metrics.toml`, or the `metrics.json` that was compiled from one.

Both are the same tables with the same checks, and every mistake is collected. A compiled metric
also has its mechanism with all integers, from which it is built
(`deniable.protocol.metric_reading`). No other claim of a compiled registry is trusted: what was
read from it must compile to it again (`differences`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from deniable.protocol import keys
from deniable.protocol.checks import Report, accepted
from deniable.protocol.errors import Problem, RegistryError
from deniable.protocol.metric_reading import MetricReading, declared
from deniable.protocol.segments import Segment, identifying, read_segment
from deniable.protocol.types import Context

if TYPE_CHECKING:
    from pathlib import Path

    from deniable.protocol.metric import Metric

_NO_LINES: Mapping[tuple[str, ...], int] = {}

_ABSENT = object()

_NAME_FORM = "a lower-case letter and up to 63 more of a-z, 0-9 and _"


def read_toml(text: str, source: str, folder: str | Path) -> dict[str, Any]:
    """The fields of the `Registry` that the text of a `metrics.toml` declares. A `values_file` is
    looked for in `folder`.

    Raises:
        RegistryError: it is not TOML, or holds mistakes (all of them are listed).
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
    lines = locate(text)
    return {**_Reading(document, source, lines, os.fspath(folder)).read(), "lines": lines}


def parse_json(text: str, source: str) -> Any:
    """The document that the text of a `metrics.json` holds.

    Raises:
        RegistryError: it is not JSON, or an object repeats a key.
    """
    try:
        return strict_json(text)
    except (ValueError, RecursionError) as error:
        problem = Problem(getattr(error, "lineno", None), "", f"is not JSON: {error}")
        raise RegistryError([problem], source) from None


def strict_json(text: str | bytes) -> Any:
    """What JSON says to every reader: of a key that stands twice, others may take the other one.

    Raises:
        ValueError, RecursionError: it is not JSON, or an object repeats a key.
    """
    import json

    return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse)


def read_document(document: Any, source: str) -> dict[str, Any]:
    """The fields of the `Registry` that a compiled document holds.

    Raises:
        RegistryError: the document holds mistakes, or reveals more than it declares (everything
            that is wrong is listed).
    """
    return _Reading(document, source, compiled=True).read()


def differences(given: Any, made: Any, path: tuple[str, ...] = ()) -> Iterator[Problem]:
    """Each place where a compiled document does not say what compiling its registry gives (`made`):
    the ledger charges its figures, and other SDKs trust its lists."""
    if isinstance(given, dict) and isinstance(made, dict):
        for key in {**made, **given}:
            yield from differences(given.get(key, _ABSENT), made.get(key, _ABSENT), (*path, key))
    elif given != made or isinstance(given, bool) != isinstance(made, bool):
        told = "be left out" if made is _ABSENT else f"be {_shown(made)}"
        told = f"must {told}: that is what compiling this registry gives"
        yield Problem(None, ".".join(path), "is missing" if given is _ABSENT else told)


class _Reading:
    """Collects all problems of one document instead of stopping at the first."""

    def __init__(
        self,
        document: Any,
        source: str,
        lines: Mapping[tuple[str, ...], int] = _NO_LINES,
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

    def read(self) -> dict[str, Any]:
        """The fields of the registry.

        Raises:
            RegistryError: there are problems.
        """
        # Another format has other keys, so complaints about these would mislead.
        wrong = keys.IS_FORMAT(self._document.get("format")) if self._compiled else None
        if wrong:
            self._at()("format", wrong)
        fields = {} if wrong else self._read()
        if self._problems:
            self._problems.sort(key=lambda problem: problem.line or 0)
            raise RegistryError(self._problems, self._source)
        return {**fields, "source": self._source}

    def _read(self) -> dict[str, Any]:
        document, known, report = self._document, keys.TOP_KEYS, self._at()
        if self._compiled:  # what else is in it, is compared with what compiling gives
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
        return {
            "app": held.get("app"),
            "metrics": {name: found[name] for name in tables if name in found},
            "lifetime_epsilon": held.get("lifetime_epsilon"),
            "segments": {name: each for name, each in segments.items() if each is not None},
            **{key: held.get(key) for key in keys.PEOPLE_KEYS},
        }

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
        report = self._at("segments", name)
        if not keys.NAME.fullmatch(name):
            report(None, f"a segment's name is {_NAME_FORM}")
        elif not self._compiled and keys.reserved(name):
            report(None, "is a key of the registry itself: give the segment another name")
        elif name in (self._document.get("metrics") or ()):
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


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("an object repeats a key")
    return document


def _shown(value: Any) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= 100 else f"{text[:100]} ..."


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
