"""A tally: exact sums, which are all that the collector keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms import Row

__all__ = ["Tally", "TallyRow", "empty_tally"]


@dataclass(frozen=True, eq=False)
class TallyRow:
    """One row: how many reports named it, and how often each column was set.

    `cells` has shape (width,) and dtype int64.
    """

    reports: int
    cells: NDArray[np.int64]

    def __add__(self, other: TallyRow) -> TallyRow:
        return TallyRow(self.reports + other.reports, self.cells + other.cells)


@dataclass(frozen=True, eq=False)
class Tally:
    """The sum of all reports of one metric and scheme over some windows."""

    metric: str
    scheme: str
    windows: tuple[str, ...]
    rows: tuple[TallyRow, ...]

    @property
    def reports(self) -> int:
        """How many reports it sums: in one window, one for each device that reported."""
        return sum(row.reports for row in self.rows)


def empty_tally(metric: str, scheme: str, windows: Sequence[str], rows: Sequence[Row]) -> Tally:
    """A tally of no reports, with rows as wide as the mechanism's."""
    return Tally(
        metric,
        scheme,
        tuple(windows),
        tuple(TallyRow(0, np.zeros(row.width, np.int64)) for row in rows),
    )
