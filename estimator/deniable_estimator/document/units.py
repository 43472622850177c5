"""Numbers of an answer as text: shares in percentage points, and numbers in a metric's unit; and
the names of a pair's series.

Tallies, files and addresses have these names in English, because they are told apart by them. Pages
show the same names in the reader's language: "below 5", "5 to 20", "20 or more", and
"dark_mode=true given tabs=below 5".
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from deniable.protocol.types.pair import TIMES
from deniable_estimator.messages import counted, message, sentence

_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
_BELOW = re.compile(f"below {_NUMBER}")
_BETWEEN = re.compile(f"{_NUMBER} to {_NUMBER}")
_FROM = re.compile(f"{_NUMBER} or more")


def are_ranges(values: Sequence[str]) -> bool:
    """Whether these are all ranges of a number that a pair cuts, in their order."""
    return (
        len(values) > 1
        and _BELOW.fullmatch(values[0]) is not None
        and _FROM.fullmatch(values[-1]) is not None
        and all(_BETWEEN.fullmatch(each) for each in values[1:-1])
    )


def value_words(value: str) -> str:
    """A value of a list of a pair: a range in words, and any other as it is."""
    if found := _BELOW.fullmatch(value):
        return message("below {edge}", edge=found[1])
    if found := _BETWEEN.fullmatch(value):
        return message("{low} to {high}", low=found[1], high=found[2])
    if found := _FROM.fullmatch(value):
        return message("{edge} or more", edge=found[1])
    return value


def cell_words(name: str) -> str:
    """A series or a cell of a pair: "dark_mode=true given plan=free", "plan=free × dark_mode=true",
    or a value of one list."""
    value, given, condition = name.partition(" given ")
    if given:
        return message("{value} given {condition}", value=_part(value), condition=_part(condition))
    first, times, second = name.partition(f" {TIMES} ")
    if times:
        return message("{first} × {second}", first=_part(first), second=_part(second))
    return _part(name)


def _part(text: str) -> str:
    """A metric with one of its values."""
    metric, _, value = text.partition("=")
    told = value_words(value)
    return text if told is value else message("{metric}={value}", metric=metric, value=told)


_MINUS = "\N{MINUS SIGN}"
_OPEN = (message("no lower limit"), message("no upper limit"))
"""How the end of an interval without a limit is written."""

_NOTHING = message("unknown")

_SERIES = {"mean": message("mean"), "geometric mean": message("geometric mean")}
"""The series that have a name in words."""


class Unit(ABC):
    """How the numbers of a series are written.

    Attributes:
        log: whether charts of them have a logarithmic scale.
        of_all: whether they are shares of all devices.
        unknown: what stands for a number that is not known.
        repeated: what to bear in mind of the changes of a trend in which devices report again.
    """

    log: bool = False
    of_all: bool = False
    unknown: str = _NOTHING
    repeated: str = sentence(
        "the intervals are for all devices and count devices, not reports; two periods are taken "
        "for those of different devices, so where the same ones reported in both, the intervals "
        "of changes are wider than they need be"
    )

    def label(self, name: str) -> str:
        """What people call a series."""
        return name

    @abstractmethod
    def text(self, number: float, spread: float) -> str:
        """A number with the digits that its uncertainty allows, without its unit."""

    def signed(self, number: float, spread: float) -> str:
        """The same with its sign, also if that is a plus."""
        text = self.text(number, spread)
        return f"+{text}" if 0 < number < math.inf and text.strip("0.,") else text

    def full(self, number: float, spread: float) -> str:
        """The number with its unit."""
        text = self.text(number, spread)
        return self.with_unit(text) if math.isfinite(number) else text

    @abstractmethod
    def with_unit(self, text: str) -> str:
        """The text of a number with its unit."""

    def change(self, number: float, spread: float) -> str:
        """The size of a change."""
        return self.full(number, spread)

    def points(self, text: str) -> str:
        """A signed change with its unit, where nothing else says what it is of."""
        return text

    def interval(self, low: float, high: float, spread: float) -> str:
        """An interval with its unit, as pages write it."""
        if not (math.isfinite(low) or math.isfinite(high)):
            return _NOTHING
        return message("{low} to {high}", low=self.full(low, spread), high=self.full(high, spread))

    @abstractmethod
    def tick(self, level: float, step: float) -> str:
        """A level of an axis whose levels are `step` apart."""

    @abstractmethod
    def least_span(self, highest: float) -> float:
        """The least that an axis shows of numbers up to `highest`, so that noise of the last
        digits is not drawn."""


def _with_minus(text: str) -> str:
    """A number with a minus in place of a hyphen; a zero has none."""
    return (text if text.strip("-0.,") else text.lstrip("-")).replace("-", _MINUS)


@dataclass(frozen=True)
class ShareUnit(Unit):
    """Shares of 1, written in percent; their differences are percentage points."""

    of_all = True

    def text(self, number: float, spread: float) -> str:
        if not math.isfinite(number):
            return self.unknown
        decimals = 1
        if 0 < spread < 0.001:
            decimals = min(4, math.ceil(-math.log10(spread * 100)) + 1)
        return _with_minus(f"{number * 100:.{decimals}f}")

    def with_unit(self, text: str) -> str:
        return f"{text}%"

    def change(self, number: float, spread: float) -> str:
        return self.points(self.text(number, spread))

    def points(self, text: str) -> str:
        return message("{points} points", points=text)

    def tick(self, level: float, step: float) -> str:
        return self.with_unit(_with_minus(f"{level * 100:.{_decimals(step * 100)}f}"))

    def least_span(self, highest: float) -> float:
        return 1e-4


@dataclass(frozen=True)
class NumberUnit(Unit):
    """Numbers of a metric, in its unit if it has one."""

    name: str | None = None
    log: bool = False
    """Whether charts of them have a logarithmic scale."""

    def label(self, name: str) -> str:
        return _SERIES.get(name, name)

    def text(self, number: float, spread: float) -> str:
        """Down to a tenth of the interval's half width, with at least two digits; whole numbers
        among whole ends without decimals."""
        if not math.isfinite(number):
            return _NOTHING if math.isnan(number) else _OPEN[number > 0]
        size = abs(number)
        step = spread if 0 < spread < math.inf else size
        decimals = 2 - math.floor(math.log10(step)) - 1 if step > 0 else 0
        if size > 0:
            decimals = max(decimals, 1 - math.floor(math.log10(size)))
        if number.is_integer() and (2 * spread).is_integer():
            decimals = min(decimals, 0)
        text = f"{round(number, decimals):,.{max(0, min(decimals, 12))}f}"
        return _with_minus(text)

    def with_unit(self, text: str) -> str:
        """A percent sign follows its number, other units take a space."""
        return f"{text}{'' if self.name == '%' else ' '}{self.name}" if self.name else text

    def points(self, text: str) -> str:
        return self.with_unit(text)

    def interval(self, low: float, high: float, spread: float) -> str:
        """With the unit once, where both ends are numbers."""
        if not (math.isfinite(low) and math.isfinite(high)):
            return super().interval(low, high, spread)
        return message("{low} to {high}", low=self.text(low, spread), high=self.full(high, spread))

    def exact(self, number: float) -> str:
        """A number that somebody wrote, with its unit."""
        text = f"{number:,.15g}".replace("-", _MINUS)
        return self.with_unit(text)

    def tick(self, level: float, step: float) -> str:
        """Long numbers are written as powers of ten."""
        if level and not 1e-3 <= abs(level) < 1e5:
            digits, power = f"{level:.1e}".split("e")
            text = f"{digits.removesuffix('.0')}e{int(power)}"
        else:
            text = f"{level:,.{_decimals(step)}f}"
        text = _with_minus(text)
        return self.with_unit(text)

    def least_span(self, highest: float) -> float:
        return max(1e-6 * abs(highest), 1e-12)


class RangeUnit(ShareUnit):
    """Shares of the ranges into which a pair cuts a number."""

    def label(self, name: str) -> str:
        return value_words(name)


class ConditionalUnit(ShareUnit):
    """Shares of some devices, which may be too few to say anything of them."""

    of_all = False
    unknown = message("too few")

    def label(self, name: str) -> str:
        return cell_words(name)


SHARES = ShareUnit()
"""The unit of all shares."""

RANGES = RangeUnit()
"""That of shares of the ranges of a number."""

CONDITIONALS = ConditionalUnit()
"""That of shares of the devices with a given value."""


def windows_text(count: int, window: str) -> str:
    """How long so many days, weeks or months are."""
    if window == "day":
        return counted("{count} day", "{count} days", count)
    if window == "week":
        return counted("{count} week", "{count} weeks", count)
    return counted("{count} month", "{count} months", count)


def half_width(number: float, low: float, high: float) -> float:
    """By how much a number is uncertain: half of its interval, or its longer side where the other
    has no limit."""
    if math.isfinite(low) and math.isfinite(high):
        return (high - low) / 2
    sides = [abs(end - number) for end in (low, high) if math.isfinite(end)]
    return max(sides, default=abs(number))


def _decimals(step: float) -> int:
    """With how many decimals a step of 1, 2, 2.5 or 5 times a power of ten is written."""
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    exact = math.isclose(step * 10**decimals, round(step * 10**decimals), rel_tol=1e-6)
    return decimals if exact else decimals + 1
