"""Which windows of a metric look dishonest, or unlike the windows before them.

Each window has the figures of its own tally (`deniable_estimator.anomalies`), and two that
compare it with up to 28 windows before it: *jump*, the share of the value that moved furthest, and
*answers*, how many answered. With m windows before, mean y, variance s**2, and a new one x ::

    t = (x - y) / sqrt(V + V/m + D),  V = max(s**2, noise of those before)

D being by how much the new one is noisier. Under Student's distribution with m - 1 degrees of
freedom this is calibrated if windows vary as they did, so a jump is a reason to look, and no
proof of fakes: a launch is one too. All p-values are adjusted together (Holm), so that the
whole table raises a false alarm as seldom as one metric should.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable_estimator.anomalies import ALARM_LEVEL, Figure, Verdict
from deniable_estimator.estimate import Estimate
from deniable_estimator.tails import student_tails
from deniable_estimator.trend import Trend

__all__ = ["LEAST_HISTORY", "LONGEST_HISTORY", "History", "Window", "inspect"]

LEAST_HISTORY = 7
"""How many earlier windows are needed for a comparison: a week of days."""

LONGEST_HISTORY = 28
"""How many earlier windows are used; older ones say little about the present."""


@dataclass(frozen=True, slots=True)
class Window:
    """One window, with its figures; their p-values are adjusted for all windows."""

    label: str
    n: int
    """Reports."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class History:
    """All windows of a metric that have answers, the oldest first."""

    metric: str
    alarm_level: float
    windows: tuple[Window, ...]

    @property
    def anomalous(self) -> tuple[Window, ...]:
        """The windows that raise an alarm."""
        return tuple(each for each in self.windows if each.verdict.alarms(self.alarm_level))

    def to_dict(self) -> dict[str, Any]:
        """As JSON can carry it: `metric`, `level`, and `windows` with `window`, `n` and what
        `Verdict.to_dict` says."""
        return {
            "metric": self.metric,
            "level": self.alarm_level,
            "windows": [
                {"window": each.label, "n": each.n, **each.verdict.to_dict(self.alarm_level)}
                for each in self.windows
            ],
        }


def inspect(trend: Trend, alarm_level: float = ALARM_LEVEL) -> History:
    """The windows of a trend; the trend is best by the metric's own windows."""
    answered = [period for period in trend.periods if period.estimate]
    estimates = [period.estimate for period in answered if period.estimate]
    found = []
    for at, estimate in enumerate(estimates):
        before = estimates[max(0, at - LONGEST_HISTORY) : at]
        found.append([*estimate.verdict.figures, *_against(before, estimate)])
    together = Verdict.of([figure for each in found for figure in each]).figures
    windows, start = [], 0
    for period, each in zip(answered, found, strict=True):
        mine = together[start : start + len(each)]
        windows.append(Window(period.label, period.n, Verdict(mine)))
        start += len(each)
    return History(trend.metric, alarm_level, tuple(windows))


def _against(before: Sequence[Estimate], now: Estimate) -> Iterator[Figure]:
    """How far a window lies from those before it."""
    before = [each for each in before if each.values == now.values]
    if len(before) < LEAST_HISTORY:
        return
    scheme = now.schemes[0]
    counts = np.log([[each.n] for each in before])
    # As a random count, n reports have a relative standard error of 1 / sqrt(n).
    noise = np.array([[1 / each.n] for each in before])
    p = _predicted(counts, noise, np.log([now.n]), np.array([1 / now.n]))
    usual = float(np.exp(counts.mean()))
    yield Figure("answers", scheme, float(now.n), usual, float(p[0]))
    shares = np.array([each.share for each in before])
    errors = np.array([each.std_error for each in before]) ** 2
    p = _predicted(shares, errors, now.share, now.std_error**2)
    if not np.isfinite(p).any():
        return
    at = int(np.nanargmin(p))
    family = int(np.isfinite(p).sum())
    usual = float(shares[:, at].mean())
    value = now.values[at]
    yield Figure(
        "jump", scheme, float(now.share[at]), usual, min(1.0, family * float(p[at])), value=value
    )


def _predicted(before: Any, noise: Any, now: Any, noise_now: Any) -> Any:
    """Two-sided p-values of each column's newest entry; (m, d), (m, d), (d,), (d,) -> (d,)."""
    m = len(before)
    usual_noise = noise.mean(axis=0)
    spread = np.maximum(before.var(axis=0, ddof=1), usual_noise)
    variance = spread * (1 + 1 / m) + np.maximum(noise_now - usual_noise, 0.0)
    t = (now - before.mean(axis=0)) / np.sqrt(variance)
    return np.array([student_tails(each, m - 1) if math.isfinite(each) else math.nan for each in t])
