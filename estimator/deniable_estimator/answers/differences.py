"""Intervals of the difference of two independent estimates."""

from __future__ import annotations

import numpy as np

from deniable_estimator.statistics.intervals import FloatArray

__all__ = ["interval_of_difference"]


def interval_of_difference(
    old: tuple[FloatArray, FloatArray, FloatArray], new: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """The ends of the intervals of new - old; each is given as value, low and high, shape (d,).

    For independent estimates with intervals (l, u) the difference d lies between ::

        d - sqrt((new - l_new) ** 2 + (u_old - old) ** 2)
        d + sqrt((u_new - new) ** 2 + (old - l_old) ** 2)

    (Newcombe, Statistics in Medicine 1998, method 10), which for large crowds is
    d +- z sqrt(Var_old + Var_new).
    """
    (was, was_low, was_high), (now, now_low, now_high) = old, new
    return (
        now - was - np.hypot(now - now_low, was_high - was),
        now - was + np.hypot(now_high - now, was - was_low),
    )
