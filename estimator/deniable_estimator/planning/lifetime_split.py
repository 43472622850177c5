"""How a lifetime epsilon L is best divided into reports: few with a large epsilon, or many with a
small one.

A device may send k = floor(L / epsilon) reports. It reports with probability s (sample_rate) in
each window, so k reports last about N = k / s windows, and of n devices about n k / N report in a
window. With the variance V(epsilon) that one report leaves, a window's variance is V N / (n k).
So a window of the same crowd over the same time tells in proportion to ::

    k / V(epsilon),  k = floor(L / epsilon)

Epsilon costs the lifetime in proportion, and for small epsilon V falls like 1 / epsilon**2: half as
many reports with twice the epsilon leave half the variance. There are two limits. V never falls
below the part that the choice of devices leaves (`Variance.spread`). And a device that reports by
chance does not send all its k reports within N windows; the smaller k, the more of them remain
unspent. So `information` is ::

    E[min(X, k)] / V,  X ~ Binomial(N, s)

or N / M / V for devices that take turns (`one_in` = M), in place of sample_rate.

It assumes that values may change from window to window, so that no window tells about another; that
the same devices take part over these N windows; and enough reports a window that its variance
describes it. It does not depend on the number of devices.

A larger epsilon has a price: a single report reveals more. So nothing above MOST_EPSILON is
proposed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.errors import SchemeError
from deniable.protocol.mechanisms import FrequencyOracle, Mechanism
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.metric import Metric
from deniable_estimator.statistics.expected import report_variance

MOST_EPSILON = 3.0
"""The largest epsilon of one report that is proposed. After one such report a 50/50 guess is right
at most 95.3% of the time. With more, a single report is hardly deniable."""

SMALL_SHARE = 0.01
"""The share whose variance counts if none is given, as in all forecasts of lint
(`planning.crowd_forecast`)."""

_STEPS = 100
"""Proposed epsilons have two decimals, or three significant digits if that is finer."""

_NEGLIGIBLE = 1e-17


def sent_reports(reports: int, sample_rate: float, windows: int) -> float:
    """E[min(X, reports)], X ~ Binomial(windows, sample_rate): how many reports a device sends on
    average within so many windows, if its budget allows `reports` in all."""
    if reports >= windows:
        return windows * sample_rate
    if sample_rate >= 1:
        return float(reports)
    # From the most probable number on, up and down: each term follows from its neighbour.
    odds = sample_rate / (1 - sample_rate)
    peak = math.floor((windows + 1) * sample_rate)
    whole, sent = 1.0, float(min(peak, reports))
    for step in (1, -1):
        count, chance = peak, 1.0
        while 0 <= count + step <= windows and chance > _NEGLIGIBLE:
            lower = min(count, count + step)
            chance *= (odds * (windows - lower) / (lower + 1)) ** step
            count += step
            whole, sent = whole + chance, sent + chance * min(count, reports)
    return sent / whole


def declared(epsilon: float | Fraction) -> float:
    """The epsilon to write, never above: with two decimals, or three digits if that is finer."""
    exact = Decimal(Fraction(epsilon).numerator) / Decimal(Fraction(epsilon).denominator)
    step = Decimal(1).scaleb(min(-2, exact.adjusted() - 2))
    return float(exact.quantize(step, rounding=ROUND_FLOOR))


def rate_words(rate: float) -> str:
    """A sample rate with three digits, as it is written in a registry."""
    return f"{Decimal(f'{rate:.3g}'):f}"


def report_counts(fewest: int, most: int) -> Iterator[int]:
    """Numbers of reports to choose from, rising: both limits, and between them 1, 2, 3, 4, 6, 8,
    12, 16, 24 and so on."""
    between = {times * 2**power for times in (1, 3) for power in range(60)}
    yield from sorted({fewest, most} | {each for each in between if fewest < each < most})


@dataclass(frozen=True)
class Split:
    """One way to divide a lifetime epsilon."""

    reports: int
    """How many reports a device may send in its life."""
    epsilon: float
    """Of each, as the registry would declare it."""
    exact_epsilon: float
    """In force: exact, rounded up."""
    mechanism: str
    noise: float
    """The variance that the noise of one report leaves."""
    spread: float
    """The same of the choice of devices."""
    information: float
    """The reports that a device sends on average over all windows, over the variance of one."""

    @property
    def variance(self) -> float:
        """That one report leaves."""
        return self.noise + self.spread

    @property
    def lifetime_epsilon(self) -> float:
        """What all of them take, as declared."""
        return float(Decimal(repr(self.epsilon)) * self.reports)


class Splits(NamedTuple):
    """All ways to divide the lifetimes of one metric."""

    design: Callable[[float], Mechanism[Any]]
    """The mechanism of the metric within a declared epsilon."""
    sent: Callable[[int], float]
    """How many reports a device sends on average, by how many its budget allows."""
    share: float = SMALL_SHARE
    """That whose variance counts."""

    def of(self, epsilon: float, reports: int) -> Split:
        """So many reports at this declared epsilon."""
        mechanism = self.design(epsilon)
        variance = report_variance(mechanism, self.share)
        information = self.sent(reports) / variance.total
        return Split(reports, epsilon, mechanism.epsilon, mechanism.name, *variance, information)

    def smallest(self, target: float, most_reports: int) -> Split | None:
        """That with the smallest lifetime epsilon that tells at least `target`, an `information`;
        among those of `report_counts`, with epsilons of two decimals.

        None if there is none with at most `most_reports` reports of MOST_EPSILON each.
        """
        found: Split | None = None
        for count in report_counts(1, most_reports):
            largest = math.floor(MOST_EPSILON * _STEPS)
            if found is not None:
                # More reports are of interest only if they cost less in all.
                spent = found.reports * round(found.epsilon * _STEPS)
                largest = min(largest, (spent - 1) // count)

            def told(steps: int, count: int = count) -> float:
                return self.of(steps / _STEPS, count).information

            if largest >= 1 and told(largest) >= target:
                steps = bisect_left(range(1, largest), target, key=told) + 1
                found = self.of(steps / _STEPS, count)
        return found


TWOFOLD = 2.0
"""If another split makes the crowd count for this many times as many devices, lint warns."""

WORTH_A_NOTE = 1.5
"""From this factor on, lint writes a note."""


def better_split(metric: Metric, cap: float | None = None) -> CodedMessage | None:
    """Advice if another split of the metric's lifetime epsilon tells at least WORTH_A_NOTE times as
    much in a window; None if not. `cap` is the registry's own lifetime epsilon.

    The factor is `arguments["times"]`. The split is for the same time as today's, and shares of 1%
    gain that much. No share is known less well than today: with less noise, a common share gains
    less, as then the choice of the devices matters more. Memos have no split, and neither has
    `answer = "at_once"`: a visitor who does not come back spends no lifetime.
    """
    if metric.longitudinal == "memoize" or metric.answer == "at_once":
        return None
    lifetime = metric.lifetime_epsilon if cap is None else min(metric.lifetime_epsilon, cap)
    exact = metric.scheme.mechanism.epsilon
    reports = math.floor(Fraction(lifetime) / Fraction(exact))
    fewest = math.ceil(Fraction(lifetime) / Fraction(MOST_EPSILON))
    if reports <= fewest:
        return None
    windows = max(reports, round(reports / metric.rate))
    turns = metric.one_in is not None
    key = "one_in" if turns else "sample_rate"

    def sent(count: int) -> float:
        """How many of these reports a device sends within the windows: where it takes turns, it has
        none left over."""
        if turns:
            return windows / math.ceil(windows / count)
        return sent_reports(count, min(1.0, count / windows), windows)

    def rate(count: int) -> str:
        """What to write for the key, so that as many reports last as long as today's."""
        if turns:
            return f"{max(2, math.ceil(windows / count))}"
        return rate_words(min(1.0, count / windows))

    @cache
    def design(epsilon: float) -> Mechanism[Any]:
        return metric.type.design(metric.mechanism, metric.name, epsilon)

    splits, of_half = Splits(design, sent), Splits(design, sent, share=0.5)
    today = splits.of(metric.epsilon, reports)
    half = of_half.of(metric.epsilon, reports).information
    try:
        others = [
            splits.of(declared(Fraction(lifetime) / count), count)
            for count in report_counts(fewest, reports - 1)
        ]
    except SchemeError:  # the named mechanism has one epsilon only
        return None
    better = [each for each in others if of_half.of(each.epsilon, each.reports).information >= half]
    if not better:
        return None
    best = max(better, key=lambda split: split.information)
    times = best.information / today.information
    if times < WORTH_A_NOTE:
        return None
    advice = CodedMessage(
        "better_split",
        "within the same lifetime_epsilon, epsilon = {epsilon:g} and {key} = {rate} would "
        "show {what} as {times:.1f} times as many devices do now (reports of a device: {reports} "
        "in place of {now}, over the same time). In exchange one report alone makes a 50/50 guess "
        "right at most {belief}% of the time, not {belief_now}%",
        what=_asked(metric),
        times=times,
        epsilon=best.epsilon,
        key=key,
        rate=rate(best.reports),
        reports=best.reports,
        now=reports,
        belief=_belief(best.exact_epsilon),
        belief_now=_belief(exact),
    )
    least = splits.smallest(today.information, reports)
    if least is None or least.lifetime_epsilon >= lifetime:
        return advice
    return CodedMessage(
        "better_split_or_less",
        "{told}. Or show what it shows now with lifetime_epsilon = {lifetime:g}, epsilon = "
        "{epsilon:g} and {key} = {rate}",
        told=advice,
        times=times,
        lifetime=least.lifetime_epsilon,
        epsilon=least.epsilon,
        key=key,
        rate=rate(least.reports),
    )


def _asked(metric: Metric) -> CodedMessage:
    """What the variance is about."""
    mechanism = metric.scheme.mechanism
    if isinstance(mechanism, (FrequencyOracle, PrefixTree)):
        return CodedMessage("share_of_one", "a share of 1%")
    if isinstance(mechanism, SlidingWindow):
        return CodedMessage("a_mean", "the mean")
    return CodedMessage("a_distribution", "the distribution")


def _belief(epsilon: float) -> float:
    """How often a 50/50 guess is right at most after one report, in percent, rounded up."""
    return math.ceil(1000 / (1 + math.exp(-epsilon))) / 10
