"""How each series of an answer changed between two periods, with an interval of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable import windows
from deniable_estimator.answers.files import csv_text, plain
from deniable_estimator.answers.units import half_width
from deniable_estimator.messages import listed, message
from deniable_estimator.statistics.intervals import FloatArray

if TYPE_CHECKING:
    from deniable_estimator.answers.base import Answer

__all__ = ["NO_CHANGE", "Comparison", "interval_of_difference", "unfinished_note"]

NO_CHANGE = message("no change that can be told from noise")


@dataclass(frozen=True, eq=False)
class Comparison:
    """The change of d series from `before` to `after`. Arrays have shape (d,), in the unit of the
    answers."""

    before: Answer
    after: Answer
    level: float
    together: bool
    """Whether `changed` is corrected for the number of series."""
    values: tuple[str, ...]
    """The names of the series."""
    old: FloatArray
    new: FloatArray
    difference: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    """Each interval holds by itself."""
    changed: NDArray[np.bool_]
    """Which series have changed by more than noise. Among several `together`, at most 5 % of those
    that are said to have changed have not, at the level .95; alone, the interval does not hold
    zero."""

    def describe(self, place: int) -> str:
        """The change of one series in words: "up 2.1 points (95 % CI +0.4 to +3.8)"."""
        difference, low, high = (
            float(column[place]) for column in (self.difference, self.low, self.high)
        )
        if not math.isfinite(difference):
            return message("the change is unknown: one of the two has no reports")
        if math.isinf(low) and math.isinf(high):
            return message("the change is unknown: its interval has no limit")
        unit, spread = self.after.unit, half_width(difference, low, high)
        level = self.level * 100
        ends = {"level": level, "low": self.ends(place)[0], "high": self.ends(place)[1]}
        if self.changed[place]:
            way = unit.up if difference > 0 else unit.down
            return message(way, change=unit.change(abs(difference), spread), **ends)
        if low > 0 or high < 0:
            return message(unit.uncertain, no_change=NO_CHANGE, count=len(self.values), **ends)
        return message(unit.none, no_change=NO_CHANGE, **ends)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to bear in mind about it."""
        notes = []
        if unfinished := (*self.before.unfinished, *self.after.unfinished):
            notes.append(unfinished_note(unfinished))
        if _weekdays(self.before) != _weekdays(self.after):
            notes.append(message(self.after.unit.weekdays))
        return tuple(notes)

    def ends(self, place: int) -> tuple[str, str]:
        """The ends of one interval in the unit of the answers, with their signs."""
        low, high = float(self.low[place]), float(self.high[place])
        unit, spread = self.after.unit, half_width(float(self.difference[place]), low, high)
        # An end just beside zero must not be rounded to it if the interval does not hold zero.
        return (
            unit.signed(low, min(spread, low) if low > 0 else spread),
            unit.signed(high, min(spread, -high) if high < 0 else spread),
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison for JSON; unknown numbers are null."""
        return {
            "metric": self.after.metric,
            "kind": self.after.kind,
            "level": self.level,
            "together": self.together,
            "before": _period(self.before),
            "after": _period(self.after),
            "notes": list(self.notes),
            "values": [dict(zip(self._header, row, strict=True)) for row in self._rows()],
        }

    def to_csv(self) -> str:
        """One line for each series, under a header (RFC 4180)."""
        basis = tuple(
            each
            for period in (self.before, self.after)
            for each in (period.n, *(period.span or (None, None)))
        )
        header = (*self._header, *_BASIS_COLUMNS)
        return csv_text(header, ((*row, *basis) for row in self._rows()))

    @property
    def _header(self) -> tuple[str, ...]:
        return (self.after.headings[0], *_COLUMNS)

    def _rows(self) -> list[tuple[Any, ...]]:
        columns = (
            self.old,
            self.new,
            self.difference,
            self.std_error,
            self.low,
            self.high,
            self.changed,
        )
        return list(zip(self.values, *map(plain, columns), strict=True))


_COLUMNS = ("before", "after", "difference", "std_error", "low", "high", "changed")
_BASIS_COLUMNS = tuple(
    f"{name}_{period}" for period in ("before", "after") for name in ("n", "first", "last")
)


def interval_of_difference(
    old: tuple[FloatArray, FloatArray, FloatArray], new: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """The ends of the intervals of new - old; each is given as value, low and high, shape (d,).

    For independent estimates with intervals (l, u) the difference d lies between ::

        d - sqrt((new - l_new) ** 2 + (u_old - old) ** 2)
        d + sqrt((u_new - new) ** 2 + (old - l_old) ** 2)

    (Newcombe, Statistics in Medicine 1998, method 10), which for large crowds is
    d +- z sqrt(Var_old + Var_new).
    """
    (was, was_low, was_high), (now, now_low, now_high) = old, new
    return (
        now - was - np.hypot(now - now_low, was_high - was),
        now - was + np.hypot(now_high - now, was - was_low),
    )


def unfinished_note(labels: Sequence[str]) -> str:
    """The warning that these windows have not ended."""
    return message(
        "unfinished: {windows}; more reports will come, and the devices that report first need "
        "not be like the others",
        windows=listed(labels),
    )


def _weekdays(answer: Answer) -> dict[int, Fraction]:
    """The part of its windows that each weekday has; nothing where windows are longer."""
    days = [each for each in answer.windows if windows.kind_of(each) == "day"]
    found = Counter(date.fromisoformat(each).weekday() for each in days)
    return {weekday: Fraction(count, len(days)) for weekday, count in found.items()}


def _period(answer: Answer) -> dict[str, Any]:
    return {"n": answer.n, "windows": list(answer.windows)}
