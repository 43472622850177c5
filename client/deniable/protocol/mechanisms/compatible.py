"""Mechanisms over a closed domain for compatibility and comparison: subset selection needs fewer
reports for the same error.

**Unary encoding**: one bit for each value, each answered by its own coin.

The bit of the true value is 1 with probability P1 / 2**53, every other bit with
probability P0 / 2**53, independently::

    p = P1 / 2**53,  q = P0 / 2**53
    e**epsilon = P1 (2**53 - P0) / [P0 (2**53 - P1)]
    n * Var(share f) = r (1-r) / (p-q)**2,  r = q + f (p-q)

*Optimized* (Wang et al., USENIX Security 2017) sets p = 1/2 and q = 1 / (e**epsilon + 1);
n * Var is 4 e**epsilon / (e**epsilon - 1)**2 for f = 0. *Symmetric* sets
p = h / (h + 1) and q = 1 - p with h = e**(epsilon / 2), which is the one-time RAPPOR
(Erlingsson et al., CCS 2014); n * Var is h / (h - 1)**2.

**Hadamard response**: one number, half of all numbers for each value.

Let H be Sylvester's Hadamard matrix of order K, the smallest power of two above the
number of values: H[v, u] = +1 where the numbers v and u share an even number of ones in
binary. Value x owns row K - 1 - x. With probability P / 2**53 a report is a uniform
column u in which that row has +1, otherwise one in which it has -1::

    p = P / 2**53             (ideally e / (e + 1), e = exp(epsilon))
    q = 1/2                   two rows agree in exactly half of the columns
    e**epsilon = P / (2**53 - P)
    n * Var(share f) = r (1-r) / (p-q)**2,  ((e+1) / (e-1))**2 for f = 0

(Acharya, Sun and Zhang, AISTATS 2019, with one block, which is their form for small
epsilon; the row of ones, 0, belongs to no value.) For epsilon above 1 other mechanisms
need far fewer reports.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import ClassVar, Self

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms.base import ONE, FrequencyOracle, Item, Packing, Report, Row
from deniable.protocol.mechanisms.limits import MAX_CELLS
from deniable.protocol.randomness import Bits, coin, flips, system_bits

MAX_SIZE = 1 << 16
"""The most values: a report of 8 kB."""


class Bitmaps(FrequencyOracle[Item]):
    """Reports of bitmaps: each bit that a value sets is 1 with chance `p`, and any other bit with
    chance `p01`, independently. Each row is drawn equally often.

    Attributes:
        p01: as above; `q` is the same where no two values set a bit in common.
    """

    p01: Fraction

    @abstractmethod
    def bitmap(self, row: int, item: Item) -> int:
        """The bits of a row that a value sets."""

    def likelihood(self, report: Report, item: Item) -> Fraction:
        bitmap = self.bitmap(report.row, item)
        kept, lost = (report.columns & bitmap).bit_count(), (bitmap & ~report.columns).bit_count()
        gained = (report.columns & ~bitmap).bit_count()
        quiet = self.rows[report.row].width - kept - lost - gained
        p, p01 = self.p, self.p01
        chance = p**kept * (1 - p) ** lost * p01**gained * (1 - p01) ** quiet
        return chance / len(self.rows)


class OwnBits(Bitmaps[int]):
    """The same over a closed domain: each value sets one bit, its own, in the only row."""

    size: int

    def bitmap(self, row: int, item: int) -> int:
        self.require_item(item)
        return 1 << item


class UnaryEncoding(OwnBits):
    """Unary encoding of `size` values, with thresholds P1 (`one`) and P0 (`zero`) of 2**53.

    Raises:
        SchemeError: fewer than two values or more than MAX_SIZE, or not 0 < P0 < P1 < 2**53.
    """

    name: ClassVar[str] = "unary_encoding"
    bounds: ClassVar = {"size": (2, MAX_SIZE), "one": (1, ONE - 1), "zero": (1, ONE - 1)}

    def __init__(self, size: int, one: int, zero: int) -> None:
        self.check_size(size, MAX_SIZE)
        if not 0 < zero < one < ONE:
            raise SchemeError(
                f"{self.name}: thresholds one = {one} and zero = {zero} must satisfy "
                f"0 < zero < one < {ONE}: epsilon would not be positive and finite"
            )
        self.size, self.one, self.zero = size, one, zero
        self.p = Fraction(one, ONE)
        self.q = self.p01 = Fraction(zero, ONE)
        self.odds = Fraction(one * (ONE - zero), zero * (ONE - one))
        self.rows = (Row(size, Packing.BITMAP, None),)

    @classmethod
    def optimized(cls, size: int, epsilon: float) -> Self:
        """The least variance of rare values; the noise threshold is rounded up."""
        return cls(size, ONE // 2, math.ceil(ONE / (exp_below(epsilon) + 1)))

    @classmethod
    def symmetric(cls, size: int, epsilon: float) -> Self:
        """Ones and zeros are equally likely to be kept; the threshold is rounded down."""
        half = exp_below(epsilon / 2)
        one = math.floor(ONE * half / (half + 1))
        return cls(size, one, ONE - one)

    def randomize(self, item: int, bits: Bits = system_bits) -> Report:
        return Report(0, flips(self.bitmap(0, item), self.size, self.one, self.zero, bits))


class HadamardResponse(FrequencyOracle[int]):
    """Hadamard response over `size` values, with truth threshold P out of 2**53.

    Raises:
        SchemeError: fewer than two values, too many for MAX_CELLS columns, or a threshold
            with which a report would not favour the truth or could not hide it.
    """

    name: ClassVar[str] = "hadamard_response"
    bounds: ClassVar = {"size": (2, MAX_CELLS), "threshold": (1, ONE - 1)}
    size: int

    def __init__(self, size: int, threshold: int) -> None:
        self.check_size(size, MAX_CELLS - 1)
        self.check_threshold(threshold, 1, 2)
        self.size, self.threshold = size, threshold
        self.order = 1 << size.bit_length()
        self.p, self.q = Fraction(threshold, ONE), Fraction(1, 2)
        self.odds = Fraction(threshold, ONE - threshold)
        self.rows = (Row(self.order, Packing.INDEX),)

    @classmethod
    def design(cls, size: int, epsilon: float) -> Self:
        """The mechanism at `epsilon`, its threshold rounded down."""
        odds = exp_below(epsilon)
        return cls(size, math.floor(ONE * odds / (odds + 1)))

    def randomize(self, item: int, bits: Bits = system_bits) -> Report:
        self.require_item(item)
        row = self.order - 1 - item
        lies = not coin(self.threshold, bits)
        column = bits(self.order.bit_length() - 1)
        if (column & row).bit_count() & 1 != lies:
            # Toggling a bit of the row pairs the columns of either sign one to one.
            column ^= row & -row
        return Report(0, column)

    def likelihood(self, report: Report, item: int) -> Fraction:
        odd = (report.columns & (self.order - 1 - item)).bit_count() & 1
        return 2 * (1 - self.p if odd else self.p) / self.order
