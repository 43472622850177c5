"""The interface of a mechanism.

A report is (row, columns): it names one row of its metric's tally and a set of that
row's columns. A mechanism defines how wide its rows are, how a report is packed, how a
value becomes a report, and with which exact probability. The collector needs only the
rows. A frequency oracle also has cells that support a value, and says with which
probabilities.

The file of a mechanism finds here all that it needs, also the limits and checks of
`deniable.protocol.mechanisms.limits`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, cast

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below, log_above
from deniable.protocol.mechanisms.limits import MAX_CELLS, Parametrized, check_parameters
from deniable.protocol.randomness import PRECISION, Bits, below, system_bits

ONE = 1 << PRECISION
"""Probability one, as a threshold."""

Item = TypeVar("Item", int, str)
"""What a mechanism randomizes: an index into a closed domain, a position in a range of numbers,
or a string."""


class Packing(StrEnum):
    """How the columns of a report are sent. The length never depends on the value."""

    INDEX = "index"
    """Exactly one column, as its number."""
    LIST = "list"
    """A fixed number of columns, as their sorted numbers; shorter than a bitmap when few."""
    BITMAP = "bitmap"
    """One bit for each column, column j at bit j % 8 of byte j // 8."""


class Row(NamedTuple):
    """One row of a tally: `width` counters.

    `columns` is how many columns a well-formed report sets (None: any number).
    """

    width: int
    packing: Packing
    columns: int | None = 1

    @property
    def report_bytes(self) -> int:
        """Bytes of the columns of one report, before any text encoding."""
        if self.packing is Packing.BITMAP:
            return (self.width + 7) // 8
        index_bits = max(1, (self.width - 1).bit_length())
        return ((self.columns or 1) * index_bits + 7) // 8


class Report(NamedTuple):
    """What a device reports: a row, and columns of it.

    `columns` is the column's number where the row is packed as INDEX, and a bitmap
    (bit j set: column j is in) for the other packings.
    """

    row: int
    columns: int


