"""What every answer has, of whatever kind: named series, their unit, and how they change between
two periods.

A *series* is a number with a name, an interval and a unit: the share of "firefox", a mean, a
"p95". Trends, comparisons, the history of a metric, alarms and files read the series of an answer
and nothing else, so that they need not know its kind.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deniable.protocol import windows
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.document.csv_files import Filed, Table, plain, records
from deniable_estimator.document.units import Unit, half_width
from deniable_estimator.kinds.basis import Result, footnotes, unfinished_note
from deniable_estimator.messages import message, sentence
from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.intervals import FloatArray, interval_of_difference
from deniable_estimator.statistics.significance import Adjustment
from deniable_estimator.statistics.tails import upper_tails

NO_CHANGE = message("no change that can be told from noise")
_UP = sentence("up {change} ({level:g}% CI {low} to {high})")
_DOWN = sentence("down {change} ({level:g}% CI {low} to {high})")
_NONE = sentence("{no_change} ({level:g}% CI {low} to {high})")
_UNCERTAIN = sentence(
    "{no_change} ({level:g}% CI {low} to {high}; not significant among {count} numbers)"
)
_UNCERTAIN_ALONE = sentence("{no_change} ({level:g}% CI {low} to {high}; not significant)")

NUMBER_COLUMNS = ("series", "estimate", "std_error", "low", "high")
"""What files say of each series."""

_COLUMNS = ("before", "after", "difference", "std_error", "low", "high", "changed")
_BASIS_COLUMNS = tuple(
    f"{name}_{period}" for period in ("before", "after") for name in ("n", "first", "last")
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

    @property
    def columns(self) -> tuple[Iterable[Any], ...]:
        """What files have of it."""
        return self.names, self.value, self.std_error, self.low, self.high

    def lines(self) -> list[tuple[Any, ...]]:
        """For each series its name and its numbers, None for what is not known."""
        return list(zip(*map(plain, self.columns), strict=True))

    def place(self, name: str) -> int | None:
        """The index of a series; None if there is none of that name."""
        return self.names.index(name) if name in self.names else None

    def at(self, name: str) -> tuple[float, float, float]:
        """The number of a series and the ends of its interval: NaN without any limit if there is
        none of that name."""
        place = self.place(name)
        if place is None:
            return math.nan, -math.inf, math.inf
        return self.value.item(place), self.low.item(place), self.high.item(place)


class ChangeTest(NamedTuple):
    """What counts as a change of a series."""

    together: bool = True
    """Whether that is corrected for the number of series: of shares as `adjust` says, while numbers
    are few, and take Bonferroni."""
    adjust: Adjustment = "storey"
    """By Storey's test the level is the part of those that are said to have changed that have not;
    by Bonferroni's, which suits alerts, how often any of them has not."""
    alpha: float | None = None
    """The level of the test; 1 minus the level of the intervals if not given."""

    def level_at(self, level: float) -> float:
        """The level of the test of series with intervals of this level."""
        return 1 - level if self.alpha is None else self.alpha


