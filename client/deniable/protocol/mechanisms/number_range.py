"""What mechanisms for numbers have in common: a range, and the cells that it is cut into.

Mechanisms for numbers randomize a *position*: 0 to 2**30 - 1 from `low` up to `high`, in equal
steps of the scale, 2**30 (TOP) for `high` and above, -1 for what is below `low`. Positions of a
linear range are exact. On a logarithmic scale the logarithm is rounded, so 2**-12 of a step is
added: a number that lies on the edge of two steps falls into the upper one with any library.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from deniable.protocol.errors import SchemeError
from deniable.protocol.frozen import frozen
from deniable.protocol.mechanisms.base import Mechanism, Report
from deniable.protocol.mechanisms.limits import FLAG, TEXT, Parametrized

Scale: TypeAlias = Literal["linear", "log"]

TOP = 1 << 30
"""The position of `high`, and of every number above it."""

BELOW = -1
"""The position of every number below `low`."""

LARGEST, SMALLEST = 1e100, 1e-100
"""Bounds beyond these, and narrower ranges, are refused: squares of such numbers are no floats."""

_NUDGE = 2.0**-12
"""In ranges from 1 to 1.1 or wider, logarithms err by less than 2**-16 steps."""

_WHOLE = 1 << 53
"""Up to here every whole number is a float."""

_TEXT = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", re.ASCII)
_MAX_TEXT = 32


def number_text(value: float) -> str:
    """The shortest text that reads back as this float: "10", "0.05", "1e+300"."""
    if value.is_integer() and abs(value) <= _WHOLE:
        return str(int(value))
    return repr(value)


@frozen
class NumberRange(Parametrized):
    """The numbers from `low` to `high`, on a scale.

    The bounds are texts, so that a scheme has them as they were written; each stands for the
    float next to it. If the numbers are whole (`integer`), `high` is the largest one inside, and
    the range ends at `high` + 1: each number owns the stretch up to the next one. If not, `high`
    itself is already outside.

    Raises:
        SchemeError: a text is no finite number, `low` is not below `high`, a logarithmic scale
            reaches zero, or bounds of whole numbers are not whole.
    """

    bounds: ClassVar = {"low": TEXT, "high": TEXT, "scale": TEXT, "integer": FLAG}

    low: str
    high: str
    scale: Scale = "linear"
    integer: bool = False

    def __post_init__(self) -> None:
        bounds = [_bound("low", self.low), _bound("high", self.high)]
        low, high = bounds
        if self.scale not in ("linear", "log"):
            raise SchemeError(f"scale must be linear or log, not {self.scale!r}")
        if self.integer:
            if self.scale == "log":
                raise SchemeError(
                    'whole numbers have no scale = "log": leave integer out, then each cell '
                    "holds the numbers from one edge to the next"
                )
            if not all(each.is_integer() and abs(each) < _WHOLE for each in bounds):
                raise SchemeError("the bounds of whole numbers must be whole, and below 2**53")
        if not low < high:
            raise SchemeError(f"low {self.low} must be below high {self.high}")
        if max(abs(low), abs(high)) > LARGEST:
            raise SchemeError(f"bounds must lie within {LARGEST:g} of zero: take another unit")
        # Whole numbers are told apart however far from zero they lie.
        least = max(SMALLEST, 0.0 if self.integer else max(abs(low), abs(high)) * 2.0**-40)
        if high - low < least:
            raise SchemeError(
                f"high minus low must be at least {SMALLEST:g}, and at least 1e-12 of the larger "
                "bound: take another unit, or record what is above low"
            )
        if self.scale == "log":
            if low <= 0:
                raise SchemeError(
                    f"low is {self.low}, and a logarithm needs numbers above 0: raise low, or "
                    'take scale = "linear"'
                )
            if low < SMALLEST:
                raise SchemeError(f"low must be at least {SMALLEST:g}: take another unit")

    @cached_property
    def start(self) -> float:
        """`low` as a float."""
        return float(self.low)

    @cached_property
    def end(self) -> float:
        """Where position TOP begins: `high`, or the whole number after it."""
        return float(self.high) + self.integer

    @cached_property
    def span(self) -> Fraction:
        """`end` minus `start`, exactly."""
        return Fraction(self.end) - Fraction(self.start)

    def position(self, value: float) -> int:
        """The position of a number; infinities lie outside like others.

        Linear, exactly: floor((value - start) / (end - start) * 2**30). Logarithmic:
        floor(log(value / start) / log(end / start) * 2**30 + 2**-12), at most 2**30 - 1.
        """
        if value < self.start:
            return BELOW
        if value >= self.end:
            return TOP
        if self.scale == "log":
            part = math.log(value / self.start) / self._log_span
            return min(math.floor(part * TOP + _NUDGE), TOP - 1)
        return (Fraction(value) - Fraction(self.start)) * TOP // self.span

    def value(self, position: float) -> float:
        """The number at a position from 0 to TOP, for people to read; others are set to these."""
        part = min(max(position, 0), TOP) / TOP
        if self.scale == "log":
            return self.start * math.exp(part * self._log_span)
        return float(Fraction(self.start) + self.span * Fraction(part))

    def enough(self, cells: int, choices: Iterable[int]) -> int:
        """The fewest cells, out of rising choices, in which whole numbers have one each; `cells` if
        none has so many, or if the numbers are not whole."""
        fine = (each for each in choices if self.integer and each - 2 >= self.span)
        return min(cells, next(fine, cells))

    def edges(self, cells: int) -> tuple[int, ...]:
        """The positions at which cells begin, without that of the first.

        In equal parts of the scale. Whole numbers are never cut: a cell has one of them, or, where
        there are more than cells, one more or less than the others.
        """
        inner = cells - 2
        parts = int(self.span) if self.integer else inner
        if parts <= inner:
            return tuple(min(TOP, (place << 30) // parts) for place in range(inner + 1))
        cuts = ((place * parts) // inner for place in range(inner + 1))
        return tuple((cut << 30) // parts for cut in cuts)

    @cached_property
    def _log_span(self) -> float:
        return math.log(self.end / self.start)


def _bound(name: str, text: str) -> float:
    """The float that a bound's text stands for."""
    if not isinstance(text, str) or len(text) > _MAX_TEXT or not _TEXT.fullmatch(text):
        raise SchemeError(f"{name} must be the text of a number, like 0.05, not {text!r}")
    number = float(text)
    if math.isinf(number):
        raise SchemeError(f"{name} {text} is beyond the largest number of 64 bits")
    return number


