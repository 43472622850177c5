"""A metric: one declared question, and what a recorded value means to it."""

from __future__ import annotations

from datetime import date
from functools import cached_property
from typing import Any, Literal, TypeAlias

from deniable.protocol import windows
from deniable.protocol.errors import MetricError
from deniable.protocol.frozen import frozen
from deniable.protocol.keep import FOREVER, Keep
from deniable.protocol.mechanisms import AUTO, Mechanism, Memoizing
from deniable.protocol.mechanisms.limits import check_memo_epsilon
from deniable.protocol.scheme import Scheme
from deniable.protocol.segments import Segment
from deniable.protocol.types import Aggregate, MetricType, Value

Longitudinal: TypeAlias = Literal["fresh", "memoize"]

LONGITUDINAL: tuple[Longitudinal, ...] = ("fresh", "memoize")
"""How the reports of a device depend on each other: the noise of each is drawn anew, and
`lifetime_epsilon` ends them; or each is fresh noise on a memo of the value, and
`lifetime_epsilon` bounds its memos."""

Answer: TypeAlias = Literal["at_close", "at_once"]

ANSWERS: tuple[Answer, ...] = ("at_close", "at_once")
"""When a device reports: after the window has ended, or as soon as it records the first value of
the window, for visitors and tools that may not come back."""

Platform: TypeAlias = Literal["python", "web"]

PLATFORMS: tuple[Platform, ...] = ("python", "web")
"""The SDKs that record a metric. A browser may delete its storage, and the ledger with it."""


@frozen
class Metric:
    """One declared metric. Everything about it is fixed before any report exists."""

    name: str
    type: MetricType
    description: str
    owner: str
    expires: date
    epsilon: float
    """What one report reveals at most."""
    lifetime_epsilon: float
    """What all its reports together can reveal at most; with memory, all reports of one value."""
    window: windows.Kind = "day"
    aggregate: Aggregate = "last"
    answer: Answer = "at_close"
    sample_rate: float = 1.0
    """The probability with which a device takes part in a window, by a new draw in each."""
    one_in: int | None = None
    """If given, a device takes part in one of so many windows: it draws one of so many groups
    once, and the groups take turns. In place of `sample_rate`."""
    longitudinal: Longitudinal = "fresh"
    memo_epsilon: float | None = None
    """What one memo reveals at most; by default `lifetime_epsilon`. Each change of the scheme
    gives every value another memo. How many of them fit into `lifetime_epsilon` limits how often
    the metric may change before its devices stop."""
    mechanism: str = AUTO
    tags: tuple[str, ...] = ()
    platform: tuple[Platform, ...] = ()
    """Where it is recorded, if the registry says so."""
    devices: int | None = None
    """How many devices are expected to run the app, for `deniable lint`'s forecast."""
    segments: tuple[Segment, ...] = ()
    """By which public groups of devices it is counted; a report tells them in clear."""
    keep: Keep = ()
    """How long the collector keeps its windows and their sums; what is not named, by the
    collector's own setting."""
    compiled: Mechanism[Any] | None = None
    """The mechanism, if the registry was compiled; otherwise it is designed."""

    @cached_property
    def scheme(self) -> Scheme:
        """The mechanism in force, over this metric's domain.

        Raises:
            SchemeError: the mechanism cannot be built within `epsilon`, or its memos within
                `memo_epsilon`.
        """
        memo_epsilon = None
        if self.longitudinal == "memoize":
            memo_epsilon = self.memo_limit
            check_memo_epsilon(self.epsilon, memo_epsilon, self.memo_key)
        mechanism = self.compiled or self.type.design(
            self.mechanism, self.name, self.epsilon, memo_epsilon
        )
        mechanism.require_within(self.epsilon, memo_epsilon)
        return Scheme(self.type.name, mechanism, self.type.values, self.segments)

    @cached_property
    def ends(self) -> float:
        """The POSIX time (seconds) at which its last day is over."""
        return windows.end(self.expires.isoformat())

    @property
    def values(self) -> tuple[str, ...]:
        """The domain in its declared order; empty where there is no list of it."""
        return self.type.values

    @property
    def needs_candidates(self) -> bool:
        """Whether the values are any strings, and are named when it is estimated."""
        return self.type.needs_candidates

    @property
    def rate(self) -> float:
        """The probability with which a device takes part in a window, the same for each."""
        return self.sample_rate if self.one_in is None else 1 / self.one_in

    @property
    def memo_limit(self) -> float:
        """What one memo reveals at most, if there are memos."""
        return self.lifetime_epsilon if self.memo_epsilon is None else self.memo_epsilon

    @property
    def memo_key(self) -> str:
        """The key that says so."""
        return "lifetime_epsilon" if self.memo_epsilon is None else "memo_epsilon"

    def normalize(self, value: Value) -> str:
        """The text that a recorded value waits as, until its window ends.

        Raises:
            MetricError: the metric cannot take such a value. The message does not repeat it.
        """
        try:
            return self.type.normalize(value)
        except ValueError as error:
            why = str(error)
        except Exception:  # what an object of a class that an app has written may do
            why = "cannot take such a value"
        # Not in the handler: there the error before would stay in `__context__`, which may hold the
        # value.
        raise MetricError(self.name, why)

    def item(self, text: str) -> int | str:
        """What the mechanism randomizes in place of a normalized text.

        Raises:
            KeyError: it is no value, as the registry has changed since it was recorded.
        """
        return self.type.item(text, self.scheme.mechanism)

    def compile(self, *, segmented: bool, keep: bool) -> dict[str, Any]:
        """Its table in `metrics.json`, with the keys in the order of the format. `segmented`:
        whether the registry declares segments. `keep` adds how long its windows are kept."""
        mechanism, definition = self.scheme.mechanism, self.scheme.definition()
        memos = mechanism if isinstance(mechanism, Memoizing) else None
        table = {
            "type": self.type.name,
            "description": self.description,
            "expires": self.expires.isoformat(),
            "window": self.window,
            "aggregate": self.aggregate,
            "answer": self.answer,
            "sample_rate": float(self.sample_rate),
            "one_in": self.one_in,
            "longitudinal": self.longitudinal,
            "epsilon": self.epsilon,
            "lifetime_epsilon": self.lifetime_epsilon,
            "memo_epsilon": None if memos is None else float(self.memo_limit),
            "values": definition["values"],
            "other": self.type.other,
            "mechanism": definition["mechanism"],
            "parameters": definition["parameters"],
            "scheme": self.scheme.fingerprint,
            # The exact epsilons in force, rounded up: the figures that the ledger charges.
            "reveals": {
                "report": mechanism.epsilon,
                "memo": None if memos is None else memos.lifetime_epsilon,
                "fresh": None if memos is None else memos.fresh_epsilon,
            },
            "platform": list(self.platform),
            "unit": self.type.unit,
            **self.type.compiled_keys(),
        }
        if segmented:
            table["segments"] = [each.name for each in self.segments]
            table["rows"] = len(mechanism.rows)
        if keep and self.keep:
            table["keep"] = {
                calendar: FOREVER if days is None else days for calendar, days in self.keep
            }
        return table
