"""What reports of a mechanism will tell, computed before the first one and without numpy.

From n reports an estimate has the standard error sqrt(V / n), with V the variance that one report
leaves (`report_variance`).

* Mean, from a sliding window: V is its largest over the range, in units of half the range squared,
  times the square of half the range. It holds for the noise and the rounding; how much the numbers
  of the devices themselves differ adds to it what they differ less than that worst case.
* Share below an edge, from a mechanism with cells: V is its `edge_variance`.
* Quantile p has an upper limit (95%) if the share below `high` may be known to be p or more:
  if z sqrt(V / n) < 1 - p, so from n = z**2 V / (1-p)**2 on. V is the average over all edges.

**Who comes back.** The variances are those of `deniable_estimator.analyses.retention`, with n
reports of a window that answer the question, p and q of its channel, and a retention R of cohorts
of N devices ::

    a share f:  [f p (1-p) + (1-f) q (1-q)] / (n (p-q)**2), and f (1-f) / n for other devices
    R:          [n u (1 + R**2) + N v R (1 + R) + N R (1-R)] / (c N**2), an average over c cohorts

**Which strings a discovery finds, and how many fakes make one appear.** The unit of all figures is
the standard error of a share of 0 in one of the M + 1 tables, of which each gets 1 / (M + 1) of n
reports::

    s = sqrt(q(1 - q)(M + 1) / n) / (p - q)

Measured by simulation at epsilon 2 and 4, with a million reports, M = 8, and 12 to 18 strings of 9
to 11 letters a cell: a string that looks like common text is found in half of the crowds from 3.5 s
on and in 95% from 5 s on; one of random characters from 5 s and 6.7 s on. Shorter strings surface
sooner. Of strings up to 2 s none of 180 was found, at each epsilon: with 95% confidence that is at
most 1.7% of them.

These are statements about crowds. They are no guarantee for a device: that is the epsilon of its
report, which holds whatever is found. A fake that picks its table and its message moves the share
of its string like (1-q) / (p-q) honest devices.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple, Self

from deniable.protocol.mechanisms import FrequencyOracle, Mechanism
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.number_range import TOP, Histogram
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection
from deniable_estimator.statistics.detection import deviations

QUANTILES = (0.5, 0.9, 0.95, 0.99)
"""The quantiles that people ask for."""

Z = deviations(0.95)
"""The half width of a 95% interval, in standard errors."""

NEW = 0.1
"""The part of the active devices that is taken for new where nothing is said."""

BACK = 0.4
"""The retention that is planned for: the larger it is, the less is known of it."""

_ERRORS = {"hidden": 2.0, "half_text": 3.5, "sure_text": 5.0, "half_any": 5.0, "sure_any": 6.7}
"""The shares of a reach, in standard errors."""


class Variance(NamedTuple):
    """n times the variance of an estimate from n reports, one of each device."""

    noise: float
    """What the mechanism adds."""
    spread: float
    """What the choice of the devices adds, even without noise."""

    @property
    def total(self) -> float:
        return self.noise + self.spread


def report_variance(mechanism: Mechanism[Any], share: float) -> Variance:
    """The variance that one report leaves: for values that of `share`, for numbers in units of the
    range.

    With p and q of a frequency oracle ::

        noise = [share p (1-p) + (1-share) q (1-q)] / (p-q)**2,  spread = share (1-share)

    A mean (range from -1 to 1) has its largest noise over the range, and numbers spread evenly;
    a distribution the average over its edges, and the share 1/2.
    A string of discovery is seen by the reports of one table, so both are as many times as large
    as there are tables.

    Raises:
        TypeError: the mechanism neither counts values nor numbers.
    """
    if isinstance(mechanism, (FrequencyOracle, PrefixTree)):
        p, q, part = mechanism.p, mechanism.q, Fraction(share)
        tables = len(mechanism.rows) if isinstance(mechanism, PrefixTree) else 1
        noise = (part * p * (1 - p) + (1 - part) * q * (1 - q)) / (p - q) ** 2
        return Variance(float(tables * noise), float(tables * part * (1 - part)))
    if isinstance(mechanism, SlidingWindow):
        return Variance(mean_variance(mechanism), 1 / 3)
    if isinstance(mechanism, Histogram):
        return Variance(mechanism.edge_variance, 1 / 4)
    raise TypeError(f"{mechanism.name} has no known variance")


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


class Reach(NamedTuple):
    """Shares of the devices from which on strings surface; above 1 if none does."""

    hidden: float
    """None of so rare strings was found in the measurements: 0 of 180, or at most 1.7%."""
    half_text: float
    """In half of the crowds, if the string looks like common text."""
    sure_text: float
    """In 95% of the crowds."""
    half_any: float
    """In half of the crowds, if its characters are random."""
    sure_any: float
    """In 95% of the crowds."""
    fakes: int
    """So many fake devices make a string of theirs appear in half of the crowds."""

    @classmethod
    def in_window(cls, mechanism: PrefixTree, reports: float) -> Self:
        """That of one window with so many reports, above 0."""
        p, q = float(mechanism.p), float(mechanism.q)
        error = math.sqrt(q * (1 - q) * (mechanism.levels + 1) / reports) / (p - q)
        shares = {name: errors * error for name, errors in _ERRORS.items()}
        return cls(**shares, fakes=math.ceil(shares["half_text"] * reports * (p - q) / (1 - q)))


def reports_to_find(mechanism: PrefixTree, share: float) -> int:
    """With how many reports half of the strings with such a share surface, if they look like
    text."""
    return math.ceil(Reach.in_window(mechanism, 1.0).half_text ** 2 / share**2)


class ExpectedRetention(NamedTuple):
    """Half widths of 95% intervals, as parts of 1; None where a question is not asked."""

    reports: float
    """Reports of a window that answer each question."""
    exact: float | None
    """Of a share of the lifecycle among the devices that answered: how far it may be from an exact
    count. The largest over all shares."""
    lifecycle: float | None
    """Of the same among all devices like them, which more of them would have told."""
    cohort: float | None
    """Of the retention of one cohort; 1/2 where nothing is known."""
    average: float | None
    """Of the average of `ages` cohorts."""

    @classmethod
    def of(cls, mechanism: MemoizedRetention, active: float, new: float = NEW) -> Self:
        """That of so many reports in a window, of which the part `new` is from new devices."""
        channels = dict(zip(mechanism.asks, mechanism.channels, strict=True))
        answers = active / len(channels)
        exact = lifecycle = cohort = average = None
        if channel := channels.get("lifecycle"):
            found = [report_variance(channel, place / 100) for place in range(101)]
            exact = max(Z * math.sqrt(each.noise / answers) for each in found)
            lifecycle = max(Z * math.sqrt(each.total / answers) for each in found)
        if channel := channels.get("cohorts"):
            cohort = _quotient(channel, answers, new, 1)
            average = _quotient(channel, answers, new, mechanism.ages)
        return cls(answers, exact, lifecycle, cohort, average)

    @property
    def width(self) -> float:
        """That of the average, or of the lifecycle where it alone is asked for."""
        width = self.lifecycle if self.average is None else self.average
        assert width is not None
        return width


def _quotient(channel: MemoizedSubsetSelection, answers: float, new: float, cohorts: int) -> float:
    """The half width of the retention of so many cohorts together; 1/2 if they cannot be told from
    none."""
    p, q = float(channel.p), float(channel.q)
    each = answers * q * (1 - q) / (p - q) ** 2
    own, devices = (1 - p - q) / (p - q), answers * new
    begun = cohorts * devices
    below = cohorts * (each + own * devices)
    if begun**2 <= Z**2 * below:
        return 0.5
    variance = each * (1 + BACK**2) + devices * (own * BACK * (1 + BACK) + BACK * (1 - BACK))
    return min(0.5, Z * math.sqrt(cohorts * variance) / begun)