class Span(NamedTuple):
    """The positions from `first` to `last`; the last one belongs to it."""

    first: int
    last: int


class Numeric(Mechanism[int]):
    """A mechanism whose items are positions in a range of numbers, from -1 (below `low`) to 2**30.

    Attributes:
        range: where the numbers lie.
    """

    range: NumberRange

    @abstractmethod
    def favoured(self, report: Report) -> tuple[Span, ...]:
        """The positions for which this report is likeliest, in rising order, not adjacent."""


class Histogram(Numeric):
    """A mechanism whose reports say in which cell of the range a number lies.

    The first cell holds what is below `low`, the last one what is at or above `high`.

    Attributes:
        cells: how many there are.
        edges: `cells` - 1 positions, from 0 to 2**30. Cell j begins at edge j - 1 and ends before
            edge j. Where whole numbers have a cell each and cells are left over, the last edges
            are all 2**30, and nothing falls between them.
    """

    cells: int
    edges: tuple[int, ...]

    @property
    @abstractmethod
    def edge_variance(self) -> float:
        """n times the variance of the share below an edge, for n reports, on average over the
        edges; noise alone."""

    def favoured(self, report: Report) -> tuple[Span, ...]:
        starts, ends = (BELOW, *self.edges), (*(edge - 1 for edge in self.edges), TOP)
        # The first position of a cell is above its last one where nothing falls into it.
        filled = [span for span in map(Span, starts, ends) if span.first <= span.last]
        chances = [self.likelihood(report, span.first) for span in filled]
        most = max(chances)
        joined: list[Span] = []
        for span, chance in zip(filled, chances, strict=True):
            if chance == most:
                joins = bool(joined) and joined[-1].last == span.first - 1
                joined.append(Span(joined.pop().first if joins else span.first, span.last))
        return tuple(joined)
