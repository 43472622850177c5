"""Retention: whether a device is new, stays or returns, and since when it is here, with memos.

There is a row for each question that is asked::

    lifecycle   3 cells        new, stayed, returned
    cohorts     ages + 2       the number of the device's first window, mod ages + 1; and "older"

A device draws one row for ever, whatever it does, and answers that question alone. Its place in the
row is its entry, and is reported by memoized subset selection with the whole epsilon
(`deniable.protocol.mechanisms.subset_selection`)::

    P(report = (row, set))  = P(set | place in the row) / number of rows
    e**epsilon, e**lifetime, e**fresh = the largest of the rows' channels

The row says nothing about the device, so none of the three is larger than that of one channel. A
device has at most two memos in the row of cohorts (its cohort, and later "older"), and three in
that of the lifecycle.

In window w the cohorts w - ages, ..., w are all that are not "older". Their numbers mod ages + 1
differ, so in each window a cell is one cohort.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import ClassVar, Literal, Self, TypeAlias

from deniable.protocol import windows
from deniable.protocol.errors import SchemeError
from deniable.protocol.mechanisms.base import ONE, Channels, Memoizing, Report
from deniable.protocol.mechanisms.limits import TEXT, Each
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection
from deniable.protocol.randomness import Bits, system_bits

Asked: TypeAlias = Literal["lifecycle", "cohorts"]

ASKS: tuple[Asked, ...] = ("lifecycle", "cohorts")
"""What can be asked, in the order of the rows."""

LIFECYCLE = ("new", "stayed", "returned")
"""The window is the device's first; it was active in the window before; it was not."""

OLDER = "older"

MAX_AGES = 52
"""The most windows back that cohorts are told apart: a year of weeks."""


class MemoizedRetention(Memoizing[int], Channels[int]):
    """A channel for each question, over windows of one kind.

    An item is (place in the lifecycle) * (ages + 2) + (place among the cohorts), whatever is asked;
    `item` makes it. The entries and memos of cohorts follow the three of the lifecycle.

    Attributes:
        window: the kind of the windows, by which cohorts are numbered.
        ages: how many windows back cohorts are told apart; 0 if they are not asked for.
        lifecycle, cohorts: of each question k and the thresholds of its channel; nothing of one
            that is not asked.
        asks: the questions, in the order of the rows.
        channels: of each row, in this order.
        texts: of all cells, in this order.

    Raises:
        SchemeError: no question, a kind of windows that there is not, or integers that make no
            channel.
    """

    name: ClassVar[str] = "memoized_retention"
    bounds: ClassVar = {
        "window": TEXT,
        "ages": (0, MAX_AGES),
        **dict.fromkeys(ASKS, Each(1, ONE - 1)),
    }
    texts: tuple[str, ...]
    channels: tuple[MemoizedSubsetSelection, ...]

    def __init__(
        self,
        window: windows.Kind,
        ages: int,
        lifecycle: tuple[int, ...],
        cohorts: tuple[int, ...],
    ) -> None:
        if window not in windows.KINDS:
            raise SchemeError(f"{self.name}: window must be one of {', '.join(windows.KINDS)}")
        self.window, self.ages = window, ages
        self.lifecycle, self.cohorts = lifecycle, cohorts
        channels = {}
        for each, integers in zip(ASKS, (lifecycle, cohorts), strict=True):
            if len(integers) not in (0, 3):
                raise SchemeError(f"{self.name}: {each} must be k, memo and fresh, or nothing")
            if integers:
                channels[each] = MemoizedSubsetSelection(len(cells_of(each, ages)), *integers)
        self.asks, self.channels = tuple(channels), tuple(channels.values())
        if not self.asks or ("cohorts" in self.asks) != (1 <= ages <= MAX_AGES):
            raise SchemeError(
                f"{self.name}: asks for {', '.join(self.asks) or 'nothing'} with {ages} ages"
            )
        self._begins = tuple(len(LIFECYCLE) * (each == "cohorts") for each in self.asks)
        self.texts = tuple(text for each in self.asks for text in cells_of(each, ages))
        self.rows = tuple(row for channel in self.channels for row in channel.rows)
        self.odds = max(channel.odds for channel in self.channels)
        self.lifetime_odds = max(channel.lifetime_odds for channel in self.channels)
        self.fresh_odds = max(channel.fresh_odds for channel in self.channels)

    @classmethod
    def design(
        cls,
        window: windows.Kind,
        ages: int,
        asks: Sequence[Asked],
        epsilon: float,
        lifetime_epsilon: float,
    ) -> Self:
        """The channels of least total variance, each with the whole of both epsilons.

        Raises:
            SchemeError: as MemoizedSubsetSelection.design.
        """
        ages = ages if "cohorts" in asks else 0

        def integers(asked: Asked) -> tuple[int, ...]:
            if asked not in asks:
                return ()
            size = len(cells_of(asked, ages))
            channel = MemoizedSubsetSelection.design(size, epsilon, lifetime_epsilon)
            return channel.k, channel.permanent.threshold, channel.fresh.threshold

        return cls(window, ages, *map(integers, ASKS))

    def item(self, number: int, first: int, before: bool) -> int:
        """What a device reports in a window.

        Args:
            number, first: of the window, and of the device's first (`windows.number`), which is
                not later.
            before: whether the device was active in the window before.
        """
        lifecycle = 0 if number == first else 1 if before else 2
        cohort = first % (self.ages + 1) if number - first <= self.ages else self.ages + 1
        return lifecycle * (self.ages + 2) + cohort

    def first_windows(self, window: str) -> tuple[str, ...]:
        """The first window that each cell of the cohorts but "older" stands for in a window, as
        labels."""
        count, number = self.ages + 1, windows.number(window)
        return tuple(windows.shifted(window, -((number - cell) % count)) for cell in range(count))

    def place(self, row: int, item: int) -> int:
        """The cell of a row that an item falls into.

        Raises:
            ValueError: it is no item.
        """
        lifecycle, cohort = divmod(item, self.ages + 2)
        if not 0 <= lifecycle < len(LIFECYCLE):
            raise ValueError(f"item {item} is outside the domain")
        return lifecycle if self.asks[row] == "lifecycle" else cohort

    def cell(self, row: int, item: int) -> int:
        return self._begins[row] + self.place(row, item)

    def memoize(self, cell: int, bits: Bits = system_bits) -> int:
        row = bisect_right(self._begins, cell) - 1
        begin = self._begins[row]
        return begin + self.channels[row].memoize(cell - begin, bits)

    def report(self, row: int, memo: int, bits: Bits = system_bits) -> Report:
        drawn = self.channels[row].report(0, memo - self._begins[row], bits)
        return Report(row, drawn.columns)


def cells_of(asked: Asked, ages: int) -> tuple[str, ...]:
    """The texts of the cells of a question's row, in their order."""
    if asked == "lifecycle":
        return LIFECYCLE
    return (*(f"cohort {place}" for place in range(ages + 1)), OLDER)
