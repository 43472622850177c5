"""From one `[metrics.NAME]` table of a `metrics.toml` to its metric, collecting every mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, cast

from deniable.checks import Check, is_number
from deniable.errors import SchemeError
from deniable.keep import mistakes, read_keep
from deniable.keys import COMMON_KEYS, REQUIRED, SCHEME_KEYS, all_keys
from deniable.mechanisms import MAX_MEMO_EPSILON
from deniable.metric import Metric
from deniable.segments import (
    LEAST_REPORTS,
    MAX_COMBINATIONS,
    MAX_SEGMENTS,
    Segment,
    combinations,
)
from deniable.types import TYPES, MetricType, Table


class MetricDeclaration:
    """The table of one metric.

    Args:
        name: the metric's name.
        table: what stands under it.
        defaults: those of the document's `[defaults]` that are right.
        folder: where a file that a key names is looked for.
        report: takes a key (None: the metric itself) and what is wrong with it.
    """

    def __init__(
        self,
        name: str,
        table: Mapping[str, Any],
        defaults: Mapping[str, Any],
        folder: str,
        report: Callable[[str | None, str], None],
    ) -> None:
        self.name = name
        self.kind = TYPES.get(str(table.get("type")))
        self._table = table
        self._folder = folder
        self._report_to = report
        self._refused: set[str | None] = set()
        self._known = self._checks()
        undefaulted = frozenset() if self.kind is None else self.kind.undefaulted
        self.settings: dict[str, Any] = {
            **({} if self.kind is None else self.kind.presets),
            **{key: value for key, value in defaults.items() if key not in undefaulted},
            **{key: table[key] for key in self._known if key in table},
        }

    def report(self, key: str | None, message: str) -> None:
        self._refused.add(key)
        self._report_to(key, message)

    def read(
        self,
        declared: Mapping[str, Any],
        segments: Mapping[str, Segment],
        kinds: Mapping[str, Any],
        others: Mapping[str, Metric],
    ) -> Metric | None:
        """The metric; None, after reports, if there are mistakes.

        Args:
            declared: the document's segments, also those with mistakes.
            segments: those of them that could be read.
            kinds: the type of each metric of the document, by name.
            others: the metrics without mistakes that were read before.
        """
        for key, value in self._table.items():
            if key not in self._known:
                self.report(key, f"is unknown; a metric may hold {', '.join(self._known)}")
            elif wrong := self._known[key](value):
                self.report(key, wrong)
        for key in REQUIRED:
            if key not in self.settings:
                self.report(None, f"lacks {key}")
        metric_type = None if self.kind is None else self._type(self.kind, kinds, others)
        self._check_epsilons()
        self._check_participation()
        self._check_mechanism()
        counted_by = self._segments(declared, segments)
        self._check_keep()
        # The mechanism is built even if other keys are wrong, to report all mistakes at once.
        good = {key: value for key, value in self.settings.items() if key not in self._refused}
        metric = None
        if metric_type is not None and self._can_design(good):
            metric = self._build(good, metric_type, counted_by)
        return None if self._refused else metric

    def _checks(self) -> Mapping[str, Check]:
        """The keys that the table may hold. If it holds others, those of all types, because its
        type may be what is wrong."""
        kind = self.kind
        known: Mapping[str, Check] = COMMON_KEYS if kind is None else {**COMMON_KEYS, **kind.keys}
        return known if known.keys() >= self._table.keys() else all_keys()

    def _type(
        self,
        kind: type[MetricType],
        kinds: Mapping[str, Any],
        others: Mapping[str, Metric],
    ) -> MetricType | None:
        """The type as the table declares it, if it may be asked for with what was given."""
        settings = self.settings
        for key in (each for each in self._table if each in self._known):
            if key in kind.undefaulted or (key not in COMMON_KEYS and key not in kind.keys):
                why = f": {kind.foreign[key]}" if key in kind.foreign else ""
                self.report(key, f"does not belong to a {kind.name}{why}")
        if settings.get("aggregate", kind.aggregates[0]) not in kind.aggregates:
            choices = ", ".join(kind.aggregates)
            self.report("aggregate", f"of a {kind.name} must be one of {choices}")
        elif (
            settings.get("answer") == "at_once"
            and settings.get("aggregate", kind.aggregates[0]) != "first"
        ):
            self.report(
                "answer",
                "is at_once, so the first value of a window is the one that counts: set "
                'aggregate = "first"',
            )
        return kind.read(Table(settings, self._folder, self.report, kinds, others))

    def _segments(
        self, declared: Mapping[str, Any], segments: Mapping[str, Segment]
    ) -> tuple[Segment, ...]:
        """The segments that a metric names, if it may be counted by them."""
        settings = self.settings
        names = settings.get("segments", [])
        if COMMON_KEYS["segments"](names):
            return ()
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
        found = tuple(segments[name] for name in names if name in segments)
        count = combinations(found)
        if count > MAX_COMBINATIONS:
            self.report(
                "segments",
                f"has {count} combinations, above the limit of {MAX_COMBINATIONS}: drop a segment, "
                "or group values",
            )
            return ()
        devices, rate = settings.get("devices"), settings.get("sample_rate", 1.0)
        known_crowd = not (COMMON_KEYS["devices"](devices) or COMMON_KEYS["sample_rate"](rate))
        groups = settings.get("one_in")
        if not COMMON_KEYS["one_in"](groups):
            rate = 1 / cast(int, groups)
        explained = any(each.why is not None for each in found)
        if found and known_crowd and not explained and devices * rate < LEAST_REPORTS * count:
            self.report(
                "segments",
                f"has {count} combinations, but {devices:,} devices at a rate of {rate:.3g} give "
                f"{devices * rate / count:,.0f} reports each on average, below {LEAST_REPORTS}: so "
                "few say nothing and hide nobody. Use fewer values, or say why it must be so with "
                'why = "..." in the segment',
            )
        return found

    def _check_keep(self) -> None:
        settings = self.settings
        window = settings.get("window", "day")
        if "keep" not in settings or COMMON_KEYS["keep"](settings["keep"]):
            return
        if not COMMON_KEYS["window"](window) and (
            wrong := mistakes(read_keep(settings["keep"]), window)
        ):
            self.report("keep", wrong)

    def _check_epsilons(self) -> None:
        settings = self.settings
        epsilon, lifetime = settings.get("epsilon"), settings.get("lifetime_epsilon")
        memo, memoize = settings.get("memo_epsilon"), settings.get("longitudinal") == "memoize"
        if memo is not None and not memoize:
            self.report(
                "memo_epsilon",
                'limits what one memo reveals: set longitudinal = "memoize", or remove it',
            )
        if not (is_number(epsilon) and is_number(lifetime)) or not (
            memo is None or is_number(memo)
        ):
            return
        epsilon, lifetime = cast(float, epsilon), cast(float, lifetime)
        if lifetime < epsilon:
            self.report(
                "lifetime_epsilon",
                f"is {lifetime}, below epsilon {epsilon}: the device could never report",
            )
        elif memoize and not epsilon < (lifetime if memo is None else memo) <= MAX_MEMO_EPSILON:
            key = "lifetime_epsilon" if memo is None else "memo_epsilon"
            self.report(
                key,
                f"is {settings[key]}: with memos it limits what one memo reveals, so it must be "
                f"above epsilon {epsilon} and at most {MAX_MEMO_EPSILON:g}",
            )
        elif memoize and memo is not None and memo > lifetime:
            self.report(
                "memo_epsilon",
                f"is {memo}, above lifetime_epsilon {lifetime}: the device could never report",
            )

    def _check_participation(self) -> None:
        settings = self.settings
        if "one_in" in settings and settings.get("sample_rate", 1) != 1:
            self.report(
                "one_in",
                "and sample_rate both say in which windows a device takes part: remove one. A "
                "sample_rate of [defaults] is lifted by sample_rate = 1",
            )

    def _check_mechanism(self) -> None:
        """Whether there is such a mechanism, for this type and with or without memory."""
        kind, name = self.kind, self.settings.get("mechanism")
        memoize = self.settings.get("longitudinal") == "memoize"
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
                "mechanism",
                f'is {name}, which has no memos: set longitudinal = "fresh", or remove it',
            )
        elif not memoize and name in with_memos - without:
            self.report(
                "mechanism",
                f'is {name}, which has memos: set longitudinal = "memoize", or remove it',
            )
        elif kind is not None or name not in (with_memos if memoize else without):
            # Of an unknown type the names for a closed domain are listed.
            known = (kind or TYPES["boolean"]).mechanisms(memoize=memoize)
            if name not in known:
                self.report(
                    "mechanism",
                    f"there is no mechanism {name!r} here: choose one of {', '.join(known)}",
                )

    def _can_design(self, good: Mapping[str, Any]) -> bool:
        """Whether everything that the mechanism is made from was given and is right."""
        given = all(key in good for key in SCHEME_KEYS if key in self.settings)
        needed = all(key in good for key in ("type", "epsilon", "lifetime_epsilon"))
        return given and needed

    def _build(
        self,
        settings: Mapping[str, Any],
        metric_type: MetricType,
        segments: tuple[Segment, ...],
    ) -> Metric | None:
        """The metric, if its mechanism can be built; keys that are missing are left empty."""
        optional = (
            "window",
            "answer",
            "sample_rate",
            "one_in",
            "longitudinal",
            "memo_epsilon",
            "mechanism",
            "devices",
        )
        metric = Metric(
            name=self.name,
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
            keep=read_keep(settings.get("keep", {})),
            **{key: settings[key] for key in optional if key in settings},
        )
        try:
            metric.scheme  # noqa: B018  (builds the mechanism, which proves its epsilon)
        except SchemeError as error:
            where = "mechanism" if "mechanism" in settings else "epsilon"
            if error.code == "segment_cells":
                self.report("segments", str(error))
                return None
            if where == "epsilon" and metric.longitudinal == "memoize":
                where = "lifetime_epsilon" if metric.memo_epsilon is None else "memo_epsilon"
            self.report(where, str(error))
            return None
        return metric


def _named(value: str | Sequence[str]) -> tuple[Any, ...]:
    """One text or several, in the order given."""
    return (value,) if isinstance(value, str) else tuple(value)
