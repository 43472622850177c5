"""Normalized shares: not negative, and summing to one (those of candidates, to at most one).

The nearest such point to all unbiased shares ("Norm-Sub") takes from the largest shares what the
noise of long lists adds up to: with 100,000 values most of the top 20 leave their intervals.
Dropping what is not detected ("Base-Cut") keeps the top, and sums over many values lose all that
is not detected (Wang et al., NDSS 2020, compare these and others). So the two are put together:

1. The shares of a closed list move by the same amount each, so that they sum to one.
2. Values that are detected keep their shares. If these alone exceed one, they are the nearest
   shares that sum to one, and nothing is left for others.
3. All other values have the sum of their shares, no less than 0 and no more than the detected
   ones leave. This sum is nearly unbiased, where each of them alone is mostly noise. The
   nearest shares with that sum are theirs.
4. If nothing is detected, all values have equal parts of the sum: the nearest shares would name
   those whose noise happens to be the largest.

Of the rules that `benchmarks/normalization.py` compares, this one has an error of the top that is
nearly that of the unbiased shares, and sums nearly as exact as any. Normalized shares stand beside
the unbiased ones and are never fed into a test or interval.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.intervals import FloatArray

__all__ = ["normalize"]


def normalize(share: FloatArray, detected: NDArray[np.bool_], *, complete: bool) -> FloatArray:
    """Normalized shares of d > 0 values; both arrays have shape (d,), and all shares are finite.

    They are at least 0, and sum to 1 if `complete`, else to at most 1.
    """
    if complete:
        share = share + (1 - share.sum()) / len(share)
    if not detected.any():
        return np.full(len(share), np.clip(share.sum(), 0.0, 1.0) / len(share))
    normalized = np.empty(len(share))
    there = np.maximum(share[detected], 0.0).sum()
    normalized[detected] = _nearest(share[detected], min(there, 1.0))
    rest = share[~detected].sum()
    normalized[~detected] = _nearest(share[~detected], np.clip(rest, 0.0, max(1.0 - there, 0.0)))
    return normalized


def _nearest(share: FloatArray, total: float) -> FloatArray:
    """The point nearest to `share`, shape (d,), that is non-negative and sums to `total`.

    With the j largest kept, each loses (their sum - total) / j; right is the largest j whose
    every share stays positive (Held, Wolfe and Crowder, Math. Programming 1974).
    """
    if total <= 0 or not len(share):
        return np.zeros(len(share))
    falling = np.sort(share)[::-1]
    loss = (np.cumsum(falling) - total) / np.arange(1, len(share) + 1)
    # The largest stays in any case; rounding may hide it beside a total that is next to nothing.
    kept = max(1, int(np.count_nonzero(falling > loss)))
    nearest: FloatArray = np.maximum(share - loss[kept - 1], 0.0)
    return nearest
