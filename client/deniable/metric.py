"""A metric: one declared question, and what a recorded value means to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, Literal, TypeAlias

from deniable import windows
from deniable.errors import MetricError
from deniable.mechanisms import AUTO, Mechanism, design, design_memoized, design_string
from deniable.scheme import Scheme
from deniable.value_list import normal_form, value_text

__all__ = [
    "AGGREGATES",
    "LONGITUDINAL",
    "TYPES",
    "Aggregate",
    "Longitudinal",
    "Metric",
    "Value",
]

Value: TypeAlias = bool | str
"""What `record` takes: a bool for a boolean metric, a string for a category or string."""

Aggregate: TypeAlias = Literal["last", "first", "any", "max"]

AGGREGATES: dict[str, tuple[Aggregate, ...]] = {
    "boolean": ("last", "first", "any", "max"),
    "category": ("last", "first", "any"),
    "string": ("last", "first", "any"),
}
"""How several records of one window become one value, for each type; the first is the default."""

TYPES = tuple(AGGREGATES)

Longitudinal: TypeAlias = Literal["fresh", "memoize"]

LONGITUDINAL: tuple[Longitudinal, ...] = ("fresh", "memoize")
"""How the reports of a device depend on each other: the noise of each is drawn anew, and
`lifetime_epsilon` ends them; or each is fresh noise on a memo of the value, and
`lifetime_epsilon` bounds its memos."""


@dataclass(frozen=True)
class Metric:
    """One declared metric. Everything about it is fixed before any report exists."""

    name: str
    type: str
    description: str
    owner: str
    expires: date
    epsilon: float
    """What one report reveals at most."""
    lifetime_epsilon: float
    """What all its reports together can reveal at most; with memory, all reports of one value."""
    values: tuple[str, ...] | None
    """The domain in its declared order; None for strings, whose candidates come later."""
    other: str | None = None
    """The value that stands for all that are not listed."""
    window: windows.Kind = "day"
    aggregate: Aggregate = "last"
    sample_rate: float = 1.0
    longitudinal: Longitudinal = "fresh"
    memo_epsilon: float | None = None
    """What one memo reveals at most; by default `lifetime_epsilon`. Each change of the scheme
    gives every value another memo. How many of them fit into `lifetime_epsilon` limits how often
    the metric may change before its devices stop."""
    mechanism: str = AUTO
    tags: tuple[str, ...] = ()
    devices: int | None = None
    """How many devices are expected to run the app, for `deniable lint`'s forecast."""

    @cached_property
    def scheme(self) -> Scheme:
        """The mechanism in force, over this metric's domain.

        Raises:
            SchemeError: the mechanism cannot be built within `epsilon`, or its memos within
                `memo_epsilon`.
        """
        mechanism: Mechanism[Any]
        if self.longitudinal == "memoize":
            size = None if self.values is None else len(self.values)
            mechanism = design_memoized(
                self.mechanism, self.name, size, self.epsilon, self.memo_limit
            )
        elif self.values is None:
            mechanism = design_string(self.mechanism, self.name, self.epsilon)
        else:
            mechanism = design(self.mechanism, len(self.values), self.epsilon)
        return Scheme(self.type, mechanism, self.values)

    @property
    def memo_limit(self) -> float:
        """What one memo reveals at most, if there are memos."""
        return self.lifetime_epsilon if self.memo_epsilon is None else self.memo_epsilon

    def normalize(self, value: Value) -> str:
        """The text under which a recorded value stands in the domain.

        A string metric takes what `deniable.value_list` calls a value: 1 to 1,024 bytes without
        control characters, not all blank. Clean what people have typed before it is recorded
        (docs/protocol.md has a line that does), and decide what nothing is recorded as.

        Raises:
            MetricError: the metric cannot take such a value. The message does not repeat it.
        """
        if self.type == "boolean":
            if not isinstance(value, bool):
                raise MetricError(self.name, f"takes True or False, not {type(value).__name__}")
            return "true" if value else "false"
        if not isinstance(value, str):
            raise MetricError(self.name, f"takes a string, not {type(value).__name__}")
        if self.type == "string":
            try:
                return value_text(value)
            except ValueError as error:
                message = f"the string {error}; clean it before you record it"
                raise MetricError(self.name, message) from None
        text = normal_form(value)
        if text in self._index:
            return text
        if self.other is not None:
            return self.other
        # The message must not repeat the value: error messages end up in logs.
        raise MetricError(
            self.name,
            'the value is not one of its declared values; add it, or add an "other" that '
            "stands for the rest",
        )

    def declares(self, value: Value) -> bool:
        """Whether a category lists a recorded text."""
        return isinstance(value, str) and normal_form(value) in self._index

    def item(self, text: str) -> int | str:
        """What the mechanism randomizes: a normalized value's index, or the text itself.

        Raises:
            KeyError: a text that is not one of the values.
        """
        if self.values is None:
            return text
        index = self._index[text]
        return text if self.scheme.mechanism.size is None else index

    @cached_property
    def _index(self) -> dict[str, int]:
        return {value: index for index, value in enumerate(self.values or ())}
