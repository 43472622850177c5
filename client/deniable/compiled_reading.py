"""Reads a compiled registry (`metrics.json`) and trusts none of its claims.

Every mechanism is built from its integers, what a report reveals is computed, and a document that
reveals more than it declares is refused. `deniable.registry` makes the registry of what is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any, TypeAlias

from deniable.checks import Check
from deniable.compiled_form import (
    METRIC,
    PEOPLE,
    REVEALS,
    SEGMENT,
    SEGMENTED_METRIC,
    SEGMENTED_TOP,
    TOP,
)
from deniable.errors import Problem, RegistryError, SchemeError
from deniable.exact import exp_below
from deniable.keep import mistakes, read_keep, well_formed
from deniable.keys import NAME
from deniable.mechanisms import Mechanism, Memoizing, rebuild
from deniable.metric import Metric
from deniable.scheme import Scheme, check_cells
from deniable.segments import Segment, read_segment
from deniable.types import TYPES, MetricType, Table, joins

Where: TypeAlias = tuple[str, ...]


def read_text(text: str, source: str) -> dict[str, Any]:
    """The fields of the `Registry` that the text of a `metrics.json` holds.

    Raises:
        RegistryError: it is not JSON, or holds mistakes (all of them are listed).
    """
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        problem = Problem(getattr(error, "lineno", None), "", f"is not JSON: {error}")
        raise RegistryError([problem], source) from None
    return read_document(document, source)


def read_document(document: Any, source: str) -> dict[str, Any]:
    """The same of the document that the text holds.

    Raises:
        RegistryError: the document holds mistakes, or reveals more than it declares (everything
            that is wrong is listed).
    """
    verifier = _Verifier()
    fields = verifier.read(document)
    if verifier.problems:
        raise RegistryError(verifier.problems, source)
    return {**fields, "source": source}


def revealed(mechanism: Mechanism[Any]) -> dict[str, float | None]:
    """The exact epsilons in force, rounded up: the figures that the ledger charges."""
    if not isinstance(mechanism, Memoizing):
        return {"report": mechanism.epsilon, "memo": None, "fresh": None}
    return {
        "report": mechanism.epsilon,
        "memo": mechanism.lifetime_epsilon,
        "fresh": mechanism.fresh_epsilon,
    }


class _Verifier:
    """Collects all mistakes of one document instead of stopping at the first."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.segments: dict[str, Segment] = {}

    def report(self, where: Where, message: str) -> None:
        self.problems.append(Problem(None, ".".join(where), message))

    def read(self, document: Any) -> dict[str, Any]:
        if isinstance(document, dict) and TOP["format"](document.get("format")):
            self.report(
                ("format",), "must be 1: compile metrics.toml with this version of deniable"
            )
            # Another format has other keys, so complaints about these would mislead.
            return {}
        segmented = isinstance(document, dict) and "segments" in document
        top = SEGMENTED_TOP if segmented else TOP
        if isinstance(document, dict):
            top = top | {key: check for key, check in PEOPLE.items() if key in document}
        fine = self._table((), document, top)
        if segmented and isinstance(document.get("segments"), dict):
            self._read_segments(document["segments"])
        tables = document.get("metrics") if isinstance(document, dict) else None
        tables = tables if isinstance(tables, dict) else {}
        kinds = {
            name: table.get("type") if isinstance(table, dict) else None
            for name, table in tables.items()
        }
        checks = SEGMENTED_METRIC if segmented else METRIC
        found: dict[str, Metric] = {}
        # A metric that joins others is read after them.
        for name in sorted(tables, key=lambda each: joins(kinds[each])):
            metric = self._metric(name, tables[name], checks, kinds, found)
            if metric is not None:
                found[name] = metric
        metrics = {name: found[name] for name in tables if name in found}
        if not fine:
            return {}
        return {
            "app": document["app"],
            "metrics": metrics,
            "lifetime_epsilon": _float(document["lifetime_epsilon"]),
            "segments": self.segments,
            **{key: document.get(key) for key in PEOPLE},
        }

    def _read_segments(self, tables: Mapping[str, Any]) -> None:
        for name, table in tables.items():
            where = ("segments", name)
            if not NAME.fullmatch(name):
                self.report(where, "is no name of a segment: a-z, then up to 63 of a-z, 0-9 and _")
            if not self._table(where, table, SEGMENT):
                continue
            segment = read_segment(
                name,
                table,
                lambda key, message, where=where: self.report(  # type: ignore[misc]
                    (*where, key or ""), message
                ),
            )
            if segment is None:
                continue
            if table["other"] not in (None, *table["values"]):
                self.report((*where, "other"), f"is {table['other']!r}, which is not a value")
            elif list(segment.values) != table["values"]:
                self.report((*where, "values"), "must be in Unicode normal form C")
            self.segments[name] = Segment(name, segment.values, table["other"])

    def _named_segments(self, where: Where, names: list[str]) -> tuple[Segment, ...]:
        """The segments of a metric."""
        if len(set(names)) < len(names) or not all(name in self.segments for name in names):
            self.report((*where, "segments"), "must name declared segments, each once")
            return ()
        return tuple(self.segments[name] for name in names)

    def _table(self, where: Where, table: Any, checks: Mapping[str, Check]) -> bool:
        """Whether a table has exactly these keys, with values of their kinds."""
        before = len(self.problems)
        if not isinstance(table, dict):
            self.report(where, "must be an object")
            return False
        for key in table:
            if key not in checks:
                self.report((*where, str(key)), "is unknown")
        for key, check in checks.items():
            if key not in table:
                self.report((*where, key), "is missing")
            elif wrong := check(table[key]):
                self.report((*where, key), wrong)
        return len(self.problems) == before

    def _metric(
        self,
        name: str,
        table: Any,
        checks: Mapping[str, Check],
        kinds: Mapping[str, Any],
        others: Mapping[str, Metric],
    ) -> Metric | None:
        where, before = ("metrics", name), len(self.problems)
        if not NAME.fullmatch(name):
            self.report(
                where, "a metric's name is a lower-case letter and up to 63 more of a-z, 0-9 and _"
            )
        if str(kinds[name]) in TYPES:
            checks = {**checks, **TYPES[str(kinds[name])].compiled_checks}
        if isinstance(table, dict) and "keep" in table:
            checks = {**checks, "keep": well_formed}
        if not self._table(where, table, checks) or not self._table(
            (*where, "reveals"), table["reveals"], REVEALS
        ):
            return None
        kind = TYPES[table["type"]]
        self._choices(where, kind, table)
        mechanism = self._mechanism(where, kind, table)
        if mechanism is None:
            return None
        self._limits(where, mechanism, table)
        self._revealed(where, mechanism, table["reveals"])
        report = Table(
            # As a table of `metrics.toml` has it.
            {**table, "expires": date.fromisoformat(table["expires"])},
            "",
            lambda key, message: self.report((*where, key or ""), message),
            kinds,
            others,
        )
        if table.get("rows", len(mechanism.rows)) != len(mechanism.rows):
            self.report((*where, "rows"), f"is not that of the mechanism, {len(mechanism.rows)}")
        keep = read_keep(table.get("keep", {}))
        if wrong := mistakes(keep, table["window"]):
            self.report((*where, "keep"), wrong)
        segments = self._named_segments(where, table.get("segments", []))
        try:
            check_cells(mechanism, segments)
        except SchemeError as error:
            self.report((*where, "segments"), str(error))
        metric_type = kind.from_compiled(report, mechanism)
        if metric_type is None or len(self.problems) > before:
            return None
        scheme = Scheme(kind.name, mechanism, metric_type.values, segments)
        if scheme.fingerprint != table["scheme"]:
            self.report(
                (*where, "scheme"),
                f"is not the fingerprint of this mechanism, which is {scheme.fingerprint}",
            )
            return None
        return Metric(
            name=name,
            type=metric_type,
            description=table["description"],
            owner="",
            expires=date.fromisoformat(table["expires"]),
            epsilon=float(table["epsilon"]),
            lifetime_epsilon=float(table["lifetime_epsilon"]),
            window=table["window"],
            aggregate=table["aggregate"],
            answer=table["answer"],
            sample_rate=float(table["sample_rate"]),
            one_in=table["one_in"],
            longitudinal=table["longitudinal"],
            memo_epsilon=_float(table["memo_epsilon"]),
            mechanism=table["mechanism"],
            platform=tuple(table["platform"]),
            segments=segments,
            keep=keep,
            compiled=scheme,
        )

    def _choices(self, where: Where, kind: type[MetricType], table: Mapping[str, Any]) -> None:
        if table["aggregate"] not in kind.aggregates:
            choices = ", ".join(kind.aggregates)
            self.report((*where, "aggregate"), f"of a {kind.name} must be one of {choices}")
        elif table["answer"] == "at_once" and table["aggregate"] != "first":
            self.report((*where, "answer"), 'is at_once, which needs the aggregate "first"')
        if table["one_in"] is not None and table["sample_rate"] != 1:
            self.report((*where, "one_in"), "must be null where sample_rate is below 1")

    def _mechanism(
        self, where: Where, kind: type[MetricType], table: Mapping[str, Any]
    ) -> Mechanism[Any] | None:
        """The mechanism, if it can be built and is one for this metric."""
        try:
            mechanism = rebuild(table["mechanism"], table["parameters"])
        except SchemeError as error:
            self.report((*where, "parameters"), str(error))
            return None
        if not kind.suits(mechanism):
            self.report((*where, "mechanism"), f"is {mechanism.name}, which takes no {kind.name}")
            return None
        memoize = table["longitudinal"] == "memoize"
        if isinstance(mechanism, Memoizing) != memoize:
            has = "has memos" if not memoize else "has no memos"
            self.report(
                (*where, "longitudinal"),
                f"is {table['longitudinal']}, but {mechanism.name} {has}",
            )
            return None
        return mechanism

    def _limits(self, where: Where, mechanism: Mechanism[Any], table: Mapping[str, Any]) -> None:
        """Whether the mechanism in force keeps within what is declared."""
        epsilon, lifetime, memo = (
            table[key] for key in ("epsilon", "lifetime_epsilon", "memo_epsilon")
        )
        if lifetime < epsilon:
            self.report((*where, "lifetime_epsilon"), f"is {lifetime}, below epsilon {epsilon}")
        if mechanism.odds > exp_below(epsilon):
            self.report(
                (*where, "epsilon"),
                f"is {epsilon}, but a report with these parameters reveals {mechanism.epsilon}",
            )
        if not isinstance(mechanism, Memoizing):
            if memo is not None:
                self.report((*where, "memo_epsilon"), "must be null where there are no memos")
        elif memo is None or not epsilon < memo <= lifetime:
            self.report(
                (*where, "memo_epsilon"),
                f"must be above epsilon {epsilon} and at most lifetime_epsilon {lifetime}",
            )
        elif mechanism.lifetime_odds > exp_below(memo):
            self.report(
                (*where, "memo_epsilon"),
                f"is {memo}, but a memo with these parameters reveals {mechanism.lifetime_epsilon}",
            )

    def _revealed(
        self, where: Where, mechanism: Mechanism[Any], claimed: Mapping[str, Any]
    ) -> None:
        """Whether the figures are those of the mechanism: the ledger charges them."""
        for key, true in revealed(mechanism).items():
            if claimed[key] != true:
                told = "null" if true is None else repr(true)
                self.report((*where, "reveals", key), f"is {claimed[key]}, and must be {told}")


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("an object repeats a key")
    return document


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
