"""Which values are there at all: one-sided p-values, adjusted for how many were asked.

The z-score divides a share by its standard error under "the share is 0", so that the
level holds for values that nobody has; the plug-in error would understate it.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np

from hearsay_estimator.intervals import FloatArray

__all__ = ["Adjustment", "adjust_p", "critical_value", "p_values"]

Adjustment: TypeAlias = Literal["bh", "bonferroni"]
"""Benjamini and Hochberg (J. R. Stat. Soc. B 1995) bounds the expected share of false
discoveries, which suits lists; Bonferroni bounds the chance of any, which suits alerts."""


def p_values(z: FloatArray) -> FloatArray:
    """The upper tail of the standard normal at each z, accurate far into the tail; NaN stays."""
    tail = np.fromiter(map(math.erfc, (z / math.sqrt(2)).tolist()), np.float64, len(z))
    return tail / 2


def adjust_p(p: FloatArray, adjustment: Adjustment) -> FloatArray:
    """p-values adjusted for their number: at most alpha where the family's test rejects.

    A NaN stays NaN and does not count.
    """
    tested = np.isfinite(p)
    family = int(tested.sum())
    adjusted = np.full(len(p), np.nan)
    if adjustment == "bonferroni":
        adjusted[tested] = np.minimum(p[tested] * family, 1.0)
        return adjusted
    falling = np.argsort(-p[tested])
    ranked = p[tested][falling] * (family / np.arange(family, 0, -1))
    stepped = np.empty(family)
    stepped[falling] = np.minimum(np.minimum.accumulate(ranked), 1.0)
    adjusted[tested] = stepped
    return adjusted


def critical_value(alpha: float, family: int) -> float:
    """The z-score that any of `family` true zeros exceeds with probability at most alpha."""
    return -NormalDist().inv_cdf(alpha / family)
