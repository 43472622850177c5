"""What `deniable lint`, `init` and `add` say of the crowd that a metric expects: what it
tells in a window and over several, what it cannot tell, and what would help.

The SDK's commands find this module by its entry point, and do without where it is missing.

**In a day, a week and a month.** T windows of n reports each count like ::

    n T / (1 + (repeats - 1) V1 / V)

reports of different devices. V is the variance of one report, and V1 that of what a device keeps
from one report to the next (`deniable_estimator.analyses.base`), here for a share of 0: with
fresh noise nothing is kept of it, and of memos their noise. `repeats` is how often a device reports
in T windows: all T times, or once in each `one_in` of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal

from deniable.protocol.coded_message import counted
from deniable.protocol.mechanisms import FrequencyOracle, Memoizing
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.number_range import Histogram
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.metric import Metric
from deniable.protocol.windows import IN_A
from deniable_estimator.planning import crowd_limits
from deniable_estimator.planning.lifetime_split import TWOFOLD, better_split
from deniable_estimator.statistics import expected
from deniable_estimator.statistics.detection import detectable_share, usable


def remarks(
    metric: Metric, cap: float | None = None
) -> Iterator[tuple[str, Literal["warning", "note"]]]:
    """What the expected crowd cannot tell, and better choices, each with its severity. `cap` is the
    registry's own lifetime epsilon."""
    if lacks := crowd_limits.forecast(metric):
        yield lacks, "warning" if lacks.arguments["blind"] else "note"
    yield from crowd_limits.discovery_remarks(metric)
    if lacks := crowd_limits.segment_forecast(metric):
        yield lacks, "note"
    if advice := crowd_limits.wasteful_range(metric):
        yield advice, "note"
    if advice := better_split(metric, cap):
        yield advice, "warning" if advice.arguments["times"] >= TWOFOLD else "note"


def seen(metric: Metric) -> Iterator[str]:
    """What the expected crowd will tell of a new metric."""
    if metric.devices is None:
        yield "No forecast: say with --devices how many devices run the app."
        return
    reports, when = metric.devices * metric.rate, IN_A[metric.window]
    crowd = f"With {counted(round(reports), 'report')} {when}"
    mechanism = metric.scheme.mechanism
    if isinstance(mechanism, MemoizedRetention):
        told = "; ".join(_retention_words(mechanism, reports, when))
        yield f"{crowd}, {told}."
    else:
        yield f"{crowd} it {shows(metric)}."


CANDIDATES = 1_000
"""The forecast of a string is for a list of so many candidates."""

_SPANS = {
    "day": {"day": 1, "week": 7, "month": 30},
    "week": {"week": 1, "month": 4},
    "month": {"month": 1},
}
"""How many windows of a kind there are in a day, a week and a month."""


def shows(metric: Metric) -> str | None:
    """What the expected crowd shows in a day, a week and a month, as a part of a sentence; None
    where the metric says no `devices`, and of a retention, which tells more with each window."""
    if metric.devices is None or isinstance(metric.scheme.mechanism, MemoizedRetention):
        return None
    subject, figure = _shown(metric)
    told = [
        f"{figure(reports_over(metric, count))} in a {span}"
        for span, count in _SPANS[metric.window].items()
    ]
    return f"shows {subject} {', '.join(told)}"


def reports_over(metric: Metric, windows: int) -> float:
    """How many reports of different devices those of so many windows count as, for rare values."""
    assert metric.devices is not None
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
    from deniable_estimator.analyses import analysis_of  # it needs numpy

    p1, q1 = (float(each) for each in analysis_of(mechanism).memo_channel())
    p, q = float(mechanism.p), float(mechanism.q)
    return q1 * (1 - q1) / (p1 - q1) ** 2 / (q * (1 - q) / (p - q) ** 2)


def _shown(metric: Metric) -> tuple[str, Callable[[float], str]]:
    """What is shown, before the figures, and the figure of so many reports."""
    mechanism = metric.scheme.mechanism
    if isinstance(mechanism, PrefixTree):
        reach = expected.Reach.in_window
        return "new strings from", lambda n: _share(reach(mechanism, n).sure_text)
    if isinstance(mechanism, SlidingWindow):
        subject = "the mean, as a part of its range, to"
        return subject, lambda n: _width(expected.mean_half_width(mechanism, n))
    if isinstance(mechanism, Histogram):
        variance = mechanism.edge_variance
        return "shares below a number to", lambda n: _width(expected.Z * math.sqrt(variance / n))
    oracle, size = metric.scheme.oracle, len(metric.values) or CANDIDATES
    return "shares from", lambda n: _share(
        detectable_share(oracle, size, n) if usable(oracle, size, n) else None
    )


def _width(half: float) -> str:
    """How well a share, or a part of a range, is known; nothing is known to +-50%."""
    return f"+-{half:.1%}" if half < 0.5 else "nothing"


def _share(share: float | None) -> str:
    return "nothing" if share is None or share > 0.5 else f"{share:.1%}"


def _retention_words(mechanism: MemoizedRetention, reports: float, when: str) -> Iterator[str]:
    """What so many reports tell in a window and over its ages, each as the end of a sentence."""
    found = expected.ExpectedRetention.of(mechanism, reports)
    if found.exact is not None:
        yield f"who is new, stayed or returned is known to +-{100 * found.exact:.2g} points {when}"
    if found.average is not None:
        yield (
            f"how many come back to +-{100 * found.average:.2g} points, on average over "
            f"{mechanism.ages} cohorts, if {expected.NEW:.0%} of the devices are new"
        )
