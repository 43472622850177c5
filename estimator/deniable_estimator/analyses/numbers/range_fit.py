"""Whether the declared range suits the numbers: too narrow, or too wide for its cells to tell much.

A bad range costs width, never validity. Findings are codes with what they rest on; words are put in
by whoever shows them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from deniable_estimator.analyses.numbers.distribution import DistributionEstimate

MOST_CLAMPED = 0.01
"""A larger share outside of the range is worth a note, if it is certain."""

FEW_CELLS = 8
"""If fewer neighbouring cells hold most of the numbers, a narrower range would tell more."""

_MOST = 0.5


class RangeFinding(NamedTuple):
    """One thing that another range would do better."""

    code: Literal["low_too_high", "high_too_low", "too_wide"]
    share: float
    """The share below `low` at least; from `high` on at least; or in so few cells."""
    cells: int = 0
    """How many neighbouring cells hold it, for `too_wide`."""


def range_findings(found: DistributionEstimate) -> tuple[RangeFinding, ...]:
    """What is wrong with the range, as far as the tally is certain of it."""
    findings = []
    if found.below.low > MOST_CLAMPED:
        findings.append(RangeFinding("low_too_high", found.below.low))
    if found.above.low > MOST_CLAMPED:
        findings.append(RangeFinding("high_too_low", found.above.low))
    crowded = _crowded(found)
    if crowded is not None:
        findings.append(crowded)
    return tuple(findings)


def _crowded(found: DistributionEstimate) -> RangeFinding | None:
    """The fewest neighbouring inner cells whose share is certain to be more than half."""
    edges = np.arange(1, found.cells)
    # Cells that are left over at the end, where whole numbers have one each, have no width.
    edges = edges[: int(np.argmax(found.edges == found.edges[-1])) + 1]
    if len(edges) - 1 <= 2 * FEW_CELLS:
        return None
    for cells in range(1, FEW_CELLS):
        shares = found.sums.below[edges[cells:]] - found.sums.below[edges[:-cells]]
        start = int(edges[int(shares.argmax())])
        share = found.share(int(found.edges[start - 1]), int(found.edges[start + cells - 1]))
        if share.low > _MOST:
            return RangeFinding("too_wide", share.low, cells)
    return None
