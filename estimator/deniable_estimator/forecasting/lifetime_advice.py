"""Advice of `deniable lint` where another split of a lifetime epsilon tells much more."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.errors import SchemeError
from deniable.protocol.mechanisms import FrequencyOracle, Mechanism, PrefixTree, SlidingWindow
from deniable.protocol.metric import Metric
from deniable_estimator.forecasting.lifetime_split import (
    MOST_EPSILON,
    SMALL_SHARE,
    Split,
    declared,
    report_counts,
    smallest_lifetime,
    split_of,
    spread_over,
    turns_over,
)

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
    if metric.one_in is None:
        key, sent = "sample_rate", spread_over(windows)
    else:
        key, sent = "one_in", turns_over(windows)

    def rate(count: int) -> str:
        """What to write for the key, so that as many reports last as long as today's."""
        if key == "one_in":
            return f"{max(2, math.ceil(windows / count))}"
        return f"{Decimal(f'{min(1.0, count / windows):.3g}'):f}"

    @cache
    def design(epsilon: float) -> Mechanism[Any]:
        return metric.type.design(metric.mechanism, metric.name, epsilon)

    def told(epsilon: float, count: int) -> tuple[Split, float]:
        """The split, and what it tells of a share of one half."""
        split = split_of(design, epsilon, count, sent, share=SMALL_SHARE)
        half = split_of(design, epsilon, count, sent, share=0.5)
        return split, half.information

    today, half_today = told(metric.epsilon, reports)
    try:
        others = [
            told(declared(Fraction(lifetime) / count), count)
            for count in report_counts(fewest, reports - 1)
        ]
    except SchemeError:  # the named mechanism has one epsilon only
        return None
    better = [split for split, half in others if half >= half_today]
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
    least = smallest_lifetime(design, today.information, sent, most_reports=reports)
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
