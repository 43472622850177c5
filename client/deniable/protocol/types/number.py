"""A number with a lower and an upper bound: its mean, its distribution, or both.

A number is a 64-bit float: any `numbers.Real` that `record` is given becomes the nearest one, and
the largest finite one of its sign where there is none (an infinity, a whole number of hundreds of
digits). All steps of `aggregate` are taken with such floats, in the order of the records, each
rounded once, and limited in the same way::

    sum      s + x                      mean    m + (x - m) / k      for the k-th record, from 2 on
    count    n + 1, from 1

What lies below `low` or at `high` and above is settled by the position that the mechanism
randomizes (`deniable.protocol.mechanisms.number_range`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Literal, Self, TypeAlias

from deniable.protocol.checks import Check, bound, flag, one_of, some_of, text
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.errors import SchemeError
from deniable.protocol.frozen import frozen
from deniable.protocol.mechanisms import Mechanism
from deniable.protocol.mechanisms.dbitflip import CELLS as MEMOIZED_CELLS
from deniable.protocol.mechanisms.dbitflip import DBITFLIP_CELLS, DBitFlip
from deniable.protocol.mechanisms.hierarchical_histogram import CELLS, HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import Histogram, NumberRange, Numeric, number_text
from deniable.protocol.mechanisms.sliding_window import NEAR_OPTIMUM, SlidingWindow
from deniable.protocol.randomness import Bits
from deniable.protocol.types.base import Aggregate, MetricType, Table, Value

Ask: TypeAlias = Literal["mean", "distribution"]

QUESTIONS: tuple[Ask, ...] = ("mean", "distribution")
"""What `ask` may name."""

CELL_CHOICES = (16, 64, 256, 1024)
"""What `cells` may say."""

ADVICE = {
    "low": ": the smallest number that you want to tell apart",
    "high": ": the largest number that you want to tell apart",
    "ask": ': "mean", "distribution" or both. A mean alone takes far fewer devices',
}
"""What each required key is for."""


def read_range(table: Table) -> NumberRange | None:
    """The range that the keys declare, all of which are of their kind; mistakes are reported."""
    settings = table.settings
    scale, integer = settings.get("scale", "linear"), settings.get("integer", False)
    broken = [key for key in ("low", "high") if not float(settings[key]).is_integer()]
    if integer and broken:
        for key in broken:
            table.report(key, f"is {settings[key]}, but integer says that numbers are whole")
        return None
    low, high = (number_text(float(settings[key])) for key in ("low", "high"))
    try:
        return NumberRange(low, high, scale, integer)
    except SchemeError as error:
        table.report("integer" if integer and scale == "log" else "low", str(error))
        return None


def read_cells(table: Table, asked: tuple[Ask, ...]) -> int | None:
    """Into how many cells a distribution is cut; None, after a report, if there are none so."""
    settings = table.settings
    cells = settings.get("cells")
    if cells is not None and "distribution" not in asked:
        table.report("cells", 'cuts a distribution: add "distribution" to ask, or remove it')
    if settings.get("longitudinal") != "memoize":
        return cells or CELLS
    if cells is not None and cells not in DBITFLIP_CELLS:
        table.report(
            "cells",
            f"is {cells}: with memos a distribution has at most {DBITFLIP_CELLS[-1]}, because "
            "its noise grows with their number",
        )
        return None
    return cells or MEMOIZED_CELLS


_LARGEST = sys.float_info.max

_MEAN_ONLY = ("sliding_window", "duchi")
_DISTRIBUTION = ("hierarchical_histogram",)


@frozen
class Number(MetricType):
    """A number in a range, and what is asked of it.

    Attributes:
        range: where the numbers lie.
        ask: "mean", "distribution", or both in this order.
        unit: for people; nothing is converted.
        cells: into how many cells a distribution is cut.
    """

    name = "number"
    keys: ClassVar[Mapping[str, Check]] = {
        "low": bound,
        "high": bound,
        "unit": text,
        "scale": one_of(("linear", "log")),
        "integer": flag,
        "ask": some_of(QUESTIONS),
        "cells": one_of(CELL_CHOICES),
    }
    foreign = dict.fromkeys(("values", "values_file", "other"), "it has low and high, and no list")
    aggregates = ("last", "first", "any", "max", "min", "sum", "count", "mean")
    suitable = Numeric
    without_memos = (*_MEAN_ONLY, *_DISTRIBUTION)
    with_memos = (DBitFlip.name,)

    range: NumberRange
    ask: tuple[Ask, ...]
    unit: str | None = None
    cells: int = CELLS

    @property
    def domain(self) -> str:
        unit = "" if self.unit is None else f" {self.unit}"
        return f"{self.range.low} to {self.range.high}{unit}"

    @classmethod
    def read(cls, table: Table) -> Self | None:
        settings = table.settings
        lacking = [key for key in ADVICE if key not in settings]
        for key in lacking:
            table.report(None, f"lacks {key}{ADVICE[key]}")
        if lacking:
            return None
        asked = tuple(each for each in QUESTIONS if each in settings["ask"])
        cells, numbers = read_cells(table, asked), read_range(table)
        if numbers is None or cells is None:
            return None
        return cls(numbers, asked, settings.get("unit"), cells)

    @classmethod
    def told_by(cls, mechanism: Mechanism[Any]) -> Mapping[str, Any]:
        assert isinstance(mechanism, Numeric)
        lies = mechanism.range
        told: dict[str, Any] = {
            "low": float(lies.low),
            "high": float(lies.high),
            "scale": lies.scale,
            "integer": lies.integer,
            "ask": "mean",
        }
        if isinstance(mechanism, Histogram):
            both = isinstance(mechanism, HierarchicalHistogram) and mechanism.mean is not None
            told |= {"ask": list(QUESTIONS) if both else "distribution", "cells": mechanism.cells}
        return told

    def normalize(self, value: Value) -> str:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError(f"takes a number, not {type(value).__name__}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf if abs(value) == value else -math.inf
        except ValueError:  # what the object says may hold the value
            number = math.nan
        if math.isnan(number):
            raise ValueError(
                "takes numbers, and NaN is none: record a fixed number in its place, or record in "
                "a boolean metric whether there is one"
            )
        return number_text(_limited(number))

    def begin(self, aggregate: Aggregate, text: str) -> str:
        return "1" if aggregate == "count" else text

    def merge(self, aggregate: Aggregate, value: str, text: str, records: int, bits: Bits) -> str:
        if aggregate == "count":
            return str(records)
        if aggregate not in ("max", "min", "sum", "mean"):
            return super().merge(aggregate, value, text, records, bits)
        try:
            before, new = read_number(value), float(text)
        except KeyError:
            # The metric became a number inside the window: it begins again.
            return text
        if aggregate == "max":
            return text if new > before else value
        if aggregate == "min":
            return text if new < before else value
        if aggregate == "sum":
            return number_text(_limited(before + new))
        return number_text(_limited(before + _limited(new - before) / records))

    def item(self, text: str, mechanism: Mechanism[Any]) -> int:
        return self.range.position(read_number(text))

    def _design(
        self, mechanism: str, metric: str, epsilon: float, memo_epsilon: float | None
    ) -> Mechanism[Any]:
        if memo_epsilon is not None:
            if self.ask != ("distribution",):
                raise SchemeError.of(
                    "mean_without_memos",
                    'a mean has no memos: set ask = "distribution", which also tells the mean less '
                    'exactly, or longitudinal = "fresh"',
                )
            return DBitFlip.design(self.range, epsilon, memo_epsilon, self.cells)
        if "distribution" in self.ask:
            if mechanism in _MEAN_ONLY:
                raise SchemeError.of(
                    "mean_only",
                    '{mechanism} can only tell the mean: set ask = "mean", or mechanism = "auto"',
                    mechanism=mechanism,
                )
            both = "mean" in self.ask
            return HierarchicalHistogram.design(self.range, epsilon, self.cells, mean=both)
        if mechanism in _DISTRIBUTION:
            raise SchemeError.of(
                "distribution_only",
                '{mechanism} is for a distribution: set ask = "distribution", which also tells the '
                'mean less exactly, or mechanism = "auto"',
                mechanism=mechanism,
            )
        if mechanism == "duchi":
            return SlidingWindow.design(self.range, epsilon, columns=2)
        return SlidingWindow.design(self.range, epsilon)

    def explain(self, metric: str, epsilon: float, memo_epsilon: float | None) -> CodedMessage:
        if memo_epsilon is not None:
            return CodedMessage(
                "noisy_bits_of_a_histogram",
                "dBitFlip keeps noisy bits of a histogram; it is the only mechanism with memos "
                "for numbers",
            )
        if "distribution" not in self.ask:
            if epsilon > NEAR_OPTIMUM:
                return CodedMessage(
                    "close_to_least_error",
                    "a sliding window has close to the least error of a mean",
                )
            return CodedMessage(
                "within_2_percent",
                "the variance of a sliding window is within 2% of the least that a mean can have",
            )
        if "mean" not in self.ask:
            return CodedMessage(
                "quantiles_without_bias",
                "a hierarchical histogram tells shares of ranges and quantiles without bias",
            )
        return CodedMessage(
            "quantiles_and_mean",
            "a hierarchical histogram tells shares of ranges and quantiles without bias; 1 of 4 "
            "devices reports for the mean, by a sliding window",
        )

    def combines(self, before: MetricType) -> str:
        if not isinstance(before, Number):
            return "cannot combine what are no numbers with numbers: declare a new metric"
        if ("distribution" in self.ask) != ("distribution" in before.ask):
            return (
                "cannot combine a mean with a distribution: ask for days before or after the "
                "change, or declare a new metric"
            )
        if self.range.scale != before.range.scale:
            return (
                "cannot combine another scale: ask for days before or after the change, or "
                "declare a new metric"
            )
        if "distribution" in self.ask and (self.range, self.cells) != (before.range, before.cells):
            return (
                "over days of both tell those of the newest, as their cells differ: ask for days "
                "before or after the change"
            )
        return "combine both schemes"

    def reread(self, before: MetricType) -> str | None:
        if not isinstance(before, Number) or before.unit == self.unit:
            return None
        old, new = ("none" if each.unit is None else repr(each.unit) for each in (before, self))
        return (
            f"had the unit {old} and has {new}: the scheme is the same, so numbers of both are "
            "added up. If the numbers change, and not only their label, declare a new metric"
        )


def read_number(text: str) -> float:
    """The number that a text from `normalize` or `merge` stands for.

    Raises:
        KeyError: it is no such text, as the registry has changed since it was recorded.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number_text(number) != text:
        raise KeyError("the metric was no number when it was recorded")
    return number


def _limited(number: float) -> float:
    """The number, or the largest finite one of its sign."""
    return min(max(number, -_LARGEST), _LARGEST)
