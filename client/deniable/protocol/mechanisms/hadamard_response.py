"""Hadamard response over a closed domain: one number, half of all numbers for each value.

Let H be Sylvester's Hadamard matrix of order K, the smallest power of two above the
number of values: H[v, u] = +1 where the numbers v and u share an even number of ones in
binary. Value x owns row K - 1 - x. With probability P / 2**53 a report is a uniform
column u in which that row has +1, otherwise one in which it has -1::

    p = P / 2**53             (ideally e / (e + 1), e = exp(epsilon))
    q = 1/2                   two rows agree in exactly half of the columns
    e**epsilon = P / (2**53 - P)
    n * Var(share f) = r (1-r) / (p-q)**2,  ((e+1) / (e-1))**2 for f = 0

(Acharya, Sun and Zhang, AISTATS 2019, with one block, which is their form for small
epsilon; the row of ones, 0, belongs to no value.) Included for compatibility and comparison: for
epsilon above 1 other mechanisms need far fewer reports.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Self

from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms.base import ONE, FrequencyOracle, Packing, Report, Row
from deniable.protocol.mechanisms.limits import MAX_CELLS
from deniable.protocol.randomness import Bits, coin, system_bits


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
