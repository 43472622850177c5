"""A histogram in letters, for where nothing can be drawn."""

from __future__ import annotations

import itertools
import math

import numpy as np

from deniable_estimator.answers.distribution import CellShares, Distribution
from deniable_estimator.document.document import Column, Frame
from deniable_estimator.document.units import SHARES
from deniable_estimator.messages import message

_BARS = 22
"""The most bars of a histogram in letters between the first and the last, which have no ends."""
_TAIL = 0.005
"""The share that the first and the last of them hold at most, so that the others are narrow."""
_WIDTH = 30


def histogram_frame(answer: Distribution) -> Frame:
    """Bars of neighbouring cells in letters, with the quantiles that lie in them."""
    bars = _bars(answer.cells)
    widest = max(max(share for _, _, share in bars), 1e-12)
    columns = (
        Column("from", message("From")),
        Column("share", message("Share")),
        Column("bar", message("Histogram (points, without intervals)"), "words"),
        Column("quantiles", "", "words"),
    )
    rows, width = [], 0.0
    for start, end, share in bars:
        # The last bars may be narrower, or have no end: they are written like the others.
        width = max(width, (end - start) / 2) if math.isfinite(end - start) else width
        marks = [
            f"p{100 * each.p:g}"
            for each, value in zip(answer.quantiles, answer.series.value.tolist(), strict=False)
            if start <= value < end or (each.outside == "above" and math.isinf(end))
        ]
        rows.append(
            (
                "" if math.isinf(start) else answer.unit.full(start, width or abs(start)),
                SHARES.full(share, 0.0),
                "█" * round(share / widest * _WIDTH),
                " ".join(marks),
            )
        )
    return Frame("histogram", "", columns, rows)


def _bars(cells: CellShares) -> list[tuple[float, float, float]]:
    """(start, end, share) of so many cells each that there are at most `_BARS` and two."""
    before = np.concatenate([[0.0], np.cumsum(cells.shares)])
    inner = len(cells.shares) - 1
    first = max(1, min(int(np.searchsorted(before, _TAIL, side="right")) - 1, inner))
    last = max(first, min(int(np.searchsorted(before, 1 - _TAIL)), inner))
    step = max(1, math.ceil((last - first) / _BARS))
    cuts = sorted({0, *range(first, last, step), last, inner + 1})
    return [
        (float(cells.starts[a]), float(cells.ends[b - 1]), float(before[b] - before[a]))
        for a, b in itertools.pairwise(cuts)
    ]
