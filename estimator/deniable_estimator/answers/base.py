"""What every answer has, of whatever kind: what it rests on, its warnings, and named series.

A *series* is a number with a name, an interval and a unit: the share of "firefox", a mean, a
"p95". Trends, comparisons, the history of a metric, alarms and files read the series of an answer
and nothing else, so that they need not know its kind.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, ClassVar, Self

from deniable import windows
from deniable_estimator.analyses.anomalies import ALARM_LEVEL, Verdict
from deniable_estimator.analyses.poisoning import FAKES
from deniable_estimator.answers.change import Comparison, unfinished_note
from deniable_estimator.answers.units import Unit
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.significance import Adjustment

__all__ = ["BASIS_COLUMNS", "Answer", "Basis", "Series"]

BASIS_COLUMNS = ("n", "devices", "first", "last")
"""What each line of an answer's CSV says at its end: what the answer rests on, and its days."""


@dataclass(frozen=True, eq=False)
class Basis:
    """The data that an answer is based on."""

    metric: str
    schemes: tuple[str, ...]
    """Fingerprints."""
    windows: tuple[str, ...]
    n: int
    """Number of reports. In one window, each is from another device."""
    participation: Participation = field(repr=False)
    """How often the same device may have reported."""
    epsilon: float
    """The epsilon of one of these reports at most, exact and rounded up."""

    @property
    def devices(self) -> float:
        """The least number of devices that can have reported; the intervals use this number."""
        return self.participation.devices

    @property
    def span(self) -> tuple[date, date] | None:
        """The first and the last day (UTC) of the windows; None if there are none."""
        if not self.windows:
            return None
        first = min(map(windows.start, self.windows))
        last = max(map(windows.end, self.windows)) - 1
        return datetime.fromtimestamp(first, UTC).date(), datetime.fromtimestamp(last, UTC).date()

    @classmethod
    def merged(cls, parts: Sequence[Basis]) -> Basis:
        """That of the answers of several schemes of one metric together."""
        return Basis(
            metric=parts[0].metric,
            schemes=tuple(dict.fromkeys(name for each in parts for name in each.schemes)),
            windows=tuple(sorted({window for each in parts for window in each.windows})),
            n=sum(each.n for each in parts),
            participation=Participation.merged([each.participation for each in parts]),
            epsilon=max(each.epsilon for each in parts),
        )


@dataclass(frozen=True, eq=False)
class Series:
    """Named numbers of an answer; arrays have shape (d,). NaN where nothing is known, and an
    infinite end where an interval has no limit on that side."""

    names: tuple[str, ...]
    value: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray

    def place(self, name: str) -> int | None:
        """The index of a series; None if there is none of that name."""
        return self.names.index(name) if name in self.names else None


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Basis, ABC):
    """The answer to the question of one metric.

    Attributes:
        kind: what JSON calls answers of this class.
        headings: what files call the name of a series, and its number.
    """

    kind: ClassVar[str]
    headings: ClassVar[tuple[str, str]] = ("series", "estimate")

    level: float
    """The level of each interval."""
    verdict: Verdict
    """Whether the tallies look like the sums of honest reports."""
    warnings: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    """The windows among them that had not ended when it was read: see `marked`."""
    fakes: float = FAKES
    """The fraction of all reports that the poisoning budget assumes to be fake; `replace` it to
    change it."""
    alarm_level: float = ALARM_LEVEL
    """The probability that an answer with only honest devices is called anomalous."""

    def marked(self, unfinished: Sequence[str]) -> Self:
        """The same answer, which says that these of its windows have not ended."""
        if not (unfinished and self.n):
            return self
        warnings = (unfinished_note(unfinished), *self.warnings)
        return replace(self, unfinished=tuple(unfinished), warnings=warnings)

    @property
    def anomalous(self) -> bool:
        """Whether honest devices cannot explain the reports."""
        return bool(self.verdict.alarms(self.alarm_level))

    @property
    @abstractmethod
    def footnotes(self) -> tuple[str, ...]:
        """Those of the warnings that stand with every such answer, however many reports there
        are: a page tells them below, so that the others are noticed."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The other warnings."""
        return tuple(each for each in self.warnings if each not in self.footnotes)

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """That of its series."""

    @property
    @abstractmethod
    def series(self) -> Series:
        """What can be followed over time."""

    @property
    @abstractmethod
    def leading(self) -> str:
        """The series that is shown where there is room for one."""

    @property
    @abstractmethod
    def budget(self) -> float:
        """The most that so many fake devices add to any one series; NaN without reports."""

    @classmethod
    @abstractmethod
    def combine(cls, answers: Sequence[Self]) -> Self:
        """A single answer from several of the same metric and level, each of another scheme.

        Raises:
            EstimateError: they cannot be combined.
        """

    @abstractmethod
    def change_from(
        self, before: Self, *, together: bool = True, adjust: Adjustment = "storey"
    ) -> Comparison:
        """The change of every series that both have, in the order of this one.

        The noise of their reports must have been drawn independently. With `together`, what
        counts as changed is corrected for the number of series: of shares as `adjust` says
        (`deniable_estimator.statistics.significance`); numbers are few, and take Bonferroni.
        """

    def about(self) -> dict[str, Any]:
        """What else its kind says of how it was found, for JSON."""
        return {}

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """What is particular to its kind, for JSON."""

    @abstractmethod
    def to_csv(self) -> str:
        """A table with a header (RFC 4180)."""

    def to_dict(self) -> dict[str, Any]:
        """The answer for JSON; what cannot be said is null.

        Keys: `metric`, `kind`, `schemes`, `windows`, `unfinished`, `n`, `devices`, `epsilon`,
        `level`, `warnings`, `poisoning` (`fakes`, and what they add to any one series at most),
        `anomalies` (as `Verdict.to_dict`), and those of its kind.
        """
        budget = self.budget if math.isfinite(self.budget) else None
        return {
            "metric": self.metric,
            "kind": self.kind,
            "schemes": list(self.schemes),
            "windows": list(self.windows),
            "unfinished": list(self.unfinished),
            "n": self.n,
            "devices": round(self.devices),
            "epsilon": self.epsilon,
            "level": self.level,
            **self.about(),
            "warnings": list(self.warnings),
            "poisoning": {"fakes": self.fakes, "most": budget},
            "anomalies": self.verdict.to_dict(self.alarm_level),
            **self.numbers(),
        }

    def csv_basis(self) -> tuple[Any, ...]:
        """What stands in `BASIS_COLUMNS`."""
        return (self.n, round(self.devices), *(self.span or (None, None)))
