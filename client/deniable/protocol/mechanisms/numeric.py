"""What mechanisms for numbers have in common: a range, whose positions they randomize, and for
distributions the cells that it is cut into."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Container
from typing import NamedTuple

from deniable.protocol.mechanisms.base import Mechanism, Report
from deniable.protocol.mechanisms.number_range import BELOW, TOP, NumberRange


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

    @abstractmethod
    def edge_variances(self) -> list[float]:
        """n times the variance of the share below each edge, for n reports; noise alone."""

    def spans(self) -> tuple[Span, ...]:
        """The positions of each cell. The first is above the last where nothing falls into it."""
        starts, ends = (BELOW, *self.edges), (*(edge - 1 for edge in self.edges), TOP)
        return tuple(map(Span, starts, ends))

    def joined(self, cells: Container[int]) -> tuple[Span, ...]:
        """The positions of these cells, or of all if nothing falls into these; neighbours are one
        span."""
        filled = {cell: span for cell, span in enumerate(self.spans()) if span.first <= span.last}
        chosen = [span for cell, span in filled.items() if cell in cells]
        spans: list[Span] = []
        for first, last in chosen or filled.values():
            joins = bool(spans) and spans[-1].last == first - 1
            spans.append(Span(spans.pop().first if joins else first, last))
        return tuple(spans)


def cell_edges(numbers: NumberRange, cells: int) -> tuple[int, ...]:
    """The positions at which cells begin, without that of the first.

    In equal parts of the scale. Whole numbers are never cut: a cell has one of them, or, where
    there are more than cells, one more or less than the others.
    """
    inner = cells - 2
    parts = int(numbers.span) if numbers.integer else inner
    if parts <= inner:
        return tuple(min(TOP, (place << 30) // parts) for place in range(inner + 1))
    cuts = ((place * parts) // inner for place in range(inner + 1))
    return tuple((cut << 30) // parts for cut in cuts)
