"""What `deniable lint`, `init`, `add` and `doctor` say of the crowd that a metric expects.

The SDK's commands find this module by its entry point, and do without where it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from deniable.protocol.coded_message import counted
from deniable.protocol.mechanisms import Histogram, MemoizedRetention, PrefixTree, SlidingWindow
from deniable.protocol.metric import Metric
from deniable.protocol.windows import IN_A
from deniable_estimator.forecasting.detection import POWER, detectable_share, usable
from deniable_estimator.forecasting.discovery_forecast import Reach, discovery_remarks
from deniable_estimator.forecasting.forecast import forecast, is_blind, segment_forecast
from deniable_estimator.forecasting.lifetime_advice import TWOFOLD, better_split
from deniable_estimator.forecasting.number_forecast import (
    QUANTILES,
    mean_std_error,
    reports_for_quantile,
    wasteful_range,
)
from deniable_estimator.forecasting.over_time import CANDIDATES, shows
from deniable_estimator.forecasting.retention_forecast import retention_words


def remarks(
    metric: Metric, cap: float | None = None
) -> Iterator[tuple[str, Literal["warning", "note"]]]:
    """What the expected crowd cannot tell, and better choices, each with its severity. `cap` is the
    registry's own lifetime epsilon."""
    if lacks := forecast(metric):
        yield lacks, "warning" if is_blind(metric) else "note"
    yield from discovery_remarks(metric)
    if lacks := segment_forecast(metric):
        yield lacks, "note"
    if advice := wasteful_range(metric):
        yield advice, "note"
    if advice := better_split(metric, cap):
        yield advice, "warning" if advice.arguments["times"] >= TWOFOLD else "note"


def too_few_devices(metric: Metric) -> str | None:
    """What the expected crowd lacks, if it is so small that the metric is of no use."""
    return forecast(metric) if is_blind(metric) else None


def seen(metric: Metric) -> Iterator[str]:
    """What the expected crowd will and will not tell of a new metric."""
    yield from _in_a_window(metric)
    if told := shows(metric):
        yield f"It {told}."


def _in_a_window(metric: Metric) -> Iterator[str]:
    """What it tells in one window."""
    if metric.devices is None:
        yield "No forecast: say with --devices how many devices run the app."
        return
    reports = metric.devices * metric.rate
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
    if isinstance(mechanism, MemoizedRetention):
        yield f"{crowd}, {retention_words(metric)}."
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
