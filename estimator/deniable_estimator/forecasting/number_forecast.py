"""How exactly a crowd's mean and quantiles can be known, computed before the first report.

With n reports, standard error = sqrt(V / n); V is the variance that one report leaves.

* Mean, from a sliding window: V is its largest over the range, in units of half the range squared,
  times the square of half the range. It holds for the noise and the rounding; how much the numbers
  of the devices themselves differ adds to it what they differ less than that worst case.
* Share below an edge, from a mechanism with cells: V is its `edge_variance`.
* Quantile p has an upper limit (95%) if the share below `high` may be known to be p or more:
  if z sqrt(V / n) < 1 - p, so from n = z**2 V / (1-p)**2 on. V is the average over all edges.
"""

from __future__ import annotations

import math

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import TOP, Histogram
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.metric import Metric
from deniable.protocol.windows import IN_A
from deniable_estimator.forecasting.detection import deviations, taking_part

QUANTILES = (0.5, 0.9, 0.95, 0.99)
"""The quantiles that people ask for."""

WIDE = 100
"""On a linear scale, a range this many times its lower bound leaves few cells for small numbers."""

GOOD_MEAN = 0.05
"""A mean that is not even known to 5% of the range, up or down, is worth a note."""

Z = deviations(0.95)
"""The half width of a 95% interval, in standard errors."""


def mean_variance(window: SlidingWindow) -> float:
    """The worst variance of one report's score, in units of half the range squared.

    Between two levels the variance is that of a number which is rounded at random: a parabola.
    """
    scores = window.scores()
    p = window.threshold / (1 << 53)
    outside = (1 - p) / (window.columns - window.width)
    gain = p / window.width - outside
    everywhere = outside * math.fsum(score * score for score in scores)
    places = [2 * level / TOP - 1 for level in window.levels]
    squares = [
        everywhere + gain * math.fsum(score * score for score in scores[i : i + window.width])
        for i in range(len(places))
    ]
    worst = 0.0
    for i in range(len(places) - 1):
        slope = (squares[i + 1] - squares[i]) / (places[i + 1] - places[i])
        top = min(max(slope / 2, places[i]), places[i + 1])
        worst = max(worst, squares[i] + slope * (top - places[i]) - top * top)
    return worst


def mean_half_width(window: SlidingWindow, reports: float) -> float:
    """Half of the width of a mean's 95% interval, as a part of the range."""
    # The range is twice the unit of the variance.
    return Z * math.sqrt(mean_variance(window) / reports) / 2


def reports_for_quantile(histogram: Histogram, quantile: float) -> int:
    """With how many reports a quantile begins to have an upper limit; take four times as many."""
    return math.ceil(Z**2 * histogram.edge_variance / (1 - quantile) ** 2)


def number_forecast(metric: Metric, reports: float) -> CodedMessage | None:
    """What so many reports cannot tell of a number; None if they can."""
    mechanism = metric.scheme.mechanism
    found, blind = [], False
    window = mechanism.mean if isinstance(mechanism, HierarchicalHistogram) else mechanism
    if isinstance(window, SlidingWindow):
        part = mean_half_width(window, reports if window is mechanism else reports / 4)
        blind = part >= 0.5
        if part > GOOD_MEAN:
            found.append(
                CodedMessage(
                    "rough_mean", "the mean is known to +-{part:.2g} of the range", part=part
                )
                if not blind
                else CodedMessage("unknown_mean", "the mean is known to no better than the range")
            )
    if isinstance(mechanism, Histogram):
        needed = {each: reports_for_quantile(mechanism, each) for each in QUANTILES}
        open_ones = [each for each, count in needed.items() if count > reports]
        blind = 0.5 in open_ones
        if open_ones:
            names = [f"p{100 * each:g}" for each in open_ones]
            found.append(
                CodedMessage(
                    "open_quantiles",
                    "{quantiles} will have no upper limit {when}: {last} takes more than "
                    "{needed:,} devices",
                    quantiles=", ".join(names),
                    when=IN_A[metric.window],
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
        devices=metric.devices,
        rate=taking_part(metric),
        lacks=lacks,
        blind=blind,
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