class Mechanism(Parametrized, ABC, Generic[Item]):
    """A randomizer with its exact probabilities.

    Attributes:
        name: what `mechanism = "..."` in the registry and the scheme call it.
        rows: the rows of its tally.
        odds: e to the power epsilon, exactly, from the integers in force.
        texts: the values that a scheme names, where the mechanism itself fixes them.
    """

    name: ClassVar[str]
    texts: tuple[str, ...] | None = None
    rows: tuple[Row, ...]
    odds: Fraction

    @property
    def epsilon(self) -> float:
        """ln(odds), rounded up: what one report reveals at most."""
        return log_above(self.odds)

    @property
    def cost(self) -> float:
        """What one report reveals at most, whatever the device has reported before."""
        return self.epsilon

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Rebuild the mechanism from `parameters()`, as a published scheme holds them.

        Raises:
            SchemeError: a parameter is missing, unknown or out of range.
        """
        return cls(*check_parameters(cls.name, parameters, cls.bounds))

    @classmethod
    def check_size(cls, size: int, largest: int = MAX_CELLS) -> None:
        """Refuse a number of values over which no mechanism can be built.

        Raises:
            SchemeError: fewer than two values, or more than `largest`.
        """
        if size < 2:
            raise SchemeError.of(
                "too_few_values",
                "{mechanism}: a domain needs at least two values, not {size}",
                mechanism=cls.name,
                size=size,
            )
        if size > largest:
            raise SchemeError.of(
                "too_many_values",
                "{mechanism}: a domain of {size:,} values is above the limit of {most:,}; merge "
                'rare values into an `other`, or use type = "string"',
                mechanism=cls.name,
                size=size,
                most=largest,
            )

    @classmethod
    def check_threshold(cls, threshold: int, owned: int, columns: int) -> None:
        """Refuse a chance out of 2**53 of a column that the true value owns, where each value owns
        so many of the columns.

        Raises:
            SchemeError: it does not favour the truth, or cannot hide it.
        """
        if not owned << PRECISION < threshold * columns < columns << PRECISION:
            raise SchemeError(
                f"{cls.name}: threshold {threshold} of 2**{PRECISION} is outside "
                f"({owned}/{columns}, 1): epsilon would not be positive and finite"
            )

    @abstractmethod
    def randomize(self, item: Item, bits: Bits = system_bits) -> Report:
        """Draw one report for a value. No float takes part."""

    @abstractmethod
    def likelihood(self, report: Report, item: Item) -> Fraction:
        """The exact probability that `item` is reported as `report`."""

    def require_within(self, epsilon: float, memo_epsilon: float | None = None) -> Self:
        """Return the mechanism, if its exact epsilon stays within the declared one, and that of its
        memos within `memo_epsilon`, if it has any.

        Raises:
            SchemeError: it would reveal more.
        """
        if self.odds > exp_below(epsilon):
            raise SchemeError.of(
                "above_epsilon",
                "{mechanism} with {parameters} has epsilon {epsilon}, above the declared "
                "{declared}: declare at least that, or change the parameters",
                mechanism=self.name,
                parameters=str(self.parameters()),
                epsilon=self.epsilon,
                declared=epsilon,
            )
        return self


class FrequencyOracle(Mechanism[Item]):
    """A mechanism whose reports support values, so that the share of any value can be estimated.

    A report supports a value when it sets one of the value's cells of the tally. Every oracle here
    is *pure* (Wang et al., USENIX Security 2017): a report supports the true value with probability
    `p` and any other value with probability `q`, so that a count S of supporting reports among n
    estimates the value's share as (S/n - q) / (p - q), without bias. Where strings are hashed, `q`
    is the average over the public hash functions.

    Attributes:
        p, q: the support probabilities, exact.
        size: number of values in a closed domain; None where any string may be asked for.
    """

    p: Fraction
    q: Fraction
    size: int | None

    def require_item(self, item: int) -> None:
        """Refuse an index outside a closed domain.

        Raises:
            ValueError: it is.
        """
        if not 0 <= item < cast(int, self.size):
            raise ValueError(f"item {item} is outside the domain of {self.size}")

    def total_variance(self, size: int) -> Fraction:
        """n times the sum of all values' variances, for n reports over `size` values.

        The sum does not depend on the data: [p(1-p) + (d-1) q(1-q)] / (p-q)**2
        (Ye and Barg, IEEE Trans. Inf. Theory 2018).
        """
        p, q = self.p, self.q
        return (p * (1 - p) + (size - 1) * q * (1 - q)) / (p - q) ** 2


class Memoizing(Mechanism[Item]):
    """A mechanism with memos: a permanent randomized response to each value, plus fresh noise.

    A device draws one row for ever. A value falls into an *entry* of that row, and the
    permanent response for an entry, the *memo*, is drawn once. Each report is drawn afresh
    from the memo of the value's entry. (Erlingsson, Pihur and Korolova, CCS 2014.) Three
    numbers bound what this reveals:

    * `odds`: one report, between any two values.
    * `lifetime_odds`: one memo. All reports of a value together, however many, reveal no
      more than its memo. So for two histories that change between entries at the same times,
      all reports reveal at most `lifetime_odds` to the power of the number of entries. This
      protects values *given the times at which they change*, but not these times: for
      histories that change at different times it is not a bound.
    * `fresh_odds`: one report, between any two memos. All memos of a device can be seen as
      a table of noise that is drawn beforehand and does not depend on any value; the values
      only decide which entry is used when. So T reports of *any* history reveal at most
      `fresh_odds` to the power T, times of change included.

    Attributes:
        lifetime_odds, fresh_odds: as above, exactly, from the integers in force.
    """

    lifetime_odds: Fraction
    fresh_odds: Fraction

    @property
    def lifetime_epsilon(self) -> float:
        """ln(lifetime_odds), rounded up: what all reports of one entry reveal at most."""
        return log_above(self.lifetime_odds)

    @property
    def fresh_epsilon(self) -> float:
        """ln(fresh_odds), rounded up: what each report adds at most, whatever came before."""
        return log_above(self.fresh_odds)

    @property
    def cost(self) -> float:
        return self.fresh_epsilon

    @abstractmethod
    def cell(self, row: int, item: Item) -> int:
        """Which entry a value falls into, for a device of that row; not negative."""

    @abstractmethod
    def memoize(self, cell: int, bits: Bits = system_bits) -> int:
        """Draw the permanent response for an entry; not negative."""

    @abstractmethod
    def report(self, row: int, memo: int, bits: Bits = system_bits) -> Report:
        """Draw one report, with fresh noise, from a memo."""

    def randomize(self, item: Item, bits: Bits = system_bits) -> Report:
        """One report of a device without row or memo, which it does not keep either."""
        row = below(len(self.rows), bits)
        return self.report(row, self.memoize(self.cell(row, item), bits), bits)

    def require_within(self, epsilon: float, memo_epsilon: float | None = None) -> Self:
        if memo_epsilon is not None and self.lifetime_odds > exp_below(memo_epsilon):
            raise SchemeError.of(
                "above_lifetime",
                "{mechanism} with {parameters} has memos of epsilon {epsilon}, above the declared "
                "lifetime_epsilon {declared}: declare at least that, or take another mechanism",
                mechanism=self.name,
                parameters=str(self.parameters()),
                epsilon=self.lifetime_epsilon,
                declared=memo_epsilon,
            )
        return super().require_within(epsilon)


class Channels(Mechanism[Item]):
    """A mechanism with another one, the *channel*, for each row.

    A device draws a row whatever its value is, finds the place of the value in that row, and
    reports the place through the row's channel. The row says nothing about the value, so that one
    report reveals no more than its channel does.

    Attributes:
        channels: that of each row; each has a single row.
    """

    channels: Sequence[Mechanism[int]]

    @abstractmethod
    def place(self, row: int, item: Item) -> int:
        """What the channel of a row randomizes in place of a value."""

    def draw(self, bits: Bits) -> int:
        """The row of a report."""
        return below(len(self.rows), bits)

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        """How often each row is drawn."""
        return (Fraction(1, len(self.rows)),) * len(self.rows)

    def randomize(self, item: Item, bits: Bits = system_bits) -> Report:
        row = self.draw(bits)
        return Report(row, self.channels[row].randomize(self.place(row, item), bits).columns)

    def likelihood(self, report: Report, item: Item) -> Fraction:
        channel, place = self.channels[report.row], self.place(report.row, item)
        return self.shares[report.row] * channel.likelihood(Report(0, report.columns), place)
