"""The warnings that a statistician would give with an estimate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable_estimator.forecasting.detection import USABLE_SHARE, critical_value
from deniable_estimator.messages import message
from deniable_estimator.statistics.intervals import Noise

_FEW = 30
"""Fewer reports than this say nothing about the population."""

_ROUGH = 0.5
"""The skewness with about four supporting reports by chance; above it, intervals and p-values are
inexact."""


def caveats(
    n: int,
    windows: Sequence[str],
    noise: Noise,
    level: float,
    *,
    devices: float,
    complete: bool,
) -> tuple[str, ...]:
    """What to bear in mind about an estimate of `len(noise.a)` values; empty if nothing.

    `devices` is how many the intervals take to have sent the n reports (see `Basis`).
    """
    if n == 0:
        return (message("no reports yet"),)
    smallest = critical_value(1 - level, len(noise.a)) * float(noise.null_error.min())
    skewness = float(np.abs(noise.skewness).max())
    return caveats_of(n, windows, smallest, skewness, devices=devices, complete=complete)


def caveats_of(
    n: int,
    windows: Sequence[str],
    smallest: float,
    skewness: float,
    *,
    devices: float,
    complete: bool,
) -> tuple[str, ...]:
    """The same from the share that noise alone can look like, and the skewness of the noise."""
    warnings = []
    if n < _FEW:
        warnings.append(
            message("too few reports (only {n}) to draw conclusions about all devices", n=n)
        )
    if smallest > USABLE_SHARE:
        warnings.append(
            message(
                "no usable signal: noise alone can look like a share of {share:.0%}, so wait for "
                "more reports",
                share=min(smallest, 9.99),
            )
        )
    if skewness > _ROUGH:
        warnings.append(
            message(
                "so few reports support any value by chance that intervals and p-values are rough"
            )
        )
    return (*warnings, *footnotes(n, windows, devices=devices, complete=complete))


def footnotes(n: int, windows: Sequence[str], *, devices: float, complete: bool) -> tuple[str, ...]:
    """The caveats that hold however many reports there are: they say what the numbers mean."""
    told = []
    if n and len(windows) > 1:
        told.append(
            message(
                "rests on {n:,} reports from {windows} windows, in which the same devices may have "
                "reported again: the intervals are for the share among all devices, and count "
                "these reports as {devices:,.0f} devices",
                n=n,
                windows=len(windows),
                devices=devices,
            )
        )
    if n and not complete:
        told.append(
            message(
                "only some of the possible values are asked for: their shares need not sum to one"
            )
        )
    return tuple(told)
