"""Normalized shares: the nearest point that is non-negative and sums to one (or at most one).

The Euclidean projection ("Norm-Sub") has the least error of the simple corrections;
clipping at zero and rescaling would pull the largest shares down by a fifth (Wang et al.,
NDSS 2020). It is shown beside the unbiased shares and never fed into a test or interval.
"""

from __future__ import annotations

import numpy as np

from deniable_estimator.intervals import FloatArray

__all__ = ["project"]


def project(share: FloatArray, *, complete: bool) -> FloatArray:
    """The point nearest to `share`, shape (d,), among those that shares can be.

    They are at least 0, and sum to 1 if `complete`, else to at most 1. All finite.
    """
    if not complete and np.maximum(share, 0.0).sum() <= 1:
        excess = np.float64(0.0)
    else:
        excess = _excess(share)
    projected: FloatArray = np.maximum(share - excess, 0.0)
    return projected


def _excess(share: FloatArray) -> np.float64:
    """What every share that stays positive loses, so that they sum to one.

    With the j largest kept, each loses (their sum - 1) / j; right is the largest j whose
    every share stays positive (Held, Wolfe and Crowder, Math. Programming 1974).
    """
    falling = np.sort(share)[::-1]
    loss: FloatArray = (np.cumsum(falling) - 1) / np.arange(1, len(share) + 1)
    excess: np.float64 = loss[np.flatnonzero(falling > loss)[-1]]
    return excess