TOGETHER = ChangeTest()
"""The usual test: of those that are said to have changed 5% have not (at the level .95)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Result):
    """The answer to the question of one metric.

    Attributes:
        headings: what files call the name of a series, and its number.
        other: what has changed where answers of two schemes are not `alike`.
        too_few: what a period has whose number is not known although it has reports.
    """

    headings: ClassVar[tuple[str, str]] = ("series", "estimate")
    other: ClassVar[str] = ""
    too_few: ClassVar[str] = message("too few reports")
    fakes: float = FAKES
    """The fraction of all reports that the poisoning budget assumes to be fake; `replace` it to
    change it."""

    @property
    def footnotes(self) -> tuple[str, ...]:
        """Those of the warnings that stand with every such answer, however many reports there
        are: a page tells them below, so that the others are noticed."""
        return footnotes(self)

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
    def own(self) -> Collection[str]:
        """The series that sentences about the metric speak of."""
        return self.series.names

    @property
    def listed(self) -> Collection[str]:
        """The series that tables show: those that can have a number by now."""
        return self.series.names

    @property
    @abstractmethod
    def leading(self) -> str:
        """The series that is shown where there is room for one."""

    @property
    @abstractmethod
    def budget(self) -> float:
        """The most that so many fake devices add to any one series; NaN without reports."""

    def alike(self, other: Self) -> bool:
        """Whether the answers of two schemes of the metric can be averaged."""
        return True

    def change_from(self, before: Self, test: ChangeTest) -> Comparison:
        """The change of every series that both have, in the order of this one.

        The noise of their reports must have been drawn independently.
        """
        return number_change(before, self, test)

    @classmethod
    def changes(cls, pairs: Sequence[tuple[Self, Self]], test: ChangeTest) -> list[Comparison]:
        """`change_from` of each of these pairs, an earlier answer and a later one."""
        return [after.change_from(before, test) for before, after in pairs]

    def head(self) -> dict[str, Any]:
        """With `poisoning`: `fakes`, and what they add to any one series at most."""
        budget = self.budget if math.isfinite(self.budget) else None
        return {**super().head(), "poisoning": {"fakes": self.fakes, "most": budget}}

    def numbers(self) -> dict[str, Any]:
        """`series`: for each `series`, `estimate`, `std_error`, `low` and `high`."""
        return {"series": records(NUMBER_COLUMNS, *self.series.columns)}

    def own_table(self) -> Table:
        return self.series_table()

    def series_table(self) -> Table:
        """A line for each series."""
        return NUMBER_COLUMNS, self.series.lines()


@dataclass(frozen=True, eq=False)
class Comparison(Filed):
    """The change of d series from `before` to `after`. Arrays have shape (d,), in the unit of the
    answers."""

    before: Answer
    after: Answer
    test: ChangeTest
    values: tuple[str, ...]
    """The names of the series."""
    old: FloatArray
    new: FloatArray
    std_error: FloatArray
    """That of the difference."""
    low: FloatArray
    high: FloatArray
    """Each interval of a difference holds by itself."""
    p_value: FloatArray
    """Corrected for the number of series as the test says."""

    @property
    def level(self) -> float:
        return self.after.level

    @cached_property
    def difference(self) -> FloatArray:
        return self.new - self.old

    @cached_property
    def changed(self) -> NDArray[np.bool_]:
        """Which series have changed by more than noise, by their p-values: among several together,
        at most 5% of those that are said to have changed have not. The interval of none holds
        zero: readers would see two statements that disagree."""
        with np.errstate(invalid="ignore"):
            apart = (self.low > 0) | (self.high < 0)
            changed: NDArray[np.bool_] = (self.p_value <= self.test.level_at(self.level)) & apart
        return changed

    @property
    def places(self) -> list[int]:
        """The series that have changed, for a sentence about the metric: of a boolean one half, as
        it says it all, and of a pair no margin, which is another metric."""
        own = self.after.own
        found: list[int] = np.flatnonzero(self.changed).tolist()
        return [place for place in found if self.values[place] in own]

    def at(self, place: int) -> tuple[float, float, float]:
        """The change of one series, and the ends of its interval."""
        return self.difference.item(place), self.low.item(place), self.high.item(place)

    def describe(self, place: int) -> str:
        """The change of one series in words: "up 2.1 points (95% CI +0.4 to +3.8)"."""
        difference, low, high = self.at(place)
        if not math.isfinite(difference):
            lacking = (
                self.after.too_few if self.before.n and self.after.n else message("no reports")
            )
            return message("the change is unknown: one of the two has {lacking}", lacking=lacking)
        if math.isinf(low) and math.isinf(high):
            return message("the change is unknown: its interval has no limit")
        unit, spread = self.after.unit, half_width(difference, low, high)
        least, most = self.ends(place)
        ends = {"level": self.level * 100, "low": least, "high": most}
        if self.changed[place]:
            way = _UP if difference > 0 else _DOWN
            return message(way, change=unit.change(abs(difference), spread), **ends)
        ends["high"] = unit.points(most)
        if low > 0 or high < 0:
            told = _UNCERTAIN if self.test.together else _UNCERTAIN_ALONE
            return message(told, no_change=NO_CHANGE, count=len(self.values), **ends)
        return message(_NONE, no_change=NO_CHANGE, **ends)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to bear in mind about it."""
        notes = []
        if unfinished := (*self.before.unfinished, *self.after.unfinished):
            notes.append(unfinished_note(unfinished))
        if not self.after.alike(self.before):
            told = message(
                "{changed}: only what both periods tell alike is compared", changed=self.after.other
            )
            notes.append(told)
        if self.uneven:
            notes.append(
                message(
                    "the two periods do not hold the same weekdays, which alone can change a number"
                )
            )
        return tuple(notes)

    @property
    def uneven(self) -> Fraction:
        """By how much the part that a weekday has of the two periods differs, at most."""
        before, after, none = _weekdays(self.before), _weekdays(self.after), Fraction(0)
        apart = (abs(before.get(day, none) - after.get(day, none)) for day in {*before, *after})
        return max(apart, default=none)

    def ends(self, place: int) -> tuple[str, str]:
        """The ends of one interval in the unit of the answers, with their signs."""
        difference, low, high = self.at(place)
        unit, spread = self.after.unit, half_width(difference, low, high)
        # An end just beside zero must not be rounded to it if the interval does not hold zero.
        return (
            unit.signed(low, min(spread, low) if low > 0 else spread),
            unit.signed(high, min(spread, -high) if high < 0 else spread),
        )

    @property
    def periods(self) -> dict[str, dict[str, Any]]:
        """What JSON has of the two."""
        both = {"before": self.before, "after": self.after}
        return {name: {"n": each.n, "windows": [*each.windows]} for name, each in both.items()}

    def to_dict(self) -> dict[str, Any]:
        """The comparison for JSON; unknown numbers are null."""
        return {
            "metric": self.after.metric,
            "kind": self.after.kind,
            "level": self.level,
            "together": self.test.together,
            **self.periods,
            "notes": list(self.notes),
            "values": records(self._header, *self._columns),
        }

    def csv_table(self) -> Table:
        """One line for each series."""
        basis = tuple(
            each
            for period in (self.before, self.after)
            for each in (period.n, *(period.span or (None, None)))
        )
        rows = zip(*map(plain, self._columns), strict=True)
        return (*self._header, *_BASIS_COLUMNS), ((*row, *basis) for row in rows)

    @property
    def _header(self) -> tuple[str, ...]:
        return (self.after.headings[0], *_COLUMNS)

    @property
    def _columns(self) -> tuple[Iterable[Any], ...]:
        change = self.difference, self.std_error, self.low, self.high, self.changed
        return self.values, self.old, self.new, *change


