"""From the table of one metric to its metric, collecting every mistake on the way.

The table stands in a `metrics.toml`. A `metrics.json` that was compiled from one has the mechanism
with its integers in force beside it: `declared` takes the two apart, and what a report reveals is
computed from these integers. A metric whose mechanism reveals more than it declares is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from deniable.protocol.checks import Report, accepted
from deniable.protocol.errors import SchemeError
from deniable.protocol.keep import Keep, mistakes, read_keep
from deniable.protocol.keys import COMMON_KEYS, REQUIRED, all_keys
from deniable.protocol.mechanisms import Mechanism, Memoizing, no_mechanism, rebuild
from deniable.protocol.metric import Metric
from deniable.protocol.segments import LEAST_REPORTS, MAX_SEGMENTS, Segment, combinations
from deniable.protocol.types import TYPES, Context, MetricType, Table

_BUILT_FROM = (
    "type",
    "expires",
    "epsilon",
    "lifetime_epsilon",
    "longitudinal",
    "aggregate",
    "values",
    "mechanism",
    "parameters",
)
"""What a compiled metric cannot be read without. That it holds everything else is seen when it is
compared with what compiling it gives (`Registry.from_document`)."""


_SHAPING = ("longitudinal", "memo_epsilon", "mechanism")
"""Where one of these is wrong, another mechanism than the intended one would be built."""

_ALSO_NULL = ("values", "other")
"""The keys of which null is not the same as nothing. Others are null or empty where they are not
declared."""


class MetricReading(Table):
    """The reading of one table.

    Args:
        name: the metric's name.
        table: what stands under it.
        context: what stands around it.
        report: takes a key (None: the metric itself) and what is wrong with it.
        compiled: the mechanism, if it was compiled; otherwise it is designed.
    """

    def __init__(
        self,
        name: str,
        table: Mapping[str, Any],
        context: Context,
        report: Report,
        compiled: Mechanism[Any] | None,
    ) -> None:
        self.name = name
        self.kind = TYPES.get(str(table.get("type")))
        self._table = table
        self._compiled = compiled
        kind = self.kind or MetricType
        known = {**COMMON_KEYS, **kind.keys}
        # Where the table holds others, its type may be what is wrong.
        self._known = known if known.keys() >= table.keys() else all_keys()
        usual = {key: value for key, value in context.defaults.items() if key not in kind.foreign}
        super().__init__({**kind.presets, **usual, **table}, report, context)

    def read(self) -> Metric | None:
        """The metric; None, after reports, if there are mistakes."""
        for key in REQUIRED if self._compiled is None else ():
            if key not in self.settings:
                self.report(None, f"lacks {key}")
        unknown = f"is unknown; a metric may hold {', '.join(self._known)}"
        accepted(self._table, self._known, unknown, self.report)
        metric_type = None if self.kind is None else self._type(self.kind)
        self._check_epsilons()
        if "one_in" in self.settings and self.settings.get("sample_rate", 1) != 1:
            self.report(
                "one_in",
                "and sample_rate both say in which windows a device takes part: remove one. A "
                "sample_rate of [defaults] is lifted by sample_rate = 1",
            )
        if self._compiled is None:
            self._check_mechanism()
        keep = read_keep(self.settings.get("keep", {}))
        if wrong := mistakes(keep, self.settings.get("window", "day")):
            self.report("keep", wrong)
        segments = self._segments()
        # The mechanism is built even if other keys are wrong, to report all mistakes at once.
        metric = None
        needed = self.settings.keys() >= {"epsilon", "lifetime_epsilon"}
        if metric_type is not None and needed and self.refused.isdisjoint(_SHAPING):
            metric = self._build(metric_type, segments, keep)
        return None if self.refused else metric

    def _type(self, kind: type[MetricType]) -> MetricType | None:
        """The type as the table declares it, if all keys that it reads are of their form."""
        settings, usual = self.settings, kind.aggregates[0]
        for key in [each for each in self._table if each in self._known]:
            if key in kind.foreign or (key not in COMMON_KEYS and key not in kind.keys):
                why = f": {kind.foreign[key]}" if key in kind.foreign else ""
                self.report(key, f"does not belong to a {kind.name}{why}")
        if settings.get("aggregate", usual) not in kind.aggregates:
            choices = ", ".join(kind.aggregates)
            self.report("aggregate", f"of a {kind.name} must be one of {choices}")
        elif settings.get("answer") == "at_once" and settings.get("aggregate", usual) != "first":
            self.report(
                "answer",
                "is at_once, so the first value of a window is the one that counts: set "
                'aggregate = "first"',
            )
        said = str(settings.get("longitudinal"))
        if said in kind.misfits:
            self.report("longitudinal", f"is {said}, but {kind.misfits[said]}")
        return kind.read(self) if self.refused.isdisjoint(kind.keys) else None

    def _segments(self) -> tuple[Segment, ...]:
        """The segments that a metric names, if it may be counted by them."""
        settings, declared = self.settings, self.context.segments
        names = settings.get("segments", [])
        if len(names) > MAX_SEGMENTS or len(set(names)) < len(names):
            self.report("segments", f"must name {MAX_SEGMENTS} different segments at most")
            return ()
        for name in names:
            if name not in declared:
                known = f"; declared: {', '.join(declared)}" if declared else ""
                self.report(
                    "segments",
                    f"names {name!r}, which is not declared: write [segments.{name}]{known}",
                )
        found = tuple(each for name in names if (each := declared.get(name)) is not None)
        count, devices = combinations(found), settings.get("devices")
        rate = settings.get("sample_rate", 1) / settings.get("one_in", 1)
        explained = any(each.why is not None for each in found)
        if found and devices and not explained and devices * rate < LEAST_REPORTS * count:
            self.report(
                "segments",
                f"has {count} combinations, but {devices:,} devices at a rate of {rate:.3g} give "
                f"{devices * rate / count:,.0f} reports each on average, below {LEAST_REPORTS}: so "
                "few say nothing and hide nobody. Use fewer values, or say why it must be so with "
                'why = "..." in the segment',
            )
        return found

    def _check_epsilons(self) -> None:
        settings = self.settings
        if "memo_epsilon" in settings and settings.get("longitudinal") != "memoize":
            self.report(
                "memo_epsilon",
                'limits what one memo reveals: set longitudinal = "memoize", or remove it',
            )
        epsilon, lifetime = settings.get("epsilon"), settings.get("lifetime_epsilon")
        if epsilon is None or lifetime is None:
            return
        memo = settings.get("memo_epsilon")
        if lifetime < epsilon:
            self.report(
                "lifetime_epsilon",
                f"is {lifetime}, below epsilon {epsilon}: the device could never report",
            )
        elif memo is not None and memo > lifetime:
            self.report(
                "memo_epsilon",
                f"is {memo}, above lifetime_epsilon {lifetime}: the device could never report",
            )

    def _check_mechanism(self) -> None:
        """Whether there is such a mechanism, for this type and with or without memory."""
        name = self.settings.get("mechanism")
        memoize = self.settings.get("longitudinal") == "memoize"
        if self.kind is None or name is None:
            return
        known, others = (self.kind.mechanisms(memoize=each) for each in (memoize, not memoize))
        if name in known:
            return
        if name in others:
            has, other = ("no memos", "fresh") if memoize else ("memos", "memoize")
            message = f'is {name}, which has {has}: set longitudinal = "{other}", or remove it'
            self.report("mechanism", message)
        else:
            self.report("mechanism", no_mechanism(name, known))

    def _build(
        self, metric_type: MetricType, segments: tuple[Segment, ...], keep: Keep
    ) -> Metric | None:
        """The metric, if its mechanism can be built; keys that are missing are left empty."""
        settings = self.settings
        empty = {"description": "", "owner": "", "expires": date.max}
        made: dict[str, Any] = {
            "aggregate": metric_type.aggregates[0],
            **empty,
            **{key: value for key, value in settings.items() if key in COMMON_KEYS},
            "name": self.name,
            "type": metric_type,
            "epsilon": float(settings["epsilon"]),
            "lifetime_epsilon": float(settings["lifetime_epsilon"]),
            "tags": tuple(settings.get("tags", ())),
            "platform": _named(settings.get("platform", ())),
            "segments": segments,
            "keep": keep,
            "compiled": self._compiled,
        }
        metric = Metric(**made)
        try:
            metric.scheme  # noqa: B018  (builds the mechanism, which proves its epsilon)
        except SchemeError as error:
            self.report(self._cause(error.code, metric), str(error))
            return None
        return metric

    def _cause(self, code: str, metric: Metric) -> str:
        """The key that is to blame where no mechanism can be built, by the code of the error."""
        causes = {
            "segment_combinations": "segments",
            "segment_cells": "segments",
            "mean_without_memos": "longitudinal",
            "memo_range": metric.memo_key,
        }
        if code in causes:
            return causes[code]
        if self._compiled is not None:
            causes = {"above_epsilon": "epsilon", "above_lifetime": "memo_epsilon"}
            return causes.get(code, "values")
        if "mechanism" in self.settings:
            return "mechanism"
        return "epsilon" if metric.longitudinal == "fresh" else metric.memo_key


def declared(
    table: Mapping[str, Any], report: Report
) -> tuple[dict[str, Any], Mechanism[Any]] | None:
    """The table that a compiled one was made from, and its mechanism; None, after reports, if there
    is none. What the mechanism says itself, like the range of a number, is taken from there."""
    missing = [key for key in _BUILT_FROM if key not in table]
    for key in missing:
        report(key, "is missing")
    if missing:
        return None
    kind, day, mechanism = TYPES.get(str(table["type"])), None, None
    if kind is None:
        report("type", str(COMMON_KEYS["type"](table["type"])))
    try:
        day = date.fromisoformat(table["expires"])
    except (TypeError, ValueError):
        report("expires", "must be a day, like 2027-06-30")
    try:
        mechanism = rebuild(table["mechanism"], table["parameters"])
    except SchemeError as error:
        report("parameters", str(error))
    if kind is None or day is None or mechanism is None:
        return None
    has_memos = isinstance(mechanism, Memoizing)
    if not kind.suits(mechanism):
        report("mechanism", f"is {mechanism.name}, which takes no {kind.name}")
        return None
    if has_memos != (table["longitudinal"] == "memoize"):
        has = "has memos" if has_memos else "has no memos"
        report("longitudinal", f"is {table['longitudinal']}, but {mechanism.name} {has}")
        return None
    known = (COMMON_KEYS.keys() | kind.keys.keys()) - kind.foreign.keys()
    made = {
        key: value
        for key, value in table.items()
        if key in known and (value not in (None, []) or key in (*_ALSO_NULL, *_BUILT_FROM))
    }
    return {**made, "expires": day, **kind.told_by(mechanism)}, mechanism


def _named(value: str | Sequence[str]) -> tuple[Any, ...]:
    """One text or several, in the order given."""
    return (value,) if isinstance(value, str) else tuple(value)
