"""Sliding window: one column of D for a bounded number, for its mean.

The range is cut at N + 1 levels, N = D - w, of which level i owns the window of the columns i to
i + w - 1. A position is rounded to one of the two levels next to it, at random so that its
expectation stays. With probability P / 2**53 a report is a uniform column of the level's window,
otherwise a uniform column outside of it::

    e**epsilon = P (D-w) / [(2**53 - P) w]        (ideally P / 2**53 = e w / (e w + D - w))
    mean       = sum over columns j of scores_j * (share of reports with column j)
    n * Var    = sum scores_j**2 share_j - mean**2             in units of half the range, squared

An optimal mechanism needs no likelihood ratios but 1 and e**epsilon (Kairouz, Oh and Viswanath,
JMLR 2016). For a mean, the outputs that a number favours are then an interval, and windows of one
length, with free levels and scores, come close to any choice of intervals. With D = 64 the worst
variance over the range is at most 1.02 times the least that any mechanism has, for epsilon from
0.25 to 5 (computed by a linear program).

D = 2 and w = 1 is the mechanism of one bit (Duchi, Jordan and Wainwright, J. Am. Stat. Assoc.
2018), which Microsoft calls 1BitMean (Ding, Kulkarni and Yekhanin, NIPS 2017).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Self

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms.base import ONE, Packing, Report, Row
from deniable.protocol.mechanisms.limits import Each, check_epsilon
from deniable.protocol.mechanisms.number_range import BELOW, TOP, NumberRange, Numeric, Span
from deniable.protocol.randomness import Bits, below, coin, system_bits

COLUMNS = 64
"""The columns of a design. No number of columns could save more than 2% up to epsilon 5."""

NEAR_OPTIMUM = 5.0
"""Up to this epsilon the worst variance is within 2% of the least."""

MAX_COLUMNS = 256
"""The most columns: scores take a linear system with up to half as many unknowns."""

_WIDTHS: tuple[tuple[float, int], ...] = (
    *((1.1, 32), (1.2, 31), (1.3, 30), (1.4, 29), (1.55, 28), (1.7, 27), (1.9, 26), (2.1, 25)),
    *((2.4, 24), (2.75, 23), (3.0, 22), (3.3, 20), (3.6, 19), (3.85, 18), (4.0, 17), (4.35, 16)),
    *((4.6, 15), (4.8, 14), (5.15, 13), (5.45, 12), (5.8, 11), (6.15, 10), (6.55, 9), (6.95, 8)),
    *((7.45, 7), (8.05, 6), (8.75, 5), (9.65, 4), (10.0, 3)),
)
"""Up to which epsilon a window of so many columns out of 64 has the least worst variance, all
widths compared in steps of 0.05."""


class SlidingWindow(Numeric):
    """Windows of `width` of the `columns`, with truth threshold P out of 2**53.

    Attributes:
        levels: positions, increasing from 0 to 2**30, one more than `columns - width`.

    Raises:
        SchemeError: no such window, a threshold with which a report would not favour the truth or
            could not hide it, or levels that do not increase from 0 to 2**30.
    """

    name: ClassVar[str] = "sliding_window"
    bounds: ClassVar = {
        "range": NumberRange,
        "columns": (2, MAX_COLUMNS),
        "width": (1, MAX_COLUMNS - 1),
        "threshold": (1, ONE - 1),
        "levels": Each(0, TOP),
    }

    def __init__(
        self,
        range: NumberRange,
        columns: int,
        width: int,
        threshold: int,
        levels: tuple[int, ...],
    ) -> None:
        if columns % 2:
            raise SchemeError(f"{self.name}: columns must be even, not {columns}")
        if not 1 <= width < columns:
            raise SchemeError(f"{self.name}: width must be from 1 to {columns - 1}, not {width}")
        self.check_threshold(threshold, width, columns)
        ends = (levels[0], levels[-1]) if levels else ()
        rising = all(lower < upper for lower, upper in pairwise(levels))
        if len(levels) != columns - width + 1 or ends != (0, TOP) or not rising:
            raise SchemeError(
                f"{self.name}: levels must be {columns - width + 1} integers that increase from 0 "
                f"to {TOP}"
            )
        self.range = range
        self.columns, self.width, self.threshold, self.levels = columns, width, threshold, levels
        self.odds = Fraction(threshold * (columns - width), (ONE - threshold) * width)
        self.rows = (Row(columns, Packing.INDEX),)
        self._inside = Fraction(threshold, ONE * width)
        self._outside = Fraction(ONE - threshold, ONE * (columns - width))

    @classmethod
    def design(cls, range: NumberRange, epsilon: float, columns: int = COLUMNS) -> Self:
        """The window of least worst variance at `epsilon`, its threshold rounded down."""
        return cls(range, columns, *_design(check_epsilon(epsilon), columns))

    def randomize(self, item: int, bits: Bits = system_bits) -> Report:
        lower, rest, gap = self._place(item)
        level = lower + (below(gap, bits) < rest)
        if coin(self.threshold, bits):
            return Report(0, level + below(self.width, bits))
        other = below(self.columns - self.width, bits)
        return Report(0, other + self.width if other >= level else other)

    def likelihood(self, report: Report, item: int) -> Fraction:
        lower, rest, gap = self._place(item)
        from_lower, from_upper = (
            self._inside if level <= report.columns < level + self.width else self._outside
            for level in (lower, lower + 1)
        )
        return from_lower + (from_upper - from_lower) * Fraction(rest, gap)

    def favoured(self, report: Report) -> tuple[Span, ...]:
        first = max(0, report.columns - self.width + 1)
        last = min(len(self.levels) - 1, report.columns)
        # Numbers below the range are rounded to the first level.
        return (Span(self.levels[first] if first else BELOW, self.levels[last]),)

    def scores(self) -> tuple[float, ...]:
        """What each column counts for, in units of half the range: -1 is `low`, 1 is `high`.

        The expected score at a level is its place, to within 2**-29: the levels are rounded to
        2**-30 of the range.

        Raises:
            SchemeError: the levels are not those of these columns, this width and this threshold,
                so that no score here would be unbiased.
        """
        scores, places = _solve(self.columns, self.width, self.threshold)
        for level, place in zip(self.levels, places, strict=True):
            if not abs(2 * level / TOP - 1 - place) < 2**-29:
                raise SchemeError(f"{self.name}: the levels do not belong to the threshold")
        return scores

    def _place(self, position: int) -> tuple[int, int, int]:
        """The level below a position, how far it lies above that, and how far the next one is."""
        position = min(max(position, 0), TOP)
        lower = min(bisect_right(self.levels, position), len(self.levels) - 1) - 1
        start = self.levels[lower]
        return lower, position - start, self.levels[lower + 1] - start


def _design(epsilon: float, columns: int) -> tuple[int, int, tuple[int, ...]]:
    """Width, threshold and levels: the best width of 64 columns in proportion, or the next one
    with levels that increase, which few columns do not have at every width."""
    odds = exp_below(epsilon)
    wide = next(width for limit, width in _WIDTHS if epsilon <= limit)
    width = min(max(1, round(wide * columns / COLUMNS)), columns // 2)
    while True:
        threshold = math.floor(ONE * odds * width / (odds * width + columns - width))
        if not width * ONE < threshold * columns < columns * ONE:
            # 53 bits cannot tell this epsilon from zero or infinity.
            return width, threshold, ()
        places = _solve(columns, width, threshold)[1][1:-1]
        levels = (0, *(round((place + 1) / 2 * TOP) for place in places), TOP)
        if width == columns // 2 or all(lower < upper for lower, upper in pairwise(levels)):
            return width, threshold, levels
        width += 1


@lru_cache(maxsize=64)
def _solve(columns: int, width: int, threshold: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The scores of the columns and the places of the levels, both in units of half the range.

    Minimises the expected square of a score at the lowest level, among scores that are
    antisymmetric, put the highest level at 1, and have the same variance at all levels. As window
    i + 1 is window i without column i and with column i + w, the last condition is::

        a_i + a_(i+w) = x_i + x_(i+1)        x_i = (g - m) * sum of a over window i
        m = (1-p) / (D-w), g = p / w         the chances of one column outside and inside

    By Lagrange's multipliers l, for the conditions C a = b and the squares' weights q:
    a = Q^-1 C' l with (C Q^-1 C') l = b, Q being the diagonal matrix of q. Only +, -, * and /
    are used, in a fixed order: every machine with 64-bit IEEE floats gets the same bits.
    """
    half, count = columns // 2, columns - width
    outside = (ONE - threshold) / (ONE * count)
    # One division of integers: at a small epsilon a difference of floats would have no digits left.
    gain = (threshold * count - (ONE - threshold) * width) / (ONE * width * count)

    def fold(functional: list[float]) -> list[float]:
        """A functional of all columns as one of the first half."""
        return [functional[j] - functional[columns - 1 - j] for j in range(half)]

    def window(level: int) -> list[float]:
        return [gain if level <= j < level + width else 0.0 for j in range(columns)]

    conditions = []
    for i in range(count // 2):
        row = [-a - b for a, b in zip(window(i), window(i + 1), strict=True)]
        row[i] += 1
        row[i + width] += 1
        conditions.append(fold(row))
    conditions.append(fold(window(count)))
    # The last window reaches no column of the first half.
    weights = [2 * outside + (gain if j < width else 0.0) for j in range(half)]
    system = [
        [_dot([a / q for a, q in zip(row, weights, strict=True)], other) for other in conditions]
        for row in conditions
    ]
    multipliers = _eliminate(system, [0.0] * (len(conditions) - 1) + [1.0])
    left = [_dot([row[j] for row in conditions], multipliers) / weights[j] for j in range(half)]
    scores = [*left, *(-each for each in reversed(left))]
    places = [_dot(window(i), scores) for i in range(count + 1)]
    return tuple(scores), tuple(places)


def _eliminate(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a positive definite system by Gauss's elimination, which needs no pivots for it."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for k, pivot in enumerate(rows):
        for row in rows[k + 1 :]:
            factor = row[k] / pivot[k]
            for j in range(k, size + 1):
                row[j] -= factor * pivot[j]
    solution = [0.0] * size
    for k in reversed(range(size)):
        rest = _dot(rows[k][k + 1 : size], solution[k + 1 :])
        solution[k] = (rows[k][size] - rest) / rows[k][k]
    return solution


def _dot(left: list[float], right: list[float]) -> float:
    """The sum of products from left to right; `sum` rounds otherwise in later Pythons."""
    total = 0.0
    for a, b in zip(left, right, strict=True):
        total += a * b
    return total