def _weekdays(answer: Answer) -> dict[int, Fraction]:
    """The part of its windows that each weekday has; nothing where windows are longer."""
    days = [each for each in answer.windows if windows.kind_of(each) == "day"]
    found = Counter(date.fromisoformat(each).weekday() for each in days)
    return {weekday: Fraction(count, len(days)) for weekday, count in found.items()}


def number_change(
    before: Answer, after: Answer, test: ChangeTest, p_values: dict[str, float] | None = None
) -> Comparison:
    """The change of all series that both answers have, judged by `p_values` where there are any,
    and by the widths of their intervals otherwise."""
    old, new = before.series, after.series
    names = tuple(
        name for name in new.names if name in old.names and (p_values is None or name in p_values)
    )
    one = [old.names.index(name) for name in names]
    two = [new.names.index(name) for name in names]
    was = old.value[one], old.low[one], old.high[one]
    now = new.value[two], new.low[two], new.high[two]
    with np.errstate(invalid="ignore"):
        low, high = interval_of_difference(was, now)
        wide = high - low
    std_error = np.where(np.isfinite(wide), wide / 2, np.nan) / deviations(after.level)
    difference = now[0] - was[0]
    if p_values is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.minimum(1.0, 2 * upper_tails(np.abs(difference) / std_error))
    else:
        found = np.array([p_values[name] for name in names], np.float64)
    # What is not known in one of the two is not tested.
    family = max(1, int(np.isfinite(difference).sum())) if test.together else 1
    numbers = was[0], now[0], std_error, low, high, found * family
    return Comparison(before, after, test, names, *numbers)
