"""The contract between a metric and its type: what a recorded value means, from the keys that
declare it to the mechanism that hides it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self, SupportsFloat, TypeAlias

from deniable.protocol.checks import Check, Report
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.errors import SchemeError
from deniable.protocol.mechanisms import AUTO, FrequencyOracle, Mechanism, no_mechanism
from deniable.protocol.randomness import Bits, below

Value: TypeAlias = bool | str | int | float | SupportsFloat
"""What `record` takes: a bool for a boolean metric, a string for a category or string, and any
`numbers.Real` for a number, like an int, a float, a Fraction or a number of numpy."""

Aggregate: TypeAlias = Literal["last", "first", "any", "max", "min", "sum", "count", "mean"]


class Context(NamedTuple):
    """What the registry says beside the table of a metric.

    Attributes:
        folder: where a file that a key names is looked for.
        defaults: those of its `[defaults]` that are right.
        segments: the declared segments by name, each a `Segment`; None for one that could not be
            read.
        kinds: the type of each metric, by name.
        metrics: the metrics without mistakes that were read before, each a `deniable.Metric`.
    """

    folder: str
    defaults: Mapping[str, Any]
    segments: Mapping[str, Any]
    kinds: Mapping[str, Any]
    metrics: Mapping[str, Any]


class Table:
    """The table of one metric in the registry, while it is read.

    Attributes:
        settings: the keys of the metric that hold what their checks accept; all others have been
            reported.
        refused: the keys that were reported.
        context: what stands around it.
    """

    def __init__(self, settings: dict[str, Any], report: Report, context: Context) -> None:
        self.settings = settings
        self.context = context
        self.refused: set[str | None] = set()
        self._report_to = report

    def report(self, key: str | None, message: str) -> None:
        """Tell what is wrong with a key (None: the metric itself), and forget what it holds."""
        self.refused.add(key)
        self.settings.pop(str(key), None)
        self._report_to(key, message)


class MetricType(ABC):
    """What the values of a metric are. An instance holds what one metric declares of them.

    Attributes:
        name: what `type = "..."` says.
        keys: the registry's keys that only this type takes, with their checks.
        foreign: why a key that other types have has no place here, and takes nothing of [defaults].
        suitable: of which class the mechanisms are that its values can be reported through.
        without_memos, with_memos: what `mechanism = "..."` may say besides "auto", where the type
            has mechanisms of its own; empty if there are none.
        explanation: why `auto` takes what it takes, where there is one answer.
        aggregates: how several records of one window become one value; the first is the default.
        values: the domain in its declared order; empty where there is no list of it.
        unit: that of a number, for people; nothing is converted.
        other: the value that stands for every text that is not among the values, if there is one.
        needs_candidates: whether the values are any strings, and are named when it is estimated.
        of: the metrics whose values it joins; none for most. Such a metric is not recorded.
        forget: what it spares asking ("marginals": the metrics that it is of); None for most.
        presets: what keys hold that neither a metric nor [defaults] has.
        misfits: what `longitudinal` may not say, and why; nothing for most.
        looks_back: whether a device reports what it remembers of earlier windows, and no value.
    """

    name: ClassVar[str]
    keys: ClassVar[Mapping[str, Check]] = {}
    foreign: ClassVar[Mapping[str, str]] = {}
    suitable: ClassVar[type[Any]] = FrequencyOracle
    without_memos: ClassVar[tuple[str, ...]] = ()
    with_memos: ClassVar[tuple[str, ...]] = ()
    explanation: ClassVar[CodedMessage]
    aggregates: ClassVar[tuple[Aggregate, ...]] = ("last", "first", "any")
    needs_candidates: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Any]] = {}
    misfits: ClassVar[Mapping[str, str]] = {}
    looks_back: ClassVar[bool] = False
    values: tuple[str, ...] = ()
    unit: str | None = None
    other: str | None = None
    forget: str | None = None

    @property
    def of(self) -> tuple[str, ...]:
        return ()

    @property
    def domain(self) -> str:
        """The values in a few words, for tables: how many there are."""
        return f"{len(self.values):,}" if self.values else "open"

    @classmethod
    def read(cls, table: Table) -> Self | None:
        """The type as a metric's table declares it; mistakes are reported there. None where no
        mechanism can be designed for what it holds."""
        return cls()

    @classmethod
    def told_by(cls, mechanism: Mechanism[Any]) -> Mapping[str, Any]:
        """The keys of a declared metric that a compiled one says with its mechanism."""
        return {}

    def compiled_keys(self) -> dict[str, Any]:
        """What a compiled metric of this type holds beside the keys that all have."""
        return {}

    @classmethod
    def mechanisms(cls, *, memoize: bool) -> tuple[str, ...]:
        """What `mechanism = "..."` may say, with memos or without; nothing if there are none."""
        known = cls.with_memos if memoize else cls.without_memos
        return (AUTO, *known) if known else ()

    @abstractmethod
    def normalize(self, value: Value) -> str:
        """The text that a recorded value waits as, until its window ends.

        Raises:
            ValueError: there is none. The message does not repeat the value.
        """

    def stands_in(self, text: str, value: Value) -> bool:
        """Whether a normalized text stands for a value that is not declared."""
        return False

    def begin(self, aggregate: Aggregate, text: str) -> str:
        """A window's value after its first record, `text`."""
        return text

    def merge(self, aggregate: Aggregate, value: str, text: str, records: int, bits: Bits) -> str:
        """A window's value after one more record, `text`: the `records`-th, from 2 on."""
        if aggregate == "last":
            return text
        if aggregate == "any" and below(records, bits) == 0:
            # Reservoir sampling (Vitter, ACM TOMS 1985): each record is kept with chance 1/records.
            return text
        return value

    def joined(self, texts: Sequence[str | None]) -> str | None:
        """The text of the value that a device has at the end of a window, from those of the
        metrics that the type is `of` (None: not recorded). None if it has none."""
        return None

    def look_back(self, window: str, first: str, before: bool) -> str | None:
        """The text that a device reports in a window, if the type looks back; None if nothing.

        Args:
            window, first: the labels of this window and of the device's first one.
            before: whether the device was active in the window before.
        """
        return None

    @abstractmethod
    def item(self, text: str, mechanism: Mechanism[Any]) -> int | str:
        """What the mechanism randomizes in place of a normalized text.

        Raises:
            KeyError: it is no value, as the registry has changed since it was recorded.
        """

    def design(
        self, mechanism: str, metric: str, epsilon: float, memo_epsilon: float | None = None
    ) -> Mechanism[Any]:
        """The mechanism called `mechanism`; the metric's name is its salt. One report is within
        `epsilon`, and one memo within `memo_epsilon`, which is None without memory.

        Raises:
            SchemeError: there is none, or it cannot keep within both.
        """
        known = self.mechanisms(memoize=memo_epsilon is not None)
        if mechanism not in known:
            raise SchemeError(no_mechanism(mechanism, known))
        return self._design(mechanism, metric, epsilon, memo_epsilon)

    @abstractmethod
    def _design(
        self, mechanism: str, metric: str, epsilon: float, memo_epsilon: float | None
    ) -> Mechanism[Any]:
        """The same of one that `mechanisms` names; `design` sees to its epsilons."""

    @classmethod
    def suits(cls, mechanism: Mechanism[Any]) -> bool:
        """Whether values of this type can be reported through the mechanism."""
        return isinstance(mechanism, cls.suitable)

    def explain(self, metric: str, epsilon: float, memo_epsilon: float | None) -> CodedMessage:
        """Why `auto` takes what it takes, as the beginning of a sentence; `memo_epsilon` is None
        without memory."""
        return self.explanation

    def life(self, memo_epsilon: float) -> str | None:
        """What all reports of a device's life together reveal, where the type knows how many memos
        it has; for `deniable lint`."""
        return None

    def combines(self, before: MetricType) -> str:
        """What estimates do with the reports of a scheme of this metric before an edit, as the
        end of a sentence."""
        return "combine both schemes"

    def reread(self, before: MetricType) -> str | None:
        """What an edit of the type changes in the meaning of its values although the scheme stays,
        so that values of both are added up; None if nothing."""
        return None
