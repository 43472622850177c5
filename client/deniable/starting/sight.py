"""What the crowd will and will not see of a metric, and what its reports reveal, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from deniable.discovery_forecast import Reach
from deniable.forecast import POWER, detectable_share, usable
from deniable.mechanisms import Histogram, Memoizing, PrefixTree, SlidingWindow
from deniable.metric import Metric
from deniable.number_forecast import QUANTILES, mean_std_error, reports_for_quantile
from deniable.told import counted
from deniable.windows import IN_A

__all__ = ["CANDIDATES", "sight"]

CANDIDATES = 1_000
"""The forecast of a string is for a list of so many candidates."""


def sight(metric: Metric) -> Iterator[str]:
    """Sentences for whoever declares the metric."""
    if metric.devices is None:
        yield "No forecast: say with --devices how many devices run the app."
    else:
        yield from _seen(metric, metric.devices * metric.sample_rate)
    epsilon = metric.scheme.mechanism.epsilon
    yield (
        f"One report reveals at most epsilon {epsilon:.4g}: it makes a 50/50 guess between two "
        f"values right at most {_belief(epsilon)}% of the time."
    )
    yield _lifetime(metric)


def _seen(metric: Metric, reports: float) -> Iterator[str]:
    mechanism, when = metric.scheme.mechanism, IN_A[metric.window]
    crowd = f"With {counted(round(reports), 'report')} {when}"
    if isinstance(mechanism, SlidingWindow):
        error = 1.96 * mean_std_error(mechanism, reports)
        of = "its logarithm" if mechanism.range.scale == "log" else metric.type.domain
        yield f"{crowd} the mean is known to +- {error:.3g} of {of} (95%)."
        return
    if isinstance(mechanism, Histogram):
        open_ones: list[str] = []
        closed: list[str] = []
        for each in QUANTILES:
            enough = reports_for_quantile(mechanism, each) <= reports
            (closed if enough else open_ones).append(f"p{100 * each:g}")
        if closed:
            yield f"{crowd} these quantiles have an upper limit: {', '.join(closed)}."
        if open_ones:
            yield f"{crowd} these have none: {', '.join(open_ones)}."
        return
    if isinstance(mechanism, PrefixTree):
        yield from _found(Reach.in_window(mechanism, reports), crowd)
        return
    size = len(metric.values) or CANDIDATES
    among = f"one of {size:,} values" if metric.values else f"one of {size:,} candidates"
    share = detectable_share(metric.scheme.oracle, size, reports)
    if share is None or not usable(metric.scheme.oracle, size, reports):
        yield f"{crowd} there is no usable signal for {among}."
        return
    yield (
        f"{crowd} you see {among} if at least {share:.1%} of the devices have it "
        f"(with probability {POWER:g})."
    )
    yield "You do not see rarer values, and nothing about a single device."


def _found(reach: Reach, crowd: str) -> Iterator[str]:
    if reach.half_text > 1:
        yield f"{crowd} no string is found, however many devices have it."
        return
    yield (
        f"{crowd} a string that nobody listed is found if at least {reach.sure_text:.2%} of the "
        f"devices have it (with probability 0.95; in half of the cases from {reach.half_text:.2%} "
        "on), if it looks like common text."
    )
    if reach.sure_any <= 1:
        yield f"A string of random characters takes {reach.sure_any:.2%}."
    yield (
        f"Strings that less than {reach.hidden:.2%} of the devices have stay hidden: none of 180 "
        "was found when that was measured. It is a statement about crowds; the limit on what a "
        "device reveals is its epsilon."
    )


def _lifetime(metric: Metric) -> str:
    if isinstance(metric.scheme.mechanism, Memoizing):
        return (
            f"All reports of one value together reveal at most epsilon {metric.memo_limit:g}, "
            "however many they are. When the value changes is not hidden (docs/memory.md)."
        )
    count = Fraction(metric.lifetime_epsilon) // Fraction(metric.scheme.mechanism.epsilon)
    return f"A device reports {counted(count, 'time')}, and then never again."


def _belief(epsilon: float) -> float:
    return math.ceil(1000 / (1 + math.exp(-epsilon))) / 10
