"""How far fake devices could move a distribution and a quantile.

A fake does not randomize: it sends the well-formed report that moves the estimate most, in the row
where it counts most. Let a fraction b of all reports be fake.

**Distribution**: for a question W, a report of column y in row l scores Z_l(y)
(see `scores` beside this file). Let n_l of the n reports of honest devices be in row l, with
mean score M_l. Then k_l fakes, who all send the column of the largest score, move the estimate by
exactly ::

    sum over l of k_l / (n_l + k_l) * g_l,    g_l = max Z_l - M_l

which is concave in each k_l, so the best k fakes are spread like water: with lambda such that
the k_l sum to k,  k_l = max(0, sqrt(g_l n_l / lambda) - n_l). Few fakes are all in the row of the
largest g_l / n_l, the last one to the first: rows are not drawn for them. They could change the
weights of rows only by making a row too small, and nobody can take reports away.

**Quantile**: if F rises by at most G at every edge and falls by at most H, the quantile p comes to
lie between where the curve reaches p - G and where it reaches p + H.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from deniable_estimator.analyses.numbers.distribution import DistributionEstimate
from deniable_estimator.statistics.intervals import FloatArray


class Attack(NamedTuple):
    """The most that fakes add to an estimate, and the most that they take away; both positive."""

    gain: float
    loss: float


def worst(pulls: tuple[FloatArray, FloatArray], shares: FloatArray, fakes: float) -> Attack:
    """That of the question that fakes move most, up and down, by its g_l, shape (f, h) each."""
    return Attack(*(max(flooded(each, shares, fakes) for each in side) for side in pulls))


def quantile_attack(
    found: DistributionEstimate, attack: Attack, p: float
) -> tuple[float | None, float | None]:
    """Between which positions fakes could put quantile p; None for outside of the range.

    Args:
        attack: on the curve, as by `HistogramAnalysis.curve_attack`.
    """
    curve, edges = found.curve, found.edges
    low = int((curve < p - attack.gain).sum())
    high = int((curve < p + attack.loss).sum())
    return (
        float(edges[low - 1]) if low else None,
        float(edges[high]) if high < len(edges) else None,
    )


def row_pulls(scored: Iterable[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """g_l up and down for f questions, shape (f, h) each, by their column scores in each row, shape
    (f, K). Honest devices that send all columns alike score 0: the details of W sum to 0."""
    ends = [(each.max(axis=1), -each.min(axis=1)) for each in scored]
    up, down = np.array(ends).transpose(1, 2, 0)
    return up, down


def flooded(pulls: FloatArray, shares: FloatArray, fakes: float) -> float:
    """The most that fakes add: `pulls` (g_l) and `shares` (n_l / n) of the honest reports."""
    if fakes <= 0:
        return 0.0
    count = fakes / (1 - fakes)
    order = np.argsort(-pulls / shares)
    best = 0.0
    # The rows that get fakes are the first ones in this order.
    for used in range(1, len(order) + 1):
        rows = order[:used]
        g, n = np.maximum(pulls[rows], 0.0), shares[rows]
        roots = np.sqrt(g * n)
        if roots.sum() == 0:
            break
        sent = roots / roots.sum() * (count + n.sum()) - n
        if (sent < 0).any():
            break
        best = max(best, float((sent / (n + sent) * g).sum()))
    return best
