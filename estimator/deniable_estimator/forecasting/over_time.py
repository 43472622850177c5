"""What a metric shows in a day, a week and a month, computed before the first report.

T windows of n reports each count like ::

    n T / (1 + (repeats - 1) V1 / V)

reports of different devices. V is the variance of one report, and V1 that of what a device keeps
from one report to the next (`deniable_estimator.analyses.memoized`), here for a share of 0: with
fresh noise nothing is kept of it, and of memos their noise. `repeats` is how often a device reports
in T windows: all T times, or once in each `one_in` of them.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from deniable.protocol.mechanisms import (
    FrequencyOracle,
    Histogram,
    MemoizedRetention,
    Memoizing,
    PrefixTree,
    SlidingWindow,
)
from deniable.protocol.metric import Metric
from deniable_estimator.forecasting.detection import detectable_share, usable
from deniable_estimator.forecasting.discovery_forecast import Reach
from deniable_estimator.forecasting.number_forecast import mean_variance

CANDIDATES = 1_000
"""The forecast of a string is for a list of so many candidates."""

_SPANS = {
    "day": {"day": 1, "week": 7, "month": 30},
    "week": {"week": 1, "month": 4},
    "month": {"month": 1},
}
"""How many windows of a kind there are in a day, a week and a month."""

_Z = NormalDist().inv_cdf(0.975)


def shows(metric: Metric) -> str | None:
    """What the expected crowd shows in a day, a week and a month, as a part of a sentence; None
    where the metric says no `devices`, and of a retention, which tells more with each window."""
    if metric.devices is None or isinstance(metric.scheme.mechanism, MemoizedRetention):
        return None
    spans = _SPANS[metric.window]
    told = [f"{_shown(metric, count)} in a {span}" for span, count in spans.items()]
    return f"shows {_subject(metric)} {', '.join(told)}"


def reports_over(metric: Metric, windows: int) -> float:
    """How many reports of different devices those of so many windows count as, for rare values.

    Raises:
        ValueError: the metric says no `devices`.
    """
    if metric.devices is None:
        raise ValueError(f"metric {metric.name} declares no devices")
    repeats = (
        1 + (windows - 1) * metric.sample_rate
        if metric.one_in is None
        else math.ceil(windows / metric.one_in)
    )
    return metric.devices * metric.rate * windows / (1 + (repeats - 1) * _kept(metric))


def _kept(metric: Metric) -> float:
    """V1 / V: the part of a report's variance that the device keeps."""
    mechanism = metric.scheme.mechanism
    if not isinstance(mechanism, Memoizing):
        return 0.0
    if not isinstance(mechanism, FrequencyOracle):
        return 1.0  # cautious: nothing averages out
    from deniable_estimator.analyses import memory_of  # it needs numpy

    p1, q1 = (float(each) for each in memory_of(mechanism).memo_channel())
    p, q = float(mechanism.p), float(mechanism.q)
    return q1 * (1 - q1) / (p1 - q1) ** 2 / (q * (1 - q) / (p - q) ** 2)


def _subject(metric: Metric) -> str:
    """What is shown, before the figures."""
    mechanism = metric.scheme.mechanism
    if isinstance(mechanism, PrefixTree):
        return "new strings from"
    if isinstance(mechanism, SlidingWindow):
        return "the mean, as a part of its range, to"
    return "shares below a number to" if isinstance(mechanism, Histogram) else "shares from"


def _shown(metric: Metric, windows: int) -> str:
    """The figure for so many windows."""
    mechanism, reports = metric.scheme.mechanism, reports_over(metric, windows)
    if isinstance(mechanism, PrefixTree):
        return _share(Reach.in_window(mechanism, reports).sure_text)
    if isinstance(mechanism, SlidingWindow):
        # Of the range, which is twice the unit of the variance.
        return f"+-{_Z * math.sqrt(mean_variance(mechanism) / reports) / 2:.1%}"
    if isinstance(mechanism, Histogram):
        variances = mechanism.edge_variances()
        return f"+-{_Z * math.sqrt(math.fsum(variances) / len(variances) / reports):.1%}"
    oracle, size = metric.scheme.oracle, len(metric.values) or CANDIDATES
    return _share(
        detectable_share(oracle, size, reports) if usable(oracle, size, reports) else None
    )


def _share(share: float | None) -> str:
    return "nothing" if share is None or share > 0.5 else f"{share:.1%}"
