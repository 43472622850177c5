"""How far fake devices could move the mean, the distribution and a quantile.

A fake does not randomize: it sends the well-formed report that moves the estimate most, in the row
where it counts most. Let a fraction b of all reports be fake.

**Mean**, sliding window: a report of column j counts as a_j, so fakes alone would show the largest
score A, and the mean rises by exactly b (A - mean). -A is a score too, for fakes that lower it.

**Distribution**: for a question W, a report of column y in row l scores Z_l(y)
(see `scores` beside this file). Let n_l of the n reports of honest devices be in row l, with
mean score M_l. Then k_l fakes, who all send the column of the largest score, move the estimate by
exactly ::

    sum over l of k_l / (n_l + k_l) * g_l,    g_l = max Z_l - M_l

which is concave in each k_l, so the best k fakes are spread like water: with lambda such that
the k_l sum to k,  k_l = max(0, sqrt(g_l n_l / lambda) - n_l). Few fakes are all in the row of the
largest g_l / n_l, the last one to the first: rows are not drawn for them. They could change the
weights of rows only by making a row too small, and nobody can take reports away.

**Distribution**, dBitFlip: the same, where the score of a report is the sum over the bits of its
row of C (b - s) / (1 - 2 s) (see `bits` beside this file), and a fake chooses all bits b.

**Quantile**: if F rises by at most G at every edge and falls by at most H, the quantile p comes to
lie between where the curve reaches p - G and where it reaches p + H.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable_estimator.analyses.numbers.distribution import DistributionEstimate
from deniable_estimator.analyses.numbers.scores import Scores
from deniable_estimator.statistics.intervals import FloatArray


class Attack(NamedTuple):
    """The most that fakes add to an estimate, and the most that they take away; both positive."""

    gain: float
    loss: float


def mean_pull(window: SlidingWindow) -> float:
    """The mean, between -1 and 1 for honest reports, that fakes alone would show at most."""
    return max(map(abs, window.scores()))


@lru_cache(maxsize=16)
def even_attack(table: Scores, sizes: tuple[float, ...], fakes: float) -> Attack:
    """How far fakes move the share below an edge at most, whichever edge it is, where devices are
    spread over rows like this, and send all columns of a row alike.

    It depends on the mechanism alone, and takes longer than all else that a window is asked for.
    """
    found = row_pulls(table.at_edges(row) for row in range(table.height))
    return worst(found, np.array(sizes), fakes)


@lru_cache(maxsize=16)
def bits_curve_attack(cells: int, rows: int, flipped: float, fakes: float) -> Attack:
    """The same for dBitFlip."""
    found = bit_pulls(np.tri(cells - 1, cells), rows, flipped)
    return worst(found, np.full(rows, 1 / rows), fakes)


def worst(pulls: tuple[FloatArray, FloatArray], shares: FloatArray, fakes: float) -> Attack:
    """That of the question that fakes move most, up and down, by its g_l, shape (f, h) each."""
    return Attack(*(max(flooded(each, shares, fakes) for each in side) for side in pulls))


def bit_pulls(weights: FloatArray, rows: int, flipped: float) -> tuple[FloatArray, FloatArray]:
    """g_l up and down for f questions, shape (f, rows) each: a fake sets each bit as suits it."""
    centred = (weights - weights.mean(axis=1, keepdims=True)).reshape(len(weights), -1, rows)
    one, zero = centred * (1 - flipped) / (1 - 2 * flipped), -centred * flipped / (1 - 2 * flipped)
    mean = centred.sum(axis=1) / weights.shape[1]
    up, down = np.maximum(one, zero).sum(axis=1), np.minimum(one, zero).sum(axis=1)
    return up - mean, mean - down


def quantile_attack(
    found: DistributionEstimate, attack: Attack, p: float
) -> tuple[float | None, float | None]:
    """Between which positions fakes could put quantile p; None for outside of the range.

    Args:
        attack: on the curve, as by `even_attack`.
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
