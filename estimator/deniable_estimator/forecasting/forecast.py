"""What `deniable lint` says of the crowd that a metric expects: what it cannot detect in a window,
and what would help."""

from __future__ import annotations

import math

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.numeric import Histogram, Numeric
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.metric import Metric
from deniable.protocol.segments import LEAST_REPORTS
from deniable.protocol.windows import IN_A
from deniable_estimator.forecasting.detection import (
    detectable_share,
    reports_to_detect,
    taking_part,
    usable,
)
from deniable_estimator.forecasting.discovery_forecast import Reach, discovery_forecast
from deniable_estimator.forecasting.number_forecast import (
    mean_half_width,
    number_forecast,
    reports_for_quantile,
)
from deniable_estimator.forecasting.retention_forecast import retention_forecast

WORTHWHILE_SHARE = 0.01
"""A metric that cannot detect a share of 1% gets a note before it is released."""

LARGE_SHARE = 0.05
"""A metric that cannot even detect this share gets a warning."""


def forecast(metric: Metric) -> CodedMessage | None:
    """What the expected crowd cannot detect, and what would help; None if it detects 1%.

    A metric that does not say how many `devices` it expects, or asks for strings that are named
    later, has no forecast.
    """
    if isinstance(metric.scheme.mechanism, Numeric):
        return number_forecast(metric)
    if isinstance(metric.scheme.mechanism, PrefixTree):
        return discovery_forecast(metric)
    if isinstance(metric.scheme.mechanism, MemoizedRetention):
        return retention_forecast(metric)
    if metric.devices is None or not metric.values:
        return None
    mechanism, size = metric.scheme.oracle, len(metric.values)
    reports = metric.devices * metric.rate
    seen = detectable_share(mechanism, size, reports)
    if seen is not None and seen <= WORTHWHILE_SHARE:
        return None
    needed = math.ceil(reports_to_detect(mechanism, size, WORTHWHILE_SHARE) / metric.rate)
    facts = {"devices": metric.devices, "rate": taking_part(metric), "needed": needed}
    if seen is None or not usable(mechanism, size, reports):
        return CodedMessage(
            "no_signal",
            "no usable signal with {devices:,} devices at {rate}: a 1% share takes "
            "{needed:,} devices, or a larger epsilon or rate",
            **facts,
        )
    return CodedMessage(
        "weak_signal",
        "with {devices:,} devices at {rate} no share below {share:.1%} stands out "
        "{when}: a 1% share takes {needed:,} devices, or a larger epsilon or rate",
        share=seen,
        when=IN_A[metric.window],
        **facts,
    )


_UNIONS = {"day": (1, 7, 28), "week": (1, 4, 13), "month": (1, 3, 12)}
"""How many windows of each kind are added up until a segment says something."""


def segment_forecast(metric: Metric) -> CodedMessage | None:
    """What a segment of average size cannot detect in one window, and over how many windows it
    can; None if it detects a share of 5% (LARGE_SHARE) in one, or nothing is known of it.

    The windows are added up as if each device reported in one of them: where the same devices
    report again, it takes somewhat more.
    """
    if not metric.segments:
        return None
    if metric.devices is None:
        count = len(metric.scheme.combinations)
        return CodedMessage(
            "segments_unknown_crowd",
            "is counted by {count} segments, and says nothing of its crowd: declare `devices`, so "
            "that lint can tell whether each segment has {least} reports in a window; if they are "
            "of equal size that takes {devices:,} devices",
            count=count,
            least=LEAST_REPORTS,
            devices=math.ceil(LEAST_REPORTS * count / metric.rate),
        )
    if not metric.values:
        return None
    mechanism, size = metric.scheme.oracle, len(metric.values)
    count = len(metric.scheme.combinations)
    reports = metric.devices * metric.rate / count
    needed = reports_to_detect(mechanism, size, LARGE_SHARE)
    if reports >= needed:
        return None
    unions = [each for each in _UNIONS[metric.window] if each * reports >= needed]
    facts = {
        "count": count,
        "share": LARGE_SHARE,
        "devices": math.ceil(needed * count / metric.rate),
    }
    if unions:
        return CodedMessage(
            "small_segments",
            "in one of its {count} segments, if they are of equal size, a share of {share:.0%} "
            "does not stand out {when}, but over {windows} windows; in one window it takes "
            "{devices:,} devices",
            when=IN_A[metric.window],
            windows=unions[0],
            **facts,
        )
    return CodedMessage(
        "blind_segments",
        "in one of its {count} segments, if they are of equal size, a share of {share:.0%} does "
        "not stand out, not even over {windows} windows; in one window it takes {devices:,} "
        "devices",
        windows=_UNIONS[metric.window][-1],
        **facts,
    )


def is_blind(metric: Metric) -> bool:
    """Whether the expected crowd cannot even detect a share of 5% (LARGE_SHARE) in a window, the
    median of a number, a string of 5% that nobody listed, or who comes back to ten points."""
    mechanism = metric.scheme.mechanism
    if metric.devices is None:
        return False
    reports = metric.devices * metric.rate
    if isinstance(mechanism, SlidingWindow):
        return mean_half_width(mechanism, reports) >= 0.5
    if isinstance(mechanism, Histogram):
        return reports_for_quantile(mechanism, 0.5) > reports
    if isinstance(mechanism, PrefixTree):
        return Reach.in_window(mechanism, reports).half_text > LARGE_SHARE
    if isinstance(mechanism, MemoizedRetention):
        return retention_forecast(metric) is not None
    if not metric.values:
        return False
    seen = detectable_share(metric.scheme.oracle, len(metric.values), reports)
    return seen is None or seen > LARGE_SHARE
