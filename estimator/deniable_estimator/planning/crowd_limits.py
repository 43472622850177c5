"""What the expected crowd of a metric cannot tell, and what would help."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.number_range import Histogram, Numeric
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.metric import Metric
from deniable.protocol.segments import LEAST_REPORTS
from deniable.protocol.windows import IN_A
from deniable_estimator.statistics import expected
from deniable_estimator.statistics.detection import detectable_share, reports_to_detect, usable

WORTHWHILE_SHARE = 0.01
"""A metric that cannot detect a share of 1%, or find such strings in half of the windows, gets a
note before it is released."""

LARGE_SHARE = 0.05
"""A metric that cannot even detect this share gets a warning."""

GOOD_MEAN = 0.05
"""A mean that is not even known to 5% of the range, up or down, is worth a note."""

USEFUL_RETENTION = 0.1
"""An average retention that is not even known to ten points gets a warning."""

NOTHING = 0.5
"""If a string needs a larger share to surface, nothing will."""

USUAL_LENGTH = 16
"""Above so many bytes, lint warns: longer strings are seldom found whole."""

WIDE = 100
"""On a linear scale, a range this many times its lower bound leaves few cells for small numbers."""


def forecast(metric: Metric) -> CodedMessage | None:
    """What the expected crowd cannot detect, and what would help; None if it detects 1%. Its
    argument `blind` says whether it cannot even detect a share of 5% (LARGE_SHARE) in a window, the
    median of a number, a string of 5% that nobody listed, or who comes back to ten points.

    A metric that does not say how many `devices` it expects, or asks for strings that are named
    later, has no forecast.
    """
    if metric.devices is None:
        return None
    mechanism, reports = metric.scheme.mechanism, metric.devices * metric.rate
    facts = {"devices": metric.devices, "rate": _taking_part(metric), "when": IN_A[metric.window]}
    if isinstance(mechanism, Numeric):
        return _number_forecast(metric, reports, facts)
    if isinstance(mechanism, MemoizedRetention):
        return _retention_forecast(expected.ExpectedRetention.of(mechanism, reports), facts)
    if isinstance(mechanism, PrefixTree):
        return _discovery_forecast(metric, mechanism, reports, facts)
    if not metric.values:
        return None
    oracle, size = metric.scheme.oracle, len(metric.values)
    seen = detectable_share(oracle, size, reports)
    if seen is not None and seen <= WORTHWHILE_SHARE:
        return None
    facts["needed"] = math.ceil(reports_to_detect(oracle, size, WORTHWHILE_SHARE) / metric.rate)
    facts["blind"] = seen is None or seen > LARGE_SHARE
    if seen is None or not usable(oracle, size, reports):
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
        **facts,
    )


def _taking_part(metric: Metric) -> CodedMessage:
    """What part of the devices reports in a window, as the registry says it."""
    if metric.one_in is not None:
        return CodedMessage("one_in", "one_in {count:,}", count=metric.one_in)
    return CodedMessage("sample_rate", "sample_rate {rate:g}", rate=metric.sample_rate)


def _number_forecast(metric: Metric, reports: float, facts: dict[str, Any]) -> CodedMessage | None:
    """What so many reports cannot tell of a number; None if they can."""
    mechanism = metric.scheme.mechanism
    found, blind = [], False
    window = mechanism.mean if isinstance(mechanism, HierarchicalHistogram) else mechanism
    if isinstance(window, SlidingWindow):
        part = expected.mean_half_width(window, reports if window is mechanism else reports / 4)
        blind = part >= 0.5
        if blind:
            told = "the mean is known to no better than the range"
            found.append(CodedMessage("unknown_mean", told))
        elif part > GOOD_MEAN:
            told = "the mean is known to +-{part:.2g} of the range"
            found.append(CodedMessage("rough_mean", told, part=part))
    if isinstance(mechanism, Histogram):
        needed = {p: expected.reports_for_quantile(mechanism, p) for p in expected.QUANTILES}
        open_ones = [p for p, count in needed.items() if count > reports]
        blind = 0.5 in open_ones
        if open_ones:
            names = [f"p{100 * each:g}" for each in open_ones]
            found.append(
                CodedMessage(
                    "open_quantiles",
                    "{quantiles} will have no upper limit {when}: {last} takes more than "
                    "{needed:,} devices",
                    quantiles=", ".join(names),
                    when=facts["when"],
                    last=names[-1],
                    needed=math.ceil(needed[open_ones[-1]] / metric.rate),
                )
            )
    if not found:
        return None
    lacks, *more = found
    for each in more:
        lacks = CodedMessage("both", "{told}; {part}", told=lacks, part=each)
    return CodedMessage(
        "rough_number",
        "with {devices:,} devices at {rate} {lacks}. More devices, or a larger epsilon or rate, "
        "tell more",
        lacks=lacks,
        blind=blind,
        **facts,
    )


def _retention_forecast(
    found: expected.ExpectedRetention, facts: dict[str, Any]
) -> CodedMessage | None:
    """What so many reports cannot tell; None if the average retention is known to ten points, or
    the lifecycle where it alone is asked for."""
    if found.width <= USEFUL_RETENTION:
        return None
    facts |= {"blind": True, "points": 100 * found.width}
    if found.average is None:
        return CodedMessage(
            "weak_lifecycle",
            "with {devices:,} devices who is new, stayed or returned is known to +-{points:.0f} "
            "points {when}: it takes a larger epsilon or more devices",
            **facts,
        )
    return CodedMessage(
        "weak_retention",
        "with {devices:,} devices the average retention is known to +-{points:.0f} points at best, "
        "if {new:.0%} of them are new {when}: it takes a larger epsilon or more devices",
        new=expected.NEW,
        **facts,
    )


def _discovery_forecast(
    metric: Metric, mechanism: PrefixTree, reports: float, facts: dict[str, Any]
) -> CodedMessage | None:
    """What so many reports cannot find; None if they find strings of 1% in half of the windows."""
    share = expected.Reach.in_window(mechanism, reports).half_text
    if share <= WORTHWHILE_SHARE:
        return None
    facts["needed"] = math.ceil(expected.reports_to_find(mechanism, WORTHWHILE_SHARE) / metric.rate)
    facts["blind"] = share > LARGE_SHARE
    if share > NOTHING:
        return CodedMessage(
            "nothing_surfaces",
            "no string surfaces with {devices:,} devices at {rate}: one of 1% of "
            "the devices takes {needed:,} devices, or a larger epsilon or rate",
            **facts,
        )
    return CodedMessage(
        "few_surface",
        "with {devices:,} devices at {rate} hardly a string surfaces {when} that "
        "less than {share:.1%} of the devices have: one of 1% takes {needed:,} devices, or a "
        "larger epsilon or rate",
        share=share,
        **facts,
    )


def discovery_remarks(metric: Metric) -> Iterator[tuple[CodedMessage, Literal["warning", "note"]]]:
    """What lint says of a discovery beside the forecast, each with its severity."""
    mechanism = metric.scheme.mechanism
    if not isinstance(mechanism, PrefixTree):
        return
    length = 2 * mechanism.levels
    if length > USUAL_LENGTH:
        told = CodedMessage(
            "long_strings",
            "max_length is {length}: {tables} tables share the reports, so that less is found, and "
            "of strings beyond {usual} bytes seldom the whole. Discover the first {usual} bytes, "
            "put what tells strings apart there, and follow whole strings in a string metric",
            length=length,
            tables=mechanism.levels + 1,
            usual=USUAL_LENGTH,
        )
        yield told, "warning"
    if metric.devices is None:
        return
    reach = expected.Reach.in_window(mechanism, metric.devices * metric.rate)
    if reach.half_text > WORTHWHILE_SHARE:
        return
    told = CodedMessage(
        "surfacing",
        "with {devices:,} devices at {rate} strings above {sure:.2%} of the devices "
        "will surface {when}, and those of {half:.2%} in half of the cases; of random characters "
        "from {any:.2%} on. {fakes:,} fake devices can put a string of theirs on the list",
        devices=metric.devices,
        rate=_taking_part(metric),
        sure=reach.sure_text,
        half=reach.half_text,
        any=reach.sure_any,
        when=IN_A[metric.window],
        fakes=reach.fakes,
    )
    yield told, "note"


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
    count = len(metric.scheme.combinations)
    if metric.devices is None:
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
    reports = metric.devices * metric.rate / count
    needed = reports_to_detect(metric.scheme.oracle, len(metric.values), LARGE_SHARE)
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


def wasteful_range(metric: Metric) -> CodedMessage | None:
    """Advice if the cells of a distribution are wider than most of the range's small numbers."""
    mechanism = metric.scheme.mechanism
    if not isinstance(mechanism, Histogram):
        return None
    numbers = mechanism.range
    if numbers.scale == "log" or numbers.integer or numbers.start <= 0:
        return None
    if numbers.end / numbers.start <= WIDE:
        return None
    return CodedMessage(
        "wasteful_range",
        "high is {times:,.0f} times low on a linear scale, so that small numbers share few cells: "
        'try scale = "log"',
        times=numbers.end / numbers.start,
    )
