"""A tally: exact sums, which are all that the collector keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms import Row


@dataclass(frozen=True, eq=False)
class TallyRow:
    """One row: how many reports named it, and how often each column was set.

    `cells` has shape (width,) and dtype int64. `noise` is the variance of what a release has added
    to each of them (`deniable_estimator.releasing`); sums as they were collected have none.
    """

    reports: int
    cells: NDArray[np.int64]
    noise: float = 0.0

    def __add__(self, other: TallyRow) -> TallyRow:
        noise = self.noise + other.noise
        return TallyRow(self.reports + other.reports, self.cells + other.cells, noise)


@dataclass(frozen=True, eq=False)
class Tally:
    """The sum of all reports of one metric and scheme over some windows."""

    metric: str
    scheme: str
    windows: tuple[str, ...]
    rows: tuple[TallyRow, ...]
    unreadable: tuple[str, ...] = ()
    """Windows that were asked for and cannot be read: nothing of them is in the sum."""

    @cached_property
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
